// How much of GPUs' time VMs have had, by samples of the GPUs' use: an estimate, for the time in which nobody takes turns,
// since turns measure it. Pure rules: the broker hands over what it is told (host/broker/work_samples.h), and tests do the
// same in a time of their own. docs/design/042-sampled-time.md has the reasons.
//
// Invariants: a time counts once, however often it is told; processes together never have more of a GPU than the time that
// has passed since somebody was first asked; and nothing counts of a time around a step of the clock.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/broker/gpu_usage.h"
#include "host/turns/scheduler.h"

namespace host::broker {

// What a VM has had of its GPUs together.
struct SampledStatus {
  std::optional<Clock::duration> had;  // nothing: nobody has told anything of these GPUs yet
  std::string missing;                 // why nobody tells it of one of them now; "": all are told
  bool is_early = false;               // the reason is that there was no work to tell of yet
};

class SampledTime {
 public:
  using Vm = turns::Scheduler::Vm;
  using Time = turns::Time;
  // When an answer came, and what goes with it.
  struct Moment {
    Time now{};                            // by a clock that nobody sets
    Time offset{};                         // of the time since 1970 to that
    std::map<std::string, Time> in_turns;  // of each GPU: for how long turns were taken, together
    std::map<pid_t, Vm> vm_of;             // whose the processes are; others' are nobody's
  };
  // How often the driver makes a sample, and how late one may be without a gap before it: one was left out.
  static constexpr Time sample = std::chrono::milliseconds(200), longest_sample = std::chrono::milliseconds(450);
  // After a pause of the questions nobody knows of which time a sample is.
  static constexpr Time longest_pause = std::chrono::seconds(2);
  static constexpr Time least_step = std::chrono::milliseconds(5);  // of the clock; one that is slewed does less

  void take(const GpuUses& uses, const Moment& moment);
  // `gpus`: the VM's, by the names that were asked for.
  SampledStatus of(Vm vm, const std::vector<std::string>& gpus) const;
  // The same of one of them alone.
  SampledStatus of_gpu(Vm vm, const std::string& gpu) const;
  void forget(Vm vm) { had_.erase(vm); }

 private:
  struct Seen {                 // of a GPU
    std::optional<Time> at;     // when its newest answer came
    std::int64_t until = 0;     // the end of the newest sample that was told, in microseconds since 1970
    Time room{};                // that has passed, and of which nothing is counted yet
    Time looked{}, in_turns{};  // how long turns were taken, and when that was looked at
  };

  using Seconds = std::chrono::duration<double>;
  void take(const std::string& gpu, const GpuUse& use, const Moment& moment, Time in_turns);
  SampledStatus what_is_told(const std::vector<std::string>& gpus) const;
  static double unmeasured(Seen& seen, Time now, Time in_turns, bool has_work);

  std::map<std::string, Seen> seen_;
  std::map<std::string, std::string> missing_;        // of each GPU that was asked for
  std::set<std::string> told_;                        // GPUs
  std::map<Vm, std::map<std::string, Seconds>> had_;  // of each GPU
  std::optional<Time> offset_;
};

}  // namespace host::broker
