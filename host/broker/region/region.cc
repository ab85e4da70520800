#include "host/broker/region/region.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

#include "host/base/hostile_text.h"
#include "host/base/sealed_memory.h"
#include "host/broker/region/dax_label.h"
#include "ring/layout/release.h"

namespace host::broker {
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

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return static_cast<std::uint64_t>(getpid());
  return number;
}

std::string failed_at(const char* what) {
  const int why = errno;
  return fmt::format("{}: {}{}", what, std::strerror(why),
                     why == EFBIG ? "; `ulimit -f` bounds the size of files, as LimitFSIZE= of a service does" : "");
}

// Empty on failure, and `why` is half a sentence; the same holds for the next functions.
Fd make_memory(const VmOptions& vm, const FileAccess& access, bool& huge, std::string& why) {
  if (!vm.plain_file.empty()) return make_plain_file(vm.plain_file, memory_bytes(vm), access, huge, why);
  Fd memfd = make_memfd(vm);
  if (!memfd) return why = failed_at("memfd_create"), Fd();
  if (!size_and_seal(memfd.get(), memory_bytes(vm))) return why = failed_at("sizing and sealing"), Fd();
  if (!opened_by_path(vm)) return memfd;
  Fd opened = reopened(memfd);
  if (!opened) why = failed_at("opening it again");
  return opened;
}

// Allocates huge pages now, because a guest that later found the pool empty would be killed by SIGBUS. Of small pages
// it allocates those that the broker itself writes, because a full file system would not provide them later.
bool take_pages(const Fd& memory, const VmOptions& vm, bool huge, std::string& why) {
  const auto take = [&](std::size_t from, std::size_t bytes) {
    return fallocate(memory.get(), 0, static_cast<off_t>(from), static_cast<off_t>(bytes)) == 0;
  };
  if (huge) {
    if (take(0, memory_bytes(vm))) return true;
    why = failed_at("taking its pages") + "; huge_pages needs that much in /proc/sys/vm/nr_hugepages (2 MiB each)";
    return false;
  }
  const std::size_t start = region_start(vm);
  if ((start == 0 || take(dax_label_offset, sizeof(DaxLabel))) && take(start, ring::front_bytes)) return true;
  const bool is_file = !vm.plain_file.empty();
  why = fmt::format("{} has no room for the region's first {} KiB: {}; {}",
                    is_file ? "its file system" : "this machine", ring::front_bytes >> 10, std::strerror(errno),
                    is_file ? "free some there, or give it more (mount -o remount,size=...)" : "free some memory");
  return false;
}

std::string cannot_be_made(const VmOptions& vm, const std::string& why) {
  if (!vm.plain_file.empty())
    return fmt::format("VM {}: plain_file = \"{}\" cannot be made: {}", vm.name, vm.plain_file, why);
  return fmt::format("VM {}: a region of {} MiB cannot be made: {}", vm.name, memory_bytes(vm) >> 20, why);
}

}  // namespace

std::size_t memory_of_machine() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

bool region_fits_machine(const VmOptions& vm, std::string& error) {
  const auto bytes = static_cast<std::size_t>(vm.region_size), memory = memory_of_machine();
  if (bytes <= memory) return true;
  error = fmt::format("VM {}: a region of {} MiB cannot be made: this machine has {} MiB of memory", vm.name,
                      bytes >> 20, memory >> 20);
  return false;
}

std::unique_ptr<Region> Region::create(const VmOptions& vm, const FileAccess& access, std::string& error) {
  if (!region_fits_machine(vm, error)) return nullptr;
  bool huge = vm.huge_pages;
  std::string why;
  Fd memory = make_memory(vm, access, huge, why);
  if (!memory) return error = cannot_be_made(vm, why), nullptr;
  std::unique_ptr<Region> region = over(std::move(memory), vm, huge, random_number(), why);
  if (region) return region;
  if (!vm.plain_file.empty()) unlink(vm.plain_file.c_str());
  error = cannot_be_made(vm, why);
  return nullptr;
}

