#include "host/broker/gpu/gpu_fact_cache.h"

#include <algorithm>
#include <set>
#include <utility>

namespace host::broker {

GpuFactCache::Id GpuFactCache::ask(std::vector<std::string> gpus, std::function<void()> answered) {
  questions_.emplace(++last_id_, Question{std::move(gpus), Clock::now(), std::move(answered)});
  serve_later();
  return last_id_;
}

void GpuFactCache::forget(Id& id) { questions_.erase(std::exchange(id, 0)); }

const GpuFacts* GpuFactCache::of(const std::string& gpu) const {
  const auto known = known_.find(gpu);
  return known == known_.end() || known->second.missing ? nullptr : &known->second.facts;
}

bool GpuFactCache::is_answered(const Question& question) const {
  const Clock::time_point now = Clock::now();
  return std::ranges::all_of(question.gpus, [&](const std::string& gpu) {
    const auto known = known_.find(gpu);
    if (known == known_.end()) return false;
    const auto counts = known->second.missing ? Clock::duration(missing_fresh) : Clock::duration(fresh);
    return known->second.at >= question.at || now - known->second.at < counts;
  });
}

void GpuFactCache::serve_later() {
  if (timer_ != 0) return;
  timer_ = loop_.after(Clock::duration::zero(), [this] {
    timer_ = 0;
    serve();
  });
}

// A callback may ask again, or cancel another question.
void GpuFactCache::serve() {
  std::set<std::string> wanted;
  std::vector<Id> answered;
  for (const auto& [id, question] : questions_) {
    if (is_answered(question))
      answered.push_back(id);
    else
      wanted.insert(question.gpus.begin(), question.gpus.end());
  }
  for (const Id id : answered)
    if (auto question = questions_.extract(id)) question.mapped().answered();
  if (wanted.empty() || asking_) return;
  asking_ = usage_->ask_for_facts({wanted.begin(), wanted.end()}, [this](const GpuUses& uses) { heard(uses); });
}

void GpuFactCache::heard(const GpuUses& uses) {
  asking_ = false;
  for (const auto& [gpu, use] : uses) known_[gpu] = {use.facts, !use.missing.empty(), Clock::now()};
  serve_later();
}

}  // namespace host::broker
