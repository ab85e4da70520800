#include "host/session/turns.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "host/session/session.h"
#include "host/session/turn_times.h"
#include "ring/mutants.h"

namespace host {
namespace {

using ring::Entry;
using ring::Grant;
using ring::GrantMode;
using namespace std::chrono_literals;
using namespace turn_times;

}  // namespace

void ShortQueue::done(std::chrono::nanoseconds took, bool waited) {
  const bool was_known = std::exchange(is_known_, true);
  count_ -= std::exchange(asked_, 0);
  if (waited && took > wanted)
    half_ = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(half_ * wanted / took));
  else if (waited && was_known && took < wanted / 2)
    half_ = std::min(2 * half_, most);
}

Turns::Device::Device(Turns& turns, std::uint32_t number)
    : grant(turns.pages_.grants->device[number]),
      request(turns.pages_.requests->device[number]),
      gate(grant, request) {}

void Turns::start() {
  if (pages_.grants == nullptr) return;
  for (std::uint32_t d = 0; d < std::min(pages_.devices, ring::max_devices); ++d) {
    devices_[d] = std::make_unique<Device>(*this, d);
    devices_[d]->keeper = std::thread([this, d] { keep(*devices_[d]); });
  }
}

void Turns::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  for (const auto& device : devices_)
    if (device && device->keeper.joinable()) device->keeper.join();
}

// Numbers go on from scheduler to scheduler, and the next one opens each gate first, so no shut one has this number.
void Turns::left_alone(bool yes) {
  for (const auto& device : devices_) {
    if (!device) continue;
    device->gate.left_alone(yes);
    if (yes) wake_all(*device);
  }
}

// ---- a channel -----------------------------------------------------------------------------------------------------

Turns::Device* Turns::device_of(unsigned context) {
  const auto number = static_cast<std::uint32_t>(session_.contexts.device_of(context));
  return number < ring::max_devices ? devices_[number].get() : nullptr;
}

// While nobody takes turns it is as short as can be: a grant stays in registers unless another function gets it as a Grant.
Turns::Passed Turns::pass_gate(std::uint32_t channel, unsigned context) {
  Device* const device = device_of(context);
  if (device == nullptr) return {};
  Grant found;
  const bool waits = device->gate.enter(channel, found) != Entry::LetIn;
  if (waits || found.mode != GrantMode::Open || found.shallow)
    return go_on({device, context}, channel, waits, found.word());
  queues_[channel].queue.forget();
  come_in({device, context}, channel);
  return {};
}

// The rest of pass_gate() for a channel that `waits`, or came in under another grant than a plain open one: this `word`.
Turns::Passed Turns::go_on(Inside at, std::uint32_t channel, bool waits, std::uint32_t word) {
  Device& device = *at.device;
  Grant under = Grant::of(word);
  if (waits) wait_for_turn(device, channel, under);
  if (under.mode == GrantMode::Open && under.shallow)
    keep_short(device, channel, under);
  else
    queues_[channel].queue.forget();
  if (under.mode == GrantMode::Turn && batches_[channel].is_full(work_wanted(device.grant)))
    bound_work(device, channel, under);
  come_in(at, channel);
  if (under.mode == GrantMode::Told && device.told.load(std::memory_order_relaxed) != under.number &&
      device.told.exchange(under.number, std::memory_order_relaxed) != under.number)
    ring_scheduler();
  return {.waited = waits, .in_turn = under.mode == GrantMode::Turn};
}

void Turns::come_in(Inside at, std::uint32_t channel) {
  inside_[channel] = at;
  ring::count_submission(at.device->request, channel);
  if (ring::wrong(ring::Mutant::use_noted_early)) at.device->note_use(at.context);
}

// Precondition: the channel is inside, in its turn.
void Turns::note_work(std::uint32_t channel, std::uint32_t kind) {
  batches_[channel].submitted(kind, work_wanted(inside_[channel].device->grant));
}

void Turns::wait_for_turn(Device& device, std::uint32_t channel, Grant& under) {
  const auto queued = session_.slot.control(channel)[&ring::ChannelControl::queued];
  queued.store(1, std::memory_order_relaxed);
  device.request.waiting.fetch_add(1, std::memory_order_relaxed);
  auto polled = Clock::now() + polls_for;
  for (Entry entry; (entry = device.gate.enter(channel, under)) != Entry::LetIn;) {
    if (is_ending()) break;
    if (entry == Entry::Soon || Clock::now() < polled) {
      pause_for(500ns);
      continue;
    }
    sleep_on(device, under, longest_sleep);
    polled = Clock::now() + woken_polls_for;
  }
  device.request.waiting.fetch_sub(1, std::memory_order_relaxed);
  queued.store(0, std::memory_order_relaxed);
  queues_[channel].queue.forget();
}

void Turns::leave_gate(std::uint32_t channel, const Inside& inside) {
  if (!ring::wrong(ring::Mutant::use_noted_early)) inside.device->note_use(inside.context);
  inside.device->gate.leave(channel);
  inside_[channel] = {};
}

