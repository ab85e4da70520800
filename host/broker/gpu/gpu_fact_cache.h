// Caches for a second what guests may know of the host's GPUs, since VMs share GPUs and their programs ask often. It
// queries nothing before a guest asks.
//
// Threads: the broker's event loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/broker/gpu/gpu_usage.h"

namespace host::broker {

class GpuFactCache {
 public:
  // Missing facts are cached longer, because the helper may take seconds to report that there are none.
  static constexpr auto fresh = std::chrono::seconds(1), missing_fresh = std::chrono::seconds(10);

  GpuFactCache(EventLoop& loop, std::unique_ptr<GpuUsage> usage) : loop_(loop), usage_(std::move(usage)) {}
  ~GpuFactCache() { loop_.forget(timer_); }
  GpuFactCache(const GpuFactCache&) = delete;
  GpuFactCache& operator=(const GpuFactCache&) = delete;

  using Id = std::uint64_t;
  // Calls `answered` in the loop once the facts of these GPUs are fresh or newer than this call. If any GPU's are not, all
  // GPUs of the question are queried.
  Id ask(std::vector<std::string> gpus, std::function<void()> answered);
  // Cancels the question: its `answered` is not called any more, and `id` becomes 0. 0 is allowed.
  void forget(Id& id);
  // Null if no query has returned facts, or the last one reported that there are none.
  const GpuFacts* of(const std::string& gpu) const;

 private:
  struct Question {
    std::vector<std::string> gpus;
    Clock::time_point at;
    std::function<void()> answered;
  };
  struct Known {
    GpuFacts facts;
    bool missing = false;
    Clock::time_point at;
  };

  bool is_answered(const Question& question) const;
  void serve_later();
  void serve();
  void heard(const GpuUses& uses);

  EventLoop& loop_;
  const std::unique_ptr<GpuUsage> usage_;
  std::map<std::string, Known> known_;
  std::map<Id, Question> questions_;
  Id last_id_ = 0;
  bool asking_ = false;
  EventLoop::Id timer_ = 0;
};

}  // namespace host::broker
