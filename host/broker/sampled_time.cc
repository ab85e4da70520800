#include "host/broker/sampled_time.h"

#include <algorithm>

namespace host::broker {
namespace {

using Time = SampledTime::Time;

std::int64_t in_us(Time time) { return std::chrono::duration_cast<std::chrono::microseconds>(time).count(); }

// Of the time that a sample tells of, what nobody has told before. Where the GPU was idle before it, nobody has told
// anything for long: then the sample is of the time since the answer before, at most.
Time length_of(const GpuWork& work, std::int64_t until, Time passed) {
  const Time told = std::chrono::microseconds(work.to_us - std::max(work.from_us, until));
  if (told <= SampledTime::longest_sample) return std::max(told, Time::zero());
  return std::min(told, std::max(SampledTime::sample, passed));
}

}  // namespace

void SampledTime::take(const GpuUses& uses, const Moment& moment) {
  const bool stepped = offset_ && std::chrono::abs(moment.offset - *offset_) >= least_step;
  offset_ = moment.offset;
  if (stepped) seen_.clear();
  for (const auto& [gpu, use] : uses) {
    missing_[gpu] = use.missing;
    if (!use.missing.empty()) continue;
    told_.insert(gpu);
    const auto turns = moment.in_turns.find(gpu);
    take(gpu, use, moment, turns != moment.in_turns.end() ? turns->second : Time::zero());
  }
}

void SampledTime::take(const std::string& gpu, const GpuUse& use, const Moment& moment, Time in_turns) {
  Seen& seen = seen_[gpu];
  const bool goes_on = seen.at && moment.now - *seen.at <= longest_pause;
  const Time passed = goes_on ? std::max(moment.now - *seen.at, Time::zero()) : Time::zero();
  seen.at = moment.now;
  seen.room = goes_on ? std::min(seen.room + passed, longest_pause) : Time::zero();
  const std::int64_t latest = in_us(moment.now + moment.offset + longest_pause);
  std::int64_t newest = seen.until;
  Seconds all{}, span{};
  std::map<Vm, Seconds> had;
  for (const GpuWork& work : use.work) {
    if (work.to_us <= seen.until || work.to_us > latest) continue;
    newest = std::max(newest, work.to_us);
    const Seconds length = length_of(work, seen.until, passed);
    const Seconds part = length * std::min(work.percent, 100U) / 100;
    span = std::max(span, length);
    all += part;
    if (const auto vm = moment.vm_of.find(work.process); vm != moment.vm_of.end()) had[vm->second] += part;
  }
  seen.until = newest;
  const double counts = unmeasured(seen, moment.now, in_turns, !use.work.empty());
  if (!goes_on) return;
  span = std::min<Seconds>(span, seen.room);
  seen.room -= std::chrono::duration_cast<Time>(span);
  const double scale = all > span ? span / all : 1;
  for (const auto& [vm, part] : had) had_[vm][gpu] += part * scale * counts;
}

// The part of the time since the samples before in which nobody took turns.
double SampledTime::unmeasured(Seen& seen, Time now, Time in_turns, bool has_work) {
  const Seconds since = now - seen.looked, turns = in_turns - seen.in_turns;
  const double part = since > Seconds::zero() ? std::clamp(1 - turns / since, 0., 1.) : 1;
  if (has_work || since > longest_sample) seen.looked = now, seen.in_turns = in_turns;
  return part;
}

SampledStatus SampledTime::of(Vm vm, const std::vector<std::string>& gpus) const {
  SampledStatus status = what_is_told(gpus);
  if (!status.had) return status;
  Seconds sum{};  // of GPUs that the VM has no more, too: the figure never shrinks
  if (const auto had = had_.find(vm); had != had_.end())
    for (const auto& [gpu, time] : had->second) sum += time;
  status.had = std::chrono::duration_cast<Clock::duration>(sum);
  return status;
}

SampledStatus SampledTime::of_gpu(Vm vm, const std::string& gpu) const {
  SampledStatus status = what_is_told({gpu});
  const auto had = had_.find(vm);
  if (!status.had || had == had_.end()) return status;
  if (const auto time = had->second.find(gpu); time != had->second.end())
    status.had = std::chrono::duration_cast<Clock::duration>(time->second);
  return status;
}

// With nothing had where somebody tells.
SampledStatus SampledTime::what_is_told(const std::vector<std::string>& gpus) const {
  SampledStatus status;
  const bool told = std::ranges::any_of(gpus, [this](const std::string& gpu) { return told_.contains(gpu); });
  if (told) status.had = Clock::duration::zero();
  for (const std::string& gpu : gpus) {
    const auto missing = missing_.find(gpu);
    if (missing != missing_.end() && status.missing.empty()) status.missing = missing->second;
  }
  status.is_early = !told && status.missing.empty() && !gpus.empty();
  if (!told && status.missing.empty())
    status.missing = gpus.empty() ? "its GPUs are not known" : "no session has lasted for a second yet";
  return status;
}

}  // namespace host::broker
