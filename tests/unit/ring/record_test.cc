// Records: Writer and Reader, which remember their first failure, and ids.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "ring/api/id.h"
#include "ring/wire/record.h"
#include "tests/search_options.h"

namespace {

using api::Handle, api::Id;
constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();

TEST(Record, SizesAreMultiplesOf16WithTheHeader) {
  EXPECT_EQ(sizeof(ring::RecordHeader), 16u);
  EXPECT_EQ(ring::record_size(0), 16u);
  EXPECT_EQ(ring::record_size(1), 32u);
  EXPECT_EQ(ring::record_size(16), 32u);
  EXPECT_EQ(ring::record_size(17), 48u);
  EXPECT_EQ(ring::padded(0), 0u);
  EXPECT_EQ(ring::padded(1), 8u);
  EXPECT_EQ(ring::padded(8), 8u);
}

TEST(Record, FlagsCarryTheContextAndNothingUnknown) {
  for (unsigned context = 0; context < ring::max_contexts; ++context) {
    EXPECT_EQ(ring::context_flags(context), context << 8);
    EXPECT_EQ(ring::context_of(ring::context_flags(context)), context);
    EXPECT_EQ(ring::context_of(static_cast<std::uint16_t>(ring::context_flags(context) | 0xc0ff)), context);
    EXPECT_EQ(ring::context_flags(context) & ~ring::known_flags, 0);
    EXPECT_EQ(ring::context_flags(context) & (ring::flag_wants_reply | ring::flag_per_thread), 0);
  }
  EXPECT_EQ(ring::context_flags(ring::max_contexts), 0) << "no bit beside the number's";
}

TEST(Writer, ReaderReadsWhatItWrote) {
  std::vector<std::byte> buffer(64);
  ring::Writer w(buffer);
  w.slot(42);
  w.bytes("abc", 3);
  const std::uint32_t word = 7;
  w.bytes(&word, sizeof word);
  w.bytes(nullptr, 0);
  ASSERT_TRUE(w.ok());
  EXPECT_EQ(w.used(), 24u);
  ring::Reader r({buffer.data(), w.used()});
  EXPECT_EQ(r.slot(), 42u);
  EXPECT_EQ(std::memcmp(r.take(3), "abc", 3), 0);
  EXPECT_EQ(r.read<std::uint32_t>(), 7u);
  EXPECT_TRUE(r.ok());
  EXPECT_EQ(r.left(), 0u);
}

// Replies are built in fresh heap memory, but records are built in memory that had other contents.
TEST(Writer, LeavesNothingOfTheBufferInThePadding) {
  for (std::size_t n = 0; n <= 24; ++n) {
    std::vector<std::byte> buffer(48, std::byte{0xaa});
    const std::vector<std::byte> text(n, std::byte{0x11});
    ring::Writer w(buffer);
    w.bytes(text.data(), n);
    w.slot(~std::uint64_t{0});
    for (std::size_t i = 0; i < ring::padded(n); ++i)
      EXPECT_EQ(buffer[i], i < n ? std::byte{0x11} : std::byte{0}) << n << " bytes, at " << i;
    EXPECT_EQ(buffer[ring::padded(n)], std::byte{0xff});
    EXPECT_EQ(buffer[ring::padded(n) + 8], std::byte{0xaa}) << "nothing is written behind the end";
  }
}

TEST(Writer, FailsForGoodAtTheFirstThatDoesNotFit) {
  std::vector<std::byte> buffer(16);
  ring::Writer w(buffer);
  w.slot(1);
  w.bytes("123456789", 9);
  EXPECT_FALSE(w.ok());
  w.slot(2);  // this value would fit, but the writer has failed before
  EXPECT_FALSE(w.ok());
  EXPECT_EQ(w.used(), 8u);
  EXPECT_EQ(buffer[8], std::byte{0});
}

TEST(Writer, LengthsThatOverflowWhenPaddedDoNotFit) {
  for (const std::size_t n : {huge, huge - 1, huge - 7, huge - 8, huge / 2 + 1, std::size_t{17}}) {
    std::vector<std::byte> buffer(16);
    ring::Writer w(buffer);
    EXPECT_EQ(w.reserve(n), nullptr) << n;
    EXPECT_FALSE(w.ok());
  }
}

// 12 bytes fit into 15, but not together with their padding. The writer writes everything or nothing.
TEST(Writer, CountsThePadding) {
  std::vector<std::byte> buffer(15);
  ring::Writer w(buffer);
  EXPECT_EQ(w.reserve(12), nullptr);
  ring::Writer empty({});
  EXPECT_EQ(empty.reserve(1), nullptr);
}

TEST(Reader, FailsForGoodAtTheFirstThatIsMissing) {
  std::vector<std::byte> buffer(24);
  std::memset(buffer.data(), 1, buffer.size());
  ring::Reader r(buffer);
  r.slot();
  EXPECT_EQ(r.take(17), nullptr);
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(r.slot(), 0u);
  EXPECT_EQ(r.take(0), nullptr);
  EXPECT_EQ(r.read<std::uint64_t>(), 0u);
}

TEST(Reader, LengthsThatOverflowWhenPaddedAreMissing) {
  for (const std::size_t n : {huge, huge - 1, huge - 7, huge - 8, huge / 2 + 1, std::size_t{17}}) {
    std::vector<std::byte> buffer(16);
    ring::Reader r(buffer);
    EXPECT_EQ(r.take(n), nullptr) << n;
    EXPECT_FALSE(r.ok());
    EXPECT_EQ(r.left(), 16u);
  }
}

TEST(Reader, CanBeFailedByWhoReads) {
  std::vector<std::byte> buffer(16);
  ring::Reader r(buffer);
  r.fail();
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(r.take(1), nullptr);
}

TEST(Id, RoundTripsAndLooksLikeAPointer) {
  for (unsigned kind = 1; kind < api::handle_kinds; ++kind)
    for (const std::uint32_t index : {1u, 2u, 0x12345u, Id::max_index})
      for (const std::uint32_t generation : {0u, 1u, Id::generations - 1}) {
        const std::uint64_t value = Id{static_cast<Handle>(kind), index, generation}.value();
        const Id back = Id::of(value);
        EXPECT_EQ(back.kind, static_cast<Handle>(kind));
        EXPECT_EQ(back.index, index);
        EXPECT_EQ(back.generation, generation);
        EXPECT_EQ(value % 16, 0u);
        EXPECT_LT(value, 1ULL << 47);
        EXPECT_EQ(value, std::uint64_t{kind} << 42 | std::uint64_t{generation} << 26 | std::uint64_t{index} << 4);
        EXPECT_FALSE(api::special_stream(value));
      }
}

// Any 64-bit value must decode to a consistent id or to an invalid id.
void expect_harmless(std::uint64_t value) {
  const Id id = Id::of(value);
  EXPECT_LE(id.index, Id::max_index);
  EXPECT_LT(id.generation, Id::generations);
  EXPECT_LT(static_cast<unsigned>(id.kind), api::handle_kinds);
  if (id.kind != Handle::None && id.index != 0) {
    EXPECT_EQ(id.value(), value);
  }
}

TEST(Id, AnyNumberIsHarmless) {
  for (unsigned bit = 0; bit < 64; ++bit)
    for (const std::uint64_t value : {1ULL << bit, (1ULL << bit) - 1, ~(1ULL << bit)}) expect_harmless(value);
  std::mt19937_64 random(test_seed(1));
  for (int i = 0; i < 200'000; ++i) expect_harmless(random() >> (i % 32));
}

TEST(Id, SpecialStreamsAndOddNumbersAreNobodys) {
  for (const std::uint64_t value : {0ULL, 1ULL, 2ULL, 3ULL, 15ULL, 17ULL, ~0ULL, 1ULL << 47, 0x7fffffffffffULL})
    EXPECT_TRUE(Id::of(value).kind == Handle::None || Id::of(value).index == 0) << value;
  EXPECT_EQ(Id::of(std::uint64_t{api::handle_kinds} << 42 | 16).kind, Handle::None);
  EXPECT_EQ(Id::of(31ULL << 42 | 16).kind, Handle::None);
}

TEST(Id, TheUpperHalfOfTheIndicesIsTheWorkers) {
  EXPECT_FALSE(Id::of_guest(0));
  EXPECT_TRUE(Id::of_guest(1));
  EXPECT_TRUE(Id::of_guest(Id::first_of_worker - 1));
  EXPECT_FALSE(Id::of_guest(Id::first_of_worker));
  EXPECT_FALSE(Id::of_guest(Id::max_index));
  EXPECT_EQ(Id::first_of_worker, (std::uint64_t{Id::max_index} + 1) / 2);
}

TEST(Id, AKernelGoesWhereAFunctionIsWanted) {
  EXPECT_TRUE(api::accepts(Handle::Function, Handle::Kernel));
  EXPECT_FALSE(api::accepts(Handle::Kernel, Handle::Function));
  EXPECT_FALSE(api::accepts(Handle::Stream, Handle::Event));
}

}  // namespace
