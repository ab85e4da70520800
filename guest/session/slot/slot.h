// The slot that this process has claimed, without its arena: mapped and checked, with copies of the worker's header and
// device page. The session maps it before any thread sends; afterwards any thread may read.
//
// Invariant: values that the worker writes once are copied, and only the checked copy is used. Trust: any program of
// the VM can overwrite the slot at any moment. Each number is bounded before it becomes a size or a position;
// guest/process/process.cc bounds the number of devices.
//
// Ordering: two edges, whose releasing side is the worker's:
//   M  fill -> claim    header and device page are filled before `magic` is stored (host/worker/start.cc)
//   T  explain -> fail  the text that explains a fault is offered before `fault` is stored (host/session/session.cc)
// No test covers them: the tests run on x86, which keeps both by itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "guest/region/region.h"
#include "ring/api/call.h"
#include "ring/api/cuda.h"
#include "ring/layout/layout.h"
#include "ring/view.h"

namespace guest {

// The result of mapping a slot. Spoilt: another program has overwritten it, so the session gives it back and tries the
// next.
enum class Entered : std::uint8_t { Yes, Spoilt, Refused };

class Slot {
 public:
  // If the result is not Yes, the log says why.
  Entered map(Region& region, const CheckedRegion& checked, std::uint32_t index);
  void unmap();

  ring::SlotView view() const { return view_; }
  std::uint32_t most_channels() const { return most_channels_; }
  const ring::DevicePage& devices() const { return devices_; }
  // Whether the worker knows this call (docs/wire-format.md, Versions). The guest sends no other call:
  // refuse_unserved() names it in the log, once, and returns its error.
  bool serves(int call) const { return worker_knows_.contain(call); }
  CUresult refuse_unserved(int call) const;
  std::uint64_t spin_nanoseconds() const { return spin_ns_; }

  CUresult fault() const {
    return static_cast<CUresult>(view_.header()[&ring::SlotHeader::fault].load(std::memory_order_acquire));  // T
  }
  // Whether the slot was this session's at the last read. With the kernel module an ended slot reads as zeros
  // (ring/layout/module_c.h), so call this after reading.
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
