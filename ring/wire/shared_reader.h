// Reads a reply in place, in a mailbox that the other side can write: copies each byte once into private memory.
//
// Check a value before using it; a value cannot be read a second time. A reader remembers a failure instead of
// throwing: call ok() once, at the end. A reader owns nothing, and one thread uses it, under the lock of the mailbox's
// channel.
//
// ```cpp
// std::size_t read_text(ring::SharedBytes mailbox, std::span<char> into) {
//   ring::SharedReader reader(mailbox);
//   const std::uint64_t length = reader.slot();
//   if (length > into.size()) reader.fail();
//   if (reader.ok()) reader.copy(into.data(), length);
//   return reader.ok() ? length : 0;  // not ok: the guest gives the session up
// }
// ```
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/shared/shared.h"
#include "ring/wire/record.h"

namespace ring {

class SharedReader {
 public:
  explicit SharedReader(SharedBytes bytes) : bytes_(bytes) {}

  // Copies the next n bytes, aligned to 8 within the payload. Returns false after any failure, and then copies nothing.
  bool copy(void* to, std::size_t n) {
    const std::size_t at = used_;
    if (!skip(n)) return false;
    bytes_.copy_out(to, at, n);
    return true;
  }
  bool skip(std::size_t n) {
    if (!ok_ || n > left() || padded(n) > left()) return ok_ = false;
    used_ += padded(n);
    return true;
  }
  std::uint64_t slot() { return read<std::uint64_t>(); }
  template <class T>
  T read() {
    T value{};
    copy(&value, sizeof value);
    return value;
  }
  void fail() { ok_ = false; }
  bool ok() const { return ok_; }
  std::size_t left() const { return bytes_.size() - used_; }

 private:
  SharedBytes bytes_;
  std::size_t used_ = 0;
  bool ok_ = true;
};

}  // namespace ring
