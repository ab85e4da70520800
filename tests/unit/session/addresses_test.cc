// The table of GPU addresses that a session owns, and addresses that a hostile guest sends.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <limits>
#include <thread>
#include <vector>

#include "host/session/memory/addresses.h"

namespace {

using host::Addresses, host::Memory, host::Range;

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

Range allocation(std::uint64_t start, std::uint64_t bytes, std::uint16_t context = 0) {
  return {.start = start, .bytes = bytes, .context = context};
}
Range global(std::uint64_t start, std::uint64_t bytes, std::uint64_t owner, std::uint16_t context = 0) {
  return {.start = start, .bytes = bytes, .owner = owner, .context = context};
}
Range pinned(std::uint64_t start, std::uint64_t bytes) {
  return {.start = start, .bytes = bytes, .kind = Memory::Pinned};
}
Range mapped(std::uint64_t start, std::uint64_t bytes, std::uint32_t reservation) {
  return {.start = start, .bytes = bytes, .reservation = reservation};
}

TEST(SessionAddresses, ContainWhatLiesInside) {
  Addresses a;
  a.add(allocation(1000, 100));
  a.add(global(1100, 10, 7));
  EXPECT_TRUE(a.contains(1000, 100));
  EXPECT_TRUE(a.contains(1099, 1));
  EXPECT_TRUE(a.contains(1100, 10));
  EXPECT_TRUE(a.contains(1110, 0));
  EXPECT_FALSE(a.contains(1050, 51));  // extends into the neighbouring range
  EXPECT_FALSE(a.contains(999, 1));
  EXPECT_FALSE(a.contains(999, 0));
  EXPECT_FALSE(a.contains(1111, 0));
}

TEST(SessionAddresses, LengthsThatOverflow) {
  Addresses a;
  a.add(allocation(1000, 100));
  a.add(allocation(most - 99, 100));
  for (const std::uint64_t bytes : {most, most - 1000, most - 999, most - 1099, most / 2})
    EXPECT_FALSE(a.contains(1050, bytes)) << bytes;
  EXPECT_TRUE(a.contains(most - 99, 100));
  EXPECT_FALSE(a.contains(most - 98, 100));
  EXPECT_FALSE(a.contains(most, most));
}

TEST(SessionAddresses, NeighboursAreNamedTogetherWhereTheyHaveOneReservation) {
  Addresses a;
  for (const std::uint64_t start : {1000u, 1100u, 1200u}) a.add(mapped(start, 100, 5));
  EXPECT_TRUE(a.contains(1000, 300));
  EXPECT_TRUE(a.contains(1050, 250));
  EXPECT_TRUE(a.contains(1199, 2));
  EXPECT_FALSE(a.contains(1000, 301));
  EXPECT_FALSE(a.contains(1050, most));
  EXPECT_FALSE(a.free(1100)) << "it is no allocation";
  a.unmap(1100, 100);
  EXPECT_FALSE(a.contains(1000, 300)) << "a hole";
  EXPECT_TRUE(a.contains(1200, 100));
  a.add(mapped(1100, 99, 5));
  EXPECT_FALSE(a.contains(1000, 201)) << "one byte is missing";
  a.add(mapped(1100, 100, 5));
  EXPECT_TRUE(a.contains(1000, 300));
}

TEST(SessionAddresses, NeighboursOfDifferentReservationsAreTwo) {
  Addresses a;
  a.add(mapped(1000, 100, 5));
  a.add(mapped(1100, 100, 6));
  a.add(allocation(1200, 100));
  a.add(allocation(1300, 100));
  a.add(pinned(1400, 100));
  a.add(pinned(1500, 100));
  for (std::uint64_t start = 1000; start <= 1500; start += 100) {
    EXPECT_TRUE(a.contains(start, 100)) << start;
    EXPECT_FALSE(a.contains(start, 101)) << start;
  }
}

TEST(SessionAddresses, PiecesUpToTheEndOfAllAddresses) {
  Addresses a;
  a.add(mapped(most - 199, 100, 5));
  a.add(mapped(most - 99, 100, 5));
  EXPECT_TRUE(a.contains(most - 199, 200));
  EXPECT_FALSE(a.contains(most - 199, 201));
  EXPECT_FALSE(a.contains(most - 150, most));
}

TEST(SessionAddresses, AnAllocationIsFreedOnceAndNothingElseIs) {
  Addresses a;
  a.add(allocation(1000, 100));
  a.add(global(5000, 100, 7));
  a.add(pinned(9000, 100));
  EXPECT_FALSE(a.free(1001));
  EXPECT_FALSE(a.unpin(1000));
  EXPECT_TRUE(a.free(1000));
  EXPECT_FALSE(a.free(1000));
  EXPECT_FALSE(a.free(5000));
  EXPECT_FALSE(a.free(9000));
  EXPECT_FALSE(a.unpin(5000));
  EXPECT_EQ(a.count(), 2u);
  EXPECT_TRUE(a.unpin(9000));
  a.drop_owned(7);
  EXPECT_FALSE(a.contains(5000, 1));
  EXPECT_EQ(a.count(), 0u);
}

TEST(SessionAddresses, AContextTakesItsAllocationsAndGlobals) {
  Addresses a;
  a.add(allocation(1000, 100, 0));
  a.add(global(5000, 100, 7, 0));
  a.add(allocation(9000, 100, 1));
  a.add(global(9200, 100, 7, 1));
  a.add(global(9300, 100, 7, host::no_context));
  a.add(pinned(9500, 100));
  a.drop_owned(0);  // no owner has id 0
  EXPECT_EQ(a.count(), 6u);
  a.drop_context(0);
  EXPECT_FALSE(a.contains(1000, 1));
  EXPECT_FALSE(a.contains(5000, 1));
  for (const std::uint64_t others : {9000u, 9200u, 9300u, 9500u}) EXPECT_TRUE(a.contains(others, 1)) << others;
  a.drop_owned(7);
  EXPECT_EQ(a.count(), 2u) << "the owner's globals in all contexts";
  a.drop_context(1);
  EXPECT_EQ(a.count(), 1u);
}

TEST(SessionAddresses, AGlobalIsDroppedByItsStartAndOwner) {
  Addresses a;
  a.add(global(5000, 100, 7));
  a.add(allocation(9000, 100));
  a.drop_global(5001, 7);
  a.drop_global(5000, 8);
  a.drop_global(9000, 0);
  EXPECT_EQ(a.count(), 2u);
  a.drop_global(5000, 7);
  EXPECT_EQ(a.count(), 1u);
  a.drop_owned(7);  // the owner's list is empty
  EXPECT_TRUE(a.contains(9000, 100));
}

// The driver may reuse an address. No entry of the earlier object may remain.
TEST(SessionAddresses, TheLastAddedCounts) {
  Addresses a;
  a.add(global(1000, 100, 7));
  a.add(global(1000, 50, 8));
  a.drop_owned(7);
  EXPECT_TRUE(a.contains(1000, 50));
  EXPECT_FALSE(a.contains(1000, 51));
  a.add(allocation(1000, 60, 2));
  a.drop_owned(8);
  EXPECT_TRUE(a.contains(1000, 60));
  a.add(pinned(1000, 70));
  a.drop_context(2);
  EXPECT_TRUE(a.contains(1000, 70));
  EXPECT_EQ(a.count(), 1u);
}

TEST(SessionAddresses, RegisteredPiecesAreFoundByWhatTheyTouch) {
  Addresses a;
  for (const std::uint64_t start : {1000u, 1100u, 1300u}) a.add(pinned(start, 100));
  a.add(allocation(1200, 100));
  const auto starts = [&](std::uint64_t start, std::uint64_t bytes) {
    std::vector<std::uint64_t> found;
    for (const Range& piece : a.pinned_in(start, bytes)) found.push_back(piece.start);
    return found;
  };
  using Starts = std::vector<std::uint64_t>;
  EXPECT_EQ(starts(1000, 400), (Starts{1000, 1100, 1300}));
  EXPECT_EQ(starts(1099, 1), (Starts{1000}));
  EXPECT_EQ(starts(1099, 2), (Starts{1000, 1100}));
  EXPECT_EQ(starts(900, 100), (Starts{}));
  EXPECT_EQ(starts(900, 101), (Starts{1000}));
  EXPECT_EQ(starts(1200, 100), (Starts{}));
  EXPECT_EQ(starts(1400, most), (Starts{}));
  EXPECT_EQ(starts(1399, most), (Starts{1300}));
}

TEST(SessionAddresses, ReportHowMuchIsAllocated) {
  std::atomic<std::uint64_t> held{0};
  Addresses a(&held);
  a.add(allocation(0x1000, 64));
  a.add(allocation(0x2000, 100, 1));
  a.add(global(0x3000, 1000, 7));
  a.add(pinned(0x4000, 4096));  // host memory
  EXPECT_EQ(held, 164u);
  a.add(allocation(0x1000, 65));  // the driver has reused the address
  EXPECT_EQ(held, 165u);
  EXPECT_FALSE(a.free(0x3000));
  EXPECT_TRUE(a.free(0x1000));
  EXPECT_EQ(held, 100u);
  a.drop_owned(7);
  EXPECT_EQ(held, 100u);
  a.drop_context(1);
  EXPECT_EQ(held, 0u);
}

// Channels look up an entry while other threads change the entry's neighbours.
TEST(SessionAddresses, LookupsBesideChanges) {
  Addresses a;
  a.add(allocation(5000, 100));
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop)
      if (!a.contains(5000, 100) || a.contains(5000, 101)) ADD_FAILURE(), stop = true;
  });
  for (int round = 0; round < 2'000; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i) a.add(allocation(4000 + i * 100, 100, 1)), a.add(global(6000 + i, 1, 9));
    a.drop_context(1);
    a.drop_owned(9);
  }
  stop = true;
  reader.join();
  EXPECT_EQ(a.count(), 1u);
}

