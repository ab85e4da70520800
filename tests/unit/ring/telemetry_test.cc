// Counters and trace cells: a reader finds complete, overwritten and invalid entries.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>

#include "ring/ops/telemetry.h"

namespace {

using ring::Taken, ring::TraceCell, ring::TraceEntry;

// A channel's trace with only a few cells.
struct Trace {
  static constexpr std::size_t count = 8;
  std::atomic<std::uint64_t> written{0};
  std::unique_ptr<TraceCell[]> memory{new TraceCell[count]()};
  std::span<TraceCell> cells{memory.get(), count};
  ring::TraceWriter writer{written, cells};
  ring::TraceReader reader{written, cells};

  // Each word of an entry encodes the entry's number.
  void put(std::uint64_t n) { writer.put(entry(n)); }
  static TraceEntry entry(std::uint64_t n) {
    std::uint64_t words[TraceCell::words];
    for (std::uint64_t& word : words) word = n;
    TraceEntry entry;
    std::memcpy(&entry, words, sizeof entry);
    return entry;
  }
  static bool is_whole(const TraceEntry& e) {
    const TraceEntry wanted = entry(e.begin_ns);
    return std::memcmp(&e, &wanted, sizeof e) == 0;
  }
};

TEST(Telemetry, EntriesComeInTheirOrder) {
  Trace t;
  TraceEntry e{};
  EXPECT_EQ(t.reader.take(e), Taken::Nothing);
  for (std::uint64_t n = 1; n <= 20; ++n) {
    t.put(n);
    ASSERT_EQ(t.reader.take(e), Taken::Entry);
    EXPECT_EQ(e.position, n);
    EXPECT_TRUE(Trace::is_whole(e));
    EXPECT_EQ(t.reader.take(e), Taken::Nothing);
  }
  EXPECT_EQ(t.reader.lost(), 0u);
}

TEST(Telemetry, WhatWasOverwrittenCountsAsLost) {
  Trace t;
  TraceEntry e{};
  for (std::uint64_t n = 1; n <= 30; ++n) t.put(n);
  for (std::uint64_t n = 23; n <= 30; ++n) {
    ASSERT_EQ(t.reader.take(e), Taken::Entry);
    EXPECT_EQ(e.position, n);
  }
  EXPECT_EQ(t.reader.take(e), Taken::Nothing);
  EXPECT_EQ(t.reader.lost(), 22u);
}

TEST(Telemetry, AReaderThatComesLaterReadsWhatComesLater) {
  Trace t;
  for (std::uint64_t n = 1; n <= 3; ++n) t.put(n);
  ring::TraceReader late(t.written, t.cells);
  TraceEntry e{};
  EXPECT_EQ(late.take(e), Taken::Nothing);
  t.put(4);
  ASSERT_EQ(late.take(e), Taken::Entry);
  EXPECT_EQ(e.position, 4u);
}

// The writer is still writing the entry, or has died while writing it.
TEST(Telemetry, ATornEntryIsLost) {
  Trace t;
  t.put(1);
  t.put(2);
  t.cells[0].sequence = 2 * 8 + 1;
  TraceEntry e{};
  EXPECT_EQ(t.reader.take(e), Taken::Lost);
  ASSERT_EQ(t.reader.take(e), Taken::Entry);
  EXPECT_EQ(e.position, 2u);
  EXPECT_EQ(t.reader.lost(), 1u);
}

// `written` may have any value: each call returns, and reads no cell beyond the last one (ASan checks this).
TEST(Telemetry, WordsThatMakeNoSense) {
  std::minstd_rand random(3);
  Trace t;
  TraceEntry e{};
  t.put(1);
  ASSERT_EQ(t.reader.take(e), Taken::Entry);
  for (const std::uint64_t written : {std::uint64_t{0}, ~std::uint64_t{0}, (std::uint64_t{1} << 63) + 1}) {
    t.written = written;
    EXPECT_EQ(t.reader.take(e), Taken::Nothing) << written;
  }
  for (int round = 0; round < 10'000; ++round) {
    t.written = random() % 3 == 0 ? std::uint64_t{random()} << (random() % 34) : random() % 64;
    t.cells[random() % Trace::count].sequence = random() % 64;
    t.reader.take(e);
  }
}

TEST(Telemetry, WhatIsReadWhileItIsOverwrittenIsWholeOrLost) {
  constexpr std::uint64_t entries = 200'000;
  Trace t;
  std::thread writer([&] {
    for (std::uint64_t n = 1; n <= entries; ++n) t.put(n);
  });
  std::uint64_t taken = 0, last = 0;
  TraceEntry e{};
  while (last < entries) {
    const Taken what = t.reader.take(e);
    if (what != Taken::Entry) continue;
    ++taken;
    ASSERT_TRUE(Trace::is_whole(e)) << e.begin_ns;
    ASSERT_GT(e.position, last);
    last = e.position;
  }
  writer.join();
  EXPECT_EQ(taken + t.reader.lost(), entries);
}

TEST(Telemetry, CountersLieApart) {
  const auto page = std::make_unique<ring::TelemetryPage>();
  ring::count(page->channel[2].calls);
  ring::count(page->channel[2].record_bytes, 48);
  EXPECT_EQ(page->channel[2].calls, 1u);
  EXPECT_EQ(page->channel[2].record_bytes, 48u);
  EXPECT_EQ(page->channel[1].calls + page->channel[3].calls, 0u);
  const auto at = [&](int i) { return reinterpret_cast<std::uintptr_t>(&page->channel[i]); };
  EXPECT_EQ((at(1) - at(0)) % (2 * ring::line), 0u);
  EXPECT_EQ(ring::trace_offset_of(ring::max_channels), ring::telemetry_bytes);
}

}  // namespace
