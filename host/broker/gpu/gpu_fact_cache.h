// What guests may know of the host's GPUs, kept for a second: VMs that share a GPU ask of the same one, and their programs ask
// often. Nobody is asked before a guest asks.
//
// Threads: the broker's one.
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
  // What nobody tells is not asked for again so soon: the helper may take seconds to say so.
  static constexpr auto fresh = std::chrono::seconds(1), missing_fresh = std::chrono::seconds(10);

  GpuFactCache(EventLoop& loop, std::unique_ptr<GpuUsage> usage) : loop_(loop), usage_(std::move(usage)) {}
  ~GpuFactCache() { loop_.forget(timer_); }
  GpuFactCache(const GpuFactCache&) = delete;
  GpuFactCache& operator=(const GpuFactCache&) = delete;

  using Id = std::uint64_t;
  // `told` is called in the loop, as soon as what is known of these GPUs is fresh, or came after this call. Where it is not
  // of one of them, all of them are asked for.
  Id ask(std::vector<std::string> gpus, std::function<void()> told);
  // Its `told` is not called any more, and `id` becomes 0. 0 is allowed.
  void forget(Id& id);
  // Null where nobody has told anything, or the last answer was that nobody does.
  const GpuFacts* of(const std::string& gpu) const;

 private:
  struct Question {
    std::vector<std::string> gpus;
    Clock::time_point at;
    std::function<void()> told;
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
