// A VM's region: the sealed memfd or, where the operator wants that, a file; its header and its slot directory. The
// broker maps these first pages only; slots are wiped through the descriptor. A slot of huge pages is mapped to be filled
// with zeros, and never read. Another process can take the pages of all of it away (host/broker/region/guarded_memory.h).
//
// Trust: a guest can write every byte of the region. The broker keeps its own knowledge to itself (VmOptions, Slot);
// from here it takes hints: directory words, owners, `wanted`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/base/fd.h"
#include "host/broker/config/config.h"
#include "host/broker/region/guarded_memory.h"
#include "host/broker/region/plain_memory.h"
#include "ring/layout/region_view.h"

namespace host::broker {

std::size_t memory_of_machine();  // bytes

// False if the region is larger than the machine's memory, and `error` is one sentence. A memfd may be: the process
// that then fills it is killed, and others with it.
bool region_fits_machine(const VmOptions& vm, std::string& error);

class Region {
 public:
  struct Range {
    std::size_t from, bytes;  // in the memory
  };

  // Null on failure, and `error` is one sentence.
  static std::unique_ptr<Region> create(const VmOptions& vm, const FileAccess& access, std::string& error);
  // The memory of one that an earlier broker has made for the same VM, whose `generation` it had. Null on failure, and
  // `error` is half a sentence.
  static std::unique_ptr<Region> adopt(const VmOptions& vm, Fd memfd, std::uint64_t generation, std::string& error);
  ~Region();  // removes its file
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // Its memory is gone: the VM can be served no longer. GuardedMemory::lost_fd() tells when.
  bool is_lost() const { return front_->is_lost(); }
  // Gives it up if another process has shrunk its file. Its workers would die of a touch.
  void look_at_size() const;

  int memfd() const { return memfd_.get(); }
  std::uint64_t generation() const { return generation_; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  // Of a slot in the memory.
  std::size_t slot_offset(std::uint32_t slot) const { return start_ + ring::first_slot_offset + slot * slot_bytes_; }

  ring::Shared<ring::RegionHeader> header() const { return ring::RegionView(base_).header(); }
  ring::Shared<ring::SlotEntry> entry(std::uint32_t slot) const { return ring::RegionView(base_).entry(slot); }
  // The claimer's word about itself, read once; it may be anything.
  ring::SlotOwner owner(std::uint32_t slot) const;
  // The same of its name, fit for a log; "" where it has none.
  std::string program(std::uint32_t slot) const;
  // Of its holder nothing remains in the slot's entry: neither owner nor name nor `pinned`.
  void clear_owner(std::uint32_t slot) const;
  // Whether the guest's kernel says that pages of the slot are still in use. Edge A (host/broker/vm/vm.h).
  bool pinned(std::uint32_t slot) const;
  void clear_pinned(std::uint32_t slot) const;

  // Puts back the constant words of the header and of the VM's page, and leaves their counts. A guest may have written
  // over them.
  void restore_header() const;
  // Writes what a guest has asked of the VM's GPUs, ring::max_devices of them at most; `page.sequence` does not count.
  void answer_question(ring::VmPage page, const std::vector<ring::VmGpu>& gpus) const;
  // How many questions were answered, by a page that a guest may have written over.
  std::uint32_t answered() const;
  // Writes what describes persistent memory to the guest's kernel (host/broker/region/dax_label.h), before the region. Other
  // memory has nothing there.
  void label() const;
  // True if there are bytes where nothing is written before a slot is claimed: behind the worker's part, up to one huge
  // page. Nothing is read.
  bool touched(std::uint32_t slot) const;
  Range slot_range(std::uint32_t slot) const { return {slot_offset(slot), slot_bytes_}; }
  // The memory that belongs to no slot and is not needed: behind the region's front and behind the last slot. No range of
  // huge pages, which were taken at the start, once and for all.
  std::vector<Range> rest() const;

  // No byte of the range remains: the pages go back to the machine and read as zeros. Huge pages stay and are filled with
  // zeros, for another process could take those that go back. On failure `error` is the reason. It takes about a
  // millisecond for 5 MiB: wiper.h has the queue for more than that.
  bool wipe(const Range& range, std::string& error) const;
  // All of it, for when it is not used any more. No range of huge pages: a VM that still looks at its device would be
  // ended for a page that the pool cannot give it again.
  std::vector<Range> everything() const;

 private:
  Region(Fd memfd, bool huge, std::unique_ptr<GuardedMemory> front, const VmOptions& vm, std::uint64_t generation);
  // Null on failure, and `why` is half a sentence.
  static std::unique_ptr<Region> over(Fd memory, const VmOptions& vm, bool huge, std::uint64_t generation,
                                      std::string& why);
  bool fill_with_zeros(const Range& range, std::string& error) const;

  const Fd memfd_;
  const std::unique_ptr<GuardedMemory> front_;  // the memory up to the first slot
  const std::size_t start_;                     // of the region in the memory
  std::byte* const base_;                       // of the region
  const std::size_t slot_bytes_;
  const VmOptions vm_;
  const bool huge_;
  const std::uint64_t generation_;
};

}  // namespace host::broker
