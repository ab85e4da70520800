// The kinds of an address: device memory, pinned or managed memory, or the program's own. Also the addresses that are
// reserved for the device.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <limits>
#include <thread>
#include <vector>

#include "guest/objects/memory/addresses.h"
#include "guest/process/context.h"
#include "tests/unit/under_tsan.h"

namespace {

using guest::Addresses, guest::Place;
using Kind = Place::Kind;

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
guest::Context context0, context1;

Place allocation(std::uint64_t start, std::uint64_t bytes, guest::Context& context = context0) {
  return {.kind = Kind::Device, .start = start, .bytes = bytes, .context = &context};
}
Place global(std::uint64_t start, std::uint64_t bytes, std::uint64_t owner) {
  return {.kind = Kind::Device, .start = start, .bytes = bytes, .owner = owner, .context = &context0};
}
Place pinned(std::uint64_t start, std::uint64_t bytes, guest::Context& context = context0) {
  return {.kind = Kind::Pinned, .flags = 4, .start = start, .bytes = bytes, .context = &context};
}
Place mapped(std::uint64_t start, std::uint64_t bytes, std::uint32_t reservation) {
  return {.kind = Kind::Device, .reservation = reservation, .start = start, .bytes = bytes, .context = &context0};
}

TEST(GuestAddresses, APlaceIsFoundByAnyByteInside) {
  Addresses a;
  Place first = allocation(1000, 100), second = pinned(1100, 1, context1);
  first.id = 1, second.id = 2;
  a.add(first);
  a.add(second);
  for (const std::uint64_t inside : {1000u, 1050u, 1099u}) {
    const Place found = a.find(inside);
    EXPECT_EQ(found.kind, Kind::Device);
    EXPECT_EQ(found.id, 1u);
    EXPECT_EQ(found.start, 1000u);
    EXPECT_EQ(found.bytes, 100u);
    EXPECT_EQ(found.context, &context0);
  }
  EXPECT_EQ(a.find(1100).kind, Kind::Pinned);
  EXPECT_EQ(a.find(1100).flags, 4u);
  EXPECT_EQ(a.find(1100).context, &context1);
  for (const std::uint64_t outside : {std::uint64_t{0}, std::uint64_t{999}, std::uint64_t{1101}, most})
    EXPECT_EQ(a.find(outside).kind, Kind::Unknown) << outside;
}

TEST(GuestAddresses, SyncMemopsAreAPlaces) {
  Addresses a;
  a.add(allocation(1000, 100));
  a.add(allocation(1100, 100));
  a.set_sync_memops(1099, true);
  EXPECT_TRUE(a.find(1000).sync_memops);
  EXPECT_FALSE(a.find(1100).sync_memops);
  a.set_sync_memops(1200, true);  // inside no range
  a.set_sync_memops(1050, false);
  EXPECT_FALSE(a.find(1000).sync_memops);
}

TEST(GuestAddresses, SyncMemopsOfRegisteredMemoryHoldAtBothOfItsAddresses) {
  Addresses a;
  Place place{.kind = Kind::Pinned, .start = 0x1010, .bytes = 0x2000, .registered_at = 0x1010, .block_at = 0x11010};
  a.add(place);
  place.start = place.block_at;
  a.add(place);
  for (const std::uint64_t at : {0x1010u, 0x12000u}) {
    a.set_sync_memops(at, true);
    EXPECT_TRUE(a.find(0x1010).sync_memops && a.find(0x11010).sync_memops);
    a.set_sync_memops(at, false);
    EXPECT_FALSE(a.find(0x1010).sync_memops || a.find(0x11010).sync_memops);
  }
}

TEST(GuestAddresses, ARangeIsWhatAllOfItIs) {
  Addresses a;
  a.add(allocation(1000, 100));
  a.add(allocation(1100, 100));
  a.add(pinned(4096, 4096));
  a.add(pinned(8192, 4096));
  EXPECT_EQ(a.kind_of(1000, 100), Kind::Device);
  EXPECT_EQ(a.kind_of(1050, 50), Kind::Device);
  EXPECT_EQ(a.kind_of(1050, 51), Kind::Unknown) << "the neighbour is another allocation";
  EXPECT_EQ(a.kind_of(1000, most), Kind::Unknown);
  EXPECT_EQ(a.kind_of(4096, 4096), Kind::Pinned);
  EXPECT_EQ(a.kind_of(8000, 192), Kind::Pinned);
  EXPECT_EQ(a.kind_of(4096, 4097), Kind::Unknown) << "the neighbour is another block";
  EXPECT_EQ(a.kind_of(4097, most), Kind::Unknown);
  EXPECT_EQ(a.kind_of(4095, 1), Kind::Unknown);
}

TEST(GuestAddresses, NeighboursAreNamedTogetherWhereTheyHaveOneReservation) {
  Addresses a;
  for (const std::uint64_t start : {1000u, 1100u, 1200u}) a.add(mapped(start, 100, 5));
  a.add(mapped(1300, 100, 6));
  EXPECT_EQ(a.kind_of(1000, 300), Kind::Device);
  EXPECT_EQ(a.kind_of(1199, 2), Kind::Device);
  EXPECT_EQ(a.device_view(1050, 250), 1050u);
  EXPECT_EQ(a.kind_of(1000, 301), Kind::Unknown) << "another reservation's";
  EXPECT_EQ(a.kind_of(1050, most), Kind::Unknown);
  EXPECT_FALSE(a.take(1100, Kind::Device)) << "it is no allocation";
  a.unmap(1100, 100);
  EXPECT_EQ(a.kind_of(1000, 300), Kind::Unknown) << "a hole";
  a.add(mapped(1101, 99, 5));
  EXPECT_EQ(a.kind_of(1000, 250), Kind::Unknown) << "one byte is missing";
}

TEST(GuestAddresses, AStartIsTakenOnceAndGlobalsNever) {
  Addresses a;
  a.add(allocation(1000, 100));
  a.add(global(5000, 100, 42));
  a.add(pinned(9000, 100));
  EXPECT_FALSE(a.take(1001, Kind::Device));
  EXPECT_FALSE(a.take(1000, Kind::Pinned));
  const auto taken = a.take(1000, Kind::Device);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->bytes, 100u);
  EXPECT_EQ(taken->context, &context0);
  EXPECT_FALSE(a.take(1000, Kind::Device));
  EXPECT_FALSE(a.take(5000, Kind::Device));
  EXPECT_FALSE(a.take(9000, Kind::Device));
  EXPECT_TRUE(a.take(9000, Kind::Pinned));
  EXPECT_EQ(a.find(9000).kind, Kind::Unknown);
  a.drop_owned(41);
  a.add({.kind = Kind::Pinned, .start = 9500, .bytes = 100});  // belongs to no context
  a.drop_owned(0);                                             // no owner has id 0
  EXPECT_EQ(a.find(9500).kind, Kind::Pinned);
  EXPECT_EQ(a.kind_of(5000, 100), Kind::Device);
  a.drop_owned(42);
  EXPECT_EQ(a.find(5000).kind, Kind::Unknown);
}

