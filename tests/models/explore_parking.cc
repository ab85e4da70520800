// Sleeping and waking (ring/queue/parking.h) on the ring's own words, with a futex without a time-out.
#include "tests/models/explored.h"
// The product's headers, after explored.h:
#include "ring/queue/parking.h"
#include "ring/queue/record_ring.h"
#include "tests/models/scenarios.h"
#include "tests/shared_word.h"

namespace explore {
namespace {

constexpr std::uint32_t ring_bytes = 64;

// A channel: its ring, the words that threads sleep on, and the surrounding code of host/untrusted/channel.cc and
// guest/session/channel.cc.
struct Channel {
  Channel() { share(bytes, sizeof bytes); }
  ring::RingView view() { return {tail, head, {bytes, ring_bytes}}; }

  void publish_one() {
    std::byte* at = nullptr;
    while (producer.reserve(16, at) == ring::Peer::Wait) pause();
    const ring::RecordHeader header{.bytes = 16, .call = 1, .flags = 0, .position = 1};
    std::memcpy(at, &header, sizeof header);
    producer.publish();
  }
  bool take_one() {
    std::span<const std::byte> record;
    const ring::Peer peer = consumer.take({into, sizeof into}, record);
    require(peer != ring::Peer::Broken, "the ring is broken");
    return peer == ring::Peer::Ok;
  }
  template <class Anything>
  void sleep(Anything anything) {
    if (!worker.may_sleep(anything)) return;
    futex_wait(asleep.address(), 1);
    worker.woke();
  }

