#include "guest/objects/memory/registered.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "ring/base/mutex.h"
#include "ring/layout/layout.h"

namespace guest {
namespace {

using Outcome = Registered::Outcome;

std::uint64_t page_of(std::uint64_t at) { return at / ring::page * ring::page; }

bool starts_with(const std::string& text, std::string_view with) { return text.compare(0, with.size(), with) == 0; }

// Unfit: the driver can register this mapping, but the guest cannot. Absent: the driver cannot register it either. Even
// shared memory without a file on a file system has a file name.
Outcome judge_one(const Mapping& m, bool read_only) {
  if (!m.readable || (!m.writable && !read_only)) return Outcome::Absent;
  const bool file = m.file != "00:00 0";
  if (m.shared) {
    for (const char* memory : {"/dev/zero", "/memfd:", "/dev/shm/", "/SYSV"})
      if (starts_with(m.name, memory)) return Outcome::Unfit;
    return Outcome::Absent;
  }
  const bool plain = m.name.empty() || m.name == "[heap]" || starts_with(m.name, "[anon:");
  const std::uint64_t here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  const bool own_stack = here >= m.start && here < m.end;
  return !file && plain && !own_stack ? Outcome::Done : Outcome::Unfit;
}

}  // namespace

// Returns whether `piece` maps the bytes of the cover's block that belong there.
bool Registered::is_ours(const Mapping& piece, const Covers::value_type& cover) {
  if (arena_mapping_.end == 0) {
    const auto base = reinterpret_cast<std::uint64_t>(arena_.at(0));
    const std::vector<Mapping> arena = mappings_in(base, base + 1);
    if (arena.size() != 1) return false;
    arena_mapping_ = arena[0];
  }
  return arena_mapping_.has_at(arena_.offset(cover.second.block) + (piece.start - cover.first), piece);
}

bool Registered::is_registered(std::uint64_t start, std::uint64_t bytes) const {
  const auto next = registrations_.lower_bound(start);
  if (next != registrations_.end() && next->first - start < bytes) return true;
  return next != registrations_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > start;
}

// Returns the pages of [start, start + bytes) that overlap no registration. Preconditions: no registration overlaps the
// range itself. Hence only the first and the last page can overlap one.
Registered::Pages Registered::own_pages(std::uint64_t start, std::uint64_t bytes) const {
  Pages pages{page_of(start), page_of(start + bytes - 1) + ring::page};
  if (is_registered(pages.start, ring::page)) pages.start += ring::page;
  if (pages.end > pages.start && is_registered(pages.end - ring::page, ring::page)) pages.end -= ring::page;
  return pages;
}

// Returns whether all pages fit. Collects the mappings to move into the block: all mappings except those that are
// already there.
Outcome Registered::judge(const Pages& pages, Covers::const_iterator cover, bool read_only,
                          std::vector<Mapping>& pieces) {
  Outcome worst = Outcome::Done;
  std::uint64_t at = pages.start;
  for (Mapping& m : mappings_in(pages.start, pages.end)) {
    if (m.start != at) return Outcome::Absent;
    at = m.end;
    if (cover != covers_.end() && is_ours(m, *cover)) continue;
    const Outcome one = judge_one(m, read_only);
    if (one == Outcome::Absent) return one;
    if (one != Outcome::Done) worst = one;
    pieces.push_back(std::move(m));
  }
  return at == pages.end ? worst : Outcome::Absent;
}

// Extends the block over these pages, or makes a new block. Device addresses are consecutive, so one block has all
// pages.
Outcome Registered::reach(const Pages& pages, Covers::iterator& cover) {
  if (cover == covers_.end()) {
    const std::uint64_t bytes = pages.end - pages.start;
    std::byte* block = arena_.allocate(bytes);
    if (block == nullptr) return Outcome::NoRoom;
    cover = covers_.emplace(pages.start, Cover{bytes, block, 0}).first;
    return Outcome::Done;
  }
  const std::uint64_t wanted = pages.end - cover->first;
  if (wanted <= cover->second.bytes) return Outcome::Done;
  if (!arena_.extend(cover->second.block, wanted)) return Outcome::Apart;
  cover->second.bytes = wanted;
  return Outcome::Done;
}

Outcome Registered::put_in(const std::vector<Mapping>& pieces, const Covers::value_type& cover) {
  for (const Mapping& m : pieces) {
    const std::size_t bytes = m.end - m.start;
    std::byte* block = cover.second.block + (m.start - cover.first);
    std::byte* again = map_again_(arena_.offset(block), bytes);
    if (again == nullptr) return Outcome::Failed;
    const Swapped done =
        swap_in({reinterpret_cast<std::byte*>(m.start), bytes, m.protection()}, block, again, helpers_);
    if (done == Swapped::ThreadsRun) return Outcome::ThreadsRun;
    if (done != Swapped::Yes) return Outcome::Failed;
  }
  return Outcome::Done;
}

bool Registered::put_back(const Pages& pages, const Covers::value_type& cover) {
  bool all = true;
  if (pages.end <= pages.start) return true;
  for (const Mapping& m : mappings_in(pages.start, pages.end)) {
    if (!is_ours(m, cover)) continue;  // the program has unmapped the page
    const Piece piece{reinterpret_cast<std::byte*>(m.start), m.end - m.start, m.protection()};
    if (swap_out(piece, cover.second.block + (m.start - cover.first), helpers_) != Swapped::Yes) all = false;
  }
  return all;
}

void Registered::drop_if_unused(Covers::iterator cover) {
  if (cover->second.registrations != 0) return;
  bool used = false;
  for (const Mapping& m : mappings_in(cover->first, cover->first + cover->second.bytes)) used |= is_ours(m, *cover);
  if (used != cover->second.lingers) used ? ++lingering_ : --lingering_;
  cover->second.lingers = used;
  if (used) return;
  arena_.free(cover->second.block);
  covers_.erase(cover);
}

// Retries to restore pages that could not be restored before.
void Registered::sweep() {
  for (auto at = covers_.begin(); at != covers_.end();) {
    const auto cover = at++;
    if (cover->second.registrations != 0) continue;
    put_back({cover->first, cover->first + cover->second.bytes}, *cover);
    drop_if_unused(cover);
  }
}

Registered::Added Registered::add(std::uint64_t start, std::uint64_t bytes, bool read_only, const void* owner) {
  ring::MutexLock lock(mutex_);
  if (is_registered(start, bytes)) return {Outcome::Already};
  if (lingering_ != 0) sweep();
  const Pages pages{page_of(start), page_of(start + bytes - 1) + ring::page};
  auto cover = covers_.lower_bound(pages.end);  // the last cover that has any of these pages
  if (cover == covers_.begin() || std::prev(cover)->first + std::prev(cover)->second.bytes <= pages.start)
    cover = covers_.end();
  else
    --cover;
  if (cover != covers_.end() && cover->first > pages.start) return {Outcome::Apart};
  std::vector<Mapping> pieces;
  Outcome outcome = judge(pages, cover, read_only, pieces);
  if (outcome == Outcome::Done) outcome = reach(pages, cover);
  if (outcome != Outcome::Done) return {outcome};
  outcome = put_in(pieces, *cover);
  if (cover->second.registrations++ == 0 && cover->second.lingers) cover->second.lingers = false, --lingering_;
  const auto registration = registrations_.emplace(start, Registration{bytes, owner}).first;
  if (outcome == Outcome::Done) return {outcome, cover->second.block + (start - cover->first)};
  end(registration);  // restores the moved pages
  return {outcome};
}

bool Registered::end(Registrations::iterator registration) {
  const std::uint64_t start = registration->first, bytes = registration->second.bytes;
  registrations_.erase(registration);
  const auto cover = cover_of(start);
  --cover->second.registrations;
  const bool all = put_back(own_pages(start, bytes), *cover);
  drop_if_unused(cover);
  return all;
}

bool Registered::remove(std::uint64_t start) {
  ring::MutexLock lock(mutex_);
  const auto registration = registrations_.find(start);
  if (registration == registrations_.end()) return false;
  end(registration);
  return true;
}

bool Registered::has_of(const void* owner) {
  ring::MutexLock lock(mutex_);
  return std::any_of(registrations_.begin(), registrations_.end(),
                     [&](const auto& r) { return r.second.owner == owner; });
}

void Registered::remove_of(const void* owner) {
  ring::MutexLock lock(mutex_);
  for (auto at = registrations_.begin(); at != registrations_.end();) {
    const auto registration = at++;
    if (registration->second.owner == owner) end(registration);
  }
}

bool Registered::remove_all() {
  ring::MutexLock lock(mutex_);
  while (!registrations_.empty()) end(registrations_.begin());
  sweep();
  return covers_.empty();
}

void Registered::before_fork() {
  mutex_.lock();
  partial_.clear();
  if (registrations_.empty()) return;
  const Cover& last = std::prev(covers_.end())->second;
  const std::vector<Mapping> all = mappings_in(covers_.begin()->first, std::prev(covers_.end())->first + last.bytes);
  const auto note = [&](std::uint64_t page, const Covers::value_type& cover) {
    mutex_.assume_held();
    auto m = std::upper_bound(all.begin(), all.end(), page, [](auto at, const Mapping& x) { return at < x.end; });
    if (m == all.end() || m->start > page) return;
    Mapping one = *m;
    one.offset += page - one.start, one.start = page;
    auto* at = reinterpret_cast<std::byte*>(page);
    if (is_ours(one, cover) && (partial_.empty() || partial_.back().at != at))
      partial_.push_back({at, ring::page, one.protection()});
  };
  for (const auto& [start, registration] : registrations_) {
    const std::uint64_t bytes = registration.bytes;
    const Covers::value_type& cover = *cover_of(start);
    if (start % ring::page != 0) note(page_of(start), cover);
    if ((start + bytes) % ring::page != 0) note(page_of(start + bytes - 1), cover);
  }
}

// The child must not allocate memory before these pages are its own, because its heap may lie in them.
void Registered::after_fork_in_child() {
  for (const Piece& piece : partial_) copy_out(piece, piece.at);
  mutex_.unlock();
}

}  // namespace guest
