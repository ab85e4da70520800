#include "host/broker/region.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

#include "host/broker/dax_label.h"
#include "host/broker/hostile_text.h"
#include "host/broker/sealed_memory.h"
#include "ring/release.h"

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

// A process that gets the descriptor can neither resize the file under a mapping nor seal it against the broker's
// wiping.
bool size_and_seal(int fd, std::size_t bytes) {
  return ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
         fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

bool is_sealed(const Fd& memfd) {
  const int seals = fcntl(memfd.get(), F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

const char* remedy_of(int error, const VmOptions& vm) {
  if (error == EFBIG) return "; `ulimit -f` bounds the size of files, as LimitFSIZE= of a service does";
  return vm.huge_pages ? "; huge_pages needs that much in /proc/sys/vm/nr_hugepages (2 MiB each)" : "";
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return static_cast<std::uint64_t>(getpid());
  return number;
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
  const std::size_t bytes = memory_bytes(vm), start = region_start(vm);
  const std::size_t slot_bytes =
      ring::slot_bytes_for(static_cast<std::size_t>(vm.region_size), static_cast<std::uint32_t>(vm.slots));
  const auto fail = [&](const char* what) {
    const int why = errno;
    error = fmt::format("VM {}: a region of {} MiB cannot be made: {}: {}{}", vm.name, bytes >> 20, what,
                        std::strerror(why), remedy_of(why, vm));
    if (!vm.plain_file.empty()) unlink(vm.plain_file.c_str());
    return nullptr;
  };
  if (!region_fits_machine(vm, error)) return nullptr;
  bool huge = vm.huge_pages;
  Fd memfd;
  if (!vm.plain_file.empty()) {
    std::string why;
    memfd = make_plain_file(vm.plain_file, bytes, access, huge, why);
    if (!memfd) error = fmt::format("VM {}: plain_file = \"{}\" cannot be made: {}", vm.name, vm.plain_file, why);
    if (!memfd) return nullptr;
  } else {
    memfd = make_memfd(vm);
    if (!memfd) return fail("memfd_create");
    if (!size_and_seal(memfd.get(), bytes)) return fail("sizing and sealing");
    if (opened_by_path(vm)) memfd = reopened(memfd);
    if (!memfd) return fail("opening it again");
  }
  // Huge pages are taken now: a guest that met an empty pool later would be killed by SIGBUS.
  if (huge && fallocate(memfd.get(), 0, 0, static_cast<off_t>(bytes)) != 0) return fail("taking its pages");
  void* base = mmap(nullptr, start + ring::first_slot_offset, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (base == MAP_FAILED) return fail("mmap");
  std::unique_ptr<Region> region(
      new Region(std::move(memfd), huge, static_cast<std::byte*>(base) + start, slot_bytes, vm, random_number()));
  region->label();
  region->restore_header();
  return region;
}

std::unique_ptr<Region> Region::adopt(const VmOptions& vm, Fd memfd, std::uint64_t generation, std::string& error) {
  bool huge = vm.huge_pages;
  if (!has_size(memfd, memory_bytes(vm))) return error = "its region is of another size", nullptr;
  if (vm.plain_file.empty() ? !is_sealed(memfd) : !is_plain_file(memfd, vm.plain_file, huge))
    return error = vm.plain_file.empty() ? "its region is not sealed" : "its plain_file is another by now", nullptr;
  const std::size_t start = region_start(vm);
  void* base = mmap(nullptr, start + ring::first_slot_offset, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (base == MAP_FAILED) return error = "its region cannot be mapped", nullptr;
  const std::size_t slot_bytes =
      ring::slot_bytes_for(static_cast<std::size_t>(vm.region_size), static_cast<std::uint32_t>(vm.slots));
  std::unique_ptr<Region> region(
      new Region(std::move(memfd), huge, static_cast<std::byte*>(base) + start, slot_bytes, vm, generation));
  region->label();  // its VM may have ended without anybody to write it anew
  region->restore_header();
  return region;
}

Region::Region(Fd memfd, bool huge, std::byte* base, std::size_t slot_bytes, const VmOptions& vm,
               std::uint64_t generation)
    : memfd_(std::move(memfd)),
      base_(base),
      start_(region_start(vm)),
      slot_bytes_(slot_bytes),
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
  put(&Header::common_bytes, std::uint64_t{0});  // there is none
  put(&Header::bell_port, static_cast<std::uint32_t>(vm_.vsock_port));
  ring::RegionView(base_).vm_page()[&ring::VmPage::version].store(ring::vm_page_version, std::memory_order_relaxed);
  // Pairs with the acquire of each process that opens the region.
  to[&Header::magic].store(ring::region_magic, std::memory_order_release);
}

// A reader that has copied while this writes sees another `sequence` afterwards.
void Region::answer_question(ring::VmPage page, const std::vector<ring::VmGpu>& gpus) const {
  const ring::RegionView view(base_);
  const auto sequence = view.vm_page()[&ring::VmPage::sequence];
  const std::uint32_t writing = sequence.load(std::memory_order_relaxed) | 1u;
  sequence.store(writing, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // pairs with a reader's acquire fence, after what it has copied
  for (std::uint32_t i = 0; i < gpus.size(); ++i) view.vm_gpu(i).copy_in(gpus[i]);
  page.sequence = writing;
  view.vm_page().copy_in(page);
  sequence.store(writing + 1, std::memory_order_release);  // pairs with a reader's first look
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
  if (huge_) return false;  // all of it is there from the start
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

Region::~Region() {
  munmap(base_ - start_, start_ + ring::first_slot_offset);
  if (!vm_.plain_file.empty()) unlink(vm_.plain_file.c_str());
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
  const auto start = static_cast<off_t>(range.from), size = static_cast<off_t>(range.bytes);
  const bool wiped = fallocate(memfd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, size) == 0 &&
                     (!huge_ || fallocate(memfd_.get(), 0, start, size) == 0);
  if (!wiped) error = std::strerror(errno);
  return wiped;
}

}  // namespace host::broker
