// A worker's account of itself: counters, and a trace of its calls. One sealed memfd per worker, made by the broker;
// the worker maps it whole and closes the descriptor, the broker maps the counters, `ivgpu trace` gets a descriptor
// that only reads. No guest maps it: it is no part of the region, and is here because these three agree on it.
//
//   0       TelemetryPage                         12 KiB   the worker writes the counters, the broker `tracing`
//   12 KiB  TraceCell[max_channels][trace_cells]           the worker writes, when tracing is on; pages that are not
//                                                          touched cost nothing
//
// Trust: a guest may control its worker, so every reader takes this for hostile: copied once, then checked, never
// believed. Two words count for something: `taken`, up to the bytes that the broker has lent the worker, and under MPS
// `fault`, which a guest could as well cause (host/broker/mps/mps.h). A worker itself reads only `tracing`, and the
// worst that a wrong value does is a trace that nobody asked for.
//
// Ordering. A channel's cells have one writer, the channel's thread, which waits for no reader: it overwrites entries
// that a reader is too late for, and the reader counts them as lost. Two edges:
//   W  write -> read       an entry's words are written before `written` and its cell's sequence show it
//   O  overwrite -> read   a cell's sequence is odd before the first of its words changes: a reader of a word of the
//                          next entry sees, looking at the sequence again, that it has changed
// Covered by: tests/unit/ring/telemetry_test.cc, under ThreadSanitizer, too.
//
// ```cpp
// std::uint64_t watch(std::byte* mapped, std::uint32_t channel, void (*show)(const ring::TraceEntry&)) {
//   const ring::TelemetryView view(mapped);  // telemetry_bytes of it, mapped by the caller
//   ring::TraceReader reader(view.page().channel[channel].written, view.cells(channel));
//   ring::TraceEntry entry;
//   for (ring::Taken taken; (taken = reader.take(entry)) != ring::Taken::Nothing;)
//     if (taken == ring::Taken::Entry) show(entry);
//   return reader.lost();
// }
// ```
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ring/layout/layout.h"

namespace ring {

inline constexpr std::uint32_t telemetry_version = 4;

// Each word has one writer, so that counting is a load, an addition and a store without a locked instruction.
struct alignas(2 * line) ChannelCounters {
  std::atomic<std::uint64_t> calls;         // records executed
  std::atomic<std::uint64_t> waited;        // of these, how many the guest waited for; the others were posted
  std::atomic<std::uint64_t> submitted;     // of these, how many put a command into a stream, as the table says
  std::atomic<std::uint64_t> record_bytes;  // through the request ring
  std::atomic<std::uint64_t> reply_bytes;   // into the mailbox
  std::atomic<std::uint64_t> to_device;     // bytes that copies have moved, wherever the host's side lay
  std::atomic<std::uint64_t> from_device;
  std::atomic<std::uint64_t> spun;     // waits for a record that polling has covered
  std::atomic<std::uint64_t> parked;   // waits that ended in sleep
  std::atomic<std::uint64_t> woken;    // how often the guest was woken by this channel
  std::atomic<std::uint64_t> written;  // trace entries ever written
};

inline void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

struct TelemetryPage {
  alignas(line) std::atomic<std::uint32_t> tracing;        // broker: not 0 while somebody watches
  alignas(line) std::atomic<std::uint64_t> device_memory;  // worker: bytes that the session has allocated and not freed
  std::atomic<std::uint32_t>
      fault;  // worker: the last fault of a context, or loss of an MPS server, a CUresult; 0: none
  // worker: bytes of each device that it counts against what the broker has lent it (host/session/memory/device_memory.h)
  alignas(line) std::atomic<std::uint64_t> taken[max_devices];
  ChannelCounters channel[max_channels];
};

// One call, as its worker saw it. Times are CLOCK_MONOTONIC of the host.
struct TraceEntry {
  static constexpr std::size_t most_payload = 144, most_reply = 64;

