#include "host/broker/gpu/gpu_usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "host/base/hostile_text.h"
#include "host/base/parse_text.h"
#include "host/simgpu/api/device/usage_file.h"
#include "host/simgpu/image/device_names.h"

namespace host::broker {
namespace {

// Parses a size as the simulated GPU does, which rejects invalid values itself.
std::uint64_t simulated_size(const char* text, std::uint64_t fallback) {
  if (text == nullptr) return fallback;
  char* unit = nullptr;
  const std::uint64_t value = std::strtoull(text, &unit, 10);
  return value << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0);
}

// The simulated GPU's facts: those of an H200, consistent with its libcuda, under a constant load.
GpuFacts simulated_facts(int device) {
  using ring::Fact;
  GpuFacts facts;
  facts.name = simgpu::device_name;
  facts.driver = "simulated";
  facts.vbios = "00.00.00.00.00";
  facts.cuda = simgpu::driver_version;
  facts.bus_id = fmt::format("00000000:{:02x}:00.0", simgpu::pci_bus_of(device));
  const auto all = [&](std::uint32_t value, std::initializer_list<Fact> which) {
    for (const Fact fact : which) facts[fact] = value;
  };
  facts[Fact::compute_major] = simgpu::device_sm / 10;
  facts[Fact::compute_minor] = simgpu::device_sm % 10;
  all(0, {Fact::compute_mode, Fact::display_active, Fact::mig_mode, Fact::mig_mode_pending, Fact::corrected_errors,
          Fact::uncorrected_errors, Fact::corrected_errors_ever, Fact::uncorrected_errors_ever, Fact::performance_state,
          Fact::throttle_reasons, Fact::pci_id, Fact::pci_subsystem});
  all(1, {Fact::persistence_mode, Fact::display_mode, Fact::ecc_mode, Fact::ecc_mode_pending, Fact::link_generation,
          Fact::link_width, Fact::greatest_link_generation, Fact::greatest_link_width, Fact::cores});
  facts[Fact::brand] = 14;         // NVIDIA
  facts[Fact::architecture] = 10;  // Blackwell
  all(40, {Fact::temperature, Fact::memory_temperature});
  all(90, {Fact::shutdown_temperature, Fact::slowdown_temperature, Fact::greatest_temperature,
           Fact::greatest_memory_temperature});
  facts[Fact::power_usage] = 100'000;
  all(300'000, {Fact::power_limit, Fact::enforced_power_limit, Fact::default_power_limit, Fact::greatest_power_limit,
                Fact::least_power_limit});
  all(1000, {Fact::sm_clock, Fact::graphics_clock, Fact::video_clock, Fact::greatest_sm_clock,
             Fact::greatest_graphics_clock, Fact::greatest_video_clock, Fact::applications_graphics_clock});
  all(2000, {Fact::memory_clock, Fact::greatest_memory_clock, Fact::applications_memory_clock, Fact::memory_bus_width});
  return facts;
}

class SimulatedUsage : public GpuUsage {
 public:
  explicit SimulatedUsage(EventLoop& loop) : loop_(loop) {
    const char* path = std::getenv("IVGPU_SIM_USAGE");
    if (path != nullptr) file_ = simgpu::map_usage_file(path);
  }
  ~SimulatedUsage() override { loop_.forget(answer_timer_); }

  bool ask(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) override {
    return answer_later([this, gpus, answer = std::move(answer)] { answer(ask_now(gpus)); });
  }
  bool ask_for_facts(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) override {
    return answer_later([this, gpus, answer = std::move(answer)] {
      GpuUses uses;
      for (const std::string& gpu : gpus) uses[gpu] = facts_of(gpu);
      answer(uses);
    });
  }
  GpuUses ask_now(const std::vector<std::string>& gpus) override {
    GpuUses uses;
    for (const std::string& gpu : gpus) uses[gpu] = use_of(gpu);
    return uses;
  }

 private:
  bool answer_later(std::function<void()> answer) {
    if (answer_timer_ != 0) return false;
    answer_timer_ = loop_.after(Clock::duration::zero(), [this, answer = std::move(answer)] {
      answer_timer_ = 0;
      answer();
    });
    return true;
  }

  GpuUse use_of(const std::string& gpu) const {
    GpuUse use{.total = simulated_size(std::getenv("IVGPU_SIM_MEMORY"), std::uint64_t{4} << 30),
               .missing = file_ == nullptr ? "the simulated GPU has no file for it (IVGPU_SIM_USAGE)" : "",
               .processes = {}};
    for (int device = 0; file_ != nullptr && device < simgpu::max_devices; ++device) {
      if (simgpu::device_uuid_text(device) != gpu) continue;
      for (const simgpu::UsageEntry& entry : file_->entry)
        if (const std::uint32_t process = entry.process.load(); process != 0)
          use.processes[static_cast<pid_t>(process)] = entry.bytes[device].load();
    }
    return use;
  }

  GpuUse facts_of(const std::string& gpu) const {
    GpuUse use{.total = 0, .missing = "there is no such simulated GPU", .processes = {}};
    for (int device = 0; device < simgpu::max_devices; ++device) {
      if (simgpu::device_uuid_text(device) != gpu) continue;
      use.missing.clear();
      use.facts = simulated_facts(device);
      use.facts.total = use_of(gpu).total;
    }
    return use;
  }

  EventLoop& loop_;
  EventLoop::Id answer_timer_ = 0;
  const simgpu::UsageFile* file_ = nullptr;
};

}  // namespace

std::unique_ptr<GpuUsage> make_gpu_usage(EventLoop& loop, const std::string& library, const std::string& own_folder) {
  return library == "sim" ? make_simulated_usage(loop) : make_nvml_usage(loop, own_folder + "/ivgpu-nvml");
}

std::unique_ptr<GpuUsage> make_simulated_usage(EventLoop& loop) { return std::make_unique<SimulatedUsage>(loop); }

std::uint64_t simulated_context() { return simulated_size(std::getenv("IVGPU_SIM_CONTEXT_MEMORY"), 0); }

bool take_usage_line(const std::string& line, GpuUses& uses) {
  std::string_view rest = line;
  const std::string_view kind = first_word(rest);
  const auto gpu = uses.find(std::string(first_word(rest)));
  if (gpu == uses.end()) return false;
  GpuUse& use = gpu->second;
  if (kind == "missing" || kind == "unread") {
    (kind == "missing" ? use.missing : use.unread) = escaped(std::string(rest));
    return true;
  }
  if (take_fact_line(kind, rest, use.facts)) return true;
  const auto first = number_of<std::uint64_t>(first_word(rest));
  if (kind == "total" && first && rest.empty()) {
    use.total = *first;
    return true;
  }
  const auto bytes = number_of<std::uint64_t>(rest);
  if (kind != "use" || !first || *first > INT32_MAX || !bytes) return false;
  std::uint64_t& held = use.processes[static_cast<pid_t>(*first)];
  held += std::min(*bytes, ~std::uint64_t{0} - held);  // several lines per process are possible
  return true;
}

}  // namespace host::broker
