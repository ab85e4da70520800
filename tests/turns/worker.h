// A worker in virtual time: one channel that serves its guest's records, the gate before each submission, and the
// keeper of its turns. It follows host/session/turns.cc, and uses its patience (ring/turn_patience.h) and its Batch. The rest is written again
// here, since a thread cannot run in virtual time.
//
// Assumptions, not measured: a thread that polls sees a change after 1 us, the keeper after 2 us (its `look_every`),
// and a thread that sleeps on a futex runs 30 us after it was woken. A keeper that samples needs 0.5 ms.
//
// What it does not model: several channels, streams and contexts of a session; calls that submit nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "host/session/turns.h"
#include "host/turns/policy.h"
#include "ring/turn_patience.h"
#include "ring/turns.h"
#include "tests/turns/gpu.h"
#include "tests/turns/timeline.h"

namespace turns_world {

struct Record {
  enum class Kind : std::uint8_t { Launch, Wait, Copy };
  Kind kind;
  Time takes;  // on the GPU
  Time cost;   // of the worker's thread, in the driver
};

class Worker {
 public:
  static constexpr std::size_t ring_records = 1000;  // 128 KiB of launches

  struct Listeners {
    std::function<void()> replied;    // to a Wait or a Copy
    std::function<void()> room;       // in the ring, after it was full
    std::function<void()> requested;  // something that a scheduler sees has changed
  };

  Worker(Timeline& timeline, SharedGpu& gpu, Listeners listeners);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The guest's side.
  bool has_room() const { return ring_.size() < ring_records; }
  void post(Record record);

  // The scheduler's side.
  void give(ring::Grant grant, Time most_under_way);
  host::turns::Request request() const;

  std::uint64_t done() const { return done_; }  // kernels and copies
  const std::vector<Time>& waits_for_turn() const { return waits_for_turn_; }
  void forget() { done_ = 0, waits_for_turn_.clear(); }

 private:
  enum class Keeper : std::uint8_t { Asleep, Holding, Giving, Watching, Ending };

  void serve();
  void enter();
  bool may_enter();
  void await_batch();
  bool must_await_half();
  void half_done();
  void begin_busy();
  void go_on_busy();
  void end_busy();
  void work();
  void launch();
  void submit();
  void copy();
  void wait();
  void waited();
  void finish();
  void kernel_done();
  void batch_done();
  void if_idle();
  void begin_call();
  void end_call();

  void keeper_looks();
  void expect_quiet();
  void quiet();
  void try_to_give_back();
  void end_watch(bool came_back);

  Timeline& timeline_;
  SharedGpu& gpu_;
  const Listeners listeners_;
  const SharedGpu::Process process_;

  // The words of ring/turns.h.
  ring::Grant grant_;
  host::turns::Request request_;

  // The channel.
  std::deque<Record> ring_;
  bool serving_ = false, inside_gate_ = false, in_call_ = false;
  bool waits_for_idle_ = false, waits_for_batch_ = false, waits_for_room_ = false;
  Time wait_began_{}, gate_began_{}, polls_until_{}, last_step_{};
  std::uint32_t told_ = ~0u, withdrawn_ = ~0u;
  host::Batch batch_;
  Time most_under_way_{};
  std::optional<Time> busy_since_;
  host::ShortQueue queue_;
  bool waits_for_half_ = false;
  std::uint64_t submitted_ = 0, finished_ = 0, half_ends_ = 0;  // kernels
  Time half_asked_{};
  Alarm half_alarm_;

  // The keeper.
  Keeper keeper_ = Keeper::Asleep;
  ring::Grant keeps_;
  Time holds_since_{};
  ring::TurnPatience patience_;
  Alarm quiet_alarm_, watch_alarm_;

  std::uint64_t done_ = 0;
  std::vector<Time> waits_for_turn_;
};

}  // namespace turns_world
