// The test plays a guest in a VM with the kernel module. A real broker gives the test the region and its interrupts, as
// it gives them to QEMU. The test announces a sleep by doorbell, and a real worker wakes the test through the vector's
// eventfd.
#include <sys/eventfd.h>

#include <cstring>

#include "guest/region/region.h"
#include "ring/api/call.h"
#include "ring/api/records.h"
#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
namespace ids = api::id_of;

constexpr std::uint32_t slots = 3, vectors = 2;

bool has_come(int interrupt, int milliseconds = deadline_ms) {
  pollfd come{interrupt, POLLIN, 0};
  return poll(&come, 1, milliseconds) == 1;
}
std::uint64_t take(int interrupt) {
  std::uint64_t count = 0;
  return has_come(interrupt, 0) && read(interrupt, &count, sizeof count) == 8 ? count : 0;
}

// The first channel of a claimed slot.
class Session {
 public:
  Session(const Client& guest, std::uint32_t slot)
      : guest_(guest), index_(slot), slot_(guest.slot(slot), guest.header().slot_bytes) {
    other_side::shared(other_side::header(slot_).opened).store(1);
    guest.ring_peer(ring::peer_of_slot(slot));
  }
  // Sends a record, after announcing a sleep, so that the worker finds the guest asleep.
  template <class Record>
  void send_asleep(int call, const Record& record) {
    other_side::shared(control().guest_awaits).store(++position_);
    other_side::shared(control().guest_asleep).store(IVGPU_ASLEEP_BY_DOORBELL);
    const ring::RecordHeader header{.bytes = ring::record_size(sizeof record),
                                    .call = static_cast<std::uint16_t>(call),
                                    .flags = ring::flag_wants_reply,
                                    .position = position_};
    std::byte* at = other_side::requests(slot_, 0).data() + tail_;
    std::memcpy(at, &header, sizeof header);
    std::memcpy(at + sizeof header, &record, sizeof record);
    other_side::shared(control().tail).store(tail_ += header.bytes);
    guest_.ring_peer(ring::peer_of_slot(index_));
  }
  void send_hello_asleep() { send_asleep(ids::hello, api::HelloRecord{ring::window_count, 0}); }
  void send_allocation_asleep() { send_asleep(ids::cuMemAlloc_v2, api::AllocateRecord{64, 0, 0, 0}); }
  bool answered() const { return other_side::shared(control().reply_position).load() == position_; }
  bool asleep() const { return other_side::shared(control().guest_asleep).load() != 0; }

 private:
  ring::ChannelControl& control() const { return other_side::control(slot_, 0); }
  const Client& guest_;
  const std::uint32_t index_;
  const ring::SlotView slot_;
  std::uint32_t tail_ = 0;
  std::uint64_t position_ = 0;
};

class Interrupts : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(guest.greet(slots, vectors));
    for (std::uint32_t k = 0; k < slots; ++k) ASSERT_EQ(guest.claim(), k);
  }
  Broker broker{"vectors = 2\nspin_threads = 0", "", [] {}, SIMULATED_GPU};
  Client guest{broker.socket_path()};
};

TEST_F(Interrupts, EachSlotsWorkerWakesItsGuestByItsVector) {
  for (std::uint32_t k = 0; k < slots; ++k) {
    const int own = guest.interrupt(k % vectors), other = guest.interrupt((k + 1) % vectors);
    Session session(guest, k);
    session.send_hello_asleep();
    ASSERT_TRUE(has_come(own)) << k;
    EXPECT_FALSE(session.asleep()) << "the word is cleared before the interrupt";
    EXPECT_TRUE(session.answered());
    EXPECT_EQ(take(own), 1u);
    session.send_allocation_asleep();
    ASSERT_TRUE(has_come(own)) << k;
    EXPECT_TRUE(session.answered());
    EXPECT_EQ(take(own), 1u);
    EXPECT_EQ(take(other), 0u) << k;
  }
}

// The eventfd is full and no process reads it, so a blocking write would hang the worker.
TEST_F(Interrupts, AFullVectorKeepsNoWorkerFromItsWork) {
  const std::uint64_t most = ~std::uint64_t{0} - 1;
  ASSERT_EQ(write(guest.interrupt(0), &most, sizeof most), 8);
  ASSERT_EQ(fcntl(guest.interrupt(0), F_SETFL, 0), 0);
  for (const std::uint32_t k : {0u, 2u}) {  // the workers of both slots use this vector
    Session session(guest, k);
    session.send_hello_asleep();
    ASSERT_TRUE(eventually([&] { return session.answered(); })) << k;
    for (int i = 0; i < 3; ++i) {
      session.send_allocation_asleep();
      ASSERT_TRUE(eventually([&] { return session.answered(); })) << k;
    }
    EXPECT_TRUE(eventually([&] { return !session.asleep(); }));
  }
  EXPECT_EQ(broker.terminate(), 0);
}

// On the host itself the library uses no interrupt. It must not mistake the descriptor of an interrupt for the end of
// the connection.
TEST(LoopbackRegion, LivesWithAnyNumberOfInterrupts) {
  for (const char* vectors_key : {"vectors = 1", "vectors = 2", "vectors = 64"}) {
    Broker broker(
        vectors_key, "", [] {}, SIMULATED_GPU);
    const auto region = guest::connect_region(broker.socket_path().c_str());
    ASSERT_TRUE(region) << vectors_key;
    EXPECT_TRUE(broker.eventually_logged("is peer 65"));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(region->broker(), guest::Region::Broker::Lives) << vectors_key;
    broker.terminate();
    EXPECT_TRUE(eventually([&] { return region->broker() == guest::Region::Broker::Gone; }));
  }
}

}  // namespace
