// The threads that copy memory concurrently with the caller.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <iterator>
#include <thread>
#include <vector>

#include "guest/objects/copy/copiers.h"
#include "guest/objects/copy/streaming_copy.h"
#include "tests/deadline.h"

namespace guest {
namespace {

std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 31 + seed);
  return data;
}

class CopiersOf : public testing::TestWithParam<unsigned> {};

TEST_P(CopiersOf, EveryJobIsDoneWhenItIsFinished) {
  Copiers copiers(GetParam());
  const auto from = pattern(1 << 20, 1);
  std::vector<unsigned char> to(from.size());
  std::deque<Copiers::Job> jobs(64);
  const std::size_t piece = from.size() / jobs.size();
  for (std::size_t i = 0; i < jobs.size(); ++i)
    copiers.start(jobs[i], &to[i * piece], &from[i * piece], piece, i % 2 == 0);
  copiers.finish(jobs[40]);
  EXPECT_EQ(std::memcmp(&to[40 * piece], &from[40 * piece], piece), 0);
  for (Copiers::Job& job : jobs) copiers.finish(job);
  EXPECT_EQ(to, from);
}

TEST_P(CopiersOf, AJobIsUsedAgain) {
  Copiers copiers(GetParam());
  Copiers::Job job;
  copiers.finish(job);  // nothing to finish
  for (unsigned round = 0; round < 200; ++round) {
    const auto from = pattern(4096, round);
    std::vector<unsigned char> to(from.size());
    copiers.start(job, to.data(), from.data(), from.size());
    copiers.finish(job);
    ASSERT_EQ(to, from) << round;
    copiers.finish(job);
  }
}

TEST_P(CopiersOf, SeveralCallersAtOnce) {
  Copiers copiers(GetParam());
  std::atomic<int> right{0};
  std::vector<std::thread> callers;
  for (unsigned seed = 0; seed < 4; ++seed)
    callers.emplace_back([&, seed] {
      const auto from = pattern(64 << 10, seed);
      std::vector<unsigned char> to(from.size());
      Copiers::Job halves[2];
      const std::size_t half = from.size() / 2;
      for (int round = 0; round < 50; ++round) {
        std::memset(to.data(), 0, to.size());
        copiers.start(halves[0], to.data(), from.data(), half);
        copiers.start(halves[1], &to[half], &from[half], half);
        copiers.finish(halves[1]);
        copiers.finish(halves[0]);
        if (to == from) ++right;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, 4 * 50);
}

// Returns whether the page was written since it was discarded. mincore() reads no byte of the page, so there is no
// race.
bool touched(unsigned char* page) {
  unsigned char there = 0;
  return mincore(page, 4096, &there) == 0 && (there & 1) != 0;
}

// A thread must wake for each job, even if the caller does not help, and at whatever moment the thread fell asleep.
TEST(Copiers, NoWakeUpIsLost) {
  Copiers copiers(1);
  auto* page = static_cast<unsigned char*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(page, MAP_FAILED);
  const auto from = pattern(4096, 7);
  Copiers::Job job;
  for (int round = 0; round < 2000; ++round) {
    ASSERT_EQ(madvise(page, 4096, MADV_DONTNEED), 0);
    copiers.start(job, page, from.data(), from.size());
    const auto end = std::chrono::steady_clock::now() + test_deadline;
    while (!touched(page) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    ASSERT_TRUE(touched(page)) << round;
    copiers.finish(job);
    ASSERT_EQ(std::memcmp(page, from.data(), from.size()), 0) << round;
  }
  munmap(page, 4096);
}

TEST_P(CopiersOf, EndsWithoutEverHavingWorked) { EXPECT_EQ(Copiers(GetParam()).threads(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Threads, CopiersOf, testing::Values(0u, 1u, 3u));

TEST(Copiers, ABadNumberOfThreadsIsNotTaken) {
  setenv("IVGPU_COPY_THREADS", "17", 1);
  EXPECT_LE(copiers().threads(), 3u);
}

// Tests every alignment of both ends within a cache line, and every length around the length of a line.
TEST(StreamingCopy, WritesTheseBytesAndNoOthers) {
  const auto from = pattern(512, 3);
  for (std::size_t at = 0; at < 64; ++at)
    for (std::size_t begin : {std::size_t{0}, std::size_t{1}, at})
      for (std::size_t bytes = 0; bytes < 260; ++bytes) {
        alignas(64) unsigned char to[512];
        std::memset(to, 0xee, sizeof to);
        streaming_copy(to + at, &from[begin], bytes);
        ASSERT_EQ(std::memcmp(to + at, &from[begin], bytes), 0) << at << ' ' << begin << ' ' << bytes;
        const auto untouched = [](unsigned char byte) { return byte == 0xee; };
        ASSERT_TRUE(std::all_of(to, to + at, untouched)) << at << ' ' << bytes;
        ASSERT_TRUE(std::all_of(to + at + bytes, std::end(to), untouched)) << at << ' ' << bytes;
      }
}

TEST(Copiers, TheNumberOfThreadsCanBeGiven) {
  setenv("IVGPU_COPY_THREADS", "5", 1);
  EXPECT_EQ(copiers().threads(), 5u);
}

TEST(Copiers, CanBeSwitchedOff) {
  setenv("IVGPU_COPY_THREADS", "5", 1);
  setenv("IVGPU_OFF", "copy_threads", 1);
  EXPECT_EQ(copiers().threads(), 0u);
}

}  // namespace
}  // namespace guest