std::unique_ptr<Region> Region::adopt(const VmOptions& vm, Fd memfd, std::uint64_t generation, std::string& error) {
  bool huge = vm.huge_pages;
  if (!has_size(memfd, memory_bytes(vm))) return error = "its region is of another size", nullptr;
  if (vm.plain_file.empty() ? !is_sealed(memfd) : !is_plain_file(memfd, vm.plain_file, huge))
    return error = vm.plain_file.empty() ? "its region is not sealed" : "its plain_file is another by now", nullptr;
  return over(std::move(memfd), vm, huge, generation, error);  // its VM may have ended, and spoilt the label
}

std::unique_ptr<Region> Region::over(Fd memory, const VmOptions& vm, bool huge, std::uint64_t generation,
                                     std::string& why) {
  if (!take_pages(memory, vm, huge, why)) return nullptr;
  auto front = GuardedMemory::map(memory, 0, region_start(vm) + ring::first_slot_offset);
  if (!front) return why = failed_at("mapping it"), nullptr;
  std::unique_ptr<Region> region(new Region(std::move(memory), huge, std::move(front), vm, generation));
  region->label();
  region->restore_header();
  return region;
}

Region::Region(Fd memfd, bool huge, std::unique_ptr<GuardedMemory> front, const VmOptions& vm, std::uint64_t generation)
    : memfd_(std::move(memfd)),
      front_(std::move(front)),
      start_(region_start(vm)),
      base_(front_->base() + start_),
      slot_bytes_(ring::slot_bytes_for(static_cast<std::size_t>(vm.region_size), static_cast<std::uint32_t>(vm.slots))),
      vm_(vm),
      huge_(huge),
      generation_(generation) {}

void Region::restore_header() const {
  using Header = ring::RegionHeader;
  const ring::Shared<Header> to = header();
  const auto put = [&to](auto member, auto value) { to[member].store(value, std::memory_order_relaxed); };
  put(&Header::version, ring::layout_version);
  put(&Header::slot_count, static_cast<std::uint32_t>(vm_.slots));
  put(&Header::generation, generation_);
  put(&Header::region_bytes, static_cast<std::uint64_t>(vm_.region_size));
  put(&Header::first_slot, std::uint64_t{ring::first_slot_offset});
  put(&Header::slot_bytes, std::uint64_t{slot_bytes_});
  put(&Header::no_doorbell, opened_by_path(vm_) ? 1u : 0u);
  put(&Header::guest_vectors, guest_vectors(vm_));
  char name[sizeof Header::vm] = {};
  vm_.name.copy(name, sizeof name - 1);
  to[&Header::vm].copy_in(name);
  char release[sizeof Header::release] = {};
  std::string_view(ring::this_release).copy(release, sizeof release - 1);
  to[&Header::release].copy_in(release);
  put(&Header::common_offset, std::uint64_t{0});
  put(&Header::common_bytes, std::uint64_t{0});  // there is no common memory
  put(&Header::bell_port, static_cast<std::uint32_t>(vm_.vsock_port));
  ring::RegionView(base_).vm_page()[&ring::VmPage::version].store(ring::vm_page_version, std::memory_order_relaxed);
  // Pairs with the acquire load of each process that opens the region.
  to[&Header::magic].store(ring::region_magic, std::memory_order_release);
}

