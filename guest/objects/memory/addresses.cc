#include "guest/objects/memory/addresses.h"

#include <iterator>

#include "ring/abi/mapped_pieces.h"
#include "ring/base/mutex.h"

namespace guest {
namespace {

bool are_joined(const Place& a, const Place& b) {
  return a.reservation != 0 && a.reservation == b.reservation && b.start - a.start == a.bytes;
}

}  // namespace

void Addresses::set_arena(std::uint64_t here, std::uint64_t on_device, std::uint64_t bytes) {
  arena_here_ = here, arena_there_ = on_device, arena_bytes_ = bytes;
}

void Addresses::add(const Place& place) {
  ring::MutexLock lock(mutex_);
  if (const auto before = entries_.find(place.start); before != entries_.end()) take_out(before);
  const Entry& entry = *entries_.emplace(place).first;
  const Entry*& first = first_[end_of(place)];
  if (first != nullptr) first->previous = &entry;
  entry.next = first;
  first = &entry;
}

std::optional<Place> Addresses::take(std::uint64_t start, Place::Kind kind) {
  ring::MutexLock lock(mutex_);
  const auto at = entries_.find(start);
  if (at == entries_.end() || at->kind != kind || at->owner != 0 || at->reservation != 0) return std::nullopt;
  const Place taken = *at;
  take_out(at);
  return taken;
}

std::vector<std::uint64_t> Addresses::unmap(std::uint64_t start, std::uint64_t bytes) {
  ring::MutexLock lock(mutex_);
  return cuabi::end_mapped_pieces(entries_, start, bytes, [this](auto piece) {
    mutex_.assume_held();
    take_out(piece);
  });
}

void Addresses::take_out(Entries::const_iterator at) {
  (at->previous == nullptr ? first_[end_of(*at)] : at->previous->next) = at->next;
  if (at->next != nullptr) at->next->previous = at->previous;
  entries_.erase(at);
}

void Addresses::drop_owned(std::uint64_t owner) {
  if (owner != 0) drop({owner, nullptr});
}

std::vector<std::uint64_t> Addresses::drop_context(const Context& context) { return drop({0, &context}); }

std::vector<std::uint64_t> Addresses::drop(const End& end) {
  ring::MutexLock lock(mutex_);
  std::vector<std::uint64_t> blocks;
  const auto list = first_.find(end);
  if (list == first_.end()) return blocks;
  while (const Entry* first = list->second) {
    const bool block = first->kind == Place::Kind::Pinned || first->kind == Place::Kind::Managed;
    if (block && first->registered_at == 0) blocks.push_back(first->start);
    take_out(entries_.find(first->start));
  }
  first_.erase(list);
  return blocks;
}

// Returns the place that contains this byte, or the end.
Addresses::Entries::const_iterator Addresses::holder_of(std::uint64_t inside) const {
  auto at = entries_.upper_bound(inside);
  if (at == entries_.begin()) return entries_.end();
  --at;
  return inside - at->start < at->bytes ? at : entries_.end();
}

Place Addresses::find(std::uint64_t inside) const {
  ring::MutexLock lock(mutex_);
  const auto at = holder_of(inside);
  if (at == entries_.end()) return {};
  return *at;
}

// Registered memory has two places, one at each of its addresses.
void Addresses::set_sync_memops(std::uint64_t inside, bool on) {
  ring::MutexLock lock(mutex_);
  const auto at = holder_of(inside);
  if (at == entries_.end()) return;
  at->sync_memops = on;
  if (at->registered_at == 0) return;
  for (const std::uint64_t other : {at->registered_at, at->block_at})
    if (const auto place = holder_of(other); place != entries_.end()) place->sync_memops = on;
}

// Returns the place where [start, start + bytes) begins, if a call may use the bytes as one range; else the end.
Addresses::Entries::const_iterator Addresses::holder_of(std::uint64_t start, std::uint64_t bytes) const {
  const auto first = holder_of(start);
  if (first == entries_.end()) return first;
  auto here = first;
  std::uint64_t there = here->bytes - (start - here->start);
  while (bytes > there) {
    const auto next = std::next(here);
    if (next == entries_.end() || !are_joined(*here, *next)) return entries_.end();
    bytes -= there;
    here = next;
    there = here->bytes;
  }
  return first;
}

Place::Kind Addresses::kind_of(std::uint64_t start, std::uint64_t bytes) const {
  ring::MutexLock lock(mutex_);
  const auto at = holder_of(start, bytes);
  return at == entries_.end() ? Place::Kind::Unknown : at->kind;
}

bool Addresses::touch(std::uint64_t start, std::uint64_t bytes) const {
  ring::MutexLock lock(mutex_);
  if (holder_of(start) != entries_.end()) return true;
  const auto next = entries_.upper_bound(start);
  return next != entries_.end() && next->start - start < bytes;
}

std::optional<std::uint64_t> Addresses::device_view(std::uint64_t at, std::uint64_t bytes) const {
  {
    ring::MutexLock lock(mutex_);
    if (const auto place = holder_of(at, bytes); place != entries_.end()) return on_device(*place, at);
  }
  const std::uint64_t offset = at - arena_there_;
  if (arena_here_ == arena_there_ || offset >= arena_bytes_) return std::nullopt;
  return kind_of(arena_here_ + offset, bytes) == Place::Kind::Pinned ? std::optional(at) : std::nullopt;
}

}  // namespace guest
