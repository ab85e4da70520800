// The request ring: records of every size across the wrap, a full ring, two threads, and a hostile peer.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <ostream>
#include <random>
#include <thread>
#include <vector>

#include "ring/queue/record_ring.h"
#include "tests/shared_word.h"
#include "tests/unit/under_tsan.h"

namespace {

using ring::Consumer, ring::Peer, ring::Producer, ring::RecordHeader;

// A ring on the heap with exactly the ring's size, so that ASan notices an access outside.
struct Ring {
  explicit Ring(std::uint32_t n) : bytes(new std::byte[n]()), size(n) {
    asm("" : "+r"(size));  // hides the constant, because the compiler would warn about impossible offsets
  }
  ring::RingView view() { return {tail, head, {bytes.get(), size}}; }
  SharedWord<std::uint32_t> tail, head;
  std::unique_ptr<std::byte[]> bytes;
  std::uint32_t size;
};

struct Taker {
  explicit Taker(Ring& r) : consumer(r.view()), into(new std::byte[ring::max_record]) {}
  Peer take() { return consumer.take({into.get(), ring::max_record}, record); }
  Consumer consumer;
  std::unique_ptr<std::byte[]> into;
  std::span<const std::byte> record;
};

void write_record(std::byte* at, std::uint32_t bytes, std::uint64_t position) {
  const RecordHeader header{.bytes = bytes, .call = 1, .position = position};
  std::memcpy(at, &header, sizeof header);
  for (std::uint32_t i = sizeof header; i < bytes; ++i) at[i] = static_cast<std::byte>(position * 31 + i);
}

testing::AssertionResult holds(std::span<const std::byte> record, std::uint32_t bytes, std::uint64_t position) {
  RecordHeader header;
  if (record.size() != bytes) return testing::AssertionFailure() << "it has " << record.size() << " bytes";
  std::memcpy(&header, record.data(), sizeof header);
  if (header.bytes != bytes || header.position != position)
    return testing::AssertionFailure() << "header: " << header.bytes << " at " << header.position;
  for (std::uint32_t i = sizeof header; i < bytes; ++i)
    if (record[i] != static_cast<std::byte>(position * 31 + i)) return testing::AssertionFailure() << "byte " << i;
  return testing::AssertionSuccess();
}

TEST(RecordRing, EmptyHasNothingToTake) {
  Ring r(256);
  Taker t(r);
  EXPECT_EQ(t.take(), Peer::Wait);
  EXPECT_FALSE(t.consumer.anything());
}

// Tests every size at every starting offset, with and without padding at the ring's end.
TEST(RecordRing, EverySizeFromEveryOffset) {
  constexpr std::uint32_t size = 512;
  for (std::uint32_t offset = 16; offset <= size; offset += 16)
    for (std::uint32_t bytes = 16; bytes <= size / 2; bytes += 16) {
      Ring r(size);
      Producer p(r.view());
      Taker t(r);
      std::byte* at = nullptr;
      std::uint64_t position = 0;
      for (std::uint32_t done = 0; done < offset; done += 16) {
        ASSERT_EQ(p.reserve(16, at), Peer::Ok);
        write_record(at, 16, ++position);
        p.publish();
        ASSERT_EQ(t.take(), Peer::Ok);
      }
      ASSERT_EQ(p.reserve(bytes, at), Peer::Ok) << bytes << " at " << offset;
      write_record(at, bytes, ++position);
      EXPECT_FALSE(t.consumer.anything());  // the record is reserved, but not published
      p.publish();
      EXPECT_TRUE(t.consumer.anything());
      ASSERT_EQ(t.take(), Peer::Ok) << bytes << " at " << offset;
      EXPECT_TRUE(holds(t.record, bytes, position)) << bytes << " at " << offset;
      EXPECT_EQ(t.take(), Peer::Wait);
    }
}

// After more than 2^32 bytes the free-running positions wrap. Records must still pass.
#ifndef IVGPU_UNDER_TSAN
TEST(RecordRing, PositionsRunOverTheEndOf32Bits) {
  Ring r(2 * ring::max_record);
  Producer p(r.view());
  Taker t(r);
  constexpr std::uint64_t records = (1ULL << 32) / ring::max_record + 3;
  for (std::uint64_t position = 1; position <= records; ++position) {
    std::byte* at = nullptr;
    ASSERT_EQ(p.reserve(ring::max_record, at), Peer::Ok);
    const RecordHeader header{.bytes = ring::max_record, .call = 1, .position = position};
    std::memcpy(at, &header, sizeof header);
    p.publish();
    ASSERT_EQ(t.take(), Peer::Ok);
    RecordHeader taken;
    std::memcpy(&taken, t.record.data(), sizeof taken);
    ASSERT_EQ(taken.position, position);
  }
  EXPECT_EQ(r.tail.load(), 3 * ring::max_record);
}
#endif

TEST(RecordRing, FullUntilExactlyEnoughIsGivenBack) {
  Ring r(256);
  Producer p(r.view());
  Taker t(r);
  std::byte* at = nullptr;
  for (std::uint64_t i = 1; i <= 4; ++i) {
    ASSERT_EQ(p.reserve(64, at), Peer::Ok);  // the fourth record fits exactly
    write_record(at, 64, i);
    p.publish();
  }
  EXPECT_EQ(p.reserve(16, at), Peer::Wait);
  ASSERT_EQ(t.take(), Peer::Ok);
  EXPECT_EQ(p.reserve(80, at), Peer::Wait);
  EXPECT_EQ(p.reserve(64, at), Peer::Ok);
  EXPECT_TRUE(holds(t.record, 64, 1));
}

// The free space is split between the ring's end and its start. The record waits, although the sum of both parts would
// suffice.
TEST(RecordRing, PaddingCountsAsUsed) {
  Ring r(256);
  Producer p(r.view());
  Taker t(r);
  std::byte* at = nullptr;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(p.reserve(64, at), Peer::Ok);
    write_record(at, 64, i);
    p.publish();
  }
  ASSERT_EQ(t.take(), Peer::Ok);  // 64 bytes are free at the start, and 64 at the end
  EXPECT_EQ(p.reserve(80, at), Peer::Wait);
  ASSERT_EQ(t.take(), Peer::Ok);  // 128 bytes are free at the start
  ASSERT_EQ(p.reserve(80, at), Peer::Ok);
  EXPECT_EQ(at, r.bytes.get());
  write_record(at, 80, 4);
  p.publish();
  ASSERT_EQ(t.take(), Peer::Ok);
  ASSERT_EQ(t.take(), Peer::Ok);
  EXPECT_TRUE(holds(t.record, 80, 4));
  EXPECT_EQ(r.tail.load(), 256u + 80);
  EXPECT_EQ(r.head.load(), 256u + 80);
}

