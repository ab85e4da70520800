// A GPU that several processes use, with the driver's time slices, in virtual time.
//
// What it models, and where its numbers are from: shared/facts/h200-baseline.md, "Taking turns" (B), and the answers of
// tests/probes/turns.cc in docs/design/028-turns.md (P); both an H200 with driver 580.
//
//   a change of the context takes 136 us, whether the GPU   B: 2, 4, 8 processes that launch and wait take 274, 549,
//     was idle or is taken from a process without work      1100 us; P: the first launch of a turn 148, the next 10.6
//   it comes as soon as the process at work has nothing     B: the same figures
//     more and another has; kernels that follow each        assumed, of the 136: else inferences beside products would
//     other within 6 us keep the GPU                        take longer than they do
//   a slice is 2 ms, and its end interrupts a kernel        P: launch and wait beside kernels of 0.5 ms takes 2278 us,
//                                                           and the kernels get 0.878 of the time
//   alone, a process begins a new slice every 2 ms          assumed: who comes waits for the rest of one
//   large copies between host and GPU run beside kernels    P: 16 MiB beside kernels of 0.5 ms 313 us, alone 312
//   a process may queue 1024 kernels, then launches wait    assumed
//
// What it does not model: kernels of one process side by side, streams, caches that a change empties, clocks.
//
// tests/unit/turns_world.cc compares it with what was measured. Off by more than 10 percent is one figure: a trainer
// beside products makes 187 steps a second instead of 209 (B), the products 597 instead of 645.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "tests/turns/timeline.h"

namespace turns_world {

class SharedGpu {
 public:
  using Process = std::size_t;
  static constexpr std::size_t depth = 1024;  // kernels of one process

  explicit SharedGpu(Timeline& timeline) : timeline_(timeline), alarm_(timeline, [this] { go_on(); }) {}

  // `kernel_done`: called after each kernel of this process.
  Process add(std::function<void()> kernel_done);
  void submit(Process process, Time kernel);
  std::size_t under_way(Process process) const { return queues_[process].kernels.size(); }
  void copy(Time takes, std::function<void()> done);

  std::uint64_t changes() const { return changes_; }
  Time busy() const { return busy_; }  // with kernels, those under way not counted

 private:
  enum class State : std::uint8_t { Idle, Lingering, Changing, Running, Between };
  struct Queue {
    std::deque<Time> kernels;  // of the first what is left
    std::function<void()> kernel_done;
  };

  void go_on();
  void end_run();
  void choose();
  void change_to(Process process, Time takes);
  void plan();
  bool others_have_work() const;
  Process next_with_work() const;

  Timeline& timeline_;
  Alarm alarm_;
  std::vector<Queue> queues_;
  State state_ = State::Idle;
  Process resident_ = 0, coming_ = 0;
  Time began_{}, slice_end_{}, copier_free_{};
  Time busy_{};
  std::uint64_t changes_ = 0;
};

}  // namespace turns_world