// Returns the processor time, in seconds, to drop the ranges of `count` owners with one range each, and of one owner
// with `count` ranges.
double time_to_drop(std::uint64_t count) {
  Addresses a;
  for (std::uint64_t i = 1; i <= count; ++i) {
    a.add(global(i << 12, 100, 10 + i));
    a.add(global(i << 12 | 1 << 11, 100, 1));
  }
  timespec from{}, to{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  for (std::uint64_t i = 1; i <= count; ++i) a.drop_owned(10 + i);
  EXPECT_EQ(a.count(), count);
  a.drop_owned(1);
  EXPECT_EQ(a.count(), 0u);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  return static_cast<double>(to.tv_sec - from.tv_sec) + static_cast<double>(to.tv_nsec - from.tv_nsec) * 1e-9;
}

TEST(SessionAddressesTiming, OwnersAreDroppedInTheTimeOfWhatTheyOwn) {
  double few = 1, many = 60;
  for (int run = 0; run < 3; ++run) {
    few = std::min(few, time_to_drop(1'000));
    many = std::min(many, time_to_drop(100'000));
  }
  // There are 100 times as many entries, in a deeper tree that fits into no cache. A linear search would take 10,000
  // times as long. The bound is far from both, even on a busy machine.
  EXPECT_LE(many, 1'500 * few) << "1,000: " << few * 1e3 << " ms, 100,000: " << many * 1e3 << " ms";
}

}  // namespace
