// A region's first pages as typed places: its header, the slot directory, the VM's page and its GPUs. The only way from
// a mapping to these words (ring/layout/layout.h). Slots are ring/view.h's.
//
// It owns nothing and checks nothing: the caller has mapped the pages, checked the header, and unmaps them when no
// place is used again. Any thread may use it.
//
// ```cpp
// bool is_ready(ring::RegionView region, std::uint32_t slot) {
//   if (slot >= ring::max_slots) return false;
//   const std::uint32_t word = region.entry(slot)[&ring::SlotEntry::state].load(std::memory_order_acquire);
//   return ring::SlotWord::of(word).state == ring::SlotState::Ready;
// }
// ```
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/layout/layout.h"
#include "ring/shared/shared.h"

namespace ring {

class RegionView {
 public:
  RegionView() = default;
  // `base`: where the region's first byte is mapped, with at least region_header_bytes; for vm_gpu(), header_area_bytes.
  explicit RegionView(std::byte* base) : base_(base) {}

  Shared<RegionHeader> header() const { return shared_at<RegionHeader>(base_, 0); }
  // Preconditions: slot < max_slots.
  Shared<SlotEntry> entry(std::uint32_t slot) const { return shared_at<SlotEntry>(base_, slot_entry_offset(slot)); }
  Shared<VmPage> vm_page() const { return shared_at<VmPage>(base_, vm_page_offset); }
  // Preconditions: gpu < max_devices.
  Shared<VmGpu> vm_gpu(std::uint32_t gpu) const {
    return shared_at<VmGpu>(base_, vm_gpus_offset + gpu * sizeof(VmGpu));
  }
  std::byte* base() const { return base_; }

 private:
  std::byte* base_ = nullptr;
};

}  // namespace ring
