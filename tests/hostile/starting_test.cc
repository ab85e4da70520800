// A guest writes into its slots while their workers start, before it claims a slot. No worker may end by a signal,
// which the watched broker checks. The tests use a real ivgpud, real workers and the simulated GPU.
#include <atomic>
#include <cstddef>

#include "tests/unit/broker/watched_broker.h"

namespace {

using namespace broker_test;
using ring::SlotState;

// Overwrites every slot's device page until the object is destroyed, with counts beyond any page and names without a
// NUL.
class Scribbler {
 public:
  explicit Scribbler(const Client& guest) : thread_([this, &guest] { run(guest); }) {}
  ~Scribbler() {
    over_ = true;
    thread_.join();
  }
  Scribbler(const Scribbler&) = delete;
  Scribbler& operator=(const Scribbler&) = delete;

 private:
  // Writes mostly the count, since the time in which a worker could read the count twice is short.
  void run(const Client& guest) {
    for (unsigned long round = 0; !over_; ++round) {
      const std::size_t words = round % 64 == 0 ? 64 : 1;
      for (std::uint32_t k = 0; k < guest.header().slot_count; ++k) {
        auto* page = reinterpret_cast<volatile std::uint64_t*>(guest.slot(k) + ring::device_page_offset);
        for (std::size_t i = 0; i < words; ++i) page[i] = ~0ULL;
      }
    }
  }

  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST(Starting, AGuestThatWritesIntoTheSlotKillsNoWorker) {
  WatchedBroker broker(
      "spare = 2\nslots = 3\nstarts_per_second = 1000\nstart_burst = 1000", "", [] {}, SIMULATED_GPU);
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  {
    const Scribbler scribbler(guest);
    for (int i = 0; i < 40; ++i) {
      const auto taken = guest.claim();
      ASSERT_TRUE(taken) << "no worker starts any more";
      ASSERT_TRUE(guest.step(*taken, SlotState::Claimed, SlotState::Released));
    }
  }
}

}  // namespace
