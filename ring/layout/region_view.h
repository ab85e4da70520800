// Typed access to a region's first pages: the region's header, the slot directory, the VM's page and the VM's GPUs. All
// code accesses these words through this class (ring/layout/layout.h). ring/view.h does the same for slots.
//
// A RegionView owns nothing and checks nothing. The caller maps the pages, checks the header, and unmaps the pages when
// no view is used any more. Any thread may use a RegionView.
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
  // `base`: the address of the region's first byte. At least region_header_bytes are mapped there; for vm_gpu(),
  // header_area_bytes.
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
