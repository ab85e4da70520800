// A record: the message in a request ring, and the form of its payload.
//
//   RecordHeader            16 bytes
//   one 8-byte slot for each parameter of the call, in the order of cuda.h
//   the bytes that the slots describe, each run padded to 8
//
// The offsets of all slots are therefore known at compile time. Writer and Reader remember a failure instead of
// throwing: call ok() once, at the end. Neither class owns its memory, and one thread uses each object. A Reader reads
// only private memory: copy a record out first. Sizes are in bytes.
//
// ```cpp
// bool write_text(std::span<std::byte> payload, const char* text, std::size_t length) {
//   ring::Writer writer(payload);
//   writer.slot(length);
//   writer.bytes(text, length);
//   return writer.ok();
// }
// std::uint64_t first_slot(std::span<const std::byte> copy) { return ring::Reader(copy).slot(); }
// ```
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ring/layout/layout.h"

namespace ring {

struct RecordHeader {
  std::uint32_t bytes = 0;  // size of the whole record, header included; a multiple of 16
  std::uint16_t call = 0;   // an id of ring/api/driver.def; 0: padding to the ring's end
  std::uint16_t flags = 0;
  std::uint64_t position = 0;  // 1 for a channel's first record; 0 for padding
};
static_assert(sizeof(RecordHeader) == 16);

inline constexpr std::uint16_t padding_call = 0;
inline constexpr std::uint16_t flag_wants_reply = 1;  // the thread waits for an answer in the mailbox
// The call came by a _ptsz or _ptds symbol: stream 0 means the thread's own stream.
inline constexpr std::uint16_t flag_per_thread = 2;
// Bits 2-3: the calling thread's capture mode. The mode Global is 0, which every worker knows.
inline constexpr unsigned capture_mode_at = 2;
constexpr std::uint16_t capture_mode_flags(unsigned mode) {
  return static_cast<std::uint16_t>((mode & 3) << capture_mode_at);
}
constexpr unsigned capture_mode_of(std::uint16_t flags) { return flags >> capture_mode_at & 3; }
// Bits 8-13: the number of the calling thread's current context. Numbers below max_devices are the devices' primary
// contexts; higher numbers are the guest's numbers for contexts that a program has created.
inline constexpr unsigned context_at = 8;
inline constexpr unsigned max_contexts = 64;
inline constexpr unsigned first_created_context = max_devices;
constexpr std::uint16_t context_flags(unsigned context) {
  return static_cast<std::uint16_t>((context & (max_contexts - 1)) << context_at);
}
constexpr unsigned context_of(std::uint16_t flags) { return flags >> context_at & (max_contexts - 1); }
inline constexpr std::uint16_t known_flags =
    flag_wants_reply | flag_per_thread | capture_mode_flags(3) | context_flags(max_contexts - 1);
static_assert(known_flags == 0x3f0f && first_created_context < max_contexts);

inline constexpr std::uint64_t absent = ~std::uint64_t{0};  // the slot's value for a null pointer

constexpr std::size_t padded(std::size_t n) { return (n + 7) & ~std::size_t{7}; }
constexpr std::uint32_t record_size(std::size_t payload) {
  return static_cast<std::uint32_t>((sizeof(RecordHeader) + payload + 15) & ~std::size_t{15});
}

// Writes into memory of the caller: a record in the ring, or a reply.
class Writer {
 public:
  explicit Writer(std::span<std::byte> buffer) : buffer_(buffer) {}

  // Returns n bytes to fill, and zeroes the padding, since no reader may see the buffer's old bytes.
  std::byte* reserve(std::size_t n) {
    if (!ok_ || n > buffer_.size() - used_ || padded(n) > buffer_.size() - used_) {
      ok_ = false;
      return nullptr;
    }
    std::byte* at = buffer_.data() + used_;
    used_ += padded(n);
    // Zeroes the last word before the caller writes the bytes. This takes one store, or none for a constant n without
    // padding.
    if (n != padded(n)) std::memset(at + padded(n) - 8, 0, 8);
    return at;
  }
  void slot(std::uint64_t value) {
    if (std::byte* at = reserve(sizeof value)) std::memcpy(at, &value, sizeof value);
  }
  void bytes(const void* from, std::size_t n) {
    std::byte* at = reserve(n);
    if (at != nullptr && n != 0) std::memcpy(at, from, n);
  }
  bool ok() const { return ok_; }
  std::size_t used() const { return used_; }

 private:
  std::span<std::byte> buffer_;
  std::size_t used_ = 0;
  bool ok_ = true;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Returns n bytes, aligned to 8 within the payload; null after any failure.
  const std::byte* take(std::size_t n) {
    if (!ok_ || n > bytes_.size() - used_ || padded(n) > bytes_.size() - used_) {
      ok_ = false;
      return nullptr;
    }
    const std::byte* at = bytes_.data() + used_;
    used_ += padded(n);
    return at;
  }
  std::uint64_t slot() {
    std::uint64_t value = 0;
    if (const std::byte* at = take(sizeof value)) std::memcpy(&value, at, sizeof value);
    return value;
  }
  template <class T>
  T read() {
    T value{};
    if (const std::byte* at = take(sizeof value)) std::memcpy(&value, at, sizeof value);
    return value;
  }
  void fail() { ok_ = false; }
  bool ok() const { return ok_; }
  std::size_t left() const { return bytes_.size() - used_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t used_ = 0;
  bool ok_ = true;
};

}  // namespace ring
