// How a worker wakes its guest: by futex, or by an eventfd that other processes share, fill and reconfigure.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <future>

#include "host/untrusted/callbacks/callback_slots.h"
#include "host/untrusted/callbacks/guest_waker.h"
#include "tests/deadline.h"
#include "tests/shared_word.h"
#include "tests/unit/session/channel.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;

constexpr std::uint64_t most = ~std::uint64_t{0} - 1;  // the largest value of an eventfd

class Interrupt {
 public:
  ~Interrupt() { close(fd); }
  void add(std::uint64_t n) const { EXPECT_EQ(write(fd, &n, sizeof n), 8); }
  // Returns the eventfd's count since the last call.
  std::uint64_t take() const {
    std::uint64_t count = 0;
    pollfd some{fd, POLLIN, 0};
    return poll(&some, 1, 0) == 1 && read(fd, &count, sizeof count) == 8 ? count : 0;
  }
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

// Returns whether the waker wakes a guest that sleeps in this way.
bool wakes(const Interrupt& interrupt, std::uint32_t how) {
  SharedWord<std::uint32_t> word{how};
  const bool woken = host::GuestWaker(word, interrupt.fd).wake();
  EXPECT_EQ(word.load(), 0u);
  return woken;
}

TEST(GuestWaker, OnlyAGuestThatSleepsByDoorbellIsInterrupted) {
  const Interrupt interrupt;
  EXPECT_FALSE(wakes(interrupt, 0));
  EXPECT_TRUE(wakes(interrupt, IVGPU_ASLEEP_BY_FUTEX));
  EXPECT_TRUE(wakes(interrupt, 3)) << "no way of sleeping";
  EXPECT_EQ(interrupt.take(), 0u);
  EXPECT_TRUE(wakes(interrupt, IVGPU_ASLEEP_BY_DOORBELL));
  EXPECT_EQ(interrupt.take(), 1u);
}

TEST(GuestWaker, WhatIsNotReadIsNotWrittenAgain) {
  const Interrupt interrupt;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(wakes(interrupt, IVGPU_ASLEEP_BY_DOORBELL));
  EXPECT_EQ(interrupt.take(), 1u);
  EXPECT_TRUE(wakes(interrupt, IVGPU_ASLEEP_BY_DOORBELL));
  EXPECT_EQ(interrupt.take(), 1u) << "it was read: the next is written";
}

// Another process with the descriptor makes the eventfd blocking and fills it.
TEST(GuestWaker, AFullCounterDoesNotBlockTheWorker) {
  const Interrupt interrupt;
  interrupt.add(most);
  ASSERT_EQ(fcntl(interrupt.fd, F_SETFL, 0), 0);
  const auto woken = std::async(std::launch::async, [&] { return wakes(interrupt, IVGPU_ASLEEP_BY_DOORBELL); });
  const bool returned = woken.wait_for(test_deadline) == std::future_status::ready;
  EXPECT_TRUE(returned);
  EXPECT_EQ(interrupt.take(), most);  // the call does not block
}

TEST(GuestWaker, WithoutAnInterruptTheWordAloneIsTakenBack) {
  SharedWord<std::uint32_t> word{IVGPU_ASLEEP_BY_DOORBELL};
  EXPECT_TRUE(host::GuestWaker(word, -1).wake());
  EXPECT_EQ(word.load(), 0u);
}

host::ServeOptions with(const Interrupt& interrupt) {
  host::ServeOptions options = World::with(host::all_windows);
  options.interrupt_fd = interrupt.fd;
  return options;
}

TEST(GuestWaker, AChannelsGuestIsInterruptedForWhatItAwaits) {
  const Interrupt interrupt;
  World world(with(interrupt));
  Channel channel(world);
  channel.put(ids::hello, Payload::record(api::HelloRecord{ring::window_count, 0}));
  for (int i = 0; i < 3; ++i) channel.put(ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{64, 0, 0, 0}));
  channel.control().guest_awaits = 3;
  channel.control().guest_asleep = IVGPU_ASLEEP_BY_DOORBELL;
  EXPECT_EQ(channel.serve(), 4u);
  EXPECT_EQ(interrupt.take(), 1u);
  EXPECT_EQ(channel.control().guest_asleep, 0u);
}

TEST(GuestWaker, TheCallbackThreadIsInterruptedForACallbackSlot) {
  const Interrupt interrupt, doorbell;
  World world(with(interrupt));
  host::CallbackSlots callback_slots(*world.session, doorbell.fd);
  other_side::header(world.session->slot).callbacks_asleep = IVGPU_ASLEEP_BY_DOORBELL;
  EXPECT_TRUE(callback_slots.post(ring::CallbackKind::HostFunction, 1));
  EXPECT_EQ(interrupt.take(), 1u);
  EXPECT_EQ(other_side::header(world.session->slot).callbacks_asleep, 0u);
}

}  // namespace
