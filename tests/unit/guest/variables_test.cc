// Managed variables in the guest: arena pages are mapped at the driver's addresses, but never over a mapping of the
// program.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "guest/objects/memory/arena.h"
#include "guest/objects/memory/reservations.h"
#include "guest/objects/variables.h"
#include "ring/api/records.h"
#include "ring/layout/layout.h"

namespace {

using guest::Arena, guest::Segments, guest::Variables;
using Outcome = Variables::Outcome;

constexpr std::uint64_t page = ring::page, arena_bytes = 32 << 20;

class ManagedVariables : public testing::Test {
 protected:
  ManagedVariables() {
    memory_ = memfd_create("arena", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(memory_, arena_bytes), 0);
    base_ = map_again(0, arena_bytes);
    const auto ask = [](std::uint64_t, std::uint64_t, bool) { return Segments::Registered::Yes; };
    arena_ = std::make_unique<Arena>(base_, arena_bytes, arena_bytes, false, ask);
    variables_ = make(false);
    free_ = arena_->room().bytes;
    // Finds free addresses, like the driver's addresses in the worker.
    void* const hole = mmap(nullptr, 1024 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    munmap(hole, 1024 * page);
    hole_ = reinterpret_cast<std::uint64_t>(hole);
  }
  ~ManagedVariables() override {
    munmap(reinterpret_cast<void*>(hole_), 1024 * page);
    munmap(base_, arena_bytes);
    close(memory_);
  }

  std::unique_ptr<Variables> make(bool in_place) {
    return std::make_unique<Variables>(
        *arena_, in_place, [this](std::uint64_t offset, std::size_t bytes) { return map_again(offset, bytes); },
        [this](std::uint64_t start, std::uint64_t bytes) { return reserved_.reserve(start, bytes); });
  }
  std::byte* map_again(std::uint64_t offset, std::size_t bytes) const {
    if (fail_to_map_) return nullptr;
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, static_cast<off_t>(offset));
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  }
  Outcome add(std::uint64_t offset, std::uint64_t bytes, std::uint64_t owner = 1) {
    pieces_.clear();
    return variables_->add(hole_ + offset, bytes, owner, pieces_);
  }
  char* at(std::uint64_t offset) const { return reinterpret_cast<char*>(hole_ + offset); }
  // Checks that the pieces cover these bytes, and map the right bytes of the arena.
  void expect_shared(std::uint64_t offset, std::uint64_t bytes) {
    std::uint64_t next = hole_ + offset;
    for (const Variables::Piece& piece : pieces_) {
      ASSERT_EQ(piece.start, next);
      next += piece.bytes;
      std::memset(reinterpret_cast<void*>(piece.start), 'a', piece.bytes);
      for (std::uint64_t i = 0; i < piece.bytes; ++i) ASSERT_EQ(base_[piece.arena + i], std::byte{'a'}) << i;
    }
    EXPECT_EQ(next, hole_ + offset + bytes);
  }
  bool is_accessible(std::uint64_t offset) const {
    char* const where = at(offset);
    int ends[2];
    if (pipe(ends) != 0) return false;
    const bool read = write(ends[1], where, 1) == 1;  // the kernel checks the address without a fault
    close(ends[0]), close(ends[1]);
    return read;
  }
  bool all_is_free() const { return arena_->room().bytes == free_; }

