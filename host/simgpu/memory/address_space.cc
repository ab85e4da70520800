// Device memory: one reservation of address space, allocations committed in the reservation, and host ranges pinned for
// the device. The gap between two allocations belongs to neither, so that an overrun by one element is detected.
#include "host/simgpu/memory/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

#include "ring/base/mutex.h"

namespace simgpu {
namespace {

constexpr Address wanted_address = 0x7ee0'0000'0000;
constexpr std::size_t granule = 512;  // as in NVIDIA's driver: the alignment and the unit of size of small allocations
constexpr std::size_t gap = 512;      // bytes between allocations
constexpr std::size_t page = 4096;
constexpr std::size_t large = std::size_t{2} << 20;  // allocations of at least this size are aligned to 2 MiB

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) & ~(to - 1); }

void* as_pointer(Address address) { return reinterpret_cast<void*>(address); }

Address reserve(std::size_t size) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* at = ::mmap(as_pointer(wanted_address), size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) at = ::mmap(nullptr, size + large, PROT_NONE, flags, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return reinterpret_cast<Address>(at);
}

// Returns true if one access may span both ranges.
bool are_one(const Range& first, const Range& second) {
  return first.kind == RangeKind::Mapped && second.kind == RangeKind::Mapped &&
         first.start + first.size == second.start && first.read_only == second.read_only;
}

}  // namespace

// The reservation has twice the capacity, so that gaps and fragmentation do not reduce the usable device memory.
AddressSpace::Impl::Impl(std::size_t bytes) : capacity(bytes), reserved_size_(2 * bytes + 16 * large) {
  reserved_ = reserve(reserved_size_);
  const Address first = round_up(reserved_, large);
  holes_[first] = reserved_ + reserved_size_ - first;
  snapshot_ = std::make_shared<const RangeList>();
}

AddressSpace::Impl::~Impl() { ::munmap(as_pointer(reserved_), reserved_size_); }

void AddressSpace::Impl::changed() {
  snapshot_.reset();
  generation.fetch_add(1, std::memory_order_release);  // A in address_space.h
}

Address AddressSpace::Impl::take_of_chunks(std::size_t size) {
  const std::size_t charged = round_up(size, granule);
  if (!charge(charged)) return 0;
  const Address start = chunks_->take(size);
  if (start == 0) discharge(charged);
  return start;
}

// Allocates and charges space in the reservation; returns 0 if there is too little.
Address AddressSpace::Impl::take(std::size_t size) {
  if (chunks_) return take_of_chunks(size);
  const std::size_t charged = round_up(size, granule);
  const std::size_t align = size >= large ? large : granule;
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    const Address start = round_up(hole->first, align);
    const Address end = hole->first + hole->second;
    if (start + charged + gap > end) continue;
    const Address from = start & ~(page - 1);
    if (::mprotect(as_pointer(from), round_up(start + charged - from, page), PROT_READ | PROT_WRITE) != 0) return 0;
    if (!charge(charged)) return 0;
    const Address hole_start = hole->first;
    holes_.erase(hole);
    if (start > hole_start) holes_[hole_start] = start - hole_start;
    if (end > start + charged + gap) holes_[start + charged + gap] = end - (start + charged + gap);
    return start;
  }
  return 0;
}

Address AddressSpace::Impl::allocate(std::size_t size) {
  if (size == 0 || size > capacity) return 0;
  const ring::MutexLock lock(mutex_);
  const Address start = take(size);
  if (start == 0) return 0;
  ranges_[start] = Range{.start = start, .size = size, .kind = RangeKind::Device, .id = next_id_++};
  changed();
  return start;
}

Address AddressSpace::Impl::claim(std::size_t size) {
  if (size == 0 || size > capacity) return 0;
  const ring::MutexLock lock(mutex_);
  return take(size);
}

void AddressSpace::Impl::give_back_claim(Address start, std::size_t size) {
  const ring::MutexLock lock(mutex_);
  put_back(start, size);
}

bool AddressSpace::Impl::charge(std::size_t size) {
  std::size_t before = used.load(std::memory_order_relaxed);
  do {
    if (size > capacity - before) return false;
  } while (!used.compare_exchange_weak(before, before + size, std::memory_order_relaxed));
  if (published != nullptr) published->fetch_add(size, std::memory_order_relaxed);
  return true;
}

// Releases the contents and the memory of pages that lie wholly in a hole. The pages stay mapped, as address_space.h
// explains.
void AddressSpace::Impl::give_back(Address start, Address end) {
  const Address from = round_up(start, page);
  const Address to = end & ~(page - 1);
  if (to > from) ::madvise(as_pointer(from), to - from, MADV_DONTNEED);
}

bool AddressSpace::Impl::free(Address start) {
  const ring::MutexLock lock(mutex_);
  const auto found = ranges_.find(start);
  if (found == ranges_.end() || found->second.kind != RangeKind::Device) return false;
  const std::size_t size = found->second.size;
  ranges_.erase(found);
  put_back(start, size);
  changed();
  return true;
}

void AddressSpace::Impl::put_back(Address start, std::size_t size) {
  const std::size_t charged = round_up(size, granule);
  discharge(charged);
  if (chunks_) return chunks_->put_back(start, size), give_back(start, start + charged);
  Address from = start;
  Address to = start + charged + gap;
  auto after = holes_.lower_bound(start);
  if (after != holes_.end() && after->first == to) {
    to += after->second;
    after = holes_.erase(after);
  }
  if (after != holes_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == from) {
      from = before->first;
      holes_.erase(before);
    }
  }
  holes_[from] = to - from;
  // Older parts of the hole were released before. Only one page on each side may have become free as a whole just now.
  give_back(std::max(from, (start & ~(page - 1))), std::min(to, round_up(start + charged + gap, page)));
}

