// A record's payload, built word by word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "ring/wire/record.h"
#include "tests/fuzz/input.h"

namespace fuzz {

class Payload {
 public:
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  void clear() { bytes_.clear(); }
  void resize(std::size_t n) { bytes_.resize(n); }

  void put(std::uint64_t word) { put_bytes(&word, sizeof word); }
  void put_words(std::initializer_list<std::uint64_t> words) {
    for (const std::uint64_t word : words) put(word);
  }
  void put_bytes(const void* from, std::size_t n) {
    const std::size_t at = bytes_.size();
    put_zeros(n);
    if (n != 0) std::memcpy(bytes_.data() + at, from, n);
  }
  void put_zeros(std::size_t n) { bytes_.resize(bytes_.size() + ring::padded(n)); }

  // Overwrites one word, which `in` chooses.
  void overwrite(Input& in, std::uint64_t value) {
    if (size() >= 8) std::memcpy(bytes_.data() + in.below(size() / 8) * 8, &value, 8);
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace fuzz
