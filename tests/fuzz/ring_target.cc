// The request ring with a peer that writes anything into the shared words and bytes, before each step of the honest
// side. First a worker (Consumer) faces a hostile guest, then a guest (Producer) faces a hostile worker.
// AddressSanitizer checks accesses outside ring and record; the target checks everything else.
#include "ring/queue/record_ring.h"

#include <memory>

#include "tests/fuzz/input.h"

namespace {

// A ring in memory of exactly its size, with the ring's two shared words.
struct Shared {
  explicit Shared(std::uint32_t bytes) : size(bytes), memory(new std::byte[bytes]{}) {}
  ring::RingView view() {
    return {ring::Shared<std::uint32_t>(&tail), ring::Shared<std::uint32_t>(&head), {memory.get(), size}};
  }

  std::uint32_t size;
  std::unique_ptr<std::byte[]> memory;
  std::uint32_t tail = 0, head = 0;
};

// Writes a header where the consumer will look, since random bytes would hardly ever form a valid header.
void write_header(Shared& s, std::uint32_t at, fuzz::Input& in) {
  ring::RecordHeader header{.bytes = static_cast<std::uint32_t>(in.any()), .call = in.number<std::uint16_t>()};
  const std::uint32_t offset = at & (s.size - 1);
  const auto form = in.below(4);
  if (form != 0) header.bytes = header.bytes % (s.size / 2 + 32) / 16 * 16;
  if (form == 3) header = {.bytes = s.size - offset, .call = ring::padding_call};
  std::memcpy(s.memory.get() + offset, &header, std::min<std::size_t>(sizeof header, s.size - offset));
}

void write_bytes(Shared& s, fuzz::Input& in) {
  const std::size_t at = in.number<std::uint32_t>() & (s.size - 1);
  const auto bytes = in.take(std::min<std::size_t>(in.number(), s.size - at));
  if (!bytes.empty()) std::memcpy(s.memory.get() + at, bytes.data(), bytes.size());
}

// The next value that the peer writes to its word: a step that an honest peer could take, or a jump.
std::uint32_t moved(std::uint32_t word, fuzz::Input& in) {
  if (in.once_in(4)) return static_cast<std::uint32_t>(in.any());
  return word + static_cast<std::uint32_t>(in.number<std::uint16_t>()) * 16;
}

void check_taken(std::span<const std::byte> record, std::span<const std::byte> into, std::uint32_t gone) {
  ring::RecordHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  fuzz::require(record.data() == into.data() && record.size() <= into.size(), "a record lies in the taker's memory");
  fuzz::require(header.bytes == record.size() && header.bytes % 16 == 0,
                "a record is as long as its copied header says");
  fuzz::require(header.call != ring::padding_call, "padding is no record");
  fuzz::require(gone >= header.bytes, "a record's room is given back");
}

void consume(fuzz::Input& in) {
  Shared s(1u << (8 + in.below(10)));
  const auto room = static_cast<std::size_t>(in.once_in(4) ? 64 : ring::max_record);
  const std::unique_ptr<std::byte[]> memory(new std::byte[room]);
  ring::Consumer consumer(s.view());
  for (std::uint32_t head = 0; !in.empty(); head = s.head) {
    switch (in.below(4)) {
      case 0: write_header(s, head, in); break;
      case 1: write_bytes(s, in); break;
      case 2: s.tail = moved(s.tail, in); break;
      default: break;
    }
    std::span<const std::byte> record;
    const bool more = consumer.anything();
    const ring::Peer peer = consumer.take({memory.get(), room}, record);
    fuzz::require(more || peer == ring::Peer::Wait, "nothing to take, nothing taken");
    if (peer == ring::Peer::Ok) check_taken(record, {memory.get(), room}, s.head - head);
    if (peer == ring::Peer::Broken) return;  // the session ends
  }
}

void produce(fuzz::Input& in) {
  Shared s(1u << (8 + in.below(10)));
  ring::Producer producer(s.view());
  for (std::uint32_t tail = 0; !in.empty();) {
    switch (in.below(3)) {
      case 0: s.head = moved(s.head, in); break;
      case 1: write_bytes(s, in); break;
      default: s.head = tail; break;  // consumes everything
    }
    s.tail = in.number();  // the honest producer always overwrites it
    const std::uint32_t bytes = 16 + in.number<std::uint16_t>() % (s.size / 2) / 16 * 16;
    std::byte* at = nullptr;
    const ring::Peer peer = producer.reserve(bytes, at);
    if (peer == ring::Peer::Broken) return;
    if (peer != ring::Peer::Ok) continue;
    std::memset(at, 0xa5, bytes);
    producer.publish();
    fuzz::require(s.tail - tail >= bytes && s.tail - tail <= s.size,
                  "tail moves by the record and the padding before it");
    tail = s.tail;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  if (in.once_in(2))
    produce(in);
  else
    consume(in);
  return 0;
}
