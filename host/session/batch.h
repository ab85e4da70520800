// How much work a channel has given the GPU in its turn, in time. Each kind of work is taken to last as long as work of its
// kind has lasted of late, which the waits for whole batches tell. So a batch is full when it is a quantum of work,
// whether that is one large product or a thousand small kernels, and an event between products makes no difference.
//
// Invariant: an estimate grows at once when a batch took longer than expected, and shrinks slowly, since a batch that the
// program has let run before somebody waited for it seems short.
#pragma once

#include <array>
#include <bitset>
#include <chrono>
#include <cstdint>

namespace host {

class Batch {
 public:
  using Time = std::chrono::nanoseconds;
  static constexpr std::uint32_t kinds = 256;

  // Before a submission. True: as much is under way as is wanted.
  bool is_full(Time wanted) const { return expected_ >= wanted; }
  // `kind`: any number; work of equal numbers is taken to last as long.
  void submitted(std::uint32_t kind, Time wanted);
  // All that was under way has taken this time, since somebody began to wait for it.
  void finished(Time took, Time wanted);
  // The guest has waited for so long, perhaps for some of it only.
  void waited(Time took, Time wanted);
  // It has taken longer than this. When the next is submitted it is done.
  void ended(Time took, Time wanted);

 private:
  static constexpr int at_first = 16;  // of unknown work so many are a batch
  static constexpr int many = 4096;    // no more than this are, however short
  static constexpr double shrinks = 0.84;
  static constexpr Time longest = std::chrono::seconds(1);

  // How many times as long as expected this is. Precondition: something is under way.
  double factor_of(Time took) const { return took / std::chrono::duration<double, std::nano>(expected_); }
  void scale(double factor, Time wanted);
  void begin_anew() { expected_ = {}, has_.reset(); }

  std::array<Time, kinds> lasts_{};  // zero: unknown
  std::bitset<kinds> has_;           // which kinds are under way
  Time expected_{};                  // how long that is
};

}  // namespace host
