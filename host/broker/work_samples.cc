#include "host/broker/work_samples.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace host::broker {

std::chrono::nanoseconds offset_of_clocks() {
  return std::chrono::system_clock::now().time_since_epoch() - std::chrono::steady_clock::now().time_since_epoch();
}

class WorkSamples::Shared : public GpuUsage {
 public:
  explicit Shared(WorkSamples& owner) : owner_(owner) {}
  bool ask(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) override {
    return owner_.usage_->ask(gpus, std::move(answer));
  }
  bool ask_for_work(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) override {
    return owner_.ask(gpus, std::move(answer));
  }
  bool ask_for_facts(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) override {
    return owner_.usage_->ask_for_facts(gpus, std::move(answer));
  }
  GpuUses ask_now(const std::vector<std::string>& gpus) override { return owner_.usage_->ask_now(gpus); }

 private:
  WorkSamples& owner_;
};

WorkSamples::WorkSamples(EventLoop& loop, std::unique_ptr<GpuUsage> usage, Acts acts)
    : loop_(loop), usage_(std::move(usage)), acts_(std::move(acts)) {}

WorkSamples::~WorkSamples() { loop_.forget(timer_); }

std::unique_ptr<GpuUsage> WorkSamples::for_others() { return std::make_unique<Shared>(*this); }

bool WorkSamples::ask(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) {
  return usage_->ask_for_work(gpus, [this, answer = std::move(answer)](const GpuUses& uses) {
    heard(uses);
    answer(uses);
  });
}

void WorkSamples::watch() {
  if (!std::exchange(looking_, true)) look_after(before_first);
}

void WorkSamples::look_after(Clock::duration delay) {
  timer_ = loop_.after(delay, [this] {
    timer_ = 0;
    look();
  });
}

void WorkSamples::look() {
  std::set<std::string> gpus = acts_.workers().gpus;
  looking_ = !gpus.empty();  // the next session has it go on
  if (!looking_) return;
  for (const auto& [gpu, takes_turns] : acts_.report().takes_turns)
    if (takes_turns) gpus.erase(gpu);
  const auto answered = [this](const GpuUses& uses) {
    const bool is_told = std::ranges::any_of(uses, [](const auto& one) { return one.second.missing.empty(); });
    look_after(is_told ? Clock::duration(between) : where_missing);
  };
  if (gpus.empty() || !ask({gpus.begin(), gpus.end()}, answered)) look_after(between);
}

void WorkSamples::heard(const GpuUses& uses) {
  sums_.take(uses, {.now = std::chrono::steady_clock::now().time_since_epoch(),
                    .offset = acts_.offset(),
                    .in_turns = acts_.report().in_turns,
                    .vm_of = acts_.workers().vm_of});
  for (const auto& [gpu, use] : uses)
    if (!use.missing.empty() && told_missing_.insert(gpu).second)
      spdlog::info("{}: nobody tells which VMs have its time while the driver slices: {}", gpu, use.missing);
}

}  // namespace host::broker