TEST(RecordRing, AReservationThatIsNotPublishedIsMadeAgain) {
  Ring r(256);
  Producer p(r.view());
  std::byte *first = nullptr, *second = nullptr;
  ASSERT_EQ(p.reserve(64, first), Peer::Ok);
  ASSERT_EQ(p.reserve(32, second), Peer::Ok);
  EXPECT_EQ(first, second);
  p.publish();
  EXPECT_EQ(r.tail.load(), 32u);
}

TEST(RecordRing, OneProducerOneConsumer) {
#ifdef IVGPU_UNDER_TSAN
  constexpr std::uint64_t records = 100'000;
#else
  constexpr std::uint64_t records = 1'000'000;
#endif
  constexpr std::uint32_t size = 4096;
  Ring r(size);
  const auto bytes_of = [](std::uint64_t position) {
    return static_cast<std::uint32_t>(16 + (position * 2654435761u >> 7) % 24 * 16);
  };
  std::thread producer([&] {
    Producer p(r.view());
    for (std::uint64_t position = 1; position <= records; ++position) {
      std::byte* at = nullptr;
      Peer peer;
      while ((peer = p.reserve(bytes_of(position), at)) == Peer::Wait) std::this_thread::yield();
      ASSERT_EQ(peer, Peer::Ok);
      write_record(at, bytes_of(position), position);
      p.publish();
    }
  });
  Taker t(r);
  for (std::uint64_t position = 1; position <= records; ++position) {
    Peer peer;
    while ((peer = t.take()) == Peer::Wait) std::this_thread::yield();
    ASSERT_EQ(peer, Peer::Ok) << position;
    ASSERT_TRUE(holds(t.record, bytes_of(position), position)) << position;
  }
  producer.join();
  EXPECT_EQ(t.take(), Peer::Wait);
}