bool Turns::let_in_beside(std::uint32_t channel, unsigned context) {
  Device* const device = device_of(context);
  if (device == nullptr) return true;
  device->copies.fetch_add(1, std::memory_order_relaxed);
  copies_at_[channel] = device;
  if (device->gate.lets_in_beside()) return true;
  end_copy(channel);
  return false;
}

bool Turns::is_ending() const {
  return stopping_.load(std::memory_order_relaxed) || session_.broken.load(std::memory_order_relaxed);
}

// Outside of the gate, so that the turn can end meanwhile, and in again.
void Turns::bound_work(Device& device, std::uint32_t channel, Grant& under) {
  device.gate.leave(channel);
  const auto begin = Clock::now();
  const bool done = await_drain(device, under);
  const auto took = Clock::now() - begin;
  if (done || took >= pages_.longest_drain)
    batches_[channel].finished(took, work_wanted(device.grant));
  else
    // The turn is over, and the next begins when all is done.
    batches_[channel].ended(took, work_wanted(device.grant));
  if (device.gate.enter(channel, under) != Entry::LetIn) wait_for_turn(device, channel, under);
}

std::uint64_t Turns::ask_drain(Device& device) const {
  const std::uint64_t ask = device.drains_asked.fetch_add(1, std::memory_order_release) + 1;  // W
  if (pages_.keeper_naps) wake_all(device);
  return ask;
}

bool Turns::is_over(Device& device, Grant grant, Clock::time_point latest) const {
  return device.gate.grant() != grant || device.gate.look() == Entry::Shut || is_ending() || Clock::now() >= latest;
}

// Has the keeper wait for all work. False: the turn was over before, or it took too long.
bool Turns::await_drain(Device& device, Grant turn) const {
  const std::uint64_t ask = ask_drain(device);
  const auto latest = Clock::now() + pages_.longest_drain;
  while (device.drains_done.load(std::memory_order_acquire) < ask) {  // W
    if (is_over(device, turn, latest)) return false;
    pause_for(500ns);
  }
  return true;
}

void Turns::keep_short(Device& device, std::uint32_t channel, Grant& under) {
  Queue& its = queues_[channel];
  if (its.queue.is_asked() && device.drains_done.load(std::memory_order_acquire) >= its.asked)  // W
    its.queue.done({}, false);
  if (its.queue.should_ask()) {
    its.asked = ask_drain(device);
    its.asked_at = Clock::now();
    its.queue.asked();
  }
  if (its.queue.is_full()) {
    device.gate.leave(channel);
    if (await_half(device, channel, under))
      its.queue.done(Clock::now() - its.asked_at, true);
    else
      its.queue.forget();
    if (device.gate.enter(channel, under) != Entry::LetIn) wait_for_turn(device, channel, under);
  }
  its.queue.submitted();
}

// Outside of the gate, so that it can close meanwhile. The half may be a kernel that spins until the next one of its
// process has begun, so this has a bound. False: the grant has changed.
bool Turns::await_half(Device& device, std::uint32_t channel, Grant under) {
  const Queue& its = queues_[channel];
  waits_at_[channel].store(&device, std::memory_order_relaxed);
  const auto latest = Clock::now() + pages_.longest_drain;
  const auto is_done = [&] { return device.drains_done.load(std::memory_order_acquire) >= its.asked; };  // W
  auto counted = Clock::now();
  while (!is_done() && !is_over(device, under, latest)) {
    std::this_thread::sleep_for(100us);  // a small part of the half that follows
    const auto since = std::exchange(counted, Clock::now());
    if (device.drains.load(std::memory_order_relaxed)) device.count_busy(counted - since);
  }
  waits_at_[channel].store(nullptr, std::memory_order_relaxed);
  return is_done() || Clock::now() >= latest;
}

void Turns::begin_wait(std::uint32_t channel, unsigned context) {
  Device* const device = device_of(context);
  if (device == nullptr) return;
  waits_at_[channel].store(device, std::memory_order_relaxed);
  device->request.under_way.fetch_add(1, std::memory_order_relaxed);
}

void Turns::waited(std::uint32_t channel, unsigned context, std::chrono::nanoseconds took) {
  Device* const device = device_of(context);
  if (device == nullptr) return;
  waits_at_[channel].store(nullptr, std::memory_order_relaxed);
  device->request.under_way.fetch_sub(1, std::memory_order_relaxed);
  if (!session_.value_waits.any()) batches_[channel].waited(took, work_wanted(device->grant));
  device->request.waits.fetch_add(1, std::memory_order_relaxed);
  device->request.waited_ns.fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
}

void Turns::ring_scheduler() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = write(pages_.bell_fd, &one, sizeof one);
}

void Turns::wake_all(Device& device) {
  syscall(SYS_futex, &device.grant.word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Turns::sleep_on(Device& device, Grant grant, const timespec& most) {
  if (stopping_.load(std::memory_order_relaxed)) return;
  syscall(SYS_futex, &device.grant.word, FUTEX_WAIT, grant.word(), &most, nullptr, 0);
}

}  // namespace host
