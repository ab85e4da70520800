// The arena: placement of blocks, registration with the GPU, and the staging chunks.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "guest/objects/memory/arena.h"
#include "guest/process/context.h"
#include "ring/layout/layout.h"
#include "tests/search_options.h"

namespace {

using guest::Arena, guest::Segments;
constexpr std::uint64_t mib = 1 << 20;

// An arena over addresses that are never touched. The arena's bookkeeping is in private memory.
class ArenaTest : public testing::Test {
 protected:
  static constexpr std::uint64_t bytes = 128 * mib;
  std::byte* const base_ = reinterpret_cast<std::byte*>(0x7e80'0000'0000);
  struct Pinned {
    std::uint64_t offset, bytes;
    bool join;
  };
  std::vector<Pinned> pins_;
  std::uint64_t refuse_from_ = ~0ULL;  // requests beyond this offset are refused
  int unanswered_ = 0;                 // the number of requests that get no answer
  // Ranges that the worker has registered in addition to the first segment: start -> end.
  std::map<std::uint64_t, std::uint64_t> registered_;
  Arena arena_{base_, bytes, 16 * mib, true,
               [this](std::uint64_t start, std::uint64_t end, bool join) { return ask(start, end, join); }};

  Segments::Registered ask(std::uint64_t start, std::uint64_t end, bool join) {
    if (join)
      for (auto piece = registered_.lower_bound(start); piece != registered_.end() && piece->first < end;) {
        EXPECT_LE(piece->second, end) << "a registration reaches out of what is joined";
        piece = registered_.erase(piece);
      }
    if (end > refuse_from_) return Segments::Registered::No;
    pins_.push_back({start, end - start, join});
    registered_[start] = end;
    if (unanswered_ != 0) return --unanswered_, Segments::Registered::Unknown;
    return Segments::Registered::Yes;
  }

