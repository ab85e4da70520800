#include "host/broker/region/region_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "host/base/sealed_memory.h"
#include "host/broker/region/dax_label.h"
#include "ring/layout/layout.h"

namespace host::broker {

std::string RegionMemory::failed_at(const char* what) {
  const int why = errno;
  return fmt::format("{}: {}{}", what, std::strerror(why),
                     why == EFBIG ? "; `ulimit -f` bounds the size of files, as LimitFSIZE= of a service does" : "");
}

namespace {

Fd make_memfd(const VmOptions& vm) {
  const unsigned huge = vm.huge_pages ? MFD_HUGETLB | MFD_HUGE_2MB : 0U;
  const std::string name = "ivgpu:" + vm.name;
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | huge;
#ifdef MFD_NOEXEC_SEAL
  if (Fd fd(memfd_create(name.c_str(), flags | MFD_NOEXEC_SEAL)); fd) return fd;
#endif
  return Fd(memfd_create(name.c_str(), flags));
}

// Seals the size: a process with the descriptor can neither resize the file nor add seals against the broker's
// scrubbing.
bool size_and_seal(int fd, std::size_t bytes) {
  return ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
         fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

bool is_sealed(const Fd& memfd) {
  const int seals = fcntl(memfd.get(), F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

// The error is half a sentence.
Result<Fd> make_whole_memfd(const VmOptions& vm) {
  Fd memfd = make_memfd(vm);
  if (!memfd) return Error{RegionMemory::failed_at("memfd_create")};
  if (!size_and_seal(memfd.get(), memory_bytes(vm))) return Error{RegionMemory::failed_at("sizing and sealing")};
  if (!opened_by_path(vm)) return memfd;
  Fd opened = reopened(memfd);
  if (!opened) return Error{RegionMemory::failed_at("opening it again")};
  return opened;
}

}  // namespace

RegionMemory::RegionMemory(Fd fd, const VmOptions& vm, bool huge)
    : fd_(std::move(fd)), plain_file_(vm.plain_file), bytes_(memory_bytes(vm)), huge_(huge) {}

Result<RegionMemory> RegionMemory::create(const VmOptions& vm, const FileAccess& access) {
  if (vm.plain_file.empty()) {
    auto memfd = make_whole_memfd(vm);
    if (!memfd) return memfd.error();
    return RegionMemory(*std::move(memfd), vm, vm.huge_pages);
  }
  auto file = make_plain_file(vm.plain_file, memory_bytes(vm), access);
  if (!file) return file.error();
  return RegionMemory(std::move(file->fd), vm, file->is_huge);
}

Result<RegionMemory> RegionMemory::adopt(const VmOptions& vm, Fd fd) {
  bool huge = vm.huge_pages;
  if (!has_size(fd, memory_bytes(vm))) return Error{"its region is of another size"};
  if (vm.plain_file.empty() ? !is_sealed(fd) : !is_plain_file(fd, vm.plain_file, huge))
    return Error{vm.plain_file.empty() ? "its region is not sealed" : "its plain_file is another by now"};
  return RegionMemory(std::move(fd), vm, huge);
}

// Allocates huge pages now, because a guest that later found the pool empty would be killed by SIGBUS. Of small pages
// it allocates those that the broker itself writes, because a full file system would not provide them later.
Result<void> RegionMemory::take_pages(const VmOptions& vm) const {
  const auto take = [&](std::size_t from, std::size_t bytes) {
    return fallocate(fd_.get(), 0, static_cast<off_t>(from), static_cast<off_t>(bytes)) == 0;
  };
  if (huge_) {
    if (take(0, memory_bytes(vm))) return {};
    return Error{RegionMemory::failed_at("taking its pages") +
                 "; huge_pages needs that much in /proc/sys/vm/nr_hugepages (2 MiB each)"};
  }
  const std::size_t start = region_start(vm);
  if ((start == 0 || take(dax_label_offset, sizeof(DaxLabel))) && take(start, ring::header_area_bytes)) return {};
  const bool is_file = !vm.plain_file.empty();
  return Error{
      fmt::format("{} has no room for the region's first {} KiB: {}; {}", is_file ? "its file system" : "this machine",
                  ring::header_area_bytes >> 10, std::strerror(errno),
                  is_file ? "free some there, or give it more (mount -o remount,size=...)" : "free some memory")};
}

bool RegionMemory::is_truncated() const {
  struct stat status {};
  return fstat(fd_.get(), &status) == 0 && status.st_size < static_cast<off_t>(bytes_);
}

bool RegionMemory::has_data(const Range& range) const {
  if (huge_) return false;  // allocated at the start, so there is no hint
  const off_t data = lseek(fd_.get(), static_cast<off_t>(range.from), SEEK_DATA);
  return data >= 0 && data < static_cast<off_t>(range.from + range.bytes);
}

std::vector<RegionMemory::Range> RegionMemory::everything() const {
  if (huge_) return {};
  return {{0, bytes_}};
}

void RegionMemory::remove_file() const {
  bool huge = false;
  if (!plain_file_.empty() && is_plain_file(fd_, plain_file_, huge)) unlink(plain_file_.c_str());
}

Result<void> RegionMemory::scrub(const Range& range) const {
  if (huge_) return fill_with_zeros(range);
  const auto start = static_cast<off_t>(range.from), size = static_cast<off_t>(range.bytes);
  if (fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, size) != 0)
    return Error{std::strerror(errno)};
  return {};
}

Result<void> RegionMemory::fill_with_zeros(const Range& range) const {
  const auto start = static_cast<off_t>(range.from), size = static_cast<off_t>(range.bytes);
  // Allocates pages that another process has freed, or fails, before any access.
  const bool are_there = fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, start, size) == 0;
  const auto pages = are_there ? map(range) : nullptr;
  if (!pages) return Error{std::strerror(errno)};
  std::memset(pages->base(), 0, range.bytes);
  if (pages->is_lost()) return Error{"its huge pages are gone"};
  return {};
}

}  // namespace host::broker
