#include "host/broker/gpu_fact_cache.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace host::broker {

GpuFactCache::Id GpuFactCache::ask(std::vector<std::string> gpus, std::function<void()> told) {
  questions_.emplace(++last_id_, Question{std::move(gpus), std::move(told)});
  serve_later();
  return last_id_;
}

void GpuFactCache::forget(Id& id) { questions_.erase(std::exchange(id, 0)); }

const GpuFacts* GpuFactCache::of(const std::string& gpu) const {
  const auto known = known_.find(gpu);
  return known == known_.end() || known->second.missing ? nullptr : &known->second.facts;
}

bool GpuFactCache::is_fresh(const std::string& gpu, Clock::time_point now) const {
  const auto known = known_.find(gpu);
  if (known == known_.end()) return false;
  return now - known->second.at < (known->second.missing ? Clock::duration(missing_fresh) : Clock::duration(fresh));
}

void GpuFactCache::serve_later() {
  if (timer_ != 0) return;
  timer_ = loop_.after(Clock::duration::zero(), [this] {
    timer_ = 0;
    serve();
  });
}

// Who is told may ask again, or forget another's question.
void GpuFactCache::serve() {
  const Clock::time_point now = Clock::now();
  std::set<std::string> stale;
  std::vector<Id> answered;
  for (const auto& [id, question] : questions_) {
    std::set<std::string> its;
    std::ranges::copy_if(question.gpus, std::inserter(its, its.end()),
                         [&](const std::string& gpu) { return !is_fresh(gpu, now); });
    if (its.empty()) answered.push_back(id);
    stale.merge(its);
  }
  for (const Id id : answered)
    if (auto question = questions_.extract(id)) question.mapped().told();
  if (stale.empty() || asking_) return;
  asking_ = usage_->ask_for_facts({stale.begin(), stale.end()}, [this](const GpuUses& uses) { heard(uses); });
}

void GpuFactCache::heard(const GpuUses& uses) {
  asking_ = false;
  for (const auto& [gpu, use] : uses) known_[gpu] = {use.facts, !use.missing.empty(), Clock::now()};
  serve_later();
}

}  // namespace host::broker