// The program's addresses 0x1010 to 0x3010 lie in the arena at 0x11010.
TEST(GuestAddresses, RegisteredMemoryHasThreeAddresses) {
  Addresses a;
  a.set_arena(0x10000, 0x90000, 0x8000);
  Place place{.kind = Kind::Pinned, .start = 0x1010, .bytes = 0x2000, .registered_at = 0x1010, .block_at = 0x11010};
  place.context = &context0;
  a.add(place);
  place.start = place.block_at;
  a.add(place);
  for (const std::uint64_t at : {0x1234u, 0x11234u}) {
    EXPECT_EQ(a.device_view(at, 0x100), 0x91234u);
    EXPECT_EQ(a.find(at).in_program(at), 0x1234u);
    EXPECT_EQ(a.find(at).in_arena(at), 0x11234u);
  }
  EXPECT_EQ(a.device_view(0x91234, 0x100), 0x91234u);
  EXPECT_FALSE(a.device_view(0x1010, 0x2001));
  EXPECT_TRUE(a.drop_context(context0).empty()) << "the arena does not get this block so";
  EXPECT_EQ(a.find(0x11234).kind, Kind::Unknown);
}

TEST(GuestAddresses, AnyByteOfAPlaceTouchesIt) {
  Addresses a;
  a.add(allocation(1000, 100));
  EXPECT_TRUE(a.touch(1099, 1));
  EXPECT_TRUE(a.touch(999, 2));
  EXPECT_TRUE(a.touch(0, most));
  EXPECT_FALSE(a.touch(999, 1));
  EXPECT_FALSE(a.touch(1100, most - 1100));
}

TEST(GuestAddresses, AContextTakesItsMemoryAndNoGlobalsOfLibraries) {
  Addresses a;
  a.add(allocation(1000, 10));
  a.add(allocation(2000, 10, context1));
  a.add(global(3000, 10, 7));
  a.add(pinned(4000, 10));
  a.add(pinned(5000, 10, context1));
  EXPECT_EQ(a.drop_context(context0), std::vector<std::uint64_t>{4000}) << "the arena gets this room back";
  EXPECT_EQ(a.find(1000).kind, Kind::Unknown);
  EXPECT_EQ(a.find(2000).kind, Kind::Device);
  EXPECT_EQ(a.find(3000).kind, Kind::Device);
  EXPECT_EQ(a.find(4000).kind, Kind::Unknown);
  EXPECT_EQ(a.find(5000).kind, Kind::Pinned);
  EXPECT_TRUE(a.drop_context(context0).empty());
}