// ---- a hostile peer --------------------------------------------------------------------------------------------

struct Hostile {
  const char* name;
  std::uint32_t tail;   // the tail that the producer publishes
  std::uint32_t bytes;  // the size in the header at offset 0
  std::uint16_t call;
};
void PrintTo(const Hostile& h, std::ostream* out) { *out << h.name; }

class HostileProducer : public testing::TestWithParam<Hostile> {};

TEST_P(HostileProducer, IsBroken) {
  constexpr std::uint32_t size = 2 * ring::max_record;
  Ring r(size);
  const RecordHeader header{.bytes = GetParam().bytes, .call = GetParam().call, .position = 1};
  std::memcpy(r.bytes.get(), &header, sizeof header);
  r.tail.store(GetParam().tail);
  Taker t(r);
  EXPECT_EQ(t.take(), Peer::Broken);
  EXPECT_EQ(r.head.load(), 0u);  // the consumer freed no space
}

INSTANTIATE_TEST_SUITE_P(
    RecordRing, HostileProducer,
    testing::Values(Hostile{"NoBytes", 64, 0, 1}, Hostile{"HalfAHeader", 64, 8, 1}, Hostile{"Odd", 64, 17, 1},
                    Hostile{"NotOf16", 64, 24, 1}, Hostile{"MoreThanReady", 64, 80, 1},
                    Hostile{"MoreThanARecord", 2 * ring::max_record, ring::max_record + 16, 1},
                    Hostile{"WholeRing", 2 * ring::max_record, 2 * ring::max_record, 1}, Hostile{"AllOnes", 64, ~0u, 1},
                    Hostile{"Negative", 64, 0xfffffff0u, 1}, Hostile{"PaddingBeforeTheEnd", 64, 64, 0},
                    Hostile{"PaddingOfNoBytes", 64, 0, 0}, Hostile{"TailOneByte", 1, 16, 1},
                    Hostile{"TailWithinAHeader", 15, 16, 1}, Hostile{"TailBack", ~0u, 16, 1},
                    Hostile{"TailBack16", 0u - 16, 16, 1}, Hostile{"TailBackByARing", 0u - 2 * ring::max_record, 16, 1},
                    Hostile{"TailPastTheRing", 2 * ring::max_record + 16, 16, 1},
                    Hostile{"TailHalfOfAllNumbers", 1u << 31, 16, 1}),
    [](const auto& info) { return std::string(info.param.name); });

// A hostile tail. The consumer is in the middle of the ring, at the ring's end, or where positions wrap.
struct Jump {
  const char* name;
  std::uint32_t by;     // the distance of the tail from the consumer
  std::uint32_t bytes;  // the size in the header at the consumer's position
  Peer expected;
};
void PrintTo(const Jump& j, std::ostream* out) { *out << j.name; }

class Jumps : public testing::TestWithParam<Jump> {};

