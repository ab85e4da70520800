// Programs that have mappings where the driver places its memory. ivgpud and the worker are real; the simulated GPU
// chooses addresses as the real driver does (host/simgpu/memory/chunks.h).
#include <gtest/gtest.h>

#include <regex>

#include "tests/unit/broker/watched_broker.h"

namespace {

using namespace broker_test;

constexpr const char* top = "7ee000000000";

class Collisions : public testing::Test {
 protected:
  Outcome collide(const std::vector<std::string>& ranges) {
    setenv("IVGPU_REGION", (broker_.folder / "t.sock").c_str(), 1);
    setenv("IVGPU_LOG_FILE", (broker_.folder / "guest.log").c_str(), 1);
    setenv("IVGPU_LOG", "debug", 1);
    std::vector<std::string> arguments = {GUEST_CUDA, top};
    arguments.insert(arguments.end(), ranges.begin(), ranges.end());
    const Outcome outcome = run_program(COLLIDER, arguments);
    for (const char* name : {"IVGPU_REGION", "IVGPU_LOG_FILE", "IVGPU_LOG"}) unsetenv(name);
    return outcome;
  }
  // Expects disjoint blocks after `least` to `most` collisions, and at most `later` collisions among the following
  // thousand small blocks.
  void expect_that_all_fits(const std::vector<std::string>& ranges, unsigned long least, unsigned long most,
                            unsigned long later = 0) {
    const Outcome outcome = collide(ranges);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    std::smatch found;
    const std::regex form("apart\ncollided ([0-9]+)\na thousand more\ncollided ([0-9]+)\n");
    ASSERT_TRUE(std::regex_match(outcome.text, found, form)) << outcome.text;
    const unsigned long collided = std::stoul(found[1]);
    EXPECT_GE(collided, least);
    EXPECT_LE(collided, most);
    EXPECT_LE(std::stoul(found[2]) - collided, later) << outcome.text;
  }

 private:
  WatchedBroker broker_{"spare = 0\nslots = 2\nregion_size = \"256MiB\"\n", "",
                        [] {
                          setenv("IVGPU_SIM_CHUNKS_BELOW", top, 1);
                          setenv("IVGPU_SIM_MEMORY", "16G", 1);
                        },
                        "sim"};
};

TEST_F(Collisions, WithoutAnyNothingIsAskedTwice) { expect_that_all_fits({}, 0, 0); }

// The range overlaps the first block of the first chunk. The driver allocates the rest of that block, and then uses the
// chunk's next block.
TEST_F(Collisions, ABlockIsFilled) { expect_that_all_fits({"32-30"}, 3, 40); }

// The ranges lie inside a chunk that the driver already has. The worker freed the large blocks that collided, so the
// thousand small blocks later collide with two ranges again.
TEST_F(Collisions, BlocksHereAndThereAreFilled) { expect_that_all_fits({"32-30", "28-24", "10-9"}, 3, 120, 60); }

// Resembles a process with large libraries: the driver's next chunks avoid each reported range as a whole. The block of
// 2000 MiB collided with the second range and was freed, so one of the thousand small blocks collides with that range
// again.
TEST_F(Collisions, RangesOfGigabytesAreSteppedOver) {
  expect_that_all_fits({"5120-0", "12288-6144", "30000-16384"}, 3, 200, 60);
}

// Libraries with gaps that are too small for a chunk count as one range.
TEST_F(Collisions, ManyNeighboursAreOneRange) {
  std::vector<std::string> ranges;
  for (int at = 20; at < 4000; at += 40) ranges.push_back(std::to_string(at + 20) + "-" + std::to_string(at));
  expect_that_all_fits(ranges, 3, 200);
}

}  // namespace
