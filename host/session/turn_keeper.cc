// The keepers of a session's turns: for each GPU a thread that says when a turn is over, and what is left then.
#include <algorithm>
#include <chrono>
#include <utility>

#include "host/session/session.h"
#include "host/session/turn_times.h"
#include "host/session/turns.h"
#include "ring/mutants.h"
#include "ring/turn_naps.h"

namespace host {
namespace {

using ring::Grant;
using ring::GrantMode;
using namespace turn_times;

}  // namespace

void Turns::keep(Device& device) {
  while (!stopping_.load(std::memory_order_relaxed)) {
    const Grant grant = device.gate.grant();
    if (grant.copies) device.gate.hear(grant);
    if (grant.mode == GrantMode::Turn) hold(device, grant);
    if (grant.mode == GrantMode::Closed) answer_end(device, grant);
    if (grant.mode == GrantMode::Open && grant.watched) watch(device, grant);
    sleep_on(device, grant, longest_sleep);
  }
}

// Until the turn is ended, or the session has been quiet for so long that it is given back.
void Turns::hold(Device& device, Grant turn) {
  while (device.gate.grant() == turn && !stopping_.load(std::memory_order_relaxed)) {
    if (device.drain_is_asked()) drain(device, others_wait_until(device));
    if (may_be_held_up(device)) {
      hold_beside_waits(device, turn);
      continue;
    }
    if (!quiet_for(device.patience.now(quiet_as_always), device, turn) || !device.gate.withdraw(turn)) continue;
    give_back_when_done(device, turn);
    return quiet_for(ring::TurnPatience::longest, device, turn) ? device.patience.stayed_away()
                                                                : device.patience.came_back();
  }
}

// Once all that is left waits for values, and no call has begun or ended for a while, the scheduler is told, so that it can end
// the turn for others. The gate stays open until it does: the program may go on at any time. Returns when it does.
void Turns::hold_beside_waits(Device& device, Grant turn) {
  const std::uint64_t before = session_.long_waits.steps();
  const auto begin = Clock::now(), others_until = others_wait_until(device);
  const auto is_still = [&] {
    return device.gate.grant() == turn && !device.drain_is_asked() && !stopping_.load(std::memory_order_relaxed) &&
           device.request.waiting.load(std::memory_order_relaxed) == 0 && session_.long_waits.steps() == before;
  };
  for (bool told = false; is_still();
       pause_before_look(device, turn, told ? look_at_held_up_every : look_at_calls_every)) {
    if (Clock::now() - begin < ring::TurnPatience::longest) continue;
    const bool held_up = is_held_up(device, Clock::now() < others_until);
    if (told && !held_up) break;
    if (std::exchange(told, held_up) != held_up) device.gate.hold_up(turn);
    if (!may_be_held_up(device)) break;
  }
  if (device.gate.grant() == turn) device.gate.go_on();
}

// Counts as busy the time between two looks if some channel is in a call at the second.
void Turns::watch(Device& device, Grant open) {
  auto looked = Clock::now();
  while (device.gate.grant() == open && !stopping_.load(std::memory_order_relaxed)) {
    sleep_on(device, open, watch_every);
    const auto since = std::exchange(looked, Clock::now());
    if (is_busy(device) && !is_held_up(device, true)) device.count_busy(looked - since);
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
  drain(device, others_wait_until(device));
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
    pause_before_look(device, turn, look_every);
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

// A nap ends when the grant changes, and when a channel asks for a drain.
void Turns::pause_before_look(Device& device, Grant grant, std::chrono::nanoseconds time) {
  constexpr timespec nap{0, std::chrono::nanoseconds(ring::turn_nap).count()};
  pages_.keeper_naps ? sleep_on(device, grant, nap) : pause_for(time);
}

void Turns::answer_end(Device& device, Grant closed) {
  if (await_calls(device, closed)) give_back_when_done(device, closed);
}

// Precondition: nobody is let in under this grant any more. Meanwhile the session may be held up.
void Turns::give_back_when_done(Device& device, Grant grant) {
  for (auto others_until = others_wait_until(device);; others_until = Clock::now()) {
    const bool all_done = drain(device, others_until, grant.copies);
    if (device.gate.grant() != grant || stopping_.load(std::memory_order_relaxed)) return;
    if (all_done) return device.gate.give_back(grant);
    device.gate.hold_up(grant);
    sleep_on(device, grant, watch_every);
  }
}

// Until the calls have ended that were let in before; a copy may have been queued by any of the contexts. False: there is
// nothing to answer any more. A call that waits for a value, as a copy behind such a wait does, may be inside for ever.
bool Turns::await_calls(Device& device, Grant closed) {
  const auto others_until = others_wait_until(device);
  while (!device.gate.empty() || (closed.copies && !device.gate.is_without(device.copies))) {
    if (device.gate.grant() != closed || stopping_.load(std::memory_order_relaxed)) return false;
    if (Clock::now() >= others_until && is_held_up(device, false)) {
      device.gate.hold_up(closed);
      sleep_on(device, closed, watch_every);
    } else {
      device.gate.go_on();
      pause_before_look(device, closed, look_every);
    }
  }
  return true;
}

// ---- what is under way ---------------------------------------------------------------------------------------------

// Beside streams that wait for values: what goes on for longer is taken to wait for these, too.
Turns::Clock::time_point Turns::others_wait_until(const Device& device) {
  return Clock::now() + work_wanted(device.grant);
}

// Waits for everything that the session has submitted to this GPU, in all contexts or in those that passed the gate. False:
// what is left waits for values in memory.
bool Turns::drain(Device& device, Clock::time_point others_until, bool all_contexts) {
  const std::uint64_t asked = device.drains_asked.load(std::memory_order_acquire);  // W
  if (ring::wrong(ring::Mutant::answer_undrained)) return true;
  bool all_done = true;
  for (unsigned context = 0; context < device.context_used.size(); ++context) {
    const bool used = device.context_used[context].exchange(false, std::memory_order_relaxed);
    if (!used && !(all_contexts && device_of(context) == &device)) continue;
    if (await_work(device, context, others_until)) continue;
    device.context_used[context].store(true, std::memory_order_relaxed);
    all_done = false;
  }
  device.drains_done.store(asked, std::memory_order_release);  // W
  return all_done;
}

// A value wait that comes between the look and the driver's wait is waited for: then the turn is passed on by time.
bool Turns::await_work(Device& device, unsigned context, Clock::time_point others_until) {
  for (;; pause_before_look(device, device.gate.grant(), look_every)) {
    const auto found = look(context);
    if (found == ValueWaits::Found::Stand || stopping_.load(std::memory_order_relaxed)) return false;
    if (found == ValueWaits::Found::Beside && Clock::now() >= others_until) return false;
    if (found != ValueWaits::Found::Beside) device.gate.go_on();
    if (found != ValueWaits::Found::NoWaits) continue;
    const auto held = session_.making();  // no context ends meanwhile
    if (session_.contexts.make_current(context) == CUDA_SUCCESS) session_.driver.cuCtxSynchronize();
    session_.contexts.let_go_of_green();
    return true;
  }
}

// Whether some stream on this GPU may wait for a value.
bool Turns::may_be_held_up(const Device& device) const {
  if (!session_.value_waits.any()) return false;
  for (unsigned context = 0; context < device.context_used.size(); ++context)
    if (device.context_used[context].load(std::memory_order_relaxed) && session_.value_waits.any_in(context))
      return true;
  return false;
}

// Whether all that is left waits for values in memory. `surely`: else other work may wait for them, too.
bool Turns::is_held_up(Device& device, bool surely) {
  bool some_stand = false;
  for (unsigned context = 0; context < device.context_used.size(); ++context) {
    if (!device.context_used[context].load(std::memory_order_relaxed)) continue;
    const auto found = look(context);
    const bool is_known = found == ValueWaits::Found::Stand;
    if (found == ValueWaits::Found::Before || (surely && !is_known)) return false;
    some_stand |= found != ValueWaits::Found::NoWaits;
  }
  return some_stand;
}

ValueWaits::Found Turns::look(unsigned context) {
  if (!session_.value_waits.any_in(context)) return ValueWaits::Found::NoWaits;
  const auto alive = session_.making();
  const bool is_there = session_.contexts.make_current(context) == CUDA_SUCCESS;
  const auto found = is_there ? session_.value_waits.look(context) : ValueWaits::Found::NoWaits;
  session_.contexts.let_go_of_green();
  return found;
}

}  // namespace host
