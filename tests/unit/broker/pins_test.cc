// A released slot with pages that the guest's kernel still uses (SlotEntry::pinned). The slot's worker ends at once,
// but the broker neither scrubs pages nor reuses the slot while they are in use. The tests include guests that lie
// about their use. They use a real ivgpud and fake workers.
#include <atomic>

#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using ring::SlotState;
using namespace std::chrono_literals;

class Pins : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(guest.greet(3)); }

  void pin(std::uint32_t k, std::uint32_t word = 1) const { other_side::shared(guest.entry(k).pinned).store(word); }
  void unpin(std::uint32_t k) const {
    pin(k, 0);
    guest.ring_peer(ring::peer_broker);
  }
  volatile char& byte_of(std::uint32_t k) const { return guest.command(k)[100]; }
  // Ends a session while its pages are in use.
  void end_pinned(const Client& by, std::uint32_t k) const {
    ASSERT_EQ(by.claim(), k);
    byte_of(k) = 7;
    pin(k);
    ASSERT_TRUE(by.step(k, SlotState::Claimed, SlotState::Released));
    ASSERT_TRUE(waits(k));
  }
  std::string told() const { return run_program(IVGPU, {"status", "--runtime-dir", broker.folder.path()}).text; }
  // True if the slot's worker has exited and the broker reports the slot as in use.
  bool waits(std::uint32_t k) const {
    const std::string line =
        "slot " + std::to_string(k) + "    released  worker -         the guest's kernel still uses";
    return eventually([&] { return told().find(line) != std::string::npos; });
  }
  bool is_emptied(std::uint32_t k, std::uint32_t epoch = 1) const {
    return eventually([&] { return guest.word(k).epoch == epoch; });
  }

  Broker broker;
  Client guest{broker.socket_path()};
};

TEST_F(Pins, TheSlotWaitsUntilTheKernelLetsGo) {
  end_pinned(guest, 0);
  for (int i = 0; i < 20; ++i) {
    guest.ring_peer(ring::peer_broker);
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(guest.word(0).state, SlotState::Released);
  EXPECT_EQ(guest.word(0).epoch, 0U);
  EXPECT_EQ(byte_of(0), 7) << "nobody has scrubbed it";
  ASSERT_EQ(guest.claim(), 1U) << "others are served";
  unpin(0);
  ASSERT_TRUE(is_emptied(0));
  EXPECT_EQ(byte_of(0), 0);
  EXPECT_EQ(told().find("still uses"), std::string::npos);
}

TEST_F(Pins, AnyWordButZeroHoldsIt) {
  ASSERT_EQ(guest.claim(), 0U);
  pin(0, 0x80000000U);
  ASSERT_TRUE(guest.step(0, SlotState::Claimed, SlotState::Released));
  ASSERT_TRUE(waits(0));
  unpin(0);
  EXPECT_TRUE(is_emptied(0));
}

TEST_F(Pins, ASlotWithoutAWorkerWaitsAsWell) {
  ASSERT_EQ(guest.claim(), 0U);
  guest.command(0)[0] = 'x';
  guest.ring_peer(ring::peer_of_slot(0));
  ASSERT_TRUE(guest.becomes(0, SlotState::Dead));
  pin(0);
  ASSERT_TRUE(guest.step(0, SlotState::Dead, SlotState::Released));
  ASSERT_TRUE(waits(0));
  unpin(0);
  EXPECT_TRUE(is_emptied(0));
}

TEST_F(Pins, AGuestThatIsGoneUsesNothing) {
  Client other(broker.socket_path());
  ASSERT_TRUE(other.greet(3));
  end_pinned(guest, 0);
  end_pinned(other, 1);
  other.hang_up();
  ASSERT_TRUE(is_emptied(1));
  EXPECT_EQ(guest.word(0).epoch, 0U) << "the other's kernel lives";
  guest.hang_up();
  EXPECT_TRUE(is_emptied(0));
}

// An owner that names no client could be any client. The slot is therefore free only when all guests have left.
TEST_F(Pins, ASlotOfNobodyIsFreeWithTheLastGuest) {
  end_pinned(guest, 0);
  guest.entry(0).owner.peer = 54321;
  guest.hang_up();
  EXPECT_TRUE(is_emptied(0));
}

TEST_F(Pins, TheWordMeansNothingInOtherStates) {
  for (std::uint32_t k = 0; k < 3; ++k) pin(k);
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  const auto workers = broker.workers();
  ASSERT_EQ(workers.size(), 1U);
  kill(workers[0], SIGKILL);  // the slots are Ready, Starting, Empty, Starting, Ready
  ASSERT_TRUE(is_emptied(0));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_TRUE(guest.becomes(1, SlotState::Ready));
  EXPECT_EQ(guest.word(0).state, SlotState::Claimed);
}

TEST_F(Pins, AGuestThatKeepsAllSlotsLosesItsOwn) {
  for (std::uint32_t k = 0; k < 3; ++k) end_pinned(guest, k);
  other_side::shared(guest.header().wanted).fetch_add(1);
  guest.ring_peer(ring::peer_broker);
  EXPECT_TRUE(broker.eventually_logged("all 3 slots are taken"));
  EXPECT_TRUE(broker.workers().empty());
  unpin(1);
  EXPECT_EQ(guest.claim(), 1U);
  EXPECT_EQ(broker.terminate(), 0);
}

// The word `pinned` changes before, during and after the scrubbing.
TEST_F(Pins, ATogglingWordDoesNotConfuseTheBroker) {
  std::atomic<bool> stop{false};
  std::thread toggling([&] {
    for (std::uint32_t i = 0; !stop; ++i) {
      for (std::uint32_t k = 0; k < 3; ++k) pin(k, i % 2);
      if (i % 16 == 0) guest.ring_peer(ring::peer_broker);
      std::this_thread::sleep_for(50us);
    }
  });
  for (int round = 0; round < 20; ++round) {
    const auto slot = guest.claim();
    EXPECT_TRUE(slot) << round;
    if (!slot) break;
    EXPECT_TRUE(guest.step(*slot, SlotState::Claimed, SlotState::Released));
  }
  stop = true;
  toggling.join();
  for (std::uint32_t k = 0; k < 3; ++k) unpin(k);
  EXPECT_TRUE(eventually([&] { return guest.count(SlotState::Ready) == 1 && guest.count(SlotState::Empty) == 2; }));
  EXPECT_FALSE(broker.logged("put back"));
  EXPECT_EQ(broker.terminate(), 0);
}

}  // namespace