// The driver may reuse an address. No entry of the earlier object may remain.
TEST(GuestAddresses, TheLastAddedCounts) {
  Addresses a;
  a.add(global(1000, 100, 7));
  a.add(global(1000, 50, 8));
  a.drop_owned(7);
  EXPECT_EQ(a.kind_of(1000, 50), Kind::Device);
  EXPECT_EQ(a.kind_of(1000, 51), Kind::Unknown);
  a.add(allocation(1000, 60, context1));
  a.drop_owned(8);
  EXPECT_EQ(a.kind_of(1000, 60), Kind::Device);
  a.drop_context(context1);
  EXPECT_EQ(a.find(1000).kind, Kind::Unknown);
}

TEST(GuestAddresses, PinnedMemoryHasTwoAddressesWhereTheWindowsDiffer) {
  Addresses a;
  a.set_arena(0x10000, 0x90000, 0x8000);
  a.add(pinned(0x11000, 0x1000));
  a.add(allocation(0x50000, 0x100));
  EXPECT_EQ(a.device_view(0x11000, 0x1000), 0x91000u);
  EXPECT_EQ(a.device_view(0x11010, 0xff0), 0x91010u);
  EXPECT_EQ(a.device_view(0x91000, 0x1000), 0x91000u);
  EXPECT_EQ(a.device_view(0x91ff0, 0x10), 0x91ff0u);
  EXPECT_EQ(a.device_view(0x50010, 0xf0), 0x50010u);
  EXPECT_EQ(a.on_device(a.find(0x11234), 0x11234), 0x91234u);
  EXPECT_EQ(a.on_device(a.find(0x50010), 0x50010), 0x50010u);
  EXPECT_FALSE(a.device_view(0x11010, 0xff1));
  EXPECT_FALSE(a.device_view(0x91010, 0xff1));
  EXPECT_FALSE(a.device_view(0x92000, 1));
  EXPECT_FALSE(a.device_view(0x98000, 1)) << "past the arena";
  EXPECT_FALSE(a.device_view(0x8ffff, 1));
  EXPECT_FALSE(a.device_view(0x50010, 0xf1));
  a.add(allocation(0x98000, 0x100));
  a.add(pinned(0x18000, 0x1000));  // outside the arena
  EXPECT_FALSE(a.device_view(0x98100, 1));
}

TEST(GuestAddresses, ManagedMemoryIsOfItsOwnKindAndEndsWithItsContext) {
  Addresses a;
  a.set_arena(0x10000, 0x10000, 0x8000);
  EXPECT_TRUE(a.arena_is_at_one_address());
  const Place managed{.kind = Kind::Managed, .start = 0x11000, .bytes = 0x1000, .context = &context0};
  a.add(managed);
  EXPECT_EQ(a.kind_of(0x11800, 0x800), Kind::Managed);
  EXPECT_EQ(a.kind_of(0x11800, 0x801), Kind::Unknown);
  EXPECT_EQ(a.device_view(0x11800, 0x800), 0x11800u);
  EXPECT_FALSE(a.device_view(0x11800, 0x801));
  EXPECT_EQ(a.on_device(managed, 0x11800), 0x11800u);
  EXPECT_FALSE(a.take(0x11000, Kind::Pinned));
  EXPECT_FALSE(a.take(0x11000, Kind::Device));
  EXPECT_EQ(a.drop_context(context0), std::vector<std::uint64_t>{0x11000});
  EXPECT_EQ(a.find(0x11000).kind, Kind::Unknown);
  a.set_arena(0x10000, 0x50000, 0x8000);
  EXPECT_FALSE(a.arena_is_at_one_address());
}

TEST(GuestAddresses, PinnedMemoryHasOneAddressWhereTheWindowsAreTheSame) {
  Addresses a;
  a.set_arena(0x10000, 0x10000, 0x8000);
  a.add(pinned(0x11000, 0x1000));
  EXPECT_EQ(a.device_view(0x11000, 0x1000), 0x11000u);
  EXPECT_FALSE(a.device_view(0x11000, 0x1001));
  EXPECT_FALSE(a.device_view(0x10000, 1));
}

TEST(GuestAddresses, LookupsBesideChanges) {
  Addresses a;
  a.add(allocation(5000, 100));
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop)
      if (a.kind_of(5000, 100) != Kind::Device || a.find(4999).kind == Kind::Pinned) ADD_FAILURE(), stop = true;
  });
  for (int round = 0; round < 2'000; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i)
      a.add(allocation(4000 + i * 100, 100, context1)), a.add(global(6000 + i, 1, 9));
    a.drop_context(context1);
    a.drop_owned(9);
  }
  stop = true;
  reader.join();
}