  alignas(16) std::byte bytes[ring_bytes] = {};
  alignas(16) std::byte into[ring_bytes] = {};
  SharedWord<std::uint32_t> tail, head, asleep;
  ring::Parking worker{asleep};
  ring::Producer producer{view()};
  ring::Consumer consumer{view()};
};

// Loopback: the guest wakes the worker directly with a futex.
struct Futex {
  void guest() {
    for (int i = 0; i < 2; ++i) {
      channel.publish_one();
      if (channel.worker.must_wake() != ring::Asleep::No) futex_wake(channel.asleep.address());
    }
  }
  void worker() {
    for (int taken = 0; taken < 2;)
      if (channel.take_one())
        ++taken;
      else
        channel.sleep([&] { return channel.consumer.anything(); });
  }
  void finish() {}
  Channel channel;
};

// A VM: the guest rings and the doorbell thread wakes the worker. A ring for another channel may come at any time.
struct Doorbell {
  void guest() {
    channel.publish_one();
    if (channel.worker.must_wake() != ring::Asleep::No) eventfd.fetch_add(1, std::memory_order_acq_rel);
  }
  void other_guest() { eventfd.fetch_add(1, std::memory_order_acq_rel); }
  void worker() {
    while (!channel.take_one()) channel.sleep([&] { return channel.consumer.anything(); });
  }
  void doorbell() {  // a daemon
    for (;;) {
      while (eventfd.exchange(0, std::memory_order_acq_rel) == 0) pause();
      channel.worker.call_off();
      futex_wake(channel.asleep.address());
    }
  }
  void finish() {}
  Channel channel;
  std::atomic<std::uint32_t> eventfd{0};
};

// The end of a session: the doorbell thread stops a channel's thread.
struct Stop {
  void doorbell() {
    stop.store(1, std::memory_order_relaxed);
    channel.worker.call_off();
    futex_wake(channel.asleep.address());
  }
  void worker() {
    while (stop.load(std::memory_order_relaxed) == 0)
      channel.sleep([&] { return stop.load(std::memory_order_relaxed) != 0; });
  }
  void finish() {}
  Channel channel;
  std::atomic<std::uint32_t> stop{0};
};

// The reverse direction: the guest sleeps until the worker replies. The reply is two plain words.
struct Reply {
  Reply() { share(reply, sizeof reply); }
  void worker() {
    for (std::uint64_t i = 1; i <= 2; ++i) {
      wait_for(&asked, i);
      const std::uint64_t text[2] = {i, i};
      std::memcpy(reply, text, sizeof reply);
      position.store(i, std::memory_order_release);  // R
      if (sleeper.must_wake() != ring::Asleep::No) futex_wake(asleep.address());
    }
  }
  void guest() {
    for (std::uint64_t i = 1; i <= 2; ++i) {
      asked.store(i, std::memory_order_release);
      const auto answered = [&] { return position.load(std::memory_order_acquire) == i; };
      while (!answered() && sleeper.may_sleep(answered)) {
        futex_wait(asleep.address(), 1);
        sleeper.woke();
      }
      std::uint64_t text[2];
      std::memcpy(text, reply, sizeof text);
      require(text[0] == i && text[1] == i, "a reply is another record's");
    }
  }
  void finish() {}
  alignas(16) std::uint64_t reply[2] = {};
  std::atomic<std::uint64_t> asked{0}, position{0};
  SharedWord<std::uint32_t> asleep;
  ring::Parking sleeper{asleep};
};

// The guest sleeps until one record of many is executed, and only that record wakes the guest.
struct Awaited {
  void worker() {
    for (std::uint64_t i = 1; i <= 3; ++i) {
      executed.store(i, std::memory_order_release);  // X
      const auto awaited = [&] { return i >= awaits.load(std::memory_order_relaxed); };
      if (sleeper.must_wake(awaited) != ring::Asleep::No) futex_wake(asleep.address());
    }
  }
  void guest() {
    // A wait for space may end before the record that it awaits is executed.
    awaits.store(9, std::memory_order_relaxed);
    for (const std::uint64_t position : {2u, 3u}) {
      const auto done = [&] { return executed.load(std::memory_order_acquire) >= position; };
      while (!done()) {
        awaits.store(position, std::memory_order_relaxed);
        if (!sleeper.may_sleep(done)) continue;
        futex_wait(asleep.address(), 1);
        sleeper.woke();
      }
    }
  }
  void finish() {}
  std::atomic<std::uint64_t> executed{0}, awaits{0};
  SharedWord<std::uint32_t> asleep;
  ring::Parking sleeper{asleep};
};

// A VM with the kernel module. The worker writes a vector's eventfd, which two slots share. On the interrupt, the
// guest's kernel checks the words of its sleeping threads.
struct Interrupt {
  void worker() {
    for (std::uint64_t i = 1; i <= 2; ++i) {
      executed.store(i, std::memory_order_release);  // X
      if (sleeper.must_wake() == ring::Asleep::ByDoorbell) vector.fetch_add(1, std::memory_order_acq_rel);
    }
  }
  void other_worker() { vector.fetch_add(1, std::memory_order_acq_rel); }
  void guest() {
    for (std::uint64_t i = 1; i <= 2; ++i) {
      const auto done = [&] { return executed.load(std::memory_order_acquire) >= i; };
      while (!done() && sleeper.may_sleep(done, ring::Asleep::ByDoorbell)) {
        futex_wait(asleep.address(), IVGPU_ASLEEP_BY_DOORBELL);
        sleeper.woke();
      }
    }
  }
  void interrupt() {  // a daemon
    for (;;) {
      while (vector.exchange(0, std::memory_order_acq_rel) == 0) pause();
      if (asleep.load(std::memory_order_relaxed) != IVGPU_ASLEEP_BY_DOORBELL) futex_wake(asleep.address());
    }
  }
  void finish() {}
  std::atomic<std::uint64_t> executed{0};
  std::atomic<std::uint32_t> vector{0};
  SharedWord<std::uint32_t> asleep;
  ring::Parking sleeper{asleep};
};

}  // namespace

std::vector<Scenario> parking_scenarios() {
  return {
      {"parking", "futex", [](Options o) { return bounded<Futex, &Futex::guest, &Futex::worker>(o, 4); }},
      {"parking", "bell",
       [](Options o) {
         return bounded<Doorbell, &Doorbell::guest, &Doorbell::other_guest, &Doorbell::worker, &Doorbell::doorbell>(
             o, 2, 1);
       }},
      {"parking", "stop", [](Options o) { return bounded<Stop, &Stop::doorbell, &Stop::worker>(o, 99); }},
      {"parking", "reply", [](Options o) { return bounded<Reply, &Reply::worker, &Reply::guest>(o, 4); }},
      {"parking", "awaited", [](Options o) { return bounded<Awaited, &Awaited::worker, &Awaited::guest>(o, 4); }},
      {"parking", "interrupt",
       [](Options o) {
         return bounded<Interrupt, &Interrupt::worker, &Interrupt::other_worker, &Interrupt::guest,
                        &Interrupt::interrupt>(o, 2, 1);
       }},
  };
}

}  // namespace explore