TEST_P(Jumps, OfTheTail) {
  constexpr std::uint32_t size = 2 * ring::max_record;
  for (const std::uint32_t taken : {0u, 16u, size / 2, size - 16, size, 3 * size + 4096}) {
    Ring r(size);
    Taker t(r);
    for (std::uint32_t head = 0; head != taken; head += 16) {
      write_record(r.bytes.get() + (head & (size - 1)), 16, 1);
      r.tail.store(head + 16);
      ASSERT_EQ(t.take(), Peer::Ok);
    }
    write_record(r.bytes.get() + (taken & (size - 1)), 16, 1);
    std::memcpy(r.bytes.get() + (taken & (size - 1)), &GetParam().bytes, 4);
    r.tail.store(taken + GetParam().by);
    EXPECT_EQ(t.take(), GetParam().expected) << taken;
    EXPECT_EQ(r.head.load(), taken + (GetParam().expected == Peer::Ok ? GetParam().bytes : 0)) << taken;
  }
}

INSTANTIATE_TEST_SUITE_P(RecordRing, Jumps,
                         testing::Values(Jump{"Nowhere", 0, 16, Peer::Wait}, Jump{"ByARecord", 16, 16, Peer::Ok},
                                         Jump{"ByAByte", 1, 16, Peer::Broken}, Jump{"Back", 0u - 16, 16, Peer::Broken},
                                         Jump{"ByARing", 2 * ring::max_record, 16, Peer::Ok},
                                         Jump{"ByMoreThanARing", 2 * ring::max_record + 16, 16, Peer::Broken},
                                         Jump{"ByHalfOfAllNumbers", 1u << 31, 16, Peer::Broken},
                                         Jump{"BackByARing", 0u - 2 * ring::max_record, 16, Peer::Broken},
                                         Jump{"LessThanTheHeaderSays", 16, 32, Peer::Broken},
                                         Jump{"ToAHeaderOfAllOnes", 16, ~0u, Peer::Broken}),
                         [](const auto& info) { return std::string(info.param.name); });

