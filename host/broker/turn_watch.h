// Looks for workers that give a GPU work without a turn, and has them ended (docs/design/028-turns.md). What they say is
// not believed: samples of the GPU's use tell who has worked, and the scheduler of turns tells who might.
//
// It asks while some GPU takes turns, and is quiet else. A look is a question about the samples, then one to the
// scheduler. A sample makes a worker's large copies need turns, and another one ends it (host/turns/suspicion.h).
//
// Invariant: no worker is ended by what is not known for sure. So these are left out: workers that no program has
// claimed, GPUs of which it is not known that the worker has its turns there, samples around a step of the clock, and
// answers of the scheduler from before the sample's end.
//
// Threads: the broker's one.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/broker/event_loop.h"
#include "host/broker/gpu_usage.h"
#include "host/broker/work_samples.h"
#include "host/turns/scheduler.h"
#include "host/turns/suspicion.h"

namespace host::broker {

class TurnWatch {
 public:
  using Client = turns::Scheduler::Client;
  struct Worker {
    Client client = 0;
    pid_t process = 0;
    std::vector<std::string> gpus;  // on which it is known to take turns, by the scheduler's names
  };
  struct Acts {
    std::function<const turns::Scheduler::Report&()> report;
    std::function<std::vector<Worker>()> workers;  // those that programs have claimed
    std::function<void(Client, const std::string& gpu)> suspect;
    std::function<void(Client, const std::string& why)> end;
    std::function<void(bool)> watches;  // whether samples are there to be looked at, whenever that changes
    std::function<std::chrono::nanoseconds()> offset = offset_of_clocks;
  };
  // Samples are made each 200 ms: so each is looked at soon after its end.
  static constexpr auto between = std::chrono::milliseconds(50);

  // `news_fd`: readable once a GPU has begun to take turns; it stays the caller's.
  TurnWatch(EventLoop& loop, std::unique_ptr<GpuUsage> usage, int news_fd, Acts acts);
  ~TurnWatch();
  TurnWatch(const TurnWatch&) = delete;
  TurnWatch& operator=(const TurnWatch&) = delete;

 private:
  using Offset = std::chrono::nanoseconds;
  using Key = std::pair<std::string, Client>;

  void begin();
  void look_again();
  void look();
  void answered(const GpuUses& uses);
  void judge(const GpuUses& uses, const turns::Scheduler::Report& report, Offset offset);
  void judge(const std::string& gpu, const Worker& worker, const turns::Suspicion::Sample& sample,
             const turns::Right& right);
  void weigh(const std::string& gpu, const Worker& worker, const turns::Suspicion::Sample& sample, double charged);
  void note_missing(const GpuUses& uses);

  EventLoop& loop_;
  const std::unique_ptr<GpuUsage> usage_;
  const Acts acts_;
  EventLoop::Id timer_ = 0, news_ = 0;
  bool looking_ = false, watches_ = false;
  std::optional<Offset> offset_;  // at the look before
  std::map<Key, turns::Suspicion> suspicions_;
  std::map<Key, turns::Overuse> overuses_;  // of those whose gates are open
  std::set<std::string> told_missing_;
};

}  // namespace host::broker
