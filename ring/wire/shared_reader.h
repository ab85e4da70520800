// Reads a reply where it lies, in a mailbox that the other side can write: each byte once, into private memory. What
// was read means nothing before it is checked, and is not there to be read again.
//
// Remembers a failure instead of throwing: ask ok() once, at the end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/shared/shared.h"
#include "ring/wire/record.h"

namespace ring {

class SharedReader {
 public:
  explicit SharedReader(SharedBytes bytes) : bytes_(bytes) {}

  // The next n bytes, aligned to 8 within the payload. False once anything failed; nothing is copied then.
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
