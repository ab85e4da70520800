// The guest's report of its own mappings, for device memory that collides with a mapping.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "guest/objects/memory/occupied.h"
#include "ring/api/records.h"

namespace {

using guest::Stretch, guest::Occupied;

constexpr std::uint64_t mib = 1 << 20;

// A line of /proc/self/maps.
std::string line(std::uint64_t start, std::uint64_t end, const std::string& name = "") {
  char text[64];
  std::snprintf(text, sizeof text, "%llx-%llx rw-p 00000000 00:00 0 ", static_cast<unsigned long long>(start),
                static_cast<unsigned long long>(end));
  return text + name + "\n";
}
Stretch around(const std::string& list, std::uint64_t start, std::uint64_t end) {
  const int file = memfd_create("maps", MFD_CLOEXEC);
  EXPECT_EQ(write(file, list.data(), list.size()), static_cast<ssize_t>(list.size()));
  lseek(file, 0, SEEK_SET);
  const Stretch found = guest::mappings_around(file, {start, end});
  close(file);
  return found;
}
void expect(const Stretch& found, std::uint64_t start, std::uint64_t end) {
  EXPECT_EQ(found.start, start);
  EXPECT_EQ(found.end, end);
}

TEST(GuestOccupied, NeighboursAreJoinedWhereNoChunkFitsInBetween) {
  const std::string list = line(100 * mib, 110 * mib) + line(142 * mib, 150 * mib) +
                           line(181 * mib, 190 * mib, "/a library") + line(190 * mib, 191 * mib) +
                           line(222 * mib, 223 * mib) + line(255 * mib, 300 * mib);
  expect(around(list, 185 * mib, 186 * mib), 142 * mib, 223 * mib);
  expect(around(list, 145 * mib, 146 * mib), 142 * mib, 223 * mib);
  expect(around(list, 105 * mib, 106 * mib), 100 * mib, 110 * mib);
  expect(around(list, 299 * mib, 400 * mib), 255 * mib, 300 * mib);
}

TEST(GuestOccupied, AllThatOnePieceCollidesWithIsOneRange) {
  const std::string list = line(100 * mib, 110 * mib) + line(1000 * mib, 1010 * mib) + line(2000 * mib, 2010 * mib);
  expect(around(list, 90 * mib, 1005 * mib), 100 * mib, 1010 * mib);
  expect(around(list, 90 * mib, 1000 * mib), 100 * mib, 110 * mib);
}

TEST(GuestOccupied, WhereNothingIsThereNothingIsReported) {
  const std::string list = line(100 * mib, 110 * mib) + line(112 * mib, 120 * mib);
  for (const auto& [start, end] : {Stretch{1 * mib, 100 * mib}, {120 * mib, 121 * mib}, {500 * mib, 501 * mib}})
    expect(around(list, start, end), 0, 0);
  expect(around("", 0, 1), 0, 0);
  expect(around("nonsense\n" + list, 100 * mib, 101 * mib), 0, 0);
}

TEST(GuestOccupied, LongNamesAndLettersOfAllKindsAreSkipped) {
  const std::string list = line(100 * mib, 110 * mib, std::string(10000, '\xff')) +
                           line(120 * mib, 130 * mib, "/7f-7f 7f\\012-80") + line(500 * mib, 510 * mib);
  expect(around(list, 125 * mib, 126 * mib), 100 * mib, 130 * mib);
}

// A mapping with free addresses on both sides.
class Mapping {
 public:
  static constexpr std::uint64_t bytes = 64 * mib;
  Mapping() {
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    at_ = mmap(nullptr, bytes, PROT_NONE, flags, -1, 0);
  }
  ~Mapping() { munmap(at_, bytes); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::uint64_t start() const { return reinterpret_cast<std::uint64_t>(at_); }

 private:
  void* at_;
};

TEST(GuestOccupied, ARangeIsReportedOnceAndInWholeHugePages) {
  const Mapping mapping;
  Occupied occupied;
  const auto told = occupied.around(mapping.start() + 4096, 4096);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->start % ring::huge_page, 0u);
  EXPECT_EQ(told->end % ring::huge_page, 0u);
  EXPECT_LE(told->start, mapping.start());
  EXPECT_GE(told->end, mapping.start() + Mapping::bytes);
  EXPECT_LE(told->end - told->start, api::max_excluded_range);
  EXPECT_FALSE(occupied.around(mapping.start() + 32 * mib, 1)) << "told already";
  EXPECT_FALSE(occupied.around(told->end - 3 * mib, 6 * mib)) << "told already, though more is asked for";
}

TEST(GuestOccupied, FreeRangesAreNotReported) {
  Occupied occupied;
  EXPECT_FALSE(occupied.around(4096, 4096)) << "nothing is mapped there";
}

}  // namespace