// Returns the processor time, in seconds, to drop the globals of `count` owners with one global each, and the memory of
// one context with `count` allocations.
double time_to_drop(std::uint64_t count) {
  Addresses a;
  for (std::uint64_t i = 1; i <= count; ++i) {
    a.add(global(i << 12, 100, 10 + i));
    a.add(allocation(i << 12 | 1 << 11, 100));
  }
  timespec from{}, to{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  for (std::uint64_t i = 1; i <= count; ++i) a.drop_owned(10 + i);
  a.drop_context(context0);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  EXPECT_EQ(a.find(1 << 12).kind, Kind::Unknown);
  EXPECT_EQ(a.find(count << 12 | 1 << 11).kind, Kind::Unknown);
  return static_cast<double>(to.tv_sec - from.tv_sec) + static_cast<double>(to.tv_nsec - from.tv_nsec) * 1e-9;
}

TEST(GuestAddressesTiming, OwnersAreDroppedInTheTimeOfWhatTheyOwn) {
  double few = 1, many = 60;
  for (int run = 0; run < 3; ++run) {
    few = std::min(few, time_to_drop(1'000));
    many = std::min(many, time_to_drop(100'000));
  }
  // There are 100 times as many entries, in a deeper tree that fits into no cache. A linear search would take 10,000
  // times as long. The bound is far from both, even on a busy machine.
  EXPECT_LE(many, 1'500 * few) << "1,000: " << few * 1e3 << " ms, 100,000: " << many * 1e3 << " ms";
}

// ---- reservations --------------------------------------------------------------------------------------------------

// Finds free address space.
std::uint64_t free_place(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  munmap(at, bytes);
  return reinterpret_cast<std::uint64_t>(at);
}

bool is_free(std::uint64_t at) {
  void* wanted = reinterpret_cast<void*>(at);
  void* got = mmap(wanted, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != MAP_FAILED) munmap(got, 4096);
  return got == wanted;
}

TEST(Reservations, KeepTheRangeFromThisProcess) {
  guest::Reservations r;
  const std::uint64_t at = free_place(1 << 20);
  ASSERT_TRUE(r.reserve(at + 100, 5000));  // rounded to whole pages
  EXPECT_FALSE(is_free(at));
  EXPECT_FALSE(is_free(at + 4096));
  EXPECT_TRUE(is_free(at + 8192));
}

TEST(Reservations, CollideWithWhatTheProcessHas) {
  guest::Reservations r;
  const std::uint64_t at = free_place(1 << 20);
  void* mine = mmap(reinterpret_cast<void*>(at + 65536), 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(mine, reinterpret_cast<void*>(at + 65536));
  *static_cast<char*>(mine) = 42;
  EXPECT_FALSE(r.reserve(at, 1 << 20));
  EXPECT_EQ(*static_cast<char*>(mine), 42);  // reserve() did not map over the program's page
  EXPECT_TRUE(is_free(at));                  // nothing remains mapped
  EXPECT_TRUE(r.reserve(at, 65536));
  EXPECT_FALSE(r.reserve(at, 65537));
  munmap(mine, 4096);
  EXPECT_TRUE(r.reserve(at, 1 << 20));
}

TEST(Reservations, OverlappingAndAdjacentRangesAreOurs) {
  guest::Reservations r;
  const std::uint64_t at = free_place(1 << 20);
  ASSERT_TRUE(r.reserve(at + 16384, 8192));
  EXPECT_TRUE(r.reserve(at + 16384, 8192));  // reserves the range again, since the driver may reuse addresses
  EXPECT_TRUE(r.reserve(at + 16384, 4096));
  EXPECT_TRUE(r.reserve(at + 24576, 4096));   // adjacent
  EXPECT_TRUE(r.reserve(at + 20480, 16384));  // begins inside a reserved range and extends beyond its end
  EXPECT_TRUE(r.reserve(at, 65536));          // contains all reserved ranges
  EXPECT_FALSE(is_free(at));
  EXPECT_FALSE(is_free(at + 61440));
  EXPECT_TRUE(is_free(at + 65536));
}

TEST(Reservations, NothingTakesAPage) {
  guest::Reservations r;
  const std::uint64_t at = free_place(1 << 16);
  ASSERT_TRUE(r.reserve(at, 0));
  EXPECT_FALSE(is_free(at));
}

TEST(Reservations, AddressesThatAreNonsenseAreRefused) {
  guest::Reservations r;
#ifndef IVGPU_UNDER_TSAN  // TSan maps at address 0 if the request lies outside the address space
  EXPECT_FALSE(r.reserve(1ULL << 62, 4096));
#endif
  EXPECT_FALSE(r.reserve(~0ULL - 4096, 4096));
  EXPECT_FALSE(r.reserve(~0ULL, 1 << 20));
  EXPECT_FALSE(r.reserve(0x10000000000, ~0ULL));
}

}  // namespace
