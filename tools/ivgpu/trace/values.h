// Single values of a traced call as text, and the bytes that an entry keeps of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ring/wire/record.h"

namespace ivgpu::trace {

inline constexpr const char* unknown = "?";

std::string hex(std::uint64_t value);
// Not printable characters by their codes.
std::string escaped(std::string_view text);
// "stream#3", and ".1" behind it where the index was used before; CUDA's own streams by their number.
std::string id_text(std::uint64_t value);
// Parameters as words of 8 bytes: pointers stand on such, and can be read.
std::string words_text(std::string_view bytes, bool whole);

// The part of a record's payload, or of a reply, that an entry keeps, and whether it has more.
class Kept {
 public:
  explicit Kept(std::span<const std::byte> kept) : reader_(kept) {}

  std::optional<std::uint64_t> word() {
    const std::uint64_t value = reader_.slot();
    return reader_.ok() ? std::optional(value) : std::nullopt;
  }
  // As many of `length` bytes as there are.
  std::string_view bytes(std::uint64_t length) {
    const std::size_t left = reader_.ok() ? reader_.left() : 0;
    auto n = static_cast<std::size_t>(std::min<std::uint64_t>(length, left));
    if (ring::padded(n) > left) n = n / 8 * 8;
    const std::byte* at = reader_.take(n);
    return at != nullptr ? std::string_view(reinterpret_cast<const char*>(at), n) : std::string_view();
  }

 private:
  ring::Reader reader_;
};

// Where each of so many parameters lies and how long it is: "[0+8 8+4]".
std::string layout_text(Kept& in, std::uint64_t count);
// In quotes.
std::string text_of(Kept& in, std::uint64_t length);

}  // namespace ivgpu::trace
