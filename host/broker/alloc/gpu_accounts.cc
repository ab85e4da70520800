#include "host/broker/alloc/gpu_accounts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "host/broker/alloc/memory_reservations.h"

namespace host::broker {
namespace {

using std::chrono::milliseconds;

constexpr auto between = milliseconds(500);
// A worker over its limit is measured again after this time, so that it ends within a second.
constexpr auto to_be_sure = milliseconds(250);

std::string mebibytes(std::uint64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

}  // namespace

std::string name_of(const Gpu& gpu) { return gpu.uuid.empty() ? gpu.pci : gpu.uuid; }

std::string key_of(const std::string& name) {
  constexpr std::size_t prefix = 4, uuid = 36;
  const bool is_uuid = name.size() == prefix + uuid && name[prefix - 1] == '-';
  return is_uuid ? name.substr(prefix) : name;
}

std::string uuid_in_words(const std::uint8_t (&uuid)[16]) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid; ++i)
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
  return text;
}

GpuAccounts::~GpuAccounts() { loop_.forget(timer_); }

void GpuAccounts::measure_by(std::unique_ptr<GpuUsage> usage, std::uint64_t first_context) {
  usage_ = std::move(usage);
  first_context_ = first_context;
}

void GpuAccounts::allow_overcommit(bool allowed) {
  overcommit_ = allowed;
  plan();
}

void GpuAccounts::look_first(const Config& config, const std::vector<VmGpus>& gpus) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.vms.size(); ++i)
    for (const Gpu& gpu : gpus[i].list)
      if (config.vms[i].gpu_memory != 0) names.insert(name_of(gpu));
  if (!names.empty()) learn(usage_->ask_now({names.begin(), names.end()}));
}

GpuAccount& GpuAccounts::named(const std::string& name) {
  GpuAccount& gpu = accounts_[key_of(name)];
  if (gpu.name.empty()) {
    gpu.name = name;
    gpu.context = first_context_;
  }
  return gpu;
}

void GpuAccounts::learn(const GpuUses& uses) {
  for (const auto& [name, use] : uses) {
    GpuAccount& gpu = named(name);
    gpu.missing = use.missing;
    if (use.total != 0) learn_total(gpu, use.total);
  }
}

void GpuAccounts::learn_total(GpuAccount& gpu, std::uint64_t total) {
  if (gpu.total != 0) return;
  gpu.total = total;
  plan(gpu);
}

void GpuAccounts::join(MemoryReservations& leases) {
  leases_.push_back(&leases);
  plan();
}

void GpuAccounts::leave(MemoryReservations& leases) {
  std::erase(leases_, &leases);
  plan();
}

void GpuAccounts::plan() {
  for (auto& [key, gpu] : accounts_) plan(gpu);
}

// Nothing bounds the VMs without a quota if no VM has one, or if the operator allows overcommit.
void GpuAccounts::plan(GpuAccount& gpu) {
  std::uint64_t promised = 0;
  for (const MemoryReservations* leases : leases_) promised += leases->promised(gpu);
  gpu.rest.limit.reset();
  if (promised == 0 || overcommit_ || gpu.total == 0) return;
  gpu.rest.limit = gpu.total - std::min(gpu.total, promised);
  if (promised <= gpu.total || std::exchange(gpu.overcommitted_reported, true)) return;
  spdlog::error(
      "{} has {}, and VMs are promised {} of it: lower gpu_memory, or set overcommit = true in [gpu]; whoever comes "
      "late "
      "gets nothing",
      gpu.name, mebibytes(gpu.total), mebibytes(promised));
}

// ---- measuring -----------------------------------------------------------------------------------------------------

void GpuAccounts::watch() {
  if (timer_ == 0 && usage_ != nullptr) measure_after(between);
}

void GpuAccounts::measure_after(Clock::duration delay) {
  timer_ = loop_.after(delay, [this] {
    timer_ = 0;
    measure();
  });
}

void GpuAccounts::measure() {
  std::set<std::string> wanted;
  for (MemoryReservations* leases : leases_) leases->before_measuring(wanted);
  if (wanted.empty()) return;  // watch() starts the measuring again
  const std::vector<std::string> names(wanted.begin(), wanted.end());
  if (!usage_->ask(names, [this](const GpuUses& uses) { measured(uses); })) measure_after(between);
}

void GpuAccounts::measured(const GpuUses& uses) {
  learn(uses);
  for (const auto& [name, use] : uses) {
    if (use.unread.empty() || std::exchange(named(name).unread_reported, true)) continue;
    spdlog::warn("{}: the managed memory of a process is not measured: {}", name, use.unread);
  }
  bool doubtful = false;
  for (MemoryReservations* leases : std::vector(leases_)) doubtful = leases->measured(uses) || doubtful;
  for (auto& [key, gpu] : accounts_) {
    if (gpu.missing.empty() || std::exchange(gpu.missing_reported, true)) continue;
    spdlog::warn("{}: nobody measures what workers hold of it: {}; quotas count what workers say that they have",
                 gpu.name, gpu.missing);
  }
  measure_after(doubtful ? to_be_sure : between);
}

// ---- quotas of the configuration -----------------------------------------------------------------------------------

namespace {

struct Promises {
  std::uint64_t sum = 0;
  std::vector<std::string> vms;
};

Result<void> holds_all(const GpuAccount& gpu, const Promises& promises) {
  if (gpu.total == 0 || promises.sum <= gpu.total) return {};
  return Error{fmt::format(
      "[vm.{}] gpu_memory: {} together promised of {}, which has {}: that must be no more than it has, or [gpu] "
      "overcommit = true",
      fmt::join(promises.vms, "], [vm."), mebibytes(promises.sum), gpu.name, mebibytes(gpu.total))};
}

Result<void> holds_context(const GpuAccount& gpu, const VmOptions& vm) {
  const auto quota = static_cast<std::uint64_t>(vm.gpu_memory);
  if (!gpu.context_measured || quota >= gpu.context) return {};
  return Error{
      fmt::format("[vm.{}] gpu_memory = {} is less than a context takes of {}: it takes {} at least, or \"none\"",
                  vm.name, mebibytes(quota), gpu.name, mebibytes(gpu.context))};
}

}  // namespace

Result<void> quotas_fit(const Config& config, const std::vector<VmGpus>& gpus,
                        const std::map<std::string, GpuAccount>& known) {
  std::map<std::string, Promises> promised;
  for (std::size_t i = 0; i < config.vms.size(); ++i) {
    const VmOptions& vm = config.vms[i];
    if (vm.gpu_memory == 0) continue;
    for (const Gpu& gpu : gpus[i].list) {
      const std::string key = key_of(name_of(gpu));
      const auto account = known.find(key);
      if (account != known.end())
        if (const auto holds = holds_context(account->second, vm); !holds) return holds.error();
      Promises& of_gpu = promised[key];
      of_gpu.sum += static_cast<std::uint64_t>(vm.gpu_memory);
      of_gpu.vms.push_back(vm.name);
    }
  }
  if (config.gpu.overcommit) return {};
  for (const auto& [key, promises] : promised)
    if (const auto account = known.find(key); account != known.end())
      if (const auto holds = holds_all(account->second, promises); !holds) return holds.error();
  return {};
}

}  // namespace host::broker