  std::uint64_t place(std::uint64_t n) {
    const std::byte* at = arena_.allocate(n);
    return at == nullptr ? ~0ULL : arena_.offset(at);
  }
};

TEST_F(ArenaTest, BlocksFollowTheStagingChunksOnPages) {
  EXPECT_EQ(Arena::staging_bytes, 8 * mib);
  EXPECT_EQ(place(1), 8 * mib);
  EXPECT_EQ(place(4096), 8 * mib + 4096);
  EXPECT_EQ(place(4097), 8 * mib + 2 * 4096);
  EXPECT_EQ(place(1), 8 * mib + 4 * 4096);
  EXPECT_TRUE(pins_.empty());  // the memory was registered from the start
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
  EXPECT_EQ(arena_.allocate(0), nullptr);
  EXPECT_EQ(arena_.allocate(bytes + 1), nullptr);
  EXPECT_EQ(arena_.allocate(~0ULL), nullptr);
  EXPECT_EQ(arena_.allocate(~0ULL - 4095), nullptr);
  EXPECT_EQ(arena_.allocate(bytes), nullptr);  // the staging chunks occupy a part of the arena
}

TEST_F(ArenaTest, ExhaustedAndUsableAgain) {
  std::vector<std::byte*> blocks;
  while (std::byte* at = arena_.allocate(4 * mib)) blocks.push_back(at);
  EXPECT_GE(blocks.size(), 20u);
  EXPECT_EQ(arena_.allocate(4 * mib), nullptr);
  for (std::size_t i = 1; i < blocks.size(); ++i) EXPECT_GE(blocks[i], blocks[i - 1] + 4 * mib);
  EXPECT_LE(blocks.back() + 4 * mib, base_ + bytes);
  ASSERT_TRUE(arena_.free(blocks[3]));
  EXPECT_EQ(arena_.allocate(4 * mib), blocks[3]);
}

// A block must lie within one registration, since the driver refuses a range across two registrations.
TEST_F(ArenaTest, ABlockLiesInOneRegistration) {
  for (const std::uint64_t n : {6 * mib, 10 * mib, 33 * mib + 1, 1 * mib, 20 * mib}) {
    const std::uint64_t at = place(n);
    ASSERT_NE(at, ~0ULL) << n;
    bool inside = at >= 8 * mib && at + n <= 16 * mib;
    for (const auto& [start, end] : registered_) inside |= at >= start && at + n <= end;
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
  EXPECT_NE(place(9 * mib), ~0ULL);  // registers only the needed bytes, not a whole step
  EXPECT_EQ(arena_.allocate(64 * mib), nullptr);
  EXPECT_NE(place(1 * mib), ~0ULL);  // memory that is already registered remains usable
  refuse_from_ = 0;
  EXPECT_EQ(arena_.allocate(64 * mib), nullptr);
}

TEST_F(ArenaTest, OnlyAStartCanBeFreedAndOnce) {
  std::byte* at = arena_.allocate(8192);
  EXPECT_FALSE(arena_.free(at + 4096));
  EXPECT_FALSE(arena_.free(base_));
  EXPECT_FALSE(arena_.free(base_ - 4096));
  EXPECT_FALSE(arena_.free(base_ + bytes));
  EXPECT_FALSE(arena_.free(nullptr));
  EXPECT_TRUE(arena_.free(at));
  EXPECT_FALSE(arena_.free(at));
}

TEST_F(ArenaTest, ChunksAreBorrowedOnceAndRememberTheirLastUse) {
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

// A record in a ring still names the block. Without a session every record counts as executed.
TEST_F(ArenaTest, ABlockThatLeavesLaterIsFreedOnce) {
  const std::byte* at = arena_.allocate(4096);
  EXPECT_FALSE(arena_.free_after(at + 4096, {0, 1}));
  EXPECT_TRUE(arena_.free_after(at, {0, 1}));
  EXPECT_EQ(arena_.allocate(4096), at);
  EXPECT_EQ(arena_.allocate(4096), at + 4096) << "it was freed twice";
}

// The worker refuses overlapping registrations. The arena therefore repeats an unanswered request unchanged.
TEST_F(ArenaTest, ARegistrationWithoutAnAnswerIsAskedForAgain) {
  unanswered_ = 2;
  EXPECT_EQ(arena_.allocate(9 * mib), nullptr);
  ASSERT_EQ(pins_.size(), 1u) << "it was tried smaller, over what may be registered";
  EXPECT_EQ(arena_.allocate(20 * mib), nullptr);
  EXPECT_NE(place(33 * mib), ~0ULL);  // larger than the first request
  ASSERT_EQ(pins_.size(), 4u);
  for (const Pinned& pin : {pins_[1], pins_[2]}) {
    EXPECT_EQ(pin.offset, pins_[0].offset);
    EXPECT_EQ(pin.bytes, pins_[0].bytes);
  }
  EXPECT_EQ(pins_[3].offset, pins_[0].offset + pins_[0].bytes);
  const std::uint64_t first = pins_[0].offset;
  EXPECT_EQ(place(30 * mib), first);
}

// If the worker refuses the repeated request, the arena drops it and requests only the needed bytes.
TEST_F(ArenaTest, ARegistrationWithoutAnAnswerMayBeRefusedLater) {
  unanswered_ = 1;
  EXPECT_EQ(arena_.allocate(9 * mib), nullptr);
  refuse_from_ = 16 * mib + 10 * mib;
  EXPECT_NE(place(9 * mib), ~0ULL);
  EXPECT_EQ(pins_.back().bytes, 10 * mib);
}

// ---- joining -------------------------------------------------------------------------------------------------------

// The arena has 128 MiB, of which 112 MiB follow the first segment.
TEST_F(ArenaTest, SegmentsWithoutBlocksAreJoinedForALargerBlock) {
  std::byte* first = arena_.allocate(64 * mib);
  ASSERT_NE(first, nullptr);
  ASSERT_TRUE(arena_.free(first));
  EXPECT_EQ(arena_.room().largest, 112 * mib);
  const std::uint64_t at = place(96 * mib);
  ASSERT_NE(at, ~0ULL);
  EXPECT_TRUE(pins_.back().join);
  EXPECT_EQ(registered_, (std::map<std::uint64_t, std::uint64_t>{{16 * mib, 112 * mib}}));
  EXPECT_NE(place(16 * mib), ~0ULL) << "the rest was not taken";
}

TEST_F(ArenaTest, NothingIsJoinedWhileThereIsRoom) {
  ASSERT_TRUE(arena_.free(arena_.allocate(33 * mib)));
  ASSERT_TRUE(arena_.free(arena_.allocate(40 * mib)));
  ASSERT_NE(place(36 * mib), ~0ULL);
  for (const Pinned& pin : pins_) EXPECT_FALSE(pin.join);
}

TEST_F(ArenaTest, ASegmentWithABlockStays) {
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(arena_.allocate(32 * mib));
  ASSERT_TRUE(arena_.free(blocks[0]));
  ASSERT_TRUE(arena_.free(blocks[2]));
  EXPECT_EQ(arena_.room().largest, 48 * mib) << "the last one and what was never registered";
  EXPECT_EQ(arena_.room().bytes, 88 * mib);
  EXPECT_EQ(arena_.allocate(49 * mib), nullptr);
  EXPECT_EQ(place(48 * mib), arena_.offset(blocks[2]));
  EXPECT_EQ(place(32 * mib), arena_.offset(blocks[0]));
}

// The arena uses the shortest sufficient run of segments, so that larger runs stay whole.
TEST_F(ArenaTest, TheShortestRunIsTaken) {
  std::vector<std::byte*> blocks;
  for (const std::uint64_t n : {16u, 16u, 2u, 40u, 2u, 12u, 12u, 12u}) blocks.push_back(arena_.allocate(n * mib));
  for (const int i : {0, 1, 3, 5, 6, 7}) arena_.free(blocks[static_cast<std::size_t>(i)]);
  const std::size_t before = pins_.size();
  const std::uint64_t at = place(24 * mib);
  ASSERT_NE(at, ~0ULL);
  for (std::size_t i = before; i < pins_.size(); ++i) EXPECT_LE(pins_[i].bytes, 48 * mib);
}

TEST_F(ArenaTest, AJoinThatFailsLeavesRoomThatIsRegisteredAgain) {
  ASSERT_TRUE(arena_.free(arena_.allocate(64 * mib)));
  refuse_from_ = 100 * mib;
  EXPECT_EQ(arena_.allocate(96 * mib), nullptr);
  EXPECT_TRUE(registered_.empty());
  const std::uint64_t at = place(40 * mib);
  ASSERT_NE(at, ~0ULL);
  EXPECT_TRUE(registered_.contains(16 * mib)) << "it was taken for registered";
}

TEST_F(ArenaTest, AJoinWithoutAnAnswerIsAskedForAgain) {
  ASSERT_TRUE(arena_.free(arena_.allocate(64 * mib)));
  unanswered_ = 1;
  EXPECT_EQ(arena_.allocate(96 * mib), nullptr);
  const Pinned asked = pins_.back();
  EXPECT_TRUE(asked.join);
  ASSERT_EQ(place(4 * mib), 8 * mib) << "the first segment has room, and what is unsure is not used";
  ASSERT_EQ(place(90 * mib), 16 * mib);
  EXPECT_EQ(pins_.back().bytes, asked.bytes);
  EXPECT_TRUE(pins_.back().join);
}

TEST_F(ArenaTest, AWorkerThatCannotJoinIsNotAsked) {
  int asked = 0;
  Arena arena(base_, bytes, 16 * mib, false, [&](std::uint64_t, std::uint64_t, bool join) {
    asked += join;
    return Segments::Registered::Yes;
  });
  ASSERT_TRUE(arena.free(arena.allocate(64 * mib)));
  EXPECT_EQ(arena.allocate(96 * mib), nullptr);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(arena.room().largest, 64 * mib);
  EXPECT_EQ(arena.room().bytes, 120 * mib);
}

// A long random sequence: each block lies within one registration and overlaps no other block.
TEST_F(ArenaTest, ManyBlocksNeverOverlapNorCross) {
  std::mt19937 random(test_seed(7));
  std::map<std::uint64_t, std::uint64_t> live;
  for (int i = 0; i < 20'000; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      auto block = live.begin();
      std::advance(block, random() % live.size());
      ASSERT_TRUE(arena_.free(arena_.at(block->first)));
      live.erase(block);
      continue;
    }
    const std::uint64_t n = 1 + random() % (random() % 8 == 0 ? 100 * mib : 3 * mib);
    const std::uint64_t largest = arena_.room().largest, at = place(n);
    ASSERT_EQ(at != ~0ULL, (n + 4095) / 4096 * 4096 <= largest) << n << " of " << largest;
    if (at == ~0ULL) continue;
    const auto after = live.lower_bound(at);
    ASSERT_TRUE(after == live.end() || after->first >= at + n);
    ASSERT_TRUE(after == live.begin() || std::prev(after)->first + std::prev(after)->second <= at);
    live[at] = n;
    const auto behind = registered_.upper_bound(at);
    const bool in_the_first = behind == registered_.begin();
    ASSERT_LE(at + n, in_the_first ? 16 * mib : std::prev(behind)->second);
  }
}

// The arena lends a chunk that may still be in use only if no other chunk is free.
TEST_F(ArenaTest, AnUnfinishedChunkIsBorrowedLast) {
  Arena::Chunk first = *arena_.borrow(false);
  guest::Context context;
  first.unfinished = &context;
  arena_.give_back(first);
  std::vector<Arena::Chunk> chunks;
  while (const auto chunk = arena_.borrow(false)) chunks.push_back(*chunk);
  EXPECT_EQ(chunks.size(), Arena::chunk_count - 1);
  for (const Arena::Chunk& chunk : chunks) EXPECT_NE(chunk.index, first.index);
  const auto last = arena_.borrow(true);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->index, first.index);
  EXPECT_EQ(last->unfinished, &context);
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
