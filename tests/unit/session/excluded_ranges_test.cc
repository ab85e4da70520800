// Address ranges that a guest excludes for the driver, and invalid records about them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <memory>

#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t page = ring::huge_page;
constexpr std::uint64_t gib = std::uint64_t{1} << 30;

bool is_free(std::uint64_t start, std::uint64_t bytes = page) {
  void* const wanted = reinterpret_cast<void*>(start);
  void* const at =
      mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) return false;
  munmap(at, bytes);
  return at == wanted;
}

class SessionExcludedRanges : public testing::Test {
 protected:
  // Finds a range of free addresses.
  SessionExcludedRanges() {
    while (!is_free(start, 8 * gib) && start > gib) start -= 8 * gib;
  }
  void greet() {
    ASSERT_EQ(world->send(ids::hello, Payload::record(api::HelloRecord{ring::window_count, 0})).result, CUDA_SUCCESS);
  }
  Answer exclude(std::uint64_t at, std::uint64_t bytes) {
    return world->send(ids::exclude, Payload::record(api::ExcludeRecord{at, bytes}));
  }
  void expect_broken(std::uint64_t at, std::uint64_t bytes, const char* what) {
    EXPECT_TRUE(exclude(at, bytes).broken) << what;
  }

  std::unique_ptr<World> world = std::make_unique<World>();
  std::uint64_t start = 0x7ef0'0000'0000;  // sanitizers allow mappings at this address, too
};

TEST_F(SessionExcludedRanges, ARangeIsTakenAndComesBackWithTheSessionsEnd) {
  greet();
  EXPECT_EQ(exclude(start, gib).result, CUDA_SUCCESS);
  EXPECT_FALSE(is_free(start));
  EXPECT_FALSE(is_free(start + gib - page));
  EXPECT_TRUE(is_free(start + gib));
  EXPECT_TRUE(is_free(start - page));
  world.reset();
  EXPECT_TRUE(is_free(start, gib));
}

// The worker has a mapping in this range. The mapping's bytes must stay.
TEST_F(SessionExcludedRanges, WhatTheWorkerHasInARangeStays) {
  greet();
  void* const wanted = reinterpret_cast<void*>(start + 100 * page + 4096);
  auto* const own = static_cast<char*>(
      mmap(wanted, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
  ASSERT_EQ(own, wanted);
  *own = 'x';
  EXPECT_EQ(exclude(start, gib).result, CUDA_SUCCESS);
  EXPECT_EQ(*own, 'x');
  for (std::uint64_t at = start; at < start + gib; at += page)
    EXPECT_EQ(is_free(at, 4096), at == start + 100 * page) << at - start << ": all but the piece around it is taken";
  EXPECT_EQ(exclude(start, gib).result, CUDA_SUCCESS) << "the same again takes nothing";
  EXPECT_EQ(*own, 'x');
  munmap(own, 4096);
}

TEST_F(SessionExcludedRanges, Nonsense) {
  expect_broken(start, page, "before hello");
  greet();
  expect_broken(start, 0, "nothing");
  expect_broken(0, page, "null");
  expect_broken(0, 0, "nothing at null");
  expect_broken(start + 4096, page, "no whole huge page");
  expect_broken(start, page + 4096, "no whole huge page");
  expect_broken(start + 1, page, "an odd start");
  expect_broken(start, 1, "a byte");
  expect_broken(start, api::max_excluded_range + page, "too long");
  expect_broken(start, most - page + 1, "as long as can be");
  expect_broken(api::end_of_addresses, page, "past the last address");
  expect_broken(api::end_of_addresses - page, 2 * page, "over the last address");
  expect_broken(most - page + 1, page, "the end of all");
  expect_broken(most - page + 1, 2 * page, "around the end of all");
  expect_broken(std::uint64_t{1} << 63, page, "the kernel's");
  EXPECT_TRUE(world->send(ids::exclude, Payload::of(start)).broken) << "too short";
  EXPECT_TRUE(world->send(ids::exclude, Payload::of(start, page, 0, 0, 0, 0)).broken) << "too long";
  EXPECT_TRUE(is_free(start)) << "none of them has taken anything";
  EXPECT_EQ(exclude(api::end_of_addresses - page, page).result, CUDA_SUCCESS)
      << "the last is a range, if not a free one";
}

TEST_F(SessionExcludedRanges, ASessionHasSoManyRanges) {
  greet();
  for (std::uint64_t i = 0; i < api::max_excluded_ranges; ++i)
    EXPECT_EQ(exclude(start + 2 * i * page, page).result, CUDA_SUCCESS) << i;
  const std::uint64_t next = start + 2 * api::max_excluded_ranges * page;
  EXPECT_EQ(exclude(next, page).result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(world->session->protocol.broken);
  EXPECT_TRUE(is_free(next));
}

TEST_F(SessionExcludedRanges, AndSoManyBytes) {
  greet();
  const std::uint64_t same = 0x7ee0'0000'0000;
  for (std::uint64_t sum = 0; sum < api::max_excluded_bytes; sum += api::max_excluded_range)
    EXPECT_EQ(exclude(same, api::max_excluded_range).result, CUDA_SUCCESS) << sum;
  EXPECT_EQ(exclude(start, page).result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(is_free(start));
}

}  // namespace
