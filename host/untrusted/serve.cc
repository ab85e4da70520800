// The doorbell thread. It starts a thread for each channel that the guest opens, wakes parked threads on a doorbell,
// and ends the session.
//
// Only this thread sleeps on descriptors. A channel's thread sleeps on a word of its channel (a futex), so that a guest
// on the same machine can wake it directly.
#include "host/untrusted/serve.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <thread>

#include "host/session/control_channel.h"
#include "host/untrusted/callbacks/callback_slots.h"
#include "host/untrusted/channel.h"
#include "ring/queue/parking.h"

namespace host {
namespace {

// Wakes the threads of these channels.
void wake(ring::SlotView slot, std::uint64_t channels) {
  for (std::uint32_t c = 0; c < ring::max_channels; ++c)
    if (channels & ring::channel_bit(c)) {
      ring::Parking channel(slot.control(c)[&ring::ChannelControl::worker_asleep]);
      channel.call_off();
      syscall(SYS_futex, channel.word().futex_word(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
}

// Returns the channels, among these, whose ring has a record.
std::uint64_t with_records(ring::SlotView slot, std::uint64_t channels) {
  for (std::uint32_t c = 0; c < ring::max_channels; ++c) {
    const ring::RingView ring = slot.requests(c);
    if (ring.tail.load(std::memory_order_relaxed) == ring.head.load(std::memory_order_relaxed))
      channels &= ~ring::channel_bit(c);
  }
  return channels;
}

// Must be called before reading `opened`: a doorbell after that read then ends the next poll.
void drain(int doorbell_fd) {
  std::uint64_t count;
  [[maybe_unused]] const auto n = read(doorbell_fd, &count, sizeof count);
}

}  // namespace

Served serve(ring::SlotView slot, const Driver& driver, const ServeOptions& options, int doorbell_fd, int control_fd) {
  ControlChannel broker(control_fd, options.life_fd, options.outlive, options.doorbell_by_broker);
  ServeOptions with_lender = options;
  if (options.borrows) with_lender.reserver = &broker;
  become_relaxed(driver);
  Session session(slot, driver, with_lender);
  CallbackSlots callback_slots(session, doorbell_fd);
  session.callbacks.callback_slots = &callback_slots;
  if (options.serving != nullptr) options.serving(session);
  std::array<std::thread, ring::max_channels> threads;
  std::uint64_t started = 0, looks = 0;
  std::atomic<bool> stop{false};
  bool is_signalled = true;

  while (!session.protocol.broken.load(std::memory_order_relaxed)) {
    const std::uint64_t all = slot.header()[&ring::SlotHeader::opened].load(std::memory_order_acquire);
    const std::uint64_t opened = all & ring::first_channels(options.channels);
    for (std::uint32_t c = 0; c < options.channels; ++c)
      if (opened & ~started & ring::channel_bit(c))
        threads[c] = std::thread([&session, &stop, c, doorbell_fd] {
          serve_channel(session, c, stop);
          // Wakes the doorbell thread, which ends a broken session.
          const std::uint64_t one = 1;
          if (session.protocol.broken.load(std::memory_order_relaxed)) [[maybe_unused]]
            const auto n = write(doorbell_fd, &one, 8);
        });
    started |= opened;
    // Without a doorbell, only threads with a record are woken.
    wake(slot, is_signalled ? started : with_records(slot, started));
    callback_slots.wake_all();
    slot.header()[&ring::SlotHeader::heartbeat].store(++looks, std::memory_order_relaxed);

    if (ring::wrong(ring::Mutant::doorbell_order)) drain(doorbell_fd);
    pollfd fds[3] = {{doorbell_fd, POLLIN, 0}, {control_fd, POLLIN | POLLHUP, 0}, broker.liveness_pipe.to_poll()};
    const int news = poll(fds, 3, broker.liveness_pipe.timeout_ms(started != 0));
    if (news < 0) continue;
    is_signalled = news > 0;
    if (fds[0].revents & POLLIN) drain(doorbell_fd);
    broker.liveness_pipe.found(fds[2].revents);
    if (broker.liveness_pipe.is_over()) break;
    if (fds[1].revents != 0 && !broker.hear(session.memory.device)) break;
  }

  stop.store(true, std::memory_order_relaxed);
  broker.close();
  callback_slots.end();
  const bool broken = session.protocol.broken.load(std::memory_order_relaxed);
  // A thread may be inside a driver call for as long as a kernel runs, so the process ends without waiting for it.
  if (started != 0 && !session.options.join_at_end) {
    for (std::thread& t : threads)
      if (t.joinable()) t.detach();
    _exit(static_cast<int>(broken ? Served::ProtocolBroken : Served::Ended));
  }
  for (std::thread& t : threads) {
    wake(slot, started);
    if (t.joinable()) t.join();
  }
  return broken ? Served::ProtocolBroken : Served::Ended;
}

}  // namespace host
