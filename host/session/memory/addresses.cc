#include "host/session/memory/addresses.h"

#include <iterator>

#include "ring/abi/mapped_pieces.h"
#include "ring/base/mutex.h"

namespace host {
namespace {

bool are_joined(const Range& a, const Range& b) {
  return a.reservation != 0 && a.reservation == b.reservation && b.start - a.start == a.bytes;
}

}  // namespace

void Addresses::add(const Range& range) {
  ring::WriterLock lock(mutex_);
  if (const auto before = entries_.find(range.start); before != entries_.end()) end_allocation(before);
  const Entry& entry = *entries_.emplace(range).first;
  if (range.kind == Memory::Device) {
    const Entry*& first = first_[end_of(range)];
    if (first != nullptr) first->previous = &entry;
    entry.next = first;
    first = &entry;
  }
  if (range.allocated()) allocated_ += range.bytes;
  publish();
}

std::optional<Range> Addresses::remove(std::uint64_t start, Memory kind) {
  ring::WriterLock lock(mutex_);
  const auto at = entries_.find(start);
  if (at == entries_.end() || at->kind != kind || at->owner != 0 || at->reservation != 0) return std::nullopt;
  const Range removed = *at;
  take_out(at);
  publish();
  return removed;
}

void Addresses::end_allocation(Entries::const_iterator at) {
  if (ended_ && at->allocated()) ended_(*at);
  take_out(at);
}

std::vector<std::uint64_t> Addresses::unmap(std::uint64_t start, std::uint64_t bytes) {
  ring::WriterLock lock(mutex_);
  const auto objects = cuabi::end_mapped_pieces(entries_, start, bytes, [this](auto piece) {
    mutex_.assume_held();
    take_out(piece);
  });
  publish();
  return objects;
}

void Addresses::take_out(Entries::const_iterator at) {
  if (at->kind == Memory::Device) {
    (at->previous == nullptr ? first_[end_of(*at)] : at->previous->next) = at->next;
    if (at->next != nullptr) at->next->previous = at->previous;
  }
  if (at->allocated()) allocated_ -= at->bytes;
  entries_.erase(at);
}

void Addresses::drop_global(std::uint64_t start, std::uint64_t owner) {
  ring::WriterLock lock(mutex_);
  const auto at = entries_.find(start);
  if (at == entries_.end() || at->owner != owner || owner == 0) return;
  take_out(at);
  publish();
}

void Addresses::drop_owned(std::uint64_t owner) {
  if (owner == 0) return;
  ring::WriterLock lock(mutex_);
  for (auto list = first_.lower_bound({owner, 0}); list != first_.end() && list->first.owner == owner;)
    list = drop(list);
  publish();
}

void Addresses::drop_context(std::uint32_t context) {
  ring::WriterLock lock(mutex_);
  for (auto list = first_.begin(); list != first_.end();)
    list = list->first.context == context ? drop(list) : std::next(list);
  publish();
}

// Returns the list after `list`.
Addresses::Lists::iterator Addresses::drop(Lists::iterator list) {
  while (list->second != nullptr) end_allocation(entries_.find(list->second->start));
  return first_.erase(list);
}

void Addresses::publish() {
  count_.store(entries_.size(), std::memory_order_relaxed);
  if (held_ != nullptr) held_->store(allocated_, std::memory_order_relaxed);
}

bool Addresses::contains(std::uint64_t start, std::uint64_t bytes) const {
  ring::ReaderLock lock(mutex_);
  auto next = entries_.upper_bound(start);
  if (next == entries_.begin()) return false;
  auto here = std::prev(next);
  const std::uint64_t offset = start - here->start;
  if (offset > here->bytes) return false;
  std::uint64_t there = here->bytes - offset;
  while (bytes > there) {
    if (next == entries_.end() || !are_joined(*here, *next)) return false;
    bytes -= there;
    here = next++;
    there = here->bytes;
  }
  return true;
}

std::vector<Range> Addresses::pinned_in(std::uint64_t start, std::uint64_t bytes) const {
  ring::ReaderLock lock(mutex_);
  std::vector<Range> pieces;
  auto at = entries_.upper_bound(start);
  if (at != entries_.begin() && start - std::prev(at)->start < std::prev(at)->bytes) --at;
  for (; at != entries_.end() && (at->start <= start || at->start - start < bytes); ++at)
    if (at->kind == Memory::Pinned) pieces.push_back(*at);
  return pieces;
}

}  // namespace host
