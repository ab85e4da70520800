// Registered memory: pages of a running program move into the arena and back, without losing a write.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "guest/objects/memory/arena.h"
#include "guest/objects/memory/registered.h"
#include "ring/layout/layout.h"
#include "tests/child.h"
#include "tests/unit/under_tsan.h"

namespace {

using guest::Arena, guest::Registered, guest::Segments;
using Outcome = Registered::Outcome;

constexpr std::size_t page = ring::page;
constexpr std::uint64_t arena_bytes = 32 << 20;
constexpr unsigned helpers = 3;

class RegisteredMemory : public testing::Test {
 protected:
  RegisteredMemory() {
    memory_ = memfd_create("arena", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(memory_, arena_bytes), 0);
    base_ = map_again(0, arena_bytes);
    const auto ask = [](std::uint64_t, std::uint64_t, bool) { return Segments::Registered::Yes; };
    arena_ = std::make_unique<Arena>(base_, arena_bytes, arena_bytes, false, ask);
    registered_ = std::make_unique<Registered>(
        *arena_, [this](std::uint64_t offset, std::size_t bytes) { return map_again(offset, bytes); }, helpers);
    free_ = arena_->room().bytes;
  }
  ~RegisteredMemory() override {
    munmap(base_, arena_bytes);
    close(memory_);
  }

