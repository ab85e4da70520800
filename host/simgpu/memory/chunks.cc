#include "host/simgpu/memory/chunks.h"

#include <sys/mman.h>

#include <cstdint>
#include <iterator>

namespace simgpu {
namespace {

constexpr std::size_t step = 512;
constexpr std::size_t least_large = std::size_t{1} << 20;
constexpr std::size_t block = std::size_t{2} << 20;
constexpr std::size_t chunk = std::size_t{32} << 20;
constexpr std::size_t window = std::size_t{256} << 30;  // size of the address range that is searched for free space

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) & ~(to - 1); }

bool map_at(Address start, std::size_t size) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  return ::mmap(reinterpret_cast<void*>(start), size, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED;
}

}  // namespace

Chunks::~Chunks() {
  for (const Range& c : chunks_) ::munmap(reinterpret_cast<void*>(c.start), c.size);
}

Address Chunks::first_fit(Holes& holes, std::size_t size) {
  for (auto hole = holes.begin(); hole != holes.end(); ++hole) {
    const auto [start, room] = *hole;
    if (room < size) continue;
    holes.erase(hole);
    if (room > size) holes[start + size] = room - size;
    return start;
  }
  return 0;
}

void Chunks::put(Holes& holes, Address start, std::size_t size) {
  auto after = holes.lower_bound(start);
  if (after != holes.end() && after->first == start + size) {
    size += after->second;
    after = holes.erase(after);
  }
  if (after != holes.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == start) return void(before->second += size);
  }
  holes[start] = size;
}

Address Chunks::new_chunk(std::size_t size) {
  for (Address at = below_ - size; at >= block && below_ - at <= window; at -= block) {
    if (!map_at(at, size)) continue;
    chunks_.push_back({.start = at, .size = size});
    return at;
  }
  return 0;
}

Address Chunks::take_large(std::size_t size) {
  if (const Address at = first_fit(large_, size); at != 0) return at;
  const std::size_t all = round_up(size, chunk);
  const Address at = new_chunk(all);
  if (at != 0 && all > size) put(large_, at + size, all - size);
  return at;
}

Address Chunks::take(std::size_t size) {
  if (size >= least_large) return take_large(round_up(size, block));
  size = round_up(size, step);
  if (const Address at = first_fit(small_, size); at != 0) return at;
  const Address at = take_large(block);
  if (at != 0) put(small_, at + size, block - size);
  return at;
}

void Chunks::put_back(Address start, std::size_t size) {
  if (size >= least_large)
    put(large_, start, round_up(size, block));
  else
    put(small_, start, round_up(size, step));
}

}  // namespace simgpu
