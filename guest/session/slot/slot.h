// The slot that this process has taken, without its arena. The slot is mapped and checked, and the worker's header and
// device page are copied out. The session maps it before any thread sends; afterwards any thread may read.
//
// Invariant: values that the worker writes once are copied out, the copy is checked, and the slot's own are not read
// again. Trust: any program of the VM can write over the slot at any moment. Each number is bounded before it becomes a
// size or a position; guest/process/process.cc bounds the number of devices.
//
// Ordering: two edges, whose releasing side is the worker's:
//   M  fill -> take     header and device page are filled before `magic` is stored (host/worker/start.cc)
//   T  explain -> fail  the text that explains a fault is offered before `fault` is stored (host/session/session.cc)
// Covered by nothing: the tests run on x86, which keeps both by itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "guest/region/region.h"
#include "ring/api/call.h"
#include "ring/api/cuda.h"
#include "ring/layout/layout.h"
#include "ring/view.h"

namespace guest {

// The result of entering a slot. Spoilt: another program has written over it, so the session gives it back and tries
// another.
enum class Entered : std::uint8_t { Yes, Spoilt, Refused };

class Slot {
 public:
  // If the result is not Yes, the log says why.
  Entered map(Region& region, const CheckedRegion& checked, std::uint32_t index);
  void unmap();

  ring::SlotView view() const { return view_; }
  std::uint32_t most_channels() const { return most_channels_; }
  const ring::DevicePage& devices() const { return devices_; }
  // Whether the worker knows this call (docs/wire-format.md, Versions). The guest never sends a call that the worker
  // does not know: refuse_unserved() names it in the log, once, and returns its error.
  bool serves(int call) const { return worker_knows_.contain(call); }
  CUresult refuse_unserved(int call) const;
  std::uint64_t spin_nanoseconds() const { return spin_ns_; }

  CUresult fault() const {
    return static_cast<CUresult>(view_.header()[&ring::SlotHeader::fault].load(std::memory_order_acquire));  // T
  }
  // Whether the slot was this session's when it was last read. By the kernel module a slot that has ended reads as zeros
  // (ring/layout/module_c.h), so look after what was read.
  bool intact() const {
    std::atomic_thread_fence(std::memory_order_acquire);
    return view_.header()[&ring::SlotHeader::magic].load(std::memory_order_relaxed) == ring::slot_magic;
  }
  bool output_waiting() const { return view_.header()[&ring::SlotHeader::output].load(std::memory_order_relaxed) != 0; }

 private:
  Entered check(const CheckedRegion& checked, std::uint32_t index);
  void copy_devices();

  ring::SlotView view_;
  std::uint32_t most_channels_ = 1;
  api::KnownIds worker_knows_ = api::known_ids;
  ring::DevicePage devices_{};
  const char* host_release_ = "";
  std::uint64_t spin_ns_ = 0;
};

}  // namespace guest