  std::byte* map_again(std::uint64_t offset, std::size_t bytes) const {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, static_cast<off_t>(offset));
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  }
  static char* pages(std::size_t count, int protection = PROT_READ | PROT_WRITE, int flags = MAP_PRIVATE) {
    return static_cast<char*>(mmap(nullptr, count * page, protection, flags | MAP_ANONYMOUS, -1, 0));
  }
  // Returns pages at the low end of 64 GiB of free addresses. The kernel uses high addresses first, so no later mapping
  // of the C library or of a sanitizer fills a hole that the test makes in these pages.
  static char* pages_among_free_addresses(std::size_t count) {
    constexpr std::size_t free_bytes = std::size_t{64} << 30;
    void* const low = mmap(nullptr, free_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (low == MAP_FAILED) return nullptr;
    munmap(low, free_bytes);
    void* const at =
        mmap(low, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
  }
  Registered::Added add(const void* at, std::size_t bytes, bool read_only = false) {
    return registered_->add(reinterpret_cast<std::uint64_t>(at), bytes, read_only);
  }
  char* block(const void* at, std::size_t bytes, bool read_only = false) {
    const auto added = add(at, bytes, read_only);
    EXPECT_EQ(added.outcome, Outcome::Done);
    return reinterpret_cast<char*>(added.block_at);
  }
  bool remove(const void* at) { return registered_->remove(reinterpret_cast<std::uint64_t>(at)); }
  bool all_is_free() const { return arena_->room().bytes == free_; }
  // Registers and unregisters `count` pages `rounds` times, while other threads write to them.
  void lose_no_write(std::size_t count, std::size_t rounds);

  int memory_ = -1;
  std::byte* base_ = nullptr;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Registered> registered_;
  std::uint64_t free_ = 0;
};

void fill(char* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<char>(i * 7 + i / 251);
}
bool is_filled(const char* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (at[i] != static_cast<char>(i * 7 + i / 251)) return false;
  return true;
}

// A concurrent thread, which forces the library to make writers wait.
class Beside {
 public:
  Beside()
      : thread_([this] {
          while (!stop_.load()) std::this_thread::yield();
        }) {}
  ~Beside() { stop_.store(true), thread_.join(); }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void contents_are_kept(RegisteredMemory*, char* p, std::size_t count, char* in_block) {
  EXPECT_TRUE(is_filled(p, count * page));
  EXPECT_TRUE(is_filled(in_block, count * page));
  in_block[5 * page + 3] = 'd', p[2 * page] = 'h';
  EXPECT_EQ(p[5 * page + 3], 'd');
  EXPECT_EQ(in_block[2 * page], 'h');
}

TEST_F(RegisteredMemory, ContentsAreKeptBothWays) {
  char* p = pages(700);
  fill(p, 700 * page);
  contents_are_kept(this, p, 700, block(p, 700 * page));
  EXPECT_TRUE(remove(p));
  EXPECT_EQ(p[5 * page + 3], 'd');
  EXPECT_EQ(p[2 * page], 'h');
  p[5 * page + 3] = static_cast<char>((5 * page + 3) * 7 + (5 * page + 3) / 251);
  p[2 * page] = static_cast<char>(2 * page * 7 + 2 * page / 251);
  EXPECT_TRUE(is_filled(p, 700 * page));
  EXPECT_TRUE(all_is_free());
  EXPECT_FALSE(remove(p));
}

TEST_F(RegisteredMemory, ContentsAreKeptBothWaysBesideAThread) {
  const Beside beside;
  char* p = pages(700);
  fill(p, 700 * page);
  contents_are_kept(this, p, 700, block(p, 700 * page));
  p[5 * page + 3] = static_cast<char>((5 * page + 3) * 7 + (5 * page + 3) / 251);
  p[2 * page] = static_cast<char>(2 * page * 7 + 2 * page / 251);
  EXPECT_TRUE(remove(p));
  EXPECT_TRUE(is_filled(p, 700 * page));
  EXPECT_TRUE(all_is_free());
}

// Each thread increments its own words on every page, and checks that it reads its last value.
void RegisteredMemory::lose_no_write(std::size_t count, std::size_t rounds) {
  constexpr std::size_t writers = 3;
  char* p = pages(count);
  std::atomic<bool> stop{false}, lost{false};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < writers; ++t)
    threads.emplace_back([&, t] {
      std::uint64_t expected = 0;
      while (!stop.load()) {
        for (std::size_t i = 0; i < count; ++i) {
          auto* word = reinterpret_cast<volatile std::uint64_t*>(p + i * page + t * 8);
          if (*word != expected) lost = true;
          *word = expected + 1;
        }
        ++expected;
      }
    });
  for (std::size_t i = 0; i < rounds; ++i) {
    ASSERT_EQ(add(p, count * page).outcome, Outcome::Done);
    ASSERT_TRUE(remove(p));
    ASSERT_TRUE(all_is_free()) << "the pages went back";
  }
  stop = true;
  for (std::thread& t : threads) t.join();
  EXPECT_FALSE(lost);
}

TEST_F(RegisteredMemory, NoWriteOfAnotherThreadIsLost) { lose_no_write(64, 200); }
TEST_F(RegisteredMemory, NoWriteIsLostWhereSeveralThreadsCopy) { lose_no_write(2048, 20); }

TEST_F(RegisteredMemory, ANeighbourOnThePageStays) {
  const Beside beside;
  char* p = pages(4);
  std::strcpy(p + 10, "before"), std::strcpy(p + 3 * page + 3000, "behind");
  char* at = block(p + 100, 3 * page);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(at) % page, 100u);
  EXPECT_STREQ(p + 10, "before");
  p[10] = 'B';
  EXPECT_TRUE(remove(p + 100));
  EXPECT_STREQ(p + 10, "Before");
  EXPECT_STREQ(p + 3 * page + 3000, "behind");
  EXPECT_TRUE(all_is_free());
}

TEST_F(RegisteredMemory, APageMayBeSharedAndAByteMayNot) {
  char* p = pages(8);
  fill(p, 8 * page);
  char* first = block(p + 100, page);
  EXPECT_EQ(add(p + 100, page).outcome, Outcome::Already);
  EXPECT_EQ(add(p + 99 + page, 1).outcome, Outcome::Already);
  EXPECT_EQ(add(p, 101).outcome, Outcome::Already);
  char* second = block(p + 100 + page, 2 * page);  // extends the first block
  EXPECT_EQ(second - first, static_cast<std::ptrdiff_t>(page));
  char* third = block(p + 50, 10);
  EXPECT_EQ(first - third, 50);
  EXPECT_TRUE(remove(p + 100));
  third[1] = 'x';
  EXPECT_EQ(p[51], 'x');
  second[0] = 'y';
  EXPECT_EQ(p[100 + page], 'y');
  EXPECT_TRUE(remove(p + 50));
  EXPECT_TRUE(remove(p + 100 + page));
  EXPECT_TRUE(all_is_free());
  p[51] = static_cast<char>(51 * 7), p[100 + page] = static_cast<char>((100 + page) * 7 + (100 + page) / 251);
  EXPECT_TRUE(is_filled(p, 8 * page));
}

TEST_F(RegisteredMemory, ABlockThatCannotReachOverAllIsRefused) {
  char* p = pages(8);
  block(p + 2 * page + 100, page);
  EXPECT_EQ(add(p, 2 * page + 50).outcome, Outcome::Apart) << "it begins before the block";
  char* behind = pages(1);
  block(behind, page);  // takes the space after the first block
  EXPECT_EQ(add(p + 3 * page + 200, 2 * page).outcome, Outcome::Apart);
  EXPECT_TRUE(remove(behind));
  EXPECT_EQ(add(p + 3 * page + 200, 2 * page).outcome, Outcome::Done);
  EXPECT_TRUE(registered_->remove_all());
  EXPECT_TRUE(all_is_free());
}

// Only the arena's space limits the number of registrations: each registration occupies a block of whole pages.
TEST_F(RegisteredMemory, ManyFitAsLongAsTheArenaHasRoom) {
  constexpr std::size_t bytes = 16 * page;
  const std::size_t fitting = free_ / bytes;
  ASSERT_GT(fitting, 100u);
  char* p = pages((fitting + 1) * 16);
  for (std::size_t i = 0; i <= fitting; ++i) fill(p + i * bytes, bytes);
  for (std::size_t i = 0; i < fitting; ++i) ASSERT_EQ(add(p + i * bytes, bytes).outcome, Outcome::Done) << i;
  char* const one_more = p + fitting * bytes;
  EXPECT_EQ(add(one_more, bytes).outcome, Outcome::NoRoom);
  EXPECT_LT(arena_->room().bytes, bytes);
  EXPECT_FALSE(remove(one_more)) << "nothing of it is left";
  EXPECT_TRUE(remove(p + bytes));
  EXPECT_EQ(add(one_more, bytes).outcome, Outcome::Done);
  EXPECT_EQ(add(p + bytes, bytes).outcome, Outcome::NoRoom);
  for (std::size_t i = 0; i <= fitting; ++i) EXPECT_TRUE(is_filled(p + i * bytes, bytes)) << i;
  EXPECT_TRUE(registered_->remove_all());
  EXPECT_TRUE(all_is_free());
  for (std::size_t i = 0; i <= fitting; ++i) EXPECT_TRUE(is_filled(p + i * bytes, bytes)) << i;
}

TEST_F(RegisteredMemory, BadMemoryIsRefusedAndLeftAlone) {
  char* p = pages_among_free_addresses(8);
  ASSERT_NE(p, nullptr);
  fill(p, 8 * page);
  mprotect(p + 4 * page, page, PROT_NONE);
  EXPECT_EQ(add(p, 5 * page).outcome, Outcome::Absent);
  mprotect(p + 4 * page, page, PROT_READ);
  EXPECT_EQ(add(p, 5 * page).outcome, Outcome::Absent);
  EXPECT_EQ(add(p, 5 * page, true).outcome, Outcome::Done) << "all of it may be read";
  EXPECT_TRUE(remove(p));
  munmap(p + 4 * page, page);
  EXPECT_EQ(add(p, 6 * page).outcome, Outcome::Absent);
  EXPECT_TRUE(is_filled(p, 4 * page));
  EXPECT_EQ(add(pages(1, PROT_READ | PROT_WRITE, MAP_SHARED), page).outcome, Outcome::Unfit);
  const char on_the_stack[100] = {};
  EXPECT_EQ(add(on_the_stack, sizeof on_the_stack).outcome, Outcome::Unfit);
  EXPECT_EQ(add(pages(2 * arena_bytes / page), 2 * arena_bytes).outcome, Outcome::NoRoom);
  EXPECT_TRUE(all_is_free());
}

// Dies if the page is read-only. A sanitizer's handler would report the fault and exit.
void write_to(char* at) {
  std::signal(SIGSEGV, SIG_DFL);
  *static_cast<volatile char*>(at) = 1;
}

TEST_F(RegisteredMemory, ConstantPagesStayConstant) {
  char* p = pages(2);
  fill(p, 2 * page);
  mprotect(p, 2 * page, PROT_READ);
  char* at = block(p, 2 * page, true);
  EXPECT_TRUE(is_filled(at, 2 * page));
  EXPECT_EXIT(write_to(p), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_TRUE(remove(p));
  EXPECT_TRUE(is_filled(p, 2 * page));
  EXPECT_EXIT(write_to(p), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(RegisteredMemory, WhatTheProgramHasUnmappedIsNotPutBack) {
  char* p = pages_among_free_addresses(4);
  ASSERT_NE(p, nullptr);
  block(p, 4 * page);
  munmap(p, 4 * page);
  char* other =
      static_cast<char*>(mmap(p + page, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  std::strcpy(other, "mine");
  EXPECT_TRUE(remove(p));
  EXPECT_STREQ(other, "mine");
  unsigned char resident = 0;
  EXPECT_NE(mincore(p, page, &resident), 0) << "nothing is mapped there";
  EXPECT_TRUE(all_is_free());
}

TEST_F(RegisteredMemory, AChildDoesNotWriteIntoTheParentsNeighbours) {
  char* p = pages(4);
  std::strcpy(p + 10, "before"), std::strcpy(p + 100, "registered"), std::strcpy(p + 3 * page + 3000, "behind");
  block(p + 100, 3 * page);
  registered_->before_fork();
  const pid_t child = fork();
  if (child == 0) {
    registered_->after_fork_in_child();
    bool good = std::strcmp(p + 10, "before") == 0 && std::strcmp(p + 3 * page + 3000, "behind") == 0;
    p[10] = p[100] = p[3 * page + 3000] = 'X';
    p[2 * page] = 'W';
    good = good && p[10] == 'X';
    _exit(good ? 0 : 1);
  }
  registered_->after_fork_in_parent();
  EXPECT_EQ(wait_for_child(child), 0);
  EXPECT_STREQ(p + 10, "before");
  EXPECT_STREQ(p + 100, "registered");
  EXPECT_STREQ(p + 3 * page + 3000, "behind");
  EXPECT_EQ(p[2 * page], 'W') << "a whole page is the child's, too";
  EXPECT_TRUE(remove(p + 100));
}

void refuse_userfaultfd() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{4, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(9);
}

// Registers memory without userfaultfd. Returns the number of the first failed step, or 0.
TEST_F(RegisteredMemory, WithoutUserfaultfdOnlyAProcessOfOneThreadRegisters) {
#ifdef IVGPU_UNDER_TSAN
  GTEST_SKIP() << "ThreadSanitizer has a thread of its own, so no process has one alone";
#endif
  const auto steps = [&] {
    refuse_userfaultfd();
    char *p = pages(4), *later = pages(4);
    fill(p, 4 * page);
    if (add(p, 4 * page).outcome != Outcome::Done) return 1;
    {
      const Beside beside;
      if (add(later, page).outcome != Outcome::ThreadsRun) return 2;
      if (!remove(p) || !is_filled(p, 4 * page)) return 3;
      if (all_is_free()) return 4;                                 // the pages could not move back
      if (add(p + page, page).outcome != Outcome::Done) return 5;  // the pages are already in the arena
      if (registered_->remove_all()) return 6;
    }
    return registered_->remove_all() && is_filled(p, 4 * page) && all_is_free() ? 0 : 7;
  };
  EXPECT_EQ(run_in_child(steps), 0);
}

TEST_F(RegisteredMemory, AllOfAnOwnerEndWithIt) {
  const int owner = 0;
  char* p = pages(4);
  fill(p, 4 * page);
  EXPECT_EQ(registered_->add(reinterpret_cast<std::uint64_t>(p), page, false, &owner).outcome, Outcome::Done);
  block(p + 2 * page, page);
  EXPECT_TRUE(registered_->has_of(&owner));
  registered_->remove_of(&owner);
  EXPECT_FALSE(registered_->has_of(&owner));
  EXPECT_FALSE(remove(p));
  EXPECT_TRUE(remove(p + 2 * page));
  EXPECT_TRUE(is_filled(p, 4 * page));
  EXPECT_TRUE(all_is_free());
}

}  // namespace
