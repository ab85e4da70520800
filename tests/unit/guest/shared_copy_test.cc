// A copy shared by several threads is complete for any size and number of threads.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "guest/objects/copy/shared_copy.h"

namespace {

using guest::SharedCopy;

std::vector<unsigned char> numbers(std::size_t bytes) {
  std::vector<unsigned char> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<unsigned char>(i * 31 + i / 997);
  return out;
}

TEST(SharedCopy, AllBytesAreCopiedOnce) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{5} << 20, (std::size_t{9} << 20) + 13}) {
    const auto from = numbers(bytes);
    for (const unsigned helpers : {0u, 1u, 3u, 40u}) {
      std::vector<unsigned char> to(bytes + 1, 0xee);
      SharedCopy(to.data(), from.data(), bytes, helpers).run();
      EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin())) << bytes << " bytes, " << helpers << " helpers";
      EXPECT_EQ(to[bytes], 0xee);
    }
  }
}

TEST(SharedCopy, ACopyThatIsNeverMadeEnds) {
  auto from = numbers(8 << 20);
  std::vector<unsigned char> to(from.size());
  SharedCopy(to.data(), from.data(), from.size(), 3);
  EXPECT_EQ(to, std::vector<unsigned char>(from.size()));
}

TEST(SharedCopy, PagesAreThereBeforeTheCopy) {
  constexpr std::size_t bytes = 8 << 20, page = 4096;
  auto* to =
      static_cast<unsigned char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto from = numbers(bytes);
  SharedCopy copy(to, from.data(), bytes, 3);
  ASSERT_TRUE(copy.make_pages());
  std::vector<unsigned char> resident(bytes / page);
  ASSERT_EQ(mincore(to, bytes, resident.data()), 0);
  for (const unsigned char page_state : resident) ASSERT_EQ(page_state & 1, 1);
  copy.run();
  EXPECT_EQ(std::memcmp(to, from.data(), bytes), 0);
  munmap(to, bytes);
}

}  // namespace
