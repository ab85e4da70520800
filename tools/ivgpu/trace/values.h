// Formats single values of a traced call from the bytes that an entry holds.
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
// Escapes unprintable characters.
std::string escaped(std::string_view text);
// Formats ids such as "stream#3", with ".1" appended if the index was reused. CUDA's predefined streams appear by their
// number.
std::string id_text(std::uint64_t value);
// Formats kernel parameters as 8-byte words, which makes aligned pointers readable.
std::string words_text(std::string_view bytes, bool whole);

// The bytes of a payload or reply that an entry holds, which may be truncated.
class Kept {
 public:
  explicit Kept(std::span<const std::byte> kept) : reader_(kept) {}

  std::optional<std::uint64_t> word() {
    const std::uint64_t value = reader_.slot();
    return reader_.ok() ? std::optional(value) : std::nullopt;
  }
  // At most `length` bytes.
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

// Formats offset and size of each of `count` parameters: "[0+8 8+4]".
std::string layout_text(Kept& in, std::uint64_t count);
// Quoted text.
std::string text_of(Kept& in, std::uint64_t length);

}  // namespace ivgpu::trace
