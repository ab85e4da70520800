// A worker's report about itself: counters, and a trace of its calls. The broker makes one sealed memfd for each
// worker. The worker maps the whole memfd and closes the descriptor, the broker maps the counters, and `ivgpu trace`
// gets a read-only descriptor. The memfd is not part of the region, and no guest maps it.
//
//   0       TelemetryPage                         12 KiB   the worker writes the counters, the broker `tracing`
//   12 KiB  TraceCell[max_channels][trace_cells]           the worker writes while tracing is on; untouched pages cost
//           nothing
//
// Trust: a guest may control its worker, so every reader copies a value once, checks the copy, and does not rely on its
// truth. Two words have an effect. `taken` counts up to the bytes that the broker has reserved for the worker. `fault`
// counts under MPS, where a guest could cause a fault anyway (host/broker/mps/mps.h). A worker itself reads only
// `tracing`, where a wrong value at worst causes an unwanted trace.
//
// Ordering. A channel's cells have one writer, the channel's thread, which never waits for a reader. The thread
// overwrites entries that a slow reader has missed, and the reader counts these entries as lost. Two edges:
//   W  write -> read       an entry's words are written before `written` and its cell's sequence show it
//   O  overwrite -> read   a cell's sequence is odd before its first word changes: a reader that saw a word of the next
//      entry finds a changed sequence at its second look
// Covered by: tests/unit/ring/telemetry_test.cc, also under ThreadSanitizer.
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

// Each word has one writer, so counting needs no locked instruction.
struct alignas(2 * line) ChannelCounters {
  std::atomic<std::uint64_t> calls;      // number of executed records
  std::atomic<std::uint64_t> waited;     // calls among these that the guest waited for; the others were posted
  std::atomic<std::uint64_t> submitted;  // calls among these that put a command into a stream, according to the table
  std::atomic<std::uint64_t> record_bytes;  // bytes that came through the request ring
  std::atomic<std::uint64_t> reply_bytes;   // bytes that went into the mailbox
  std::atomic<std::uint64_t> to_device;     // bytes moved by copies, wherever the host's side of a copy was
  std::atomic<std::uint64_t> from_device;
  std::atomic<std::uint64_t> spun;     // number of waits for a record that ended while polling
  std::atomic<std::uint64_t> parked;   // number of waits that ended in sleep
  std::atomic<std::uint64_t> woken;    // how often this channel's thread woke the guest
  std::atomic<std::uint64_t> written;  // trace entries ever written
};

inline void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

struct TelemetryPage {
  alignas(line) std::atomic<std::uint32_t> tracing;        // broker: not 0 while a client watches the trace
  alignas(line) std::atomic<std::uint64_t> device_memory;  // worker: bytes that the session has allocated and not freed
  std::atomic<std::uint32_t>
      fault;  // worker: the last fault of a context, or loss of an MPS server, as a CUresult; 0: none
  // worker: bytes of each device that it charges against the broker's reservation (host/session/memory/device_memory.h)
  alignas(line) std::atomic<std::uint64_t> taken[max_devices];
  ChannelCounters channel[max_channels];
};

// A trace entry: one call, as its worker has seen it. Times are CLOCK_MONOTONIC of the host.
struct TraceEntry {
  static constexpr std::size_t most_payload = 144, most_reply = 64;

  std::uint64_t begin_ns, end_ns;  // the times before and after the driver's call
  std::uint64_t position;          // position of the record in its channel
  std::uint16_t call, flags;       // from the record's header
  std::uint32_t payload_bytes;     // bytes of the whole record, not only of the bytes kept here
  std::int32_t result;             // a CUresult
  std::uint32_t reply_bytes;
  std::byte payload[most_payload];  // the first bytes of record and reply
  std::byte reply[most_reply];
};

struct alignas(line) TraceCell {
  static constexpr std::size_t words = sizeof(TraceEntry) / 8;
  std::atomic<std::uint64_t> sequence;  // 2n + 1 while a channel's entry n is being written, 2n + 2 when it is complete
  std::atomic<std::uint64_t> word[words];
};

// For each channel; a power of two. A busy program makes more calls than this in a second, but the reader is faster.
inline constexpr std::uint32_t trace_cells = 8192;
// The traces follow the counters at the next page.
inline constexpr std::size_t trace_offset = (sizeof(TelemetryPage) + page - 1) / page * page;
constexpr std::size_t trace_offset_of(std::uint32_t channel) {
  return trace_offset + std::size_t{channel} * trace_cells * sizeof(TraceCell);
}
inline constexpr std::size_t telemetry_bytes = trace_offset_of(max_channels);

// One channel's trace; the channel's thread writes it. The number of `cells` is a power of two.
class TraceWriter {
 public:
  TraceWriter(std::atomic<std::uint64_t>& written, std::span<TraceCell> cells) : written_(written), cells_(cells) {}

  void put(const TraceEntry& entry) {
    TraceCell& cell = cells_[next_ & (cells_.size() - 1)];
    std::uint64_t words[TraceCell::words];
    std::memcpy(words, &entry, sizeof words);
    cell.sequence.store(2 * next_ + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);  // edge O
    for (std::size_t i = 0; i < TraceCell::words; ++i) cell.word[i].store(words[i], std::memory_order_relaxed);
    cell.sequence.store(2 * next_ + 2, std::memory_order_release);  // edge W
    written_.store(++next_, std::memory_order_release);             // edge W
  }

 private:
  std::atomic<std::uint64_t>& written_;
  std::span<TraceCell> cells_;
  std::uint64_t next_ = 0;
};

enum class Taken : std::uint8_t { Nothing, Entry, Lost };

// Reads a trace from the next entry on. A call returns after one cell, whatever the writer does.
class TraceReader {
 public:
  TraceReader(const std::atomic<std::uint64_t>& written, std::span<const TraceCell> cells)
      : written_(written), cells_(cells), next_(written.load(std::memory_order_relaxed)) {}

  Taken take(TraceEntry& into) {
    const std::uint64_t ready = written_.load(std::memory_order_acquire) - next_;  // edge W
    // The number has decreased, so the writer is not one of ours.
    if (ready == 0 || ready >> 63 != 0) return Taken::Nothing;
    if (ready > cells_.size()) {
      lost_ += ready - cells_.size();
      next_ += ready - cells_.size();
    }
    if (copy(cells_[next_ & (cells_.size() - 1)], 2 * next_ + 2, into)) {
      ++next_;
      return Taken::Entry;
    }
    ++next_;
    ++lost_;
    return Taken::Lost;
  }
  // The number of entries that were overwritten before they were read.
  std::uint64_t lost() const { return lost_; }

 private:
  static bool copy(const TraceCell& cell, std::uint64_t expected, TraceEntry& into) {
    if (cell.sequence.load(std::memory_order_acquire) != expected) return false;  // edge W
    std::uint64_t words[TraceCell::words];
    for (std::size_t i = 0; i < TraceCell::words; ++i) words[i] = cell.word[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);  // edge O
    if (cell.sequence.load(std::memory_order_relaxed) != expected) return false;
    std::memcpy(&into, words, sizeof into);
    return true;
  }

  const std::atomic<std::uint64_t>& written_;
  std::span<const TraceCell> cells_;
  std::uint64_t next_;
  std::uint64_t lost_ = 0;
};

// Typed access to the memfd's bytes.
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