  int memory_ = -1;
  bool fail_to_map_ = false;
  std::byte* base_ = nullptr;
  std::unique_ptr<Arena> arena_;
  guest::Reservations reserved_;
  std::unique_ptr<Variables> variables_;
  std::uint64_t hole_ = 0, free_ = 0;
  std::vector<Variables::Piece> pieces_;
};

TEST_F(ManagedVariables, LieInTheArena) {
  ASSERT_EQ(add(100, 8), Outcome::Done);
  ASSERT_EQ(pieces_.size(), 1U);
  expect_shared(100, 8);
  EXPECT_EQ(at(0)[0], 0) << "beside it";
  ASSERT_EQ(add(100, 8), Outcome::Done) << "again";
  expect_shared(100, 8);
  variables_->drop_of(1, {});
  EXPECT_TRUE(all_is_free());
  EXPECT_FALSE(is_accessible(100));
  ASSERT_EQ(add(100, 8), Outcome::Done) << "the driver gives the address again";
  expect_shared(100, 8);
}

TEST_F(ManagedVariables, SharePages) {
  ASSERT_EQ(add(100, 8, 1), Outcome::Done);
  ASSERT_EQ(add(3 * page + 50, 8, 2), Outcome::Done);
  ASSERT_EQ(add(200, 3 * page - 160, 3), Outcome::Done) << "on both pages, and between them";
  EXPECT_EQ(pieces_.size(), 3U);
  expect_shared(200, 3 * page - 160);
  variables_->drop_of(3, {});
  EXPECT_TRUE(is_accessible(0));
  EXPECT_FALSE(is_accessible(page));
  EXPECT_FALSE(is_accessible(2 * page));
  EXPECT_TRUE(is_accessible(3 * page));
  variables_->drop_of(1, {});
  variables_->drop_of(2, {});
  EXPECT_TRUE(all_is_free());
}

TEST_F(ManagedVariables, NeverReplaceWhatIsTheProgramsOwn) {
  void* const mine = mmap(at(page), page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_NE(mine, MAP_FAILED);
  std::strcpy(at(page), "mine");
  EXPECT_EQ(add(page + 8, 8), Outcome::Taken);
  EXPECT_EQ(add(page - 8, 16), Outcome::Taken) << "the second page of two";
  EXPECT_STREQ(at(page), "mine");
  EXPECT_TRUE(all_is_free());
}

TEST_F(ManagedVariables, HaveBounds) {
  EXPECT_EQ(add(0, 0), Outcome::TooMany);
  EXPECT_EQ(add(0, api::max_shadowed_bytes + 1), Outcome::TooMany);
  EXPECT_EQ(variables_->add(UINT64_MAX - 4, 8, 1, pieces_), Outcome::TooMany);
  ASSERT_EQ(add(0, api::max_shadowed_bytes - 8), Outcome::Done);
  EXPECT_EQ(add(2 * api::max_shadowed_bytes, 9), Outcome::TooMany);
  EXPECT_EQ(add(2 * api::max_shadowed_bytes, 8), Outcome::Done);
  variables_->drop_of(1, {});
  EXPECT_EQ(add(2 * api::max_shadowed_bytes, 9), Outcome::Done);
}

TEST_F(ManagedVariables, LeaveNothingBehindWhereMappingFails) {
  fail_to_map_ = true;
  EXPECT_EQ(add(0, 8), Outcome::Failed);
  EXPECT_TRUE(all_is_free());
  fail_to_map_ = false;
  EXPECT_EQ(add(0, 8), Outcome::Done);
}

// A variable has ended with its context, and another variable takes its address.
TEST_F(ManagedVariables, TakeThePlaceOfThoseThatHaveEnded) {
  ASSERT_EQ(add(0, 64, 1), Outcome::Done);
  ASSERT_EQ(add(32, 64, 2), Outcome::Done);
  expect_shared(32, 64);
  variables_->drop_of(1, {});
  EXPECT_TRUE(is_accessible(0)) << "the second one's page";
  variables_->drop_of(2, {});
  EXPECT_TRUE(all_is_free());
}

TEST_F(ManagedVariables, AreThePrograms) {
  ASSERT_EQ(add(0, 8), Outcome::Done);
  std::strcpy(at(0), "kept");
  variables_->leave();
  std::memset(base_, 'z', arena_bytes);
  EXPECT_STREQ(at(0), "kept");
}

TEST_F(ManagedVariables, NeedNoPagesInTheWorkersProcess) {
  variables_ = make(true);
  EXPECT_EQ(add(0, 8), Outcome::Done);
  EXPECT_TRUE(pieces_.empty());
  EXPECT_FALSE(is_accessible(0));
}

}  // namespace
