// The memory of one VM's region: the descriptor of a sealed memfd or a file, and its pages.
//
// Region owns it; the page scrubber frees its pages. Thread: the broker's loop.
//
// Trust: other processes hold the descriptor, and can free pages at any time. Memory that the broker reads or writes is
// therefore mapped as GuardedMemory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "host/base/fd.h"
#include "host/base/result.h"
#include "host/broker/config/config.h"
#include "host/broker/region/guarded_memory.h"
#include "host/broker/region/plain_memory.h"

namespace host::broker {

class RegionMemory {
 public:
  struct Range {
    std::size_t from, bytes;  // offset in the memory
  };

  // The error is half a sentence, as with the next functions.
  static Result<RegionMemory> create(const VmOptions& vm, const FileAccess& access);
  // Takes over the memory that an earlier broker made for this VM.
  static Result<RegionMemory> adopt(const VmOptions& vm, Fd fd);
  // Allocates the pages that must not be missing later.
  Result<void> take_pages(const VmOptions& vm) const;

  // The half sentence for errno.
  static std::string failed_at(const char* what);

  int fd() const { return fd_.get(); }
  // Null on failure, and errno has the reason.
  [[nodiscard]] std::unique_ptr<GuardedMemory> map(const Range& range) const {
    return GuardedMemory::map(fd_, range.from, range.bytes);
  }
  // True if another process has truncated the file.
  bool is_truncated() const;
  // True if pages of the range are allocated. Reads no byte. False for huge pages, which always are.
  bool has_data(const Range& range) const;
  // Scrubs a range: small pages return to the machine and read as zeros. Huge pages are filled with zeros, because
  // another process could take them if they were freed. 5 MiB take about a millisecond; use page_scrubber.h for more.
  Result<void> scrub(const Range& range) const;
  // All memory, to free when the region is out of use. Empty for huge pages: a VM that still has its device would die
  // of a page that the pool cannot provide again.
  std::vector<Range> everything() const;
  bool is_huge() const { return huge_; }
  // Unlinks only its own file: the name may belong to another file now.
  void remove_file() const;

 private:
  RegionMemory(Fd fd, const VmOptions& vm, bool huge);
  Result<void> fill_with_zeros(const Range& range) const;

  Fd fd_;
  std::string plain_file_;  // "": a memfd
  std::size_t bytes_;
  bool huge_;
};

}  // namespace host::broker
