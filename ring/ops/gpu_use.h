// The pages by which a worker reports its use of GPUs to the scheduler (host/scheduler/).
//
// The broker makes two pages for each worker. No guest and no other worker maps these pages.
//
//   orders   4 KiB    the scheduler writes; the worker maps the page read-only
//   use      132 KiB  the worker writes, and a guest may control its worker: the scheduler copies a word once, and a
//            wrong word costs only the worker's own VM its share
//
// All accesses are relaxed: the words are independent, and the scheduler looks again. Counters wrap. Each channel's
// thread counts its own submissions; any thread of the scheduler may read.
//
// ```cpp
// bool wants_gpu(const ring::UsePage& use, std::size_t device) {
//   const ring::DeviceUse& words = use.device[device];
//   const std::uint64_t settled = words.settled.load(std::memory_order_relaxed);  // first: submissions only grow
//   return ring::submissions(words) != settled;
// }
// ```
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ring/layout/layout.h"

namespace ring {

struct alignas(2 * line) DeviceOrders {
  // Not 0: the scheduler sleeps. A worker that submits work rings once for each new number.
  std::atomic<std::uint32_t> wake;
  // 1: the VM's channels are disabled, so a wait for the GPU may sleep until this word changes. The scheduler wakes the
  // word's futex.
  std::atomic<std::uint32_t> off;
};
struct alignas(page) OrdersPage {
  DeviceOrders device[max_devices];  // indexed by the guest's ordinals
};

struct alignas(2 * line) DeviceUse {
  // The number of calls that have given the GPU work, without the calls counted in `submitted_apart`.
  std::atomic<std::uint64_t> submitted;
  // The first channels have a counter each: a word with a single writer needs no locked instruction.
  static constexpr std::size_t counted_apart = 3;
  std::atomic<std::uint64_t> submitted_apart[counted_apart];
  std::atomic<std::uint64_t> settled;  // the number of submissions before the newest wait that has returned
  std::atomic<std::uint64_t> waits;    // the number of waits that have returned
};

// The channels of a process on one GPU. `version` changes with each change of the table, and is odd during a write.
struct ChannelTable {
  static constexpr std::size_t most = 1023;  // enough for 127 contexts
  struct Channel {
    std::atomic<std::uint32_t> handle;  // the driver's number for the channel, in the worker's own client
    std::atomic<std::uint32_t> serial;  // unique in this process, even if handles are reused
  };
  std::atomic<std::uint32_t> version;
  std::atomic<std::uint32_t> count;  // if greater than `most`, the table does not list the rest
  Channel channel[most];
};
static_assert(sizeof(ChannelTable) == 8192);

struct alignas(page) UsePage {
  DeviceUse device[max_devices];       // indexed by the guest's ordinals
  ChannelTable channels[max_devices];  // indexed by the driver's numbers of GPUs
  // The number of begins and ends of calls, which each channel's thread counts; odd inside a call.
  std::atomic<std::uint64_t> steps[max_channels];
};

static_assert(sizeof(OrdersPage) == page);

// Counts a submission. Each channel's thread calls this for its own channel.
inline void count_submission(DeviceUse& words, std::size_t channel) {
  if (channel >= words.counted_apart) {
    words.submitted.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::atomic<std::uint64_t>& own = words.submitted_apart[channel];
  own.store(own.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}
// Returns the sum over all channels. Reads each word once. An honest worker's words never decrease, so the sum never
// decreases either.
inline std::uint64_t submissions(const DeviceUse& words) {
  std::uint64_t sum = words.submitted.load(std::memory_order_relaxed);
  for (const std::atomic<std::uint64_t>& one : words.submitted_apart) sum += one.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace ring