// A reader that copies during this write sees that `sequence` has changed.
void Region::answer_question(ring::VmPage page, const std::vector<ring::VmGpu>& gpus) const {
  const ring::RegionView view(base_);
  const auto sequence = view.vm_page()[&ring::VmPage::sequence];
  const std::uint32_t writing = sequence.load(std::memory_order_relaxed) | 1u;
  sequence.store(writing, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // pairs with a reader's acquire fence after its copy
  for (std::uint32_t i = 0; i < gpus.size(); ++i) view.vm_gpu(i).copy_in(gpus[i]);
  page.sequence = writing;
  view.vm_page().copy_in(page);
  sequence.store(writing + 1, std::memory_order_release);  // pairs with a reader's first load
}

std::uint32_t Region::answered() const {
  return ring::RegionView(base_).vm_page()[&ring::VmPage::answered].load(std::memory_order_relaxed);
}

void Region::label() const {
  if (start_ == 0) return;
  const DaxLabel label = dax_label(start_, static_cast<std::size_t>(vm_.region_size));
  std::memcpy(base_ - start_ + dax_label_offset, &label, sizeof label);
}

bool Region::touched(std::uint32_t slot) const {
  if (huge_) return false;  // allocated at the start, so there is no hint
  const auto from = static_cast<off_t>(slot_offset(slot) + ring::huge_page);
  const off_t data = lseek(memfd_.get(), from, SEEK_DATA);
  return data >= 0 && data < static_cast<off_t>(slot_offset(slot) + slot_bytes_);
}

std::vector<Region::Range> Region::rest() const {
  if (huge_) return {};
  const std::size_t slots_end = slot_offset(static_cast<std::uint32_t>(vm_.slots));
  std::vector<Range> ranges = {{start_ + ring::front_bytes, ring::first_slot_offset - ring::front_bytes},
                               {slots_end, memory_bytes(vm_) - slots_end}};
  std::erase_if(ranges, [](const Range& range) { return range.bytes == 0; });
  return ranges;
}

std::vector<Region::Range> Region::everything() const {
  if (huge_) return {};
  return {{0, memory_bytes(vm_)}};
}

// Unlinks only its own file: the name may belong to another file now.
Region::~Region() {
  bool huge = false;
  if (!vm_.plain_file.empty() && is_plain_file(memfd_, vm_.plain_file, huge)) unlink(vm_.plain_file.c_str());
}

void Region::look_at_size() const {
  struct stat status {};
  if (fstat(memfd_.get(), &status) == 0 && status.st_size < static_cast<off_t>(memory_bytes(vm_))) front_->give_up();
}

ring::SlotOwner Region::owner(std::uint32_t slot) const { return entry(slot)[&ring::SlotEntry::owner].copy_out(); }

std::string Region::program(std::uint32_t slot) const {
  char name[sizeof ring::SlotEntry::program];
  entry(slot)[&ring::SlotEntry::program].copy_out(name);
  return escaped({name, strnlen(name, sizeof name)});
}

void Region::clear_owner(std::uint32_t slot) const {
  static constexpr char nobody[sizeof ring::SlotEntry::program] = {};
  entry(slot)[&ring::SlotEntry::owner].copy_in({});
  entry(slot)[&ring::SlotEntry::program].copy_in(nobody);
  clear_pinned(slot);
}

bool Region::pinned(std::uint32_t slot) const {
  return entry(slot)[&ring::SlotEntry::pinned].load(std::memory_order_acquire) != 0;  // A
}

void Region::clear_pinned(std::uint32_t slot) const {
  entry(slot)[&ring::SlotEntry::pinned].store(0, std::memory_order_relaxed);
}

bool Region::wipe(const Range& range, std::string& error) const {
  if (huge_) return fill_with_zeros(range, error);
  const auto start = static_cast<off_t>(range.from), size = static_cast<off_t>(range.bytes);
  if (fallocate(memfd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, size) == 0) return true;
  error = std::strerror(errno);
  return false;
}

bool Region::fill_with_zeros(const Range& range, std::string& error) const {
  const auto start = static_cast<off_t>(range.from), size = static_cast<off_t>(range.bytes);
  // Allocates pages that another process has freed, or fails, before any access.
  const bool are_there = fallocate(memfd_.get(), FALLOC_FL_KEEP_SIZE, start, size) == 0;
  const auto pages = are_there ? GuardedMemory::map(memfd_, range.from, range.bytes) : nullptr;
  if (!pages) return error = std::strerror(errno), false;
  std::memset(pages->base(), 0, range.bytes);
  if (!pages->is_lost()) return true;
  error = "its huge pages are gone";
  return false;
}

}  // namespace host::broker