  std::uint64_t begin_ns, end_ns;  // around the driver's call
  std::uint64_t position;          // of the record in its channel
  std::uint16_t call, flags;       // of the record's header
  std::uint32_t payload_bytes;     // of the record, not of the part that is kept here
  std::int32_t result;             // CUresult
  std::uint32_t reply_bytes;
  std::byte payload[most_payload];  // the first bytes of each
  std::byte reply[most_reply];
};

struct alignas(line) TraceCell {
  static constexpr std::size_t words = sizeof(TraceEntry) / 8;
  std::atomic<std::uint64_t> sequence;  // 2n + 1 while a channel's entry n is being written, 2n + 2 when it is complete
  std::atomic<std::uint64_t> word[words];
};

// Per channel; a power of two. A second's worth of calls at the rate of a busy program is more: the reader is quicker.
inline constexpr std::uint32_t trace_cells = 8192;
// Behind the counters, in pages.
inline constexpr std::size_t trace_offset = (sizeof(TelemetryPage) + page - 1) / page * page;
constexpr std::size_t trace_offset_of(std::uint32_t channel) {
  return trace_offset + std::size_t{channel} * trace_cells * sizeof(TraceCell);
}
inline constexpr std::size_t telemetry_bytes = trace_offset_of(max_channels);

// One channel's trace, written by the channel's thread. `cells`: a power of two of them.
class TraceWriter {
 public:
  TraceWriter(std::atomic<std::uint64_t>& written, std::span<TraceCell> cells) : written_(written), cells_(cells) {}

  void put(const TraceEntry& entry) {
    TraceCell& cell = cells_[next_ & (cells_.size() - 1)];
    std::uint64_t words[TraceCell::words];
    std::memcpy(words, &entry, sizeof words);
    cell.sequence.store(2 * next_ + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);  // O
    for (std::size_t i = 0; i < TraceCell::words; ++i) cell.word[i].store(words[i], std::memory_order_relaxed);
    cell.sequence.store(2 * next_ + 2, std::memory_order_release);  // W
    written_.store(++next_, std::memory_order_release);             // W
  }

 private:
  std::atomic<std::uint64_t>& written_;
  std::span<TraceCell> cells_;
  std::uint64_t next_ = 0;
};

enum class Taken : std::uint8_t { Nothing, Entry, Lost };

// Reads it, beginning with the next entry to be written. A call ends after one cell, however the writer behaves.
class TraceReader {
 public:
  TraceReader(const std::atomic<std::uint64_t>& written, std::span<const TraceCell> cells)
      : written_(written), cells_(cells), next_(written.load(std::memory_order_relaxed)) {}

  Taken take(TraceEntry& into) {
    const std::uint64_t ready = written_.load(std::memory_order_acquire) - next_;  // W
    if (ready == 0 || ready >> 63 != 0) return Taken::Nothing;  // it went backwards: no writer of ours
    if (ready > cells_.size()) {
      lost_ += ready - cells_.size();
      next_ += ready - cells_.size();
    }
    if (copy(cells_[next_ & (cells_.size() - 1)], 2 * next_ + 2, into)) return ++next_, Taken::Entry;
    return ++next_, ++lost_, Taken::Lost;
  }
  // Entries that were overwritten before they were read.
  std::uint64_t lost() const { return lost_; }

 private:
  static bool copy(const TraceCell& cell, std::uint64_t expected, TraceEntry& into) {
    if (cell.sequence.load(std::memory_order_acquire) != expected) return false;  // W
    std::uint64_t words[TraceCell::words];
    for (std::size_t i = 0; i < TraceCell::words; ++i) words[i] = cell.word[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);  // O
    if (cell.sequence.load(std::memory_order_relaxed) != expected) return false;
    std::memcpy(&into, words, sizeof into);
    return true;
  }

  const std::atomic<std::uint64_t>& written_;
  std::span<const TraceCell> cells_;
  std::uint64_t next_;
  std::uint64_t lost_ = 0;
};

// The memfd's bytes as typed places.
class TelemetryView {
 public:
  explicit TelemetryView(std::byte* base) : base_(base) {}
  TelemetryPage& page() const { return *reinterpret_cast<TelemetryPage*>(base_); }
  std::span<TraceCell> cells(std::uint32_t channel) const {
    return {reinterpret_cast<TraceCell*>(base_ + trace_offset_of(channel)), trace_cells};
  }

 private:
  std::byte* base_;
};

static_assert(trace_offset == 12 << 10 && sizeof(ChannelCounters) == 2 * line);
static_assert(sizeof(TraceEntry) == 248 && sizeof(TraceCell) == 256 && TraceCell::words == 31);

}  // namespace ring
