// The arena: where blocks go, what is registered when, and the staging chunks.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "guest/objects/arena.h"
#include "ring/layout.h"

namespace {

using guest::Arena;
constexpr std::uint64_t mib = 1 << 20;

// An arena over addresses that are never touched: bookkeeping is in private memory.
class ArenaTest : public testing::Test {
 protected:
  static constexpr std::uint64_t bytes = 128 * mib;
  std::byte* const base_ = reinterpret_cast<std::byte*>(0x7e80'0000'0000);
  struct Pinned {
    std::uint64_t offset, bytes;
  };
  std::vector<Pinned> pins_;
  std::uint64_t refuse_from_ = ~0ULL;  // pins that reach beyond fail
  int unanswered_ = 0;                 // of so many the answer does not come
  Arena arena_{base_, bytes, 16 * mib, [this](std::uint64_t offset, std::uint64_t n) {
                 if (offset + n > refuse_from_) return Arena::Registered::No;
                 pins_.push_back({offset, n});
                 if (unanswered_ != 0) return --unanswered_, Arena::Registered::Unknown;
                 return Arena::Registered::Yes;
               }};

  std::uint64_t place(std::uint64_t n) {
    const std::byte* at = arena_.allocate(n, 0);
    return at == nullptr ? ~0ULL : arena_.offset(at);
  }
};

TEST_F(ArenaTest, BlocksFollowTheStagingChunksOnPages) {
  EXPECT_EQ(Arena::staging_bytes, 8 * mib);
  EXPECT_EQ(place(1), 8 * mib);
  EXPECT_EQ(place(4096), 8 * mib + 4096);
  EXPECT_EQ(place(4097), 8 * mib + 2 * 4096);
  EXPECT_EQ(place(1), 8 * mib + 4 * 4096);
  EXPECT_TRUE(pins_.empty());  // all of this was registered at the start
}

TEST_F(ArenaTest, TheFirstGapThatFitsIsUsed) {
  std::vector<std::uint64_t> at;
  for (int i = 0; i < 4; ++i) at.push_back(place(3 * 4096));
  ASSERT_TRUE(arena_.free(arena_.at(at[1])));
  EXPECT_EQ(place(4 * 4096), at[3] + 3 * 4096);
  EXPECT_EQ(place(2 * 4096), at[1]);
  EXPECT_EQ(place(4096), at[1] + 2 * 4096);
  ASSERT_TRUE(arena_.free(arena_.at(at[0])));
  EXPECT_EQ(place(1), at[0]);
}

TEST_F(ArenaTest, NothingAndTooMuchGetNothing) {
  EXPECT_EQ(arena_.allocate(0, 0), nullptr);
  EXPECT_EQ(arena_.allocate(bytes + 1, 0), nullptr);
  EXPECT_EQ(arena_.allocate(~0ULL, 0), nullptr);
  EXPECT_EQ(arena_.allocate(~0ULL - 4095, 0), nullptr);
  EXPECT_EQ(arena_.allocate(bytes, 0), nullptr);  // the staging chunks are in the way
}

TEST_F(ArenaTest, ExhaustedAndUsableAgain) {
  std::vector<std::byte*> blocks;
  while (std::byte* at = arena_.allocate(4 * mib, 0)) blocks.push_back(at);
  EXPECT_GE(blocks.size(), 20u);
  EXPECT_EQ(arena_.allocate(4 * mib, 0), nullptr);
  for (std::size_t i = 1; i < blocks.size(); ++i) EXPECT_GE(blocks[i], blocks[i - 1] + 4 * mib);
  EXPECT_LE(blocks.back() + 4 * mib, base_ + bytes);
  ASSERT_TRUE(arena_.free(blocks[3]));
  EXPECT_EQ(arena_.allocate(4 * mib, 0), blocks[3]);
}

// What is handed out lies in one registration, whole: the driver refuses a range over two of them.
TEST_F(ArenaTest, ABlockLiesInOneRegistration) {
  for (const std::uint64_t n : {6 * mib, 10 * mib, 33 * mib + 1, 1 * mib, 20 * mib}) {
    const std::uint64_t at = place(n);
    ASSERT_NE(at, ~0ULL) << n;
    bool inside = at >= 8 * mib && at + n <= 16 * mib;
    for (const Pinned& pin : pins_) inside |= at >= pin.offset && at + n <= pin.offset + pin.bytes;
    EXPECT_TRUE(inside) << n << " at " << at;
  }
}

TEST_F(ArenaTest, RegistrationGrowsInStepsThatDoNotOverlap) {
  ASSERT_NE(place(9 * mib), ~0ULL);
  ASSERT_NE(place(40 * mib), ~0ULL);
  std::uint64_t end = 16 * mib;
  for (const Pinned& pin : pins_) {
    EXPECT_EQ(pin.offset, end);
    EXPECT_EQ(pin.offset % ring::huge_page, 0u);
    EXPECT_EQ(pin.bytes % ring::huge_page, 0u);
    end += pin.bytes;
  }
  EXPECT_LE(end, bytes);
}

TEST_F(ArenaTest, ARefusedRegistrationIsTriedSmallerThenFails) {
  refuse_from_ = 28 * mib;
  EXPECT_NE(place(9 * mib), ~0ULL);  // not the whole step, but what is needed
  EXPECT_EQ(arena_.allocate(64 * mib, 0), nullptr);
  EXPECT_NE(place(1 * mib), ~0ULL);  // and what is registered stays usable
  refuse_from_ = 0;
  EXPECT_EQ(arena_.allocate(64 * mib, 0), nullptr);
}

TEST_F(ArenaTest, FindsABlockByAnyByteInside) {
  std::byte* at = arena_.allocate(5000, 7);
  ASSERT_NE(at, nullptr);
  for (const std::ptrdiff_t inside : {0, 1, 4999}) {
    const auto block = arena_.find(at + inside);
    ASSERT_TRUE(block.has_value()) << inside;
    EXPECT_EQ(block->offset, arena_.offset(at));
    EXPECT_EQ(block->bytes, 5000u);
    EXPECT_EQ(block->flags, 7u);
  }
  EXPECT_FALSE(arena_.find(at + 5000));  // the page's rest is nobody's
  EXPECT_FALSE(arena_.find(at - 1));
  EXPECT_FALSE(arena_.find(base_));  // a staging chunk is no block
  EXPECT_FALSE(arena_.find(base_ - 1));
  EXPECT_FALSE(arena_.find(base_ + bytes));
  EXPECT_FALSE(arena_.find(nullptr));
}

TEST_F(ArenaTest, ARangeMustBeOneBlocks) {
  std::byte* at = arena_.allocate(4096, 0);
  std::byte* next = arena_.allocate(4096, 0);
  ASSERT_EQ(next, at + 4096);
  EXPECT_EQ(arena_.offset_of(at, 4096), arena_.offset(at));
  EXPECT_EQ(arena_.offset_of(at + 4000, 96), arena_.offset(at) + 4000);
  EXPECT_FALSE(arena_.offset_of(at, 4097));
  EXPECT_FALSE(arena_.offset_of(at + 1, 4096));
  EXPECT_FALSE(arena_.offset_of(at, ~0ULL));
}

TEST_F(ArenaTest, OnlyAStartCanBeFreedAndOnce) {
  std::byte* at = arena_.allocate(8192, 0);
  EXPECT_FALSE(arena_.free(at + 4096));
  EXPECT_FALSE(arena_.free(base_));
  EXPECT_FALSE(arena_.free(base_ - 4096));
  EXPECT_FALSE(arena_.free(base_ + bytes));
  EXPECT_FALSE(arena_.free(nullptr));
  EXPECT_TRUE(arena_.free(at));
  EXPECT_FALSE(arena_.free(at));
}

TEST_F(ArenaTest, ChunksAreLentOnceAndRememberTheirLastUse) {
  std::vector<Arena::Chunk> chunks;
  for (std::uint32_t i = 0; i < Arena::chunk_count; ++i) {
    const auto chunk = arena_.borrow(false);
    ASSERT_TRUE(chunk);
    EXPECT_EQ(chunk->at, base_ + chunk->index * Arena::chunk_bytes);
    EXPECT_EQ(chunk->last, 0u);
    for (const auto& other : chunks) EXPECT_NE(other.index, chunk->index);
    chunks.push_back(*chunk);
  }
  EXPECT_FALSE(arena_.borrow(false));
  chunks[3].last = guest::Use{2, 77}.packed();
  arena_.give_back(chunks[3]);
  const auto again = arena_.borrow(true);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->index, chunks[3].index);
  EXPECT_EQ(guest::Use::of(again->last).channel, 2u);
  EXPECT_EQ(guest::Use::of(again->last).position, 77u);
}

