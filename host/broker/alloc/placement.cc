#include "host/broker/alloc/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "host/broker/mps/mps_setting.h"

namespace host::broker {
namespace {

struct Load {
  std::uint64_t promised = 0;  // bytes
  std::uint64_t vms = 0;
};

class Placement {
 public:
  Placement(const Config& config, const std::map<std::string, GpuAccount>& known) : config_(config), known_(known) {}

  void count(const VmOptions& vm, const VmGpus& gpus) {
    for (const Gpu& gpu : gpus.list) {
      Load& load = loads_[key_of(name_of(gpu))];
      load.promised += static_cast<std::uint64_t>(vm.gpu_memory);
      ++load.vms;
    }
  }

  // Returns one of `candidates`. An error, one sentence, if none has room.
  Result<Gpu> choose(const VmOptions& vm, const std::vector<Gpu>& candidates) const {
    const Gpu* best = nullptr;
    std::string full;
    for (const Gpu& gpu : candidates) {
      if (!has_room(vm, gpu)) {
        full += (full.empty() ? "" : ", ") + left_in_words(gpu);
      } else if (best == nullptr || comes_before(vm, gpu, *best)) {
        best = &gpu;
      }
    }
    if (best == nullptr)
      return Error{fmt::format("[vm.{}] placement = \"{}\": no GPU has room for its gpu_memory of {} MiB: {}", vm.name,
                               vm.placement, vm.gpu_memory >> 20, full)};
    return *best;
  }

 private:
  Load load_of(const Gpu& gpu) const {
    const auto load = loads_.find(key_of(name_of(gpu)));
    return load == loads_.end() ? Load() : load->second;
  }

  // 0: not known yet.
  std::uint64_t total_of(const Gpu& gpu) const {
    const auto account = known_.find(key_of(name_of(gpu)));
    return account == known_.end() ? 0 : account->second.total;
  }

  std::uint64_t left_of(const Gpu& gpu) const {
    const std::uint64_t total = total_of(gpu), promised = load_of(gpu).promised;
    return total - std::min(total, promised);
  }

  bool has_room(const VmOptions& vm, const Gpu& gpu) const {
    if (vm.gpu_memory == 0 || config_.gpu.overcommit || total_of(gpu) == 0) return true;
    return static_cast<std::uint64_t>(vm.gpu_memory) <= left_of(gpu);
  }

  // Strict, so that the first of equal GPUs is kept.
  bool comes_before(const VmOptions& vm, const Gpu& gpu, const Gpu& other) const {
    const Load a = load_of(gpu), b = load_of(other);
    if (vm.placement == "packed") return a.vms > b.vms;
    return std::tie(a.promised, a.vms) < std::tie(b.promised, b.vms);
  }

  std::string left_in_words(const Gpu& gpu) const {
    return fmt::format("{} has {} of {} MiB left", name_of(gpu), left_of(gpu) >> 20, total_of(gpu) >> 20);
  }

  const Config& config_;
  const std::map<std::string, GpuAccount>& known_;
  std::map<std::string, Load> loads_;  // by key_of() of the GPUs' names
};

}  // namespace

Result<std::vector<VmGpus>> place_gpus(const Config& config, const std::map<std::string, GpuAccount>& known,
                                       const std::map<std::string, VmGpus>& kept, std::vector<VmGpus> gpus) {
  Placement placement(config, known);
  const auto chooses = [&](const VmOptions& vm) { return vm.placement != fixed_placement && !kept.contains(vm.name); };
  for (std::size_t i = 0; i < config.vms.size(); ++i) {
    const VmOptions& vm = config.vms[i];
    if (const auto has = kept.find(vm.name); has != kept.end()) gpus[i] = has->second;
    if (!chooses(vm)) placement.count(vm, gpus[i]);
  }
  for (std::size_t i = 0; i < config.vms.size(); ++i) {
    const VmOptions& vm = config.vms[i];
    if (!chooses(vm)) continue;
    const auto one = placement.choose(vm, gpus[i].list);
    if (!one) return one.error();
    gpus[i] = one_gpu(*one);
    gpus[i].placement = vm.placement;
    placement.count(vm, gpus[i]);
  }
  if (const auto fit = quotas_fit(config, gpus, known); !fit) return fit.error();
  if (const auto fits = mps_fits(config, gpus); !fits) return fits.error();
  return gpus;
}

}  // namespace host::broker