bool AddressSpace::Impl::overlaps(const Range& range) const {
  const auto after = ranges_.lower_bound(range.start);
  if (after != ranges_.end() && after->first < range.start + range.size) return true;
  if (after == ranges_.begin()) return false;
  const Range& before = std::prev(after)->second;
  return before.start + before.size > range.start;
}

bool AddressSpace::Impl::add(Range range) {
  if (range.size == 0 || range.start == 0 || range.start + range.size < range.start) return false;
  const ring::MutexLock lock(mutex_);
  if (overlaps(range)) return false;
  range.id = next_id_++;
  ranges_[range.start] = range;
  changed();
  return true;
}

bool AddressSpace::Impl::remove(Address start, RangeKind kind) {
  const ring::MutexLock lock(mutex_);
  const auto found = ranges_.find(start);
  if (found == ranges_.end() || found->second.kind != kind) return false;
  ranges_.erase(found);
  changed();
  return true;
}

bool AddressSpace::Impl::remove(Address start) {
  const ring::MutexLock lock(mutex_);
  if (ranges_.erase(start) == 0) return false;
  changed();
  return true;
}

bool AddressSpace::Impl::set_leaving(Address start, bool leaving) {
  const ring::MutexLock lock(mutex_);
  const auto found = ranges_.find(start);
  if (found == ranges_.end()) return false;
  found->second.leaving = leaving;
  if (!leaving) found->second.id = next_id_++;
  return true;  // accesses are not affected, so the snapshot stays valid
}

const Range* AddressSpace::Impl::find_locked(Address inside) const {
  const auto after = ranges_.upper_bound(inside);
  if (after == ranges_.begin()) return nullptr;
  const Range& range = std::prev(after)->second;
  return inside - range.start < range.size ? &range : nullptr;
}

std::optional<Range> AddressSpace::Impl::find(Address inside) {
  const ring::MutexLock lock(mutex_);
  const Range* range = find_locked(inside);
  return range == nullptr ? std::nullopt : std::optional(*range);
}

bool AddressSpace::Impl::check(Address start, std::size_t size, bool to_write) {
  const ring::MutexLock lock(mutex_);
  const Range* range = find_locked(start);
  while (range != nullptr && !(to_write && range->read_only)) {
    const std::size_t here = range->size - (start - range->start);
    if (size <= here) return true;
    if (range->kind != RangeKind::Mapped) return false;
    start += here;
    size -= here;
    range = find_locked(start);
    if (range != nullptr && range->kind != RangeKind::Mapped) return false;
  }
  return false;
}

// Builds a snapshot at the first use after a change, so that a program that allocates in a loop does not pay for a
// snapshot per allocation.
std::shared_ptr<const RangeList> AddressSpace::Impl::snapshot() {
  const ring::MutexLock lock(mutex_);
  if (!snapshot_) {
    auto list = std::make_shared<RangeList>();
    list->reserve(ranges_.size());
    for (const auto& [start, range] : ranges_) {
      if (!list->empty() && are_one(list->back(), range)) {
        list->back().size += range.size;
      } else {
        list->push_back(range);
      }
    }
    snapshot_ = std::move(list);
  }
  return snapshot_;
}

const Range* find_in(const RangeList& list, Address inside) {
  const auto after = std::upper_bound(list.begin(), list.end(), inside,
                                      [](Address address, const Range& range) { return address < range.start; });
  if (after == list.begin()) return nullptr;
  const Range& range = *std::prev(after);
  return inside - range.start < range.size ? &range : nullptr;
}

AddressSpace::AddressSpace(std::size_t capacity) : impl_(std::make_unique<Impl>(capacity)) {}
AddressSpace::~AddressSpace() = default;

Address AddressSpace::allocate(std::size_t size) { return impl_->allocate(size); }
bool AddressSpace::free(Address start) { return impl_->free(start); }
bool AddressSpace::add_host(void* start, std::size_t size) {
  return impl_->add({.start = reinterpret_cast<Address>(start), .size = size, .kind = RangeKind::Host});
}
bool AddressSpace::remove_host(void* start) { return impl_->remove(reinterpret_cast<Address>(start), RangeKind::Host); }
Address AddressSpace::claim(std::size_t size) { return impl_->claim(size); }
void AddressSpace::give_back_claim(Address start, std::size_t size) { impl_->give_back_claim(start, size); }
bool AddressSpace::add(const Range& range) { return impl_->add(range); }
bool AddressSpace::remove(Address start) { return impl_->remove(start); }
bool AddressSpace::set_leaving(Address start, bool leaving) { return impl_->set_leaving(start, leaving); }
bool AddressSpace::charge(std::size_t size) { return impl_->charge(size); }
void AddressSpace::discharge(std::size_t size) { impl_->discharge(size); }
void AddressSpace::publish_use(std::atomic<std::uint64_t>* published) { impl_->published = published; }
std::optional<Range> AddressSpace::find(Address inside) const { return impl_->find(inside); }
bool AddressSpace::check(Address start, std::size_t size, bool to_write) const {
  return impl_->check(start, size, to_write);
}

std::size_t AddressSpace::capacity() const { return impl_->capacity; }
TextureTable& AddressSpace::textures() { return impl_->textures; }
std::size_t AddressSpace::used() const { return impl_->used.load(std::memory_order_relaxed); }

}  // namespace simgpu
