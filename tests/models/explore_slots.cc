// A slot's word and its owner (guest/session/slot_step.h, ring/slot_owner.h, host/broker/slot_step.h): claimers that
// may be held up at any point, one that looks for dead owners, and a broker that loses patience at any time.
#include "tests/models/explored.h"
// after it:
#include "guest/session/slot_step.h"
#include "host/broker/slot_step.h"
#include "ring/slot_owner.h"
#include "tests/models/scenarios.h"

namespace explore {
namespace {

using ring::SlotOwner, ring::SlotState, ring::SlotWord;

constexpr SlotWord starting{0, SlotState::Starting};

// Who is what is told twice in an owner, as process and start time are.
SlotOwner process(std::uint32_t id) { return {.boot = 7, .pid_space = 7, .start_time = id, .pid = id, .peer = 0}; }

struct Base {
  explicit Base(SlotState state) {
    entry.state.store(starting.with(state).word());
    share(slot, sizeof slot);
  }
  // The broker's step, as Vm::move makes it.
  void move(SlotWord from, SlotWord to) {
    std::uint32_t word = from.word();
    require(entry.state.compare_exchange_strong(word, to.word(), std::memory_order_acq_rel),
            "the broker finds another word than it knows");  // A, B
  }
  void await(SlotWord word) { wait_for(&entry.state, word.word()); }

  ring::SlotEntry entry{};
  alignas(16) std::byte slot[16] = {};
};

// Two processes want the slot; one gets it, finds what the worker has filled, and gives it back.
struct Claim : Base {
  Claim() : Base(SlotState::Starting) {}
  void user(std::uint32_t id) {
    await(starting.with(SlotState::Ready));
    const auto word = guest::claim(entry, process(id), [] {});
    if (!word) return;
    ++holders;
    require(holders == 1, "two processes hold one slot");
    reads(slot, sizeof slot);
    writes(slot, sizeof slot);
    require(guest::release(entry, *word), "a slot cannot be given back");
  }
  void first() { user(1); }
  void second() { user(2); }
  void broker() {
    writes(slot, sizeof slot);  // the worker
    move(starting, starting.with(SlotState::Ready));
    await(starting.with(SlotState::Released));
    require(host::broker::step_between(starting.with(SlotState::Ready), entry.state.load(std::memory_order_relaxed)) ==
                host::broker::Step::Released,
            "the broker does not know the step");
    writes(slot, sizeof slot);  // the wiping
  }
  void finish() { require(holders == 1, "nobody holds a slot that was Ready"); }
  int holders = 0;
};

// Process 1 is held up in its claim; the broker gives it up, or not, and then the slot goes to process 2. Nobody dies,
// so nobody may be buried.
struct HeldUp : Base {
  HeldUp() : Base(SlotState::Ready) {}
  void first() {
    first_holds = guest::claim(entry, process(1), [] {}).has_value();
  }
  void broker() {
    const SlotWord claimed = starting.with(SlotState::Claimed), next = claimed.next();
    await(claimed);
    if (!ring::give_up_owner(entry, claimed)) return;
    given_up = true;
    std::uint32_t word = claimed.word();  // or the claimer has done it
    entry.state.compare_exchange_strong(word, claimed.with(SlotState::Released).word(), std::memory_order_acq_rel);
    ring::clear_owner(entry, next.epoch);
    move(claimed.with(SlotState::Released), next);
    move(next, next.with(SlotState::Ready));
  }
  void second() {  // a daemon: it waits for ever where the broker does not give up
    const SlotWord next = starting.next().with(SlotState::Ready);
    await(next);
    second_holds = guest::claim(entry, process(2), [] {}).has_value();
    second_is_done = true;
  }
  void finder() {
    const auto dead = [](const SlotOwner& owner) { return owner.pid != 0 && owner.pid != owner.start_time; };
    require(!guest::bury(entry, dead), "a living process is buried");
  }
  void finish() {
    require(first_holds != given_up, "the broker and a claimer disagree on who won");
    require(!second_is_done || second_holds, "a slot that is Ready cannot be had");
  }
  bool first_holds = false, second_holds = false, second_is_done = false, given_up = false;
};

}  // namespace

std::vector<Scenario> slot_scenarios() {
  return {
      {"slots", "claim", [](Options o) { return bounded<Claim, &Claim::first, &Claim::second, &Claim::broker>(o, 3); }},
      {"slots", "held up",
       [](Options o) {
         o.stale = 1;  // thirteen relaxed loads
         return bounded<HeldUp, &HeldUp::first, &HeldUp::broker, &HeldUp::finder, &HeldUp::second>(o, 2, 1);
       }},
  };
}

}  // namespace explore
