#include "host/broker/turn_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>

namespace host::broker {
namespace {

using turns::Suspicion, turns::Time;
using namespace std::chrono_literals;

// A clock that is only slewed goes wrong by less between two looks.
constexpr auto least_step = 5ms;

Suspicion::Sample sample_of(const GpuWork& work, std::chrono::nanoseconds offset) {
  const auto at = [&](std::int64_t us) { return Time(std::chrono::microseconds(us)) - offset; };
  return {.from = at(work.from_us), .to = at(work.to_us), .percent = work.percent};
}

std::string in_words(const Suspicion::Sample& sample) {
  return fmt::format("{} % of {} ms", sample.percent,
                     std::chrono::duration_cast<std::chrono::milliseconds>(sample.to - sample.from).count());
}

}  // namespace

TurnWatch::TurnWatch(EventLoop& loop, std::unique_ptr<GpuUsage> usage, int news_fd, Acts acts)
    : loop_(loop), usage_(std::move(usage)), acts_(std::move(acts)) {
  news_ = loop_.watch(news_fd, POLLIN, [this, news_fd](short) {
    std::uint64_t times;
    if (read(news_fd, &times, sizeof times) == sizeof times) begin();
  });
}

TurnWatch::~TurnWatch() {
  loop_.forget(timer_);
  loop_.forget(news_);
}

void TurnWatch::begin() {
  if (std::exchange(looking_, true)) return;
  offset_.reset();
  suspicions_.clear();
  overuses_.clear();
  look_again();
}

void TurnWatch::look_again() {
  timer_ = loop_.after(between, [this] {
    timer_ = 0;
    look();
  });
}

void TurnWatch::look() {
  std::vector<std::string> gpus;
  for (const auto& [gpu, takes_turns] : acts_.report().takes_turns)
    if (takes_turns) gpus.push_back(gpu);
  looking_ = !gpus.empty();
  if (looking_ && !usage_->ask_for_work(gpus, [this](const GpuUses& uses) { answered(uses); })) look_again();
}

// What is told was measured since the look before. If the clock was set meanwhile, nobody knows when that was.
void TurnWatch::answered(const GpuUses& uses) {
  const Offset now = acts_.offset();
  const std::optional<Offset> before = std::exchange(offset_, now);
  note_missing(uses);
  if (before && std::chrono::abs(now - *before) < least_step) judge(uses, acts_.report(), now);
  look_again();
}

void TurnWatch::judge(const GpuUses& uses, const turns::Scheduler::Report& report, Offset offset) {
  const std::vector<Worker> workers = acts_.workers();
  const auto has_gone = [&](const auto& one) {
    return std::ranges::none_of(workers, [&](const Worker& w) { return w.client == one.first.second; });
  };
  std::erase_if(suspicions_, has_gone);
  std::erase_if(overuses_, has_gone);
  for (const Worker& worker : workers)
    for (const std::string& gpu : worker.gpus) {
      const auto use = uses.find(gpu);
      const auto clients = report.rights.find(gpu);
      if (use == uses.end() || clients == report.rights.end()) continue;
      const auto right = clients->second.find(worker.client);
      if (right == clients->second.end()) continue;
      for (const GpuWork& work : use->second.work)
        if (const auto sample = sample_of(work, offset); work.process == worker.process && sample.to <= report.made)
          judge(gpu, worker, sample, right->second);
    }
}

void TurnWatch::judge(const std::string& gpu, const Worker& worker, const Suspicion::Sample& sample,
                      const turns::Right& right) {
  const Key key{gpu, worker.client};
  if (right.charged) return weigh(gpu, worker, sample, *right.charged);
  const auto verdict = suspicions_[key].named(sample, right);
  if (verdict == Suspicion::Verdict::Suspected) acts_.suspect(worker.client, gpu);
  if (verdict != Suspicion::Verdict::Caught) return;
  const Suspicion suspicion = suspicions_[key];
  suspicions_.erase(key);  // once
  const auto without = std::chrono::duration_cast<std::chrono::milliseconds>(sample.to - right.until);
  acts_.end(worker.client,
            fmt::format("its process {} gave {} work without a turn: it has had none for {} ms, and had {} and {}",
                        worker.process, gpu, without.count(), in_words(suspicion.before()), in_words(sample)));
}

// It is to take turns like others: then one that submits without them is found.
void TurnWatch::weigh(const std::string& gpu, const Worker& worker, const turns::Suspicion::Sample& sample,
                      double charged) {
  const Key key{gpu, worker.client};
  if (!overuses_[key].named(sample, charged)) return;
  overuses_.erase(key);
  spdlog::warn("process {} used {} far more than the {:.0f} % that it is charged with: it takes turns like others",
               worker.process, gpu, 100 * charged);
  acts_.suspect(worker.client, gpu);
}

// Once for each GPU. Turns are taken all the same.
void TurnWatch::note_missing(const GpuUses& uses) {
  const bool watches = std::ranges::any_of(uses, [](const auto& one) { return one.second.missing.empty(); });
  if (std::exchange(watches_, watches) != watches) acts_.watches(watches);
  for (const auto& [gpu, use] : uses)
    if (!use.missing.empty() && told_missing_.insert(gpu).second)
      spdlog::warn("{}: nobody sees which workers use it without a turn: {}", gpu, use.missing);
}

}  // namespace host::broker
