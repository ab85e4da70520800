// The slot that this process has claimed, without its arena: mapped and checked, with copies of the worker's header and
// device page. The session maps it before any thread sends; afterwards any thread may read.
//
// Invariant: values that the worker writes once are copied, and only the checked copy is used. Trust: any program of
// the VM can overwrite the slot at any moment. Each number is bounded before it becomes a size or a position;
// guest/process/process.cc bounds the number of devices.
//
// Ordering: two edges, whose releasing side is in the worker:
//   M  fill -> claim    the worker fills header and device page before it stores `magic` (host/worker/start.cc)
//   T  explain -> fail  the worker offers the text about a fault before it stores `fault` (host/session/session.cc) No
//      test covers these edges, because the tests run on x86, which keeps both orders by itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "guest/region/region.h"
#include "ring/api/call.h"
#include "ring/api/cuda.h"
#include "ring/layout/layout.h"
#include "ring/view.h"

namespace guest {

// The result of mapping a slot. Spoilt: another program has overwritten the slot, so the session gives the slot back
// and tries the next one.
enum class Entered : std::uint8_t { Yes, Spoilt, Refused };

class Slot {
 public:
  // Maps and checks the slot. If the result is not Yes, the log says why.
  Entered map(Region& region, const CheckedRegion& checked, std::uint32_t index);
  void unmap();

  ring::SlotView view() const { return view_; }
  std::uint32_t most_channels() const { return most_channels_; }
  const ring::DevicePage& devices() const { return devices_; }
  // Returns whether the worker knows this call (docs/wire-format.md, Versions). The guest sends no other call:
  // refuse_unserved() logs the call's name once, and returns the call's error.
  bool serves(int call) const { return worker_knows_.contain(call); }
  CUresult refuse_unserved(int call) const;
  std::uint64_t spin_nanoseconds() const { return spin_ns_; }

  CUresult fault() const {
    return static_cast<CUresult>(view_.header()[&ring::SlotHeader::fault].load(std::memory_order_acquire));  // edge T
  }
  // Returns whether the slot was this session's at the last read. With the kernel module an ended slot reads as zeros
  // (ring/layout/module_c.h), so call this function after reading.
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
