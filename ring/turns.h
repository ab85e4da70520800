// The two pages by which a worker and the scheduler of turns (host/turns/) agree on who may give a GPU work. The broker
// makes both, for one worker; no guest maps them, nor does another worker.
//
//   grants     4 KiB   the scheduler writes; the worker maps it to be read only
//   requests   4 KiB   the worker writes, and a guest may control its worker: the scheduler copies a word once, and a
//                      wrong one costs the worker's own VM its turns, nobody else's
//
// Both have a line for each GPU that the VM sees, by the guest's ordinals. A grant is one word: a mode, and a number
// that is another with each change, so that an answer names the grant that it answers. The steps of both sides and
// their orderings are in ring/turn_gate.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ring/layout.h"

namespace ring {

enum class GrantMode : std::uint32_t {
  Open,    // submit at any time; nobody takes turns
  Told,    // the same, but ring once at the first submission: the scheduler sleeps, since nothing was submitted lately
  Closed,  // submit nothing; say so when what was submitted is done
  Turn,    // submit until the grant changes
};

struct Grant {
  GrantMode mode = GrantMode::Open;
  std::uint32_t number = 0;  // 27 bits
  // While Open: say in `busy_ns` how long calls take; and keep little work queued, since the gate may close.
  bool watched = false, shallow = false;
  // While Closed or Turn: large copies, which else pass no gate, need a turn, too.
  bool copies = false;

  static constexpr std::uint32_t number_mask = (1u << 27) - 1;
  constexpr std::uint32_t word() const {
    return number << 5 | std::uint32_t{copies} << 4 | std::uint32_t{shallow} << 3 | std::uint32_t{watched} << 2 |
           static_cast<std::uint32_t>(mode);
  }
  static constexpr Grant of(std::uint32_t word) {
    return {static_cast<GrantMode>(word & 3), word >> 5, (word & 4) != 0, (word & 8) != 0, (word & 16) != 0};
  }
  bool operator==(const Grant&) const = default;
};

struct alignas(2 * line) DeviceGrant {
  std::atomic<std::uint32_t> word;     // Grant::word(); threads of the worker sleep on it (a futex)
  std::atomic<std::uint32_t> most_us;  // how much GPU work a worker may have under way in its turn
};
struct alignas(page) GrantPage {
  DeviceGrant device[max_devices];
};

struct alignas(2 * line) DeviceRequest {
  std::atomic<std::uint32_t> waiting;  // threads that wait for a turn
  std::atomic<std::uint32_t>
      given_back;                        // the number of the grant under which nothing is submitted or running any more
  std::atomic<std::uint64_t> submitted;  // calls that have given the GPU work, without those of `submitted_apart`
  std::atomic<std::uint64_t> waits;      // calls that have waited for the GPU
  std::atomic<std::uint64_t> waited_ns;  // in these, together
  std::atomic<std::uint64_t> busy_ns;    // while watched: how long some call was under way that submits or waits
  std::atomic<std::uint32_t> under_way;  // calls that submit or wait and that the guest waits for, just now
  // Of each of the first channels: a word that one thread alone writes needs no locked instruction. These stand behind the
  // words of before, which they leave where they were: a worker may be older than its broker (docs/design/034-restart.md).
  static constexpr std::size_t counted_apart = 3;
  std::atomic<std::uint64_t> submitted_apart[counted_apart];
  // The number of the grant under which all that is left, if anything is, waits for values in memory; 0: none.
  std::atomic<std::uint32_t> held_up;
  // The number of the newest grant with `copies` that the worker has seen: long before it can answer, it has heard.
  std::atomic<std::uint32_t> heard;
};
struct alignas(page) RequestPage {
  DeviceRequest device[max_devices];
};

static_assert(sizeof(GrantPage) == page && sizeof(RequestPage) == page);

// Each channel's thread counts its own.
inline void count_submission(DeviceRequest& words, std::size_t channel) {
  if (channel >= words.counted_apart) {
    words.submitted.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::atomic<std::uint64_t>& own = words.submitted_apart[channel];
  own.store(own.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}
// Of all channels. Each word is read once; none of an honest worker's goes back, and so the sum does not.
inline std::uint64_t submissions(const DeviceRequest& words) {
  std::uint64_t sum = words.submitted.load(std::memory_order_relaxed);
  for (const std::atomic<std::uint64_t>& one : words.submitted_apart) sum += one.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace ring
