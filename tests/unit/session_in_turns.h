// A session that takes turns: a worker's half, where the test is the scheduler.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "host/session/turns.h"
#include "tests/deadline.h"
#include "tests/unit/session_channel.h"

namespace session_test {

using namespace std::chrono_literals;
using ring::Grant;
using ring::GrantMode;
namespace ids = api::id_of;

// A shorter time is for what must not come true.
inline bool comes_true(const std::function<bool()>& what, std::chrono::milliseconds within = test_deadline) {
  return before_deadline(what, within, 100us);
}

// A session with pages, whose channels wait for a full batch as if for ever. Each submission has a channel of its own, served
// by a thread until its record is done.
class SessionTurns : public testing::Test {
 protected:
  explicit SessionTurns(std::chrono::milliseconds longest_drain = 600s, bool keeper_naps = false) {
    host::ServeOptions options;
    options.windows = host::all_windows;
    options.turns = {.grants = &grants_,
                     .requests = &requests_,
                     .bell_fd = bell_,
                     .devices = 1,
                     .longest_drain = longest_drain,
                     .keeper_naps = keeper_naps};
    world_.emplace(options);
    world_->session->end_greeting(true);
    memory_ = world_->memory(64);
    stream_ = world_->stream();
    world_->session->turns.start();
  }
  ~SessionTurns() override {
    give(GrantMode::Open);
    world_->driver.open_gate();
    world_->driver.keep_working(false);
    for (std::thread& thread : threads_) thread.join();
    world_.reset();
    close(bell_);
  }

  Grant give(GrantMode mode, bool watched = false, bool shallow = false, std::chrono::microseconds quantum = 1ms) {
    const Grant grant{mode, ++number_, watched, shallow};
    grants_.device[0].most_us.store(static_cast<std::uint32_t>(quantum.count()));
    grants_.device[0].word.store(grant.word());
    return grant;
  }
  // Large copies need turns, too.
  Grant give_for_copies(GrantMode mode) {
    const Grant grant{.mode = mode, .number = ++number_, .copies = true};
    grants_.device[0].word.store(grant.word());
    return grant;
  }
  ring::DeviceRequest& request() { return requests_.device[0]; }
  std::uint32_t queued(std::uint32_t channel) {
    auto& word = other_side::control(world_->session->slot, channel).queued;
    return other_side::shared(word).load(std::memory_order_relaxed);
  }
  bool is_given_back(Grant grant) {
    return comes_true([&] { return request().given_back.load() == grant.number; });
  }
  bool somebody_waits() {
    return comes_true([&] { return request().waiting.load() != 0; });
  }
  void submit() { post(ids::cuMemsetD8Async, Payload::of(memory_, 1, 64, stream_)); }
  // Any one record.
  void post(int call, const Payload& payload, std::uint16_t flags = ring::flag_wants_reply) {
    Channel channel(*world_, channels_++);
    channel.put(call, payload, flags).publish();
    threads_.emplace_back([channel]() mutable { channel.serve_published(); });
  }
  // Many submissions on one channel.
  void submit(unsigned times) {
    Channel channel(*world_, channels_++);
    for (unsigned i = 0; i < times; ++i) channel.put(ids::cuMemsetD8Async, Payload::of(memory_, 1, 64, stream_), 0);
    channel.publish();
    threads_.emplace_back([channel]() mutable { channel.serve_published(); });
  }
  // In a turn that begins when the channel waits for it.
  void submit_in_turn(unsigned times) {
    give(GrantMode::Closed);
    submit(times);
    ASSERT_TRUE(somebody_waits());
    give(GrantMode::Turn);
  }
  bool was_submitted(std::uint64_t times = 1) {
    return comes_true([&] { return world_->driver.calls("cuMemsetD8Async") == times; });
  }
  // A turn that was given back is followed by another, as from a scheduler. So is one that the keeper takes away and cannot
  // give back, since its work does not end: a scheduler passes it on by time.
  bool was_submitted_in_turns(std::uint64_t times) {
    auto passed_on = std::chrono::steady_clock::now() + 100ms;
    return comes_true([&] {
      const bool waits = request().waiting.load() != 0;
      if (world_->driver.calls("cuMemsetD8Async") == times) return true;  // and no turn more
      const bool over = request().given_back.load() == number_ || std::chrono::steady_clock::now() > passed_on;
      if (over && waits) {
        give(GrantMode::Turn);
        passed_on = std::chrono::steady_clock::now() + 100ms;
      }
      return false;
    });
  }
  // The record that ends a channel's service has broken the session.
  void begin_anew() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    world_->session->broken = false;
  }
  bool has_rung() const {
    std::uint64_t rings = 0;
    return read(bell_, &rings, sizeof rings) == sizeof rings;
  }

  alignas(ring::page) ring::GrantPage grants_{};
  alignas(ring::page) ring::RequestPage requests_{};
  const int bell_ = eventfd(0, EFD_NONBLOCK);
  std::optional<World> world_;
  std::vector<std::thread> threads_;
  std::uint32_t number_ = 0, channels_ = 0;
  std::uint64_t memory_ = 0, stream_ = 0;
};

}  // namespace session_test