// A block that a record in a ring still names. Without a session every record counts as executed.
TEST_F(ArenaTest, ABlockThatLeavesLaterIsFreedOnce) {
  const std::byte* at = arena_.allocate(4096, 0);
  EXPECT_FALSE(arena_.free_after(at + 4096, {0, 1}));
  EXPECT_TRUE(arena_.free_after(at, {0, 1}));
  EXPECT_EQ(arena_.allocate(4096, 0), at);
  EXPECT_EQ(arena_.allocate(4096, 0), at + 4096) << "it was freed twice";
}

// The worker refuses what overlaps: a registration that was not answered is asked for again as it was.
TEST_F(ArenaTest, ARegistrationWithoutAnAnswerIsAskedForAgain) {
  unanswered_ = 2;
  EXPECT_EQ(arena_.allocate(9 * mib, 0), nullptr);
  ASSERT_EQ(pins_.size(), 1u) << "it was tried smaller, over what may be registered";
  EXPECT_EQ(arena_.allocate(20 * mib, 0), nullptr);
  EXPECT_NE(place(33 * mib), ~0ULL);  // more than was asked for before
  ASSERT_EQ(pins_.size(), 4u);
  for (const Pinned& pin : {pins_[1], pins_[2]}) {
    EXPECT_EQ(pin.offset, pins_[0].offset);
    EXPECT_EQ(pin.bytes, pins_[0].bytes);
  }
  EXPECT_EQ(pins_[3].offset, pins_[0].offset + pins_[0].bytes);
  const std::uint64_t first = pins_[0].offset;
  EXPECT_EQ(place(30 * mib), first);
}

