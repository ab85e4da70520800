// Abandoned waits. While the host does not answer (Liveness::suspend), a wait ends without its reply, and the record
// stays in the ring. If the session comes back, the following holds:
//   * The worker executes the records in the ring in order, and also answers the record whose wait was abandoned. A
//     position is never used twice, and a thread accepts a reply only if reply_position equals the position that the
//     thread waits for. Hence no thread accepts the late reply.
//   * The worker may write a late reply while the next waited record is pending. The worker's thread writes the replies
//     of a channel one after another, and the position of each reply last (edge R). A reader that sees the position of
//     its record therefore sees the bytes of that reply. The next reply is for a record that is published under the
//     channel's lock, after these bytes have been read. Hence length, result and bytes never come from two replies.
//   * Only the calling thread copies results from the mailbox to the caller's memory, before the call returns. A failed
//     call writes nothing later. The host itself writes only memory that the GPU may touch: the arena and device
//     memory.
//   * If a thread abandons a wait for space in a full ring, the producer is unchanged, since only publish() takes
//     space.
//   * The error of a waited record is lost with its late reply. The next call reports the error of a posted record. The
//     guest keeps everything that the late record uses until `executed` has passed the record: staging chunks
//     (guest/objects/memory/arena.h), blocks of the arena (Arena::free_after), ids (guest/objects/objects.h), and the
//     last use of its streams (guest/marshal/custom.h).
#include "guest/session/channel.h"

#include <algorithm>
#include <cstring>

#include "guest/region/cache_probe.h"

namespace guest {
namespace {

using Control = ring::ChannelControl;

// The longest sleep. After each sleep the thread checks whether the host is alive.
constexpr std::uint64_t longest_reply_sleep_ns = 50'000'000;

}  // namespace

Channel::Channel(Liveness& liveness, const Slot& slot, WorkerDoorbell& doorbell, const Sleeper& sleeper,
                 std::uint32_t index)
    : liveness_(liveness),
      slot_(slot),
      doorbell_(doorbell),
      sleeper_(sleeper),
      index_(index),
      control_(slot.view().control(index)),
      mailbox_(slot.view().reply(index)),
      producer_(slot.view().requests(index)),
      parked_{ring::Parking(control_[&Control::worker_asleep]), ring::Parking(control_[&Control::guest_asleep])} {}

CUresult Channel::begin(int call, std::size_t payload, ring::Writer& writer) {
  if (!liveness_.usable()) return CUDA_ERROR_DEVICE_UNAVAILABLE;  // a lost slot may belong to another process
  if (!slot_.serves(call)) return slot_.refuse_unserved(call);
  if (!fits(payload)) return CUDA_ERROR_INVALID_VALUE;
  record_.bytes = ring::record_size(payload);
  record_.call = static_cast<std::uint16_t>(call);
  ring::Peer peer = ring::Peer::Wait;
  const auto has_room = [&] {
    mutex_.assume_held();
    return (peer = producer_.reserve(record_.bytes, record_.at)) != ring::Peer::Wait;
  };
  if (!has_room() && !wait_until(has_room, half_of_what_is_queued())) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (peer == ring::Peer::Broken) {
    liveness_.lose("the worker's ring index makes no sense");
    return CUDA_ERROR_DEVICE_UNAVAILABLE;
  }
  writer = ring::Writer({record_.at + sizeof(ring::RecordHeader), ring::padded(payload)});
  return CUDA_SUCCESS;
}

std::uint64_t Channel::publish(std::uint16_t flags) {
  const std::uint64_t position = posted_.load(std::memory_order_relaxed) + 1;
  const ring::RecordHeader header{.bytes = record_.bytes, .call = record_.call, .flags = flags, .position = position};
  std::memcpy(record_.at, &header, sizeof header);
  producer_.publish();
  posted_.store(position, std::memory_order_relaxed);
  auto& counter = (flags & ring::flag_wants_reply) ? counts.waited_calls : counts.posted_calls;
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  counts.bytes.store(counts.bytes.load(std::memory_order_relaxed) + record_.bytes, std::memory_order_relaxed);
  if (parked_.worker.must_wake() != ring::Asleep::No) doorbell_.wake(parked_.worker.word());
  return position;
}

Reply Channel::await_reply(std::uint64_t position) {
  // R: the worker writes the reply's bytes before the reply's position (host/untrusted/channel.cc).
  const auto answered = [&] { return control_[&Control::reply_position].load(std::memory_order_acquire) == position; };
  if (!answered() && !wait_until(answered, position))
    return {.came = false, .result = CUDA_ERROR_DEVICE_UNAVAILABLE, .payload = {}};
  std::uint32_t length = control_[&Control::reply_length].load(std::memory_order_relaxed);
  if (length > mailbox_.size()) {
    liveness_.lose("a reply is longer than its mailbox");
    return {.came = true, .result = CUDA_ERROR_DEVICE_UNAVAILABLE, .payload = {}};
  }
  if (ring::wrong(ring::Mutant::reply_twice)) length = control_[&Control::reply_length].load(std::memory_order_relaxed);
  counts.bytes.store(counts.bytes.load(std::memory_order_relaxed) + length, std::memory_order_relaxed);
  const std::int32_t result = control_[&Control::reply_result].load(std::memory_order_relaxed);
  return {.came = true, .result = static_cast<CUresult>(result), .payload = mailbox_.sub(0, length)};
}

// Returns the position at which the worker wakes a thread that waits for space: half of the queued records are then
// executed. Waking the thread for each record would cost more.
std::uint64_t Channel::half_of_what_is_queued() const {
  const std::uint64_t executed = control_[&Control::executed].load(std::memory_order_relaxed);
  return executed + (posted() - executed) / 2;
}

CUresult Channel::take_deferred() {
  const std::uint32_t count = control_[&Control::deferred_count].load(std::memory_order_acquire);
  if (count == deferred_seen_.load(std::memory_order_relaxed)) return CUDA_SUCCESS;
  deferred_seen_.store(count, std::memory_order_relaxed);
  return static_cast<CUresult>(control_[&Control::deferred_result].load(std::memory_order_relaxed));
}

bool Channel::await_executed(std::uint64_t position, Sleep sleep) {
  return executed(position) || wait_until([&] { return executed(position); }, position, sleep);
}

std::uint64_t Channel::polling_nanoseconds() const {
  return std::min(spin_.share(slot_.spin_nanoseconds()), ring::longest_spin_us * std::uint64_t{1000});
}

template <class Done>
bool Channel::poll_until(Done done, std::uint64_t end) {
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      __builtin_ia32_pause();
    }
  } while (monotonic_nanoseconds() < end);
  return false;
}

