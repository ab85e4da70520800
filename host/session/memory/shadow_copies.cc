#include "host/session/memory/shadow_copies.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "ring/api/id.h"
#include "ring/api/records.h"
#include "ring/base/mutex.h"

namespace host {
namespace {

constexpr std::size_t at_once = 4096;

std::byte* driver_bytes(std::uint64_t at) { return reinterpret_cast<std::byte*>(at); }

// Calls f(offset, length) for each run of bytes in which `now` and `before` differ.
template <class F>
void each_difference(std::span<const std::byte> now, const std::byte* before, F f) {
  if (std::memcmp(now.data(), before, now.size()) == 0) return;
  for (std::size_t i = 0; i < now.size();) {
    if (now[i] == before[i]) {
      ++i;
      continue;
    }
    const std::size_t first = i;
    while (i < now.size() && now[i] != before[i]) ++i;
    f(first, i - first);
  }
}

// Calls f(offset, length) for each part of the range, at most `at_once` bytes at a time.
template <class F>
void each_part(std::size_t bytes, F f) {
  for (std::size_t at = 0; at < bytes; at += at_once) f(at, std::min(at_once, bytes - at));
}

void copy_up(ShadowCopies::Piece& piece) {
  std::array<std::byte, at_once> now;
  each_part(piece.agreed.size(), [&](std::size_t part, std::size_t length) {
    piece.shared.copy_out(now.data(), part, length);
    each_difference({now.data(), length}, piece.agreed.data() + part, [&](std::size_t at, std::size_t bytes) {
      std::memcpy(driver_bytes(piece.start) + part + at, now.data() + at, bytes);
      std::memcpy(piece.agreed.data() + part + at, now.data() + at, bytes);
    });
  });
}

// The GPU may write meanwhile, for another stream. The next copy then finds the difference.
void copy_down(ShadowCopies::Piece& piece) {
  std::array<std::byte, at_once> now;
  each_part(piece.agreed.size(), [&](std::size_t part, std::size_t length) {
    std::memcpy(now.data(), driver_bytes(piece.start) + part, length);
    each_difference({now.data(), length}, piece.agreed.data() + part, [&](std::size_t at, std::size_t bytes) {
      piece.shared.copy_in(part + at, now.data() + at, bytes);
      std::memcpy(piece.agreed.data() + part + at, now.data() + at, bytes);
    });
  });
}

bool is_librarys(const ShadowCopies::Variable& v) { return api::Id::of(v.owner).kind == api::Handle::Library; }

}  // namespace

// Returns the variable that contains all of these bytes, or end().
ShadowCopies::Map::iterator ShadowCopies::holder_of(std::uint64_t start, std::uint64_t bytes) {
  const auto next = variables_.upper_bound(start);
  if (next == variables_.begin()) return variables_.end();
  const auto at = std::prev(next);
  const std::uint64_t offset = start - at->first;
  return offset < at->second.bytes && bytes <= at->second.bytes - offset ? at : variables_.end();
}

void ShadowCopies::count(const Variable& variable, bool more) {
  for (const Piece& piece : variable.pieces) {
    pieces_ += more ? 1 : -std::size_t{1};
    bytes_ += more ? piece.agreed.size() : -piece.agreed.size();
  }
}

void ShadowCopies::found(const Variable& variable) {
  const ring::MutexLock lock(mutex_);
  if (const auto at = variables_.find(variable.start); at != variables_.end() && at->second.bytes == variable.bytes) {
    at->second.owner = variable.owner, at->second.context = variable.context, at->second.name = variable.name;
    return;
  }
  variables_.emplace(variable.start, variable);
}

CUresult ShadowCopies::add(std::uint64_t start, std::uint64_t arena, ring::SharedBytes shared) {
  const ring::MutexLock lock(mutex_);
  const auto at = holder_of(start, shared.size());
  if (at == variables_.end() || shared.size() == 0) return CUDA_ERROR_INVALID_VALUE;
  for (const Piece& piece : at->second.pieces) {
    if (piece.start == start && piece.agreed.size() == shared.size() && piece.arena == arena) return CUDA_SUCCESS;
    if (start < piece.start + piece.agreed.size() && piece.start < start + shared.size())
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (pieces_ == most_pieces || shared.size() > api::max_shadowed_bytes - bytes_) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::byte* from = driver_bytes(start);
  Piece piece{start, arena, shared, {from, from + shared.size()}};
  shared.copy_in(0, piece.agreed.data(), piece.agreed.size());
  ++pieces_, bytes_ += shared.size();
  at->second.pieces.push_back(std::move(piece));
  publish();
  return CUDA_SUCCESS;
}

template <class Copy>
void ShadowCopies::each_piece(Copy copy) {
  const ring::MutexLock lock(mutex_);
  if (stopped_) return;
  for (auto& [start, variable] : variables_)
    for (Piece& piece : variable.pieces) copy(piece);
}

void ShadowCopies::up() { each_piece(copy_up); }
void ShadowCopies::down() { each_piece(copy_down); }

template <class Take>
ShadowCopies::Variables ShadowCopies::take_if(Take take) {
  const ring::MutexLock lock(mutex_);
  Variables taken;
  for (auto at = variables_.begin(); at != variables_.end();) {
    if (!take(at->second)) {
      ++at;
      continue;
    }
    count(at->second, false);
    taken.push_back(std::move(at->second));
    at = variables_.erase(at);
  }
  publish();
  return taken;
}

ShadowCopies::Variables ShadowCopies::take_of(std::uint64_t owner) {
  return take_if([owner](const Variable& v) { return v.owner == owner; });
}

ShadowCopies::Variables ShadowCopies::take_of_context(unsigned context) {
  return take_if([context](const Variable& v) { return v.context == context || is_librarys(v); });
}

void ShadowCopies::put_back(Variables variables) {
  const ring::MutexLock lock(mutex_);
  for (Variable& v : variables) {
    count(v, true);
    variables_.insert_or_assign(v.start, std::move(v));
  }
  publish();
}

void ShadowCopies::stop() {
  const ring::MutexLock lock(mutex_);
  stopped_ = true;
  publish();
}

void ShadowCopies::go_on() {
  const ring::MutexLock lock(mutex_);
  stopped_ = false;
  publish();
}

}  // namespace host