// Writes a record before, across and after each page boundary. The ring lies between two inaccessible pages.
TEST(RecordRing, ARecordPerPageBoundary) {
  constexpr std::size_t page = 4096, size = 2 * ring::max_record;
  auto* const mapped = static_cast<std::byte*>(
      mmap(nullptr, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_EQ(mprotect(mapped + page, size, PROT_READ | PROT_WRITE), 0);
  for (const std::uint32_t bytes : {16u, 32u, 48u, 4096u, ring::max_record}) {
    SharedWord<std::uint32_t> tail, head;
    const ring::RingView view{tail, head, {mapped + page, size}};
    Producer p(view);
    Consumer c(view);
    const auto into = std::make_unique<std::byte[]>(ring::max_record);
    std::uint64_t position = 0;
    const auto pass = [&](std::uint32_t n) {
      std::byte* at = nullptr;
      std::span<const std::byte> record;
      ASSERT_EQ(p.reserve(n, at), Peer::Ok);
      write_record(at, n, ++position);
      p.publish();
      ASSERT_EQ(c.take({into.get(), ring::max_record}, record), Peer::Ok);
      EXPECT_TRUE(holds(record, n, position)) << n << " bytes";
    };
    for (std::size_t boundary = page; boundary <= size; boundary += page)
      for (const std::uint32_t before : {16u, 0u})
        while (true) {  // writes records up to 16 bytes before the boundary, then exactly to the boundary
          const std::uint32_t to_go = static_cast<std::uint32_t>(boundary) - before - (tail.load() & (size - 1));
          if (to_go == 0 || to_go > page) {
            pass(bytes);
            break;
          }
          pass(std::min(to_go, 4080u));
        }
  }
  munmap(mapped, size + 2 * page);
}

// The record is at the last offset, and would run past the ring's end.
TEST(RecordRing, RecordPastTheEndIsBroken) {
  Ring r(256);
  Producer p(r.view());
  Taker t(r);
  std::byte* at = nullptr;
  for (int i = 0; i < 15; ++i) {
    ASSERT_EQ(p.reserve(16, at), Peer::Ok);
    write_record(at, 16, 1);
    p.publish();
    ASSERT_EQ(t.take(), Peer::Ok);
  }
  const RecordHeader header{.bytes = 32, .call = 1, .position = 1};
  std::memcpy(r.bytes.get() + 240, &header, sizeof header);
  r.tail.store(240 + 32);
  EXPECT_EQ(t.take(), Peer::Broken);
}

// The consumer's buffer limits a record, even if the ring has space for the record.
TEST(RecordRing, RecordThatDoesNotFitTheBufferIsBroken) {
  Ring r(512);
  Producer p(r.view());
  Consumer c(r.view());
  std::byte* at = nullptr;
  ASSERT_EQ(p.reserve(64, at), Peer::Ok);
  write_record(at, 64, 1);
  p.publish();
  const auto small = std::make_unique<std::byte[]>(48);
  std::span<const std::byte> record;
  EXPECT_EQ(c.take({small.get(), 48}, record), Peer::Broken);
}

// Padding over the whole ring contains no record, and must not cause an endless loop.
TEST(RecordRing, PaddingOfTheWholeRingIsTakenOnce) {
  Ring r(256);
  const RecordHeader header{.bytes = 256, .call = ring::padding_call};
  std::memcpy(r.bytes.get(), &header, sizeof header);
  r.tail.store(256);
  Taker t(r);
  EXPECT_EQ(t.take(), Peer::Wait);
  EXPECT_EQ(r.head.load(), 256u);
}

TEST(RecordRing, HeadThatMakesNoSenseIsBroken) {
  for (const std::uint32_t head : {1u, 15u, 17u, 272u, 288u, ~0u, 1u << 31, 0u - 16, 0u - 256, 0u - 272}) {
    Ring r(256);
    Producer p(r.view());
    std::byte* at = nullptr;
    for (std::uint16_t call = 1; call <= 16; ++call) {  // the producer reads the head only when it needs space
      ASSERT_EQ(p.reserve(16, at), Peer::Ok);
      write_record(at, 16, call);
      p.publish();
    }
    r.head.store(head);
    EXPECT_EQ(p.reserve(16, at), Peer::Broken) << head;
    EXPECT_EQ(p.reserve(16, at), Peer::Broken) << "and is not believed later: " << head;
    r.head.store(16);
    EXPECT_EQ(p.reserve(16, at), Peer::Ok) << head;
  }
}

// A side reads the peer's position only if the cached position does not suffice, so the cache line stays with its
// writer.
TEST(RecordRing, ThePeersPositionIsLookedAtOnlyWhenNeeded) {
  Ring r(256);
  Producer p(r.view());
  Consumer c(r.view());
  std::byte* at = nullptr;
  alignas(8) std::byte into[256];
  std::span<const std::byte> record;
  for (std::uint16_t call = 1; call <= 2; ++call) {
    ASSERT_EQ(p.reserve(16, at), Peer::Ok);
    write_record(at, 16, call);
    p.publish();
  }
  ASSERT_EQ(c.take(into, record), Peer::Ok);
  r.tail.store(7);  // this tail would be Broken
  EXPECT_EQ(c.take(into, record), Peer::Ok);
  EXPECT_EQ(c.take(into, record), Peer::Broken);
  r.head.store(7);
  EXPECT_EQ(p.reserve(16, at), Peer::Ok);
}

// Random bytes and tails: the result is Ok, Wait or Broken, and each record lies in the consumer's buffer.
TEST(RecordRing, RandomBytesNeverLeaveTheRing) {
  std::minstd_rand engine(7);
  const auto random = [&] { return static_cast<std::uint32_t>(engine() * 2); };
  for (int round = 0; round < 20'000; ++round) {
    Ring r(256);
    for (std::uint32_t i = 0; i < r.size; i += 4) {
      const std::uint32_t word = random() % 3 == 0 ? random() : random() % 20 * 8;
      std::memcpy(r.bytes.get() + i, &word, 4);
    }
    Taker t(r);
    for (int step = 0; step < 8; ++step) {
      r.tail.store(random() % 2 == 0 ? random() : random() % 40 * 8);
      if (t.take() != Peer::Ok) continue;
      EXPECT_EQ(t.record.data(), t.into.get());
      EXPECT_LE(t.record.size(), r.size);
    }
  }
}

}  // namespace