// Polls `done` for a bounded time, then sleeps.
template <class Done>
bool Channel::wait_until(Done done, std::uint64_t awaited, Sleep sleep) {
  const std::uint64_t start = monotonic_nanoseconds();
  if (poll_until(done, start + polling_nanoseconds())) {
    spin_.ended_polling();
    return true;
  }
  const bool came = sleep_until(done, awaited, sleep);
  spin_.ended_asleep(monotonic_nanoseconds() - start, slot_.spin_nanoseconds());
  return came;
}

// Sleeps until `done` returns true. Between sleeps, checks whether the host is alive. Returns false if the host is not
// alive.
template <class Done>
bool Channel::sleep_until(Done done, std::uint64_t awaited, Sleep sleep) {
  const bool parks = sleep == Sleep::Park && sleeper_.how() != ring::Asleep::No;
  for (std::uint64_t sleep_ns = first_sleep_ns;; sleep_ns = std::min(sleep_ns * 2, longest_sleep_ns)) {
    const Slept slept = parks                            ? park(done, awaited)
                        : sleeper_.timed_sleep(sleep_ns) ? Slept::LookAgain
                                                         : Slept::SlotGone;
    if (slept == Slept::SlotGone) {
      liveness_.lose_slot();
      return false;
    }
    if (slept == Slept::Done || done()) return true;
    if (!liveness_.host_alive()) return false;
  }
}

// Sleeps until the worker wakes the thread or the time limit ends (ring/queue/parking.h). Returns Done if `done` was
// true before the sleep.
template <class Done>
Channel::Slept Channel::park(Done done, std::uint64_t awaited) {
  // The store is ordered before edge S (ring/queue/parking.h).
  control_[&Control::guest_awaits].store(awaited, std::memory_order_relaxed);
  if (!parked_.self.may_sleep(done, sleeper_.how())) return Slept::Done;
  if (!sleeper_.sleep(parked_.self.word(), longest_reply_sleep_ns)) return Slept::SlotGone;
  parked_.self.woke();
  return Slept::LookAgain;
}

}  // namespace guest