// One that the worker then refuses is given up: what is needed is tried.
TEST_F(ArenaTest, ARegistrationWithoutAnAnswerMayBeRefusedLater) {
  unanswered_ = 1;
  EXPECT_EQ(arena_.allocate(9 * mib, 0), nullptr);
  refuse_from_ = 16 * mib + 10 * mib;
  EXPECT_NE(place(9 * mib), ~0ULL);
  EXPECT_EQ(pins_.back().bytes, 10 * mib);
}

// A chunk that may still be in use is not lent while there is another.
TEST_F(ArenaTest, AnUnfinishedChunkIsLentLast) {
  Arena::Chunk first = *arena_.borrow(false);
  first.unfinished = 1;
  arena_.give_back(first);
  std::vector<Arena::Chunk> chunks;
  while (const auto chunk = arena_.borrow(false)) chunks.push_back(*chunk);
  EXPECT_EQ(chunks.size(), Arena::chunk_count - 1);
  for (const Arena::Chunk& chunk : chunks) EXPECT_NE(chunk.index, first.index);
  const auto last = arena_.borrow(true);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->index, first.index);
  EXPECT_EQ(last->unfinished, 1u);
}

TEST_F(ArenaTest, WhoWaitsForAChunkGetsTheOneGivenBack) {
  std::vector<Arena::Chunk> chunks;
  for (std::uint32_t i = 0; i < Arena::chunk_count; ++i) chunks.push_back(*arena_.borrow(false));
  std::atomic<int> got{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      const auto chunk = arena_.borrow(true);
      ++got;
      arena_.give_back(*chunk);
    });
  EXPECT_EQ(got, 0);
  arena_.give_back(chunks[0]);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, 3);
}

}  // namespace
