// Shared memory that changes: the peer may write before any read (ring/shared/observed.h). The class also checks that
// the code reads each watched byte only once. Only one instance may exist at a time, in the reading thread.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "ring/shared/observed.h"
#include "tests/fuzz/input.h"

namespace fuzz {

// Whether the memory changes. The targets NAME and NAME_moving share one object file, and differ only in this variable
// (fuzz.cmake).
extern const bool memory_moves;

class Moving {
 public:
  explicit Moving(Input& in) : in_(in) {
    current() = this;
#ifdef IVGPU_OBSERVED
    ring::observer = [](const void* at, std::size_t bytes) { current()->before_read(at, bytes); };
#endif
  }
  ~Moving() {
#ifdef IVGPU_OBSERVED
    ring::observer = nullptr;
#endif
    current() = nullptr;
  }
  Moving(const Moving&) = delete;
  Moving& operator=(const Moving&) = delete;

  // After this call each of these bytes may change, and may be read only once.
  void watch(void* at, std::size_t bytes) { ranges_.push_back({static_cast<std::byte*>(at), bytes, {}}); }
  void forget() { ranges_.clear(), reads_ = 0; }
  // The bytes have a new meaning, so they may be read once more.
  void renew(const void* at) {
    for (Range& range : ranges_)
      if (range.from == at) range.read.clear();
  }
  // Calls `then` at each read of shared memory after `reads` reads since the last forget(), when the reader waits in
  // vain.
  void after(std::uint64_t reads, std::function<void()> then) { most_reads_ = reads, then_ = std::move(then); }

 private:
  struct Piece {
    std::size_t from, to;
  };
  struct Range {
    std::byte* from;
    std::size_t bytes;
    std::vector<Piece> read;
  };
  static Moving*& current() {
    static Moving* moving = nullptr;
    return moving;
  }

  void before_read(const void* at, std::size_t bytes) {
    if (++reads_ > most_reads_ && then_) then_();
    const auto* from = static_cast<const std::byte*>(at);
    for (Range& range : ranges_) {
      const std::byte* const begin = std::max<const std::byte*>(from, range.from);
      const std::byte* const end = std::min<const std::byte*>(from + bytes, range.from + range.bytes);
      if (begin >= end) continue;
      const Piece now{static_cast<std::size_t>(begin - range.from), static_cast<std::size_t>(end - range.from)};
      for (const Piece& piece : range.read)
        require(now.from >= piece.to || now.to <= piece.from,
                "a byte of shared memory is read once: bytes %zu to %zu of %zu", now.from, now.to, range.bytes);
      range.read.push_back(now);
      change(range, now.from, now.to - now.from);
    }
  }

  // Changes the bytes that are about to be read, or other bytes of the range.
  void change(Range& range, std::size_t first, std::size_t bytes) {
    if (!in_.once_in(4)) return;
    const std::uint64_t value = in_.any();
    const bool there = !in_.once_in(4);
    const std::size_t at = there ? first + in_.below(bytes) : in_.below(range.bytes);
    if (at >= range.bytes) return;
    const std::size_t most = std::min({sizeof value, range.bytes - at, std::size_t{1} << in_.below(4)});
    std::memcpy(range.from + at, &value, most);
  }

  Input& in_;
  std::vector<Range> ranges_;
  std::uint64_t reads_ = 0, most_reads_ = 0;
  std::function<void()> then_;
};

}  // namespace fuzz
