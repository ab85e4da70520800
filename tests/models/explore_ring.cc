// The request ring (ring/queue/record_ring.h), with 64 bytes: records of several sizes across the wrap, a full ring and
// an empty one. Each record's bytes must equal the written bytes.
#include "tests/models/explored.h"
// The product's headers, after explored.h:
#include "ring/queue/record_ring.h"
#include "tests/models/scenarios.h"
#include "tests/shared_word.h"

namespace explore {
namespace {

constexpr std::uint32_t ring_bytes = 64;

template <std::uint32_t... record_bytes>
struct Ring {
  static constexpr std::array<std::uint32_t, sizeof...(record_bytes)> sizes{record_bytes...};

  Ring() { share(bytes, sizeof bytes); }

  void producer() {
    ring::Producer p({tail, head, {bytes, ring_bytes}});
    for (std::uint64_t i = 0; i < sizes.size(); ++i) {
      std::byte* at = nullptr;
      ring::Peer peer;
      while ((peer = p.reserve(sizes[i], at)) == ring::Peer::Wait) pause();
      require(peer == ring::Peer::Ok, "the producer calls the ring broken");
      alignas(16) std::byte record[ring_bytes / 2];
      const ring::RecordHeader header{.bytes = sizes[i], .call = 1, .flags = 0, .position = i + 1};
      std::memcpy(record, &header, sizeof header);
      for (std::uint32_t b = sizeof header; b < sizes[i]; ++b) record[b] = static_cast<std::byte>(16 * i + b);
      std::memcpy(at, record, sizes[i]);
      p.publish();
    }
  }

  void consumer() {
    ring::Consumer c({tail, head, {bytes, ring_bytes}});
    alignas(16) std::byte into[ring_bytes];
    for (std::uint64_t i = 0; i < sizes.size(); ++i) {
      std::span<const std::byte> record;
      ring::Peer peer;
      while ((peer = c.take(into, record)) == ring::Peer::Wait) pause();
      require(peer == ring::Peer::Ok && record.size() == sizes[i], "the consumer finds no record where one is");
      ring::RecordHeader header;
      std::memcpy(&header, record.data(), sizeof header);
      require(header.position == i + 1, "a record is another one's");
      for (std::uint32_t b = sizeof header; b < sizes[i]; ++b)
        require(record[b] == static_cast<std::byte>(16 * i + b), "a record's bytes are another one's");
    }
  }

  void finish() { require(tail.load() == head.load(), "something is left in the ring"); }

  alignas(16) std::byte bytes[ring_bytes] = {};
  SharedWord<std::uint32_t> tail, head;
};

template <class R>
Verdict run_ring(Options o) {
  return bounded<R, &R::producer, &R::consumer>(o, 4);
}

}  // namespace

std::vector<Scenario> ring_scenarios() {
  return {
      {"ring", "full", run_ring<Ring<32, 32, 16, 16>>},
      {"ring", "padding", run_ring<Ring<16, 16, 16, 32>>},
      {"ring", "wrap", run_ring<Ring<32, 16, 32, 32>>},
  };
}

}  // namespace explore
