// The request ring: one guest thread publishes variable-length records, and one worker thread consumes them. Records
// are built in place: a record needs no heap, no lock and no system call.
//
// Ordering. Two edges; each line below that releases or acquires one names it:
//   P  publish -> take   a record's bytes are written before `tail` covers them
//   F  take -> reserve   a record's bytes are read before `head` frees their space ring/queue/parking.h describes
//      sleeping and waking. Covered by: the model ring, the explorer's scenario ring (docs/models.md), and
//      ThreadSanitizer under tests/unit/ring/queue_test.cc.
//
// Trust. The other side can write `tail` and `head`. Each side therefore keeps its own position in private memory and
// only publishes it. Each side range-checks the position of the other side by one subtraction: a wrong position is
// Peer::Broken, never an index into memory. The consumer copies a record out once and checks the copy; it never reads
// the bytes in the ring again.
//
// Speed. Each side caches the other side's position, and reads the position again only when the cached value does not
// suffice. Hence the cache lines of `tail` and `head` do not move between processors with every record.
//
// Positions are byte counts that wrap at 2^32; the ring's size is a power of two. A record is contiguous: if the rest
// of the ring is too short, a padding record fills it. Neither side owns the memory.
//
// ```cpp
// ring::Peer post(ring::Producer& producer, const ring::RecordHeader& header) {  // and consumer.take(buffer, record)
//   std::byte* at = nullptr;
//   const ring::Peer room = producer.reserve(header.bytes, at);
//   if (room != ring::Peer::Ok) return room;  // Wait: full; Broken: the session ends
//   std::memcpy(at, &header, sizeof header);
//   producer.publish();
//   return room;
// }
// ```
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ring/layout/layout.h"
#include "ring/queue/peer.h"
#include "ring/shared/shared.h"
#include "ring/verify/mutants.h"
#include "ring/wire/record.h"

namespace ring {

// The two shared words of a ring, and its bytes.
struct RingView {
  Shared<std::uint32_t> tail, head;
  SharedBytes bytes;
  std::uint32_t size() const { return static_cast<std::uint32_t>(bytes.size()); }  // always a power of two
};

class Producer {
 public:
  explicit Producer(RingView ring) : ring_(ring), size_(ring.size()) {}

  // Makes space for a record of exactly `bytes` (a multiple of 16, at most size / 2). Ok: write the record at `at`,
  // then call publish(). The peer can overwrite the bytes from the start, so write the bytes and never read them.
  Peer reserve(std::uint32_t bytes, std::byte*& at) {
    const std::uint32_t offset = tail_ & (size_ - 1);
    const std::uint32_t to_end = size_ - offset;
    const std::uint32_t skip = bytes > to_end ? to_end : 0;
    if (const Peer room = room_for(wrong(Mutant::padding_free) ? bytes : skip + bytes); room != Peer::Ok) return room;
    if (skip != 0) {
      const RecordHeader pad{.bytes = skip, .call = padding_call};
      ring_.bytes.copy_in(offset, &pad, sizeof pad);
    }
    at = ring_.bytes.write_only((offset + skip) & (size_ - 1));
    reserved_ = skip + bytes;
    return Peer::Ok;
  }

  // Publishes the record. Preconditions: reserve() returned Ok, and the record, header included, has been written.
  void publish() {
    tail_ += reserved_;
    reserved_ = 0;
    ring_.tail.store(tail_, std::memory_order_release);  // P
  }

 private:
  Peer room_for(std::uint32_t bytes) {
    if (fits(bytes, tail_ - seen_head_)) return Peer::Ok;
    const std::uint32_t head = ring_.head.load(std::memory_order_acquire);  // F
    const std::uint32_t used = tail_ - head;
    if (used > size_ || used % 16 != 0) return Peer::Broken;
    seen_head_ = head;
    return fits(bytes, used) ? Peer::Ok : Peer::Wait;
  }
  bool fits(std::uint32_t bytes, std::uint32_t used) const {
    return bytes <= size_ - used + (wrong(Mutant::full_by_one) ? 16 : 0);
  }

  const RingView ring_;
  const std::uint32_t size_;
  std::uint32_t tail_ = 0;
  std::uint32_t seen_head_ = 0;  // at most size behind tail_
  std::uint32_t reserved_ = 0;
};

class Consumer {
 public:
  explicit Consumer(RingView ring) : ring_(ring), size_(ring.size()) {}

  // Copies the next record into `into` (at least max_record bytes, 8-aligned). Ok: `record` is the filled part of
  // `into`. The record's header was checked against the ring, and the record's space in the ring is free. The payload
  // is unchecked.
  Peer take(std::span<std::byte> into, std::span<const std::byte>& record) {
    for (;;) {
      if (seen_tail_ == head_)
        if (const Peer records = look(); records != Peer::Ok) return records;
      const std::uint32_t ready = seen_tail_ - head_;
      const std::uint32_t offset = head_ & (size_ - 1);
      // A launch takes three lines, which the producer's processor has. They come together instead of one by one.
      ring_.bytes.prefetch(offset + IVGPU_LINE);
      ring_.bytes.prefetch(offset + 2 * IVGPU_LINE);
      RecordHeader header;
      ring_.bytes.copy_out(&header, offset, sizeof header);  // read once; only the copy is used afterwards
      if (!fits(header.bytes, ready, size_ - offset)) return Peer::Broken;
      if (header.call == padding_call) {
        if (header.bytes != size_ - offset) return Peer::Broken;
        give_back(header.bytes);
        continue;
      }
      if (header.bytes > max_record || header.bytes > into.size()) return Peer::Broken;
      if (wrong(Mutant::record_twice)) ring_.bytes.copy_out(&header, offset, sizeof header);
      if (wrong(Mutant::early_room)) give_back(header.bytes);
      std::memcpy(into.data(), &header, sizeof header);
      ring_.bytes.copy_out(into.data() + sizeof header, offset + sizeof header, header.bytes - sizeof header);
      if (!wrong(Mutant::early_room)) give_back(header.bytes);
      record = into.first(header.bytes);
      return Peer::Ok;
    }
  }

  // Returns whether take() would find a record. For parking, which needs no ordering of its own for this read.
  bool anything() const { return seen_tail_ != head_ || ring_.tail.load(std::memory_order_relaxed) != head_; }

 private:
  Peer look() {
    const std::uint32_t tail = ring_.tail.load(std::memory_order_acquire);  // P
    if (tail == head_) return Peer::Wait;
    if (tail - head_ > size_) return Peer::Broken;
    seen_tail_ = tail;
    return Peer::Ok;
  }
  static bool fits(std::uint32_t bytes, std::uint32_t ready, std::uint32_t to_end) {
    return bytes >= sizeof(RecordHeader) && bytes % 16 == 0 && bytes <= ready && bytes <= to_end;
  }
  void give_back(std::uint32_t bytes) {
    head_ += bytes;
    ring_.head.store(head_, std::memory_order_release);  // F
  }

  const RingView ring_;
  const std::uint32_t size_;
  std::uint32_t head_ = 0;
  std::uint32_t seen_tail_ = 0;  // at most size ahead of head_
};

}  // namespace ring
