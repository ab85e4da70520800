// Reads a fuzzer's bytes as choices: each question consumes the next bytes, and after the end of input it returns 0.
// Any bytes are thus a complete script, and a small change of the bytes is a small change of the script.
#pragma once

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }

  template <class T = std::uint8_t>
  T number() {
    T value{};
    const auto bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  // A number from 0 to end - 1. Precondition: `end` is not 0.
  std::size_t below(std::size_t end) {
    return end <= 256 ? number<std::uint8_t>() % end : number<std::uint32_t>() % end;
  }
  // True for one of every `times` numbers.
  bool once_in(unsigned times) { return number() % times == times - 1; }
  // The next `most` bytes, or fewer at the end of the input.
  std::span<const std::uint8_t> take(std::size_t most) {
    const auto taken = rest_.first(std::min(most, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  template <class T, std::size_t count>
  const T& pick(const T (&from)[count]) {
    return from[below(count)];
  }

  // A small number, an extreme number, or any number; extremes often trigger bugs.
  std::uint64_t any() {
    constexpr std::uint64_t edges[] = {0,
                                       1,
                                       2,
                                       3,
                                       7,
                                       8,
                                       15,
                                       16,
                                       17,
                                       63,
                                       64,
                                       255,
                                       4095,
                                       4096,
                                       4097,
                                       65535,
                                       65536,
                                       1ULL << 21,
                                       (1ULL << 31) - 1,
                                       1ULL << 31,
                                       (1ULL << 32) - 1,
                                       1ULL << 32,
                                       1ULL << 47,
                                       (1ULL << 63) - 1,
                                       1ULL << 63,
                                       ~0ULL - 4095,
                                       ~0ULL - 7,
                                       ~0ULL - 1,
                                       ~0ULL};
    const auto form = number();
    if (form < 96) return number<std::uint8_t>();
    if (form < 192) return pick(edges);
    return form < 224 ? number<std::uint32_t>() : number<std::uint64_t>();
  }

 private:
  std::span<const std::uint8_t> rest_;
};

// Ends the process with a message if `holds` is false, as a sanitizer does for a finding.
[[gnu::format(printf, 2, 3)]] inline void require(bool holds, const char* promise, ...) {
  if (holds) return;
  va_list arguments;
  va_start(arguments, promise);
  std::fputs("broken promise: ", stderr);
  std::vfprintf(stderr, promise, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::abort();
}

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
