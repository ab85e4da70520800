// Advice on managed memory, stored by pages.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "guest/objects/memory/managed_ranges.h"
#include "tests/search_options.h"

namespace {

using guest::Advice, guest::ManagedRanges;
constexpr std::uint64_t page = 4096, base = 0x7000'0000'0000;

void set_read_mostly(Advice& a) { a.read_mostly = true; }
void unset_read_mostly(Advice& a) { a.read_mostly = false; }

bool all_read_mostly(const ManagedRanges& m, std::uint64_t start, std::uint64_t bytes) {
  for (const Advice& a : m.of(start, bytes))
    if (!a.read_mostly) return false;
  return true;
}

TEST(GuestManagedRanges, AnUnreportedFactIsUnknown) {
  const ManagedRanges m;
  ASSERT_EQ(m.of(base, 100 * page).size(), 1u);
  const Advice a = m.of(base, 1).front();
  EXPECT_FALSE(a.read_mostly);
  EXPECT_EQ(a.preferred.type, CU_MEM_LOCATION_TYPE_INVALID);
  EXPECT_EQ(a.prefetched.type, CU_MEM_LOCATION_TYPE_INVALID);
  EXPECT_EQ(a.accessed_by, 0u);
}

TEST(GuestManagedRanges, AnAdviceOfAByteHoldsForItsPage) {
  ManagedRanges m;
  m.change(base + page + 100, 1, set_read_mostly);
  EXPECT_TRUE(all_read_mostly(m, base + page, page));
  EXPECT_FALSE(all_read_mostly(m, base + page - 1, 2));
  EXPECT_FALSE(all_read_mostly(m, base + 2 * page - 1, 2));
  m.change(base + 3 * page - 1, 2, set_read_mostly);  // across a page border
  EXPECT_TRUE(all_read_mostly(m, base + page, 3 * page));
  EXPECT_FALSE(all_read_mostly(m, base + page, 3 * page + 1));
}

TEST(GuestManagedRanges, APartKeepsItsOwnSettings) {
  ManagedRanges m;
  m.change(base, 8 * page, set_read_mostly);
  m.change(base + 2 * page, page, [](Advice& a) { a.accessed_by |= Advice::host; });
  m.change(base + 2 * page, 2 * page, unset_read_mostly);
  const auto parts = m.of(base, 8 * page);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_TRUE(parts[0].read_mostly);
  EXPECT_EQ(parts[0].accessed_by, 0u);
  EXPECT_FALSE(parts[1].read_mostly);
  EXPECT_EQ(parts[1].accessed_by, Advice::host);
  EXPECT_FALSE(parts[2].read_mostly);
  EXPECT_EQ(parts[2].accessed_by, 0u);
  EXPECT_TRUE(parts[3].read_mostly);
}

TEST(GuestManagedRanges, WhatIsForgottenLeavesItsNeighbours) {
  ManagedRanges m;
  m.change(base, 8 * page, set_read_mostly);
  m.forget(base + 2 * page, 3 * page);
  EXPECT_TRUE(all_read_mostly(m, base, 2 * page));
  EXPECT_FALSE(all_read_mostly(m, base + 2 * page, 1));
  EXPECT_FALSE(all_read_mostly(m, base + 5 * page - 1, 1));
  EXPECT_TRUE(all_read_mostly(m, base + 5 * page, 3 * page));
}

TEST(GuestManagedRanges, AnyChangesAgreeWithAFlagForEachPage) {
  constexpr int pages = 64;
  ManagedRanges m;
  std::vector<bool> flags(pages, false);
  std::mt19937 random(test_seed(7));
  const auto number = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  for (int turn = 0; turn < 2000; ++turn) {
    const int first = number(pages), count = 1 + number(pages - first);
    const std::uint64_t start = base + static_cast<std::uint64_t>(first) * page,
                        bytes = static_cast<std::uint64_t>(count) * page;
    const int what = number(3);
    if (what == 0) m.change(start, bytes, set_read_mostly);
    if (what == 1) m.change(start, bytes, unset_read_mostly);
    if (what == 2) m.forget(start, bytes);
    std::fill_n(flags.begin() + first, count, what == 0);
    for (int i = 0; i < pages; ++i)
      ASSERT_EQ(all_read_mostly(m, base + static_cast<std::uint64_t>(i) * page, page),
                flags[static_cast<std::size_t>(i)])
          << "turn " << turn << ", page " << i;
  }
}

TEST(GuestManagedRanges, ThreadsChangeTheirOwnParts) {
  ManagedRanges m;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&m, t] {
      const std::uint64_t mine = base + t * 16 * page;
      for (int i = 0; i < 500; ++i) {
        m.change(mine, 16 * page, set_read_mostly);
        EXPECT_TRUE(all_read_mostly(m, mine, 16 * page));
        m.forget(mine + 4 * page, 4 * page);
        EXPECT_FALSE(all_read_mostly(m, mine, 16 * page));
      }
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
