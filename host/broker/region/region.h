// A VM's region: its memory (region_memory.h), its header, and its slot directory. The broker maps these first pages only,
// and scrubs slots through the descriptor. A slot of huge pages is mapped for filling with zeros, and never read.
// Another process can take pages of the whole region away (host/broker/region/guarded_memory.h).
//
// Trust: a guest can write every byte of the region. The broker keeps its own state elsewhere (VmOptions, Slot), and
// reads only hints from here: directory words, owners, `wanted`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/base/fd.h"
#include "host/base/result.h"
#include "host/broker/config/config.h"
#include "host/broker/region/gpu_answers.h"
#include "host/broker/region/guarded_memory.h"
#include "host/broker/region/region_memory.h"
#include "ring/layout/region_view.h"

namespace host::broker {

std::size_t memory_of_machine();  // bytes

// An error, one sentence, if the region exceeds the machine's memory. The kernel would allow the memfd, and later kill
// the process that fills it, and others.
Result<void> region_fits_machine(const VmOptions& vm);

class Region {
 public:
  using Range = RegionMemory::Range;

  // The error is one sentence.
  static Result<std::unique_ptr<Region>> create(const VmOptions& vm, const FileAccess& access);
  // Takes over the memory that an earlier broker made for this VM with this `generation`. The error is half a sentence.
  static Result<std::unique_ptr<Region>> adopt(const VmOptions& vm, Fd memfd, std::uint64_t generation);
  ~Region();  // removes its file
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // True if its memory is gone, so the VM cannot be served any more. GuardedMemory::lost_fd() reports this.
  bool is_lost() const { return header_area_->is_lost(); }
  // Marks the region as lost if another process has truncated its file, whose access would kill the workers.
  void look_at_size() const;

  int memfd() const { return memory_.fd(); }
  const RegionMemory& memory() const { return memory_; }
  std::uint64_t generation() const { return generation_; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  // Offset of a slot in the memory.
  std::size_t slot_offset(std::uint32_t slot) const { return start_ + ring::first_slot_offset + slot * slot_bytes_; }

  ring::Shared<ring::RegionHeader> header() const { return ring::RegionView(base_).header(); }
  ring::Shared<ring::SlotEntry> entry(std::uint32_t slot) const { return ring::RegionView(base_).entry(slot); }
  // Reads what the claiming process has written about itself, once; it may be any bytes.
  ring::SlotOwner owner(std::uint32_t slot) const;
  // The claiming process's name, escaped; "" if it has none.
  std::string program(std::uint32_t slot) const;
  // Clears the slot's owner, name and `pinned`.
  void clear_owner(std::uint32_t slot) const;
  // True if the guest's kernel reports that it still uses pages of the slot. Edge A (host/broker/vm/slot_table.h).
  bool pinned(std::uint32_t slot) const;
  void clear_pinned(std::uint32_t slot) const;

  // Restores the constant fields of the header and the VM's page, which a guest may have overwritten. Counters stay.
  void restore_header() const;
  GpuAnswers gpu_answers() const { return GpuAnswers(base_); }
  // Writes the devdax label before the region of persistent memory (host/broker/region/dax_label.h). Other memory has
  // no label.
  void label() const;
  // True if the slot has data where only a claim causes writes: after the worker's part, up to one huge page. Reads no
  // byte.
  bool touched(std::uint32_t slot) const;
  Range slot_range(std::uint32_t slot) const { return {slot_offset(slot), slot_bytes_}; }
  // The memory outside slots that is not in use: after the header area and after the last slot. Empty for huge pages,
  // which stay allocated.
  std::vector<Range> rest() const;

 private:
  Region(RegionMemory memory, std::unique_ptr<GuardedMemory> header_area, const VmOptions& vm,
         std::uint64_t generation);
  // The error is half a sentence.
  static Result<std::unique_ptr<Region>> over(RegionMemory memory, const VmOptions& vm, std::uint64_t generation);

  const RegionMemory memory_;
  const std::unique_ptr<GuardedMemory> header_area_;  // maps the memory up to the first slot
  const std::size_t start_;                           // offset of the region in the memory
  std::byte* const base_;                             // start of the mapped region
  const std::size_t slot_bytes_;
  const VmOptions vm_;
  const std::uint64_t generation_;
};

}  // namespace host::broker
