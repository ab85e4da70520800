#include "host/broker/gpu_usage.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "host/broker/hostile_text.h"
#include "host/simgpu/api/usage_file.h"

namespace host::broker {
namespace {

std::string_view word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view first = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return first;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// As the simulated GPU reads its variables; it refuses what makes no sense.
std::uint64_t simulated_size(const char* text, std::uint64_t fallback) {
  if (text == nullptr) return fallback;
  char* unit = nullptr;
  const std::uint64_t value = std::strtoull(text, &unit, 10);
  return value << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0);
}

class SimulatedUsage : public GpuUsage {
 public:
  explicit SimulatedUsage(EventLoop& loop) : loop_(loop) {
    const char* path = std::getenv("IVGPU_SIM_USAGE");
    if (path != nullptr) file_ = simgpu::map_usage_file(path);
  }
  ~SimulatedUsage() override { loop_.forget(answer_timer_); }

  bool ask(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) override {
    if (answer_timer_ != 0) return false;
    answer_timer_ = loop_.after(Clock::duration::zero(), [this, gpus, answer = std::move(answer)] {
      answer_timer_ = 0;
      answer(ask_now(gpus));
    });
    return true;
  }
  GpuUses ask_now(const std::vector<std::string>& gpus) override {
    GpuUses uses;
    for (const std::string& gpu : gpus) uses[gpu] = use_of(gpu);
    return uses;
  }

 private:
  GpuUse use_of(const std::string& gpu) const {
    GpuUse use{.total = simulated_size(std::getenv("IVGPU_SIM_MEMORY"), std::uint64_t{4} << 30),
               .missing = {},
               .processes = {}};
    if (file_ == nullptr) use.missing = "the simulated GPU has no file for it (IVGPU_SIM_USAGE)";
    for (int device = 0; file_ != nullptr && device < simgpu::max_devices; ++device) {
      if (simgpu::device_uuid_text(device) != gpu) continue;
      for (const simgpu::UsageEntry& entry : file_->entry)
        if (const std::uint32_t process = entry.process.load(); process != 0)
          use.processes[static_cast<pid_t>(process)] = entry.bytes[device].load();
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
  const std::string_view kind = word(rest);
  const auto gpu = uses.find(std::string(word(rest)));
  if (gpu == uses.end()) return false;
  GpuUse& use = gpu->second;
  if (kind == "missing") {
    use.missing = escaped(std::string(rest));
    return true;
  }
  const auto first = number<std::uint64_t>(word(rest));
  if (kind == "total" && first && rest.empty()) {
    use.total = *first;
    return true;
  }
  const auto bytes = number<std::uint64_t>(rest);
  if (kind != "use" || !first || *first > INT32_MAX || !bytes) return false;
  std::uint64_t& held = use.processes[static_cast<pid_t>(*first)];
  held += std::min(*bytes, ~std::uint64_t{0} - held);  // a process may be named once for each instance of a GPU
  return true;
}

}  // namespace host::broker
