#include "host/session/turns.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "host/session/session.h"
#include "ring/mutants.h"

namespace host {
namespace {

using ring::Entry;
using ring::Grant;
using ring::GrantMode;
using namespace std::chrono_literals;

constexpr auto look_every = 2us;  // at a session's channels: often enough, and seldom touching their lines
// In a turn, at what they write with each call. Each look makes their next write slower: with one each 2 us a burst of
// launches took a fifth longer.
constexpr auto look_at_calls_every = 10us;
constexpr auto quiet_as_always = 10us;  // then a turn is given back, where the session's pauses are always long
constexpr auto polls_for = 50us;        // a channel for its turn, before it sleeps
// The same, once it was woken: the scheduler wakes whoever is next shortly before its turn, and again after this time.
constexpr auto woken_polls_for = 250us;
constexpr timespec longest_sleep{0, 100'000'000};  // then it looks whether the session ends
constexpr timespec watch_every{0, 1'000'000};      // ten times between two looks of the scheduler

// How much work a turn may have under way.
std::chrono::microseconds work_wanted(const ring::DeviceGrant& grant) {
  return std::chrono::microseconds(grant.most_us.load(std::memory_order_relaxed));
}

void pause_for(std::chrono::nanoseconds time) {
  for (const auto begin = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - begin < time;)
    __builtin_ia32_pause();
}

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
    if (yes) syscall(SYS_futex, &device->grant.word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
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

std::uint64_t Turns::ask_drain(Device& device) {
  return device.drains_asked.fetch_add(1, std::memory_order_release) + 1;  // W
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
  batches_[channel].waited(took, work_wanted(device->grant));
  device->request.waits.fetch_add(1, std::memory_order_relaxed);
  device->request.waited_ns.fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
}

void Turns::ring_scheduler() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = write(pages_.bell_fd, &one, sizeof one);
}

// ---- a keeper ------------------------------------------------------------------------------------------------------

void Turns::keep(Device& device) {
  while (!stopping_.load(std::memory_order_relaxed)) {
    const Grant grant = device.gate.grant();
    if (grant.mode == GrantMode::Turn) hold(device, grant);
    if (grant.mode == GrantMode::Closed) answer_end(device, grant);
    if (grant.mode == GrantMode::Open && grant.watched) watch(device, grant);
    sleep_on(device, grant, longest_sleep);
  }
}

// Until the turn is ended, or the session has been quiet for so long that it is given back.
void Turns::hold(Device& device, Grant turn) {
  while (device.gate.grant() == turn && !stopping_.load(std::memory_order_relaxed)) {
    if (device.drain_is_asked()) drain(device);
    if (!quiet_for(device.patience.now(quiet_as_always), device, turn) || !device.gate.withdraw(turn)) continue;
    drain(device);
    device.gate.give_back(turn);
    return quiet_for(ring::TurnPatience::longest, device, turn) ? device.patience.stayed_away()
                                                                : device.patience.came_back();
  }
}

// Counts as busy the time between two looks if some channel is in a call at the second.
void Turns::watch(Device& device, Grant open) {
  auto looked = Clock::now();
  while (device.gate.grant() == open && !stopping_.load(std::memory_order_relaxed)) {
    sleep_on(device, open, watch_every);
    const auto since = std::exchange(looked, Clock::now());
    if (is_busy(device)) device.count_busy(looked - since);
    if (!device.drain_is_asked()) continue;
    drain_and_count(device);
    looked = Clock::now();
  }
}

// The GPU has work of this process all that time. A channel that waits for room counts it, too, and sooner.
void Turns::drain_and_count(Device& device) {
  const auto begin = Clock::now();
  const std::uint64_t before = device.request.busy_ns.load(std::memory_order_relaxed);
  device.drains.store(true, std::memory_order_relaxed);
  drain(device);
  device.drains.store(false, std::memory_order_relaxed);
  const std::chrono::nanoseconds counted(device.request.busy_ns.load(std::memory_order_relaxed) - before);
  device.count_busy(std::max<Clock::duration>(Clock::now() - begin - counted, {}));
}

bool Turns::is_busy(const Device& device) const {
  return device.gate.is_used() || std::ranges::any_of(waits_at_, [&](const auto& one) {
           return one.load(std::memory_order_relaxed) == &device;
         });
}

// Whether no channel makes a call or waits for a turn for so long. False as soon as one does, or the grant changes. One
// that waits is on its way: it sleeps, perhaps, and has not seen the turn yet. The last look comes after the time is over:
// this thread may have been off the processor for all of it.
bool Turns::quiet_for(std::chrono::microseconds time, Device& device, Grant turn) {
  const LongWaits& calls = session_.long_waits;
  const std::uint64_t before = calls.steps();
  const auto begin = Clock::now();
  auto looked = begin;
  for (bool over = false; !over;) {
    pause_for(look_every);
    const auto now = Clock::now();
    over = now - begin >= time;
    if (device.drain_is_asked() || device.gate.grant() != turn) return false;
    if (!over && now - looked < look_at_calls_every) continue;
    looked = now;
    const bool waited_for = device.request.waiting.load(std::memory_order_relaxed) != 0;
    if (waited_for || calls.any_inside() || calls.steps() != before) return false;
  }
  return true;
}

void Turns::answer_end(Device& device, Grant closed) {
  // Calls that were let in before; a copy may have been queued by any of the contexts.
  while (!device.gate.empty() || (closed.copies && !device.gate.is_without(device.copies))) {
    if (device.gate.grant() != closed || stopping_.load(std::memory_order_relaxed)) return;
    pause_for(look_every);
  }
  drain(device, closed.copies);
  if (device.gate.grant() == closed) device.gate.give_back(closed);
}

// Waits for everything that the session has submitted to this GPU, in all contexts or in those that passed the gate.
void Turns::drain(Device& device, bool all_contexts) {
  const std::uint64_t asked = device.drains_asked.load(std::memory_order_acquire);  // W
  if (ring::wrong(ring::Mutant::answer_undrained)) return;
  for (unsigned context = 0; context < device.context_used.size(); ++context) {
    const bool used = device.context_used[context].exchange(false, std::memory_order_relaxed);
    if (!used && !(all_contexts && device_of(context) == &device)) continue;
    const auto held = session_.making();  // no context ends meanwhile
    if (session_.contexts.make_current(context) == CUDA_SUCCESS) session_.driver.cuCtxSynchronize();
    session_.contexts.let_go_of_green();
  }
  device.drains_done.store(asked, std::memory_order_release);  // W
}

void Turns::sleep_on(Device& device, Grant grant, const timespec& most) {
  if (stopping_.load(std::memory_order_relaxed)) return;
  syscall(SYS_futex, &device.grant.word, FUTEX_WAIT, grant.word(), &most, nullptr, 0);
}

}  // namespace host
