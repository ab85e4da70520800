// A slot's word and its owner (guest/session/slot/slot_step.h, host/broker/region/slot_step.h). Processes claim the
// slot, release it or find its holder dead, and the broker looks at it. This file repeats the broker's code around the
// functions of its header, with one slot that is scrubbed at once; host/broker/vm/slot_table.cc has the complete code.
#include "tests/models/explored.h"
// The product's headers, after explored.h:
#include "guest/session/slot/slot_step.h"
#include "host/broker/region/slot_step.h"
#include "tests/models/scenarios.h"

namespace explore {
namespace {

using host::broker::Step;
using ring::SlotOwner, ring::SlotState, ring::SlotWord;

constexpr SlotWord first_word{0, SlotState::Empty};

SlotOwner process(std::uint32_t id) { return {.boot = 7, .pid_space = 7, .start_time = id, .pid = id, .peer = 0}; }

struct Base {
  Base(SlotState state, bool has_worker) : known(first_word.with(state)), worker(has_worker) {
    word().store(known.word());
    share(slot, sizeof slot);
  }

  // ---- the broker, one thread

  void move(SlotWord to) {
    std::uint32_t expected = known.word();
    require(word().compare_exchange(expected, to.word(), std::memory_order_acq_rel),
            "the broker finds another word than it knows");  // edges A and B prevent this
    known = to;
  }
  void make_empty() {
    require(!worker, "a slot is scrubbed under its worker");
    if (known.state == SlotState::Ready) {
      std::uint32_t expected = known.word();
      if (!word().compare_exchange(expected, known.with(SlotState::Starting).word())) return look();
      known = known.with(SlotState::Starting);
    }
    writes(slot, sizeof slot);
    entry()[&ring::SlotEntry::owner].copy_in({});
    seen_owner.store(0, std::memory_order_relaxed);
    move(host::broker::emptied(known));
    move(known.with(SlotState::Starting));
    worker = true;
    writes(slot, sizeof slot);  // the next worker writes the slot
    move(known.with(SlotState::Ready));
  }
  void release() {
    known = known.with(SlotState::Released);
    if (!worker) make_empty();
  }
  void look() {
    const std::uint32_t seen = word().load(std::memory_order_acquire);  // A
    switch (host::broker::step_between(known, seen)) {
      case Step::None: break;
      case Step::Claimed: known = known.with(SlotState::Claimed); break;
      case Step::Released: return release();
      case Step::PutBack: fail("a step that guests may make is put back");
    }
    if (known.state == SlotState::Claimed && !worker) lose_worker();
  }
  void lose_worker() {
    std::uint32_t expected = known.word();
    if (word().compare_exchange(expected, known.with(SlotState::Dead).word(), std::memory_order_acq_rel))
      known = known.with(SlotState::Dead);  // B
  }
  void on_worker_gone() {
    worker = false;
    const SlotWord before = known;
    look();
    if (host::broker::released_in_look(before, known)) return;
    if (known.state != SlotState::Claimed && known.state != SlotState::Dead) make_empty();
  }

  // ---- the processes

  std::optional<SlotWord> claim(std::uint32_t id) {
    const auto word = guest::claim(entry(), process(id));
    if (word) seen_owner.store(id, std::memory_order_relaxed);
    return word;
  }
  void use() {
    reads(slot, sizeof slot);
    writes(slot, sizeof slot);
  }

  ring::Shared<ring::SlotEntry> entry() { return ring::Shared<ring::SlotEntry>(&entry_); }
  ring::Shared<std::uint32_t> word() { return entry()[&ring::SlotEntry::state]; }

  ring::SlotEntry entry_{};
  // The owner as another processor may see it. The explorer keeps no history of plain bytes, so this is an atomic.
  std::atomic<std::uint32_t> seen_owner{0};
  SlotWord known;
  bool worker;
  alignas(16) std::byte slot[16] = {};
};

// Two processes want the slot. One process gets it, reads the worker's bytes, and releases it.
struct Claim : Base {
  Claim() : Base(SlotState::Starting, true) {}
  void user(std::uint32_t id) {
    wait_for(&entry_.state, first_word.with(SlotState::Ready).word());
    const auto word = claim(id);
    if (!word) return;
    require(++holders == 1, "two processes hold one slot");
    use();
    require(guest::release(entry(), *word), "a slot cannot be given back");
  }
  void first() { user(1); }
  void second() { user(2); }
  void broker() {
    writes(slot, sizeof slot);  // the worker writes the slot
    move(known.with(SlotState::Ready));
    wait_for(&entry_.state, known.with(SlotState::Released).word());
    look();
    require(known.state == SlotState::Released, "the broker does not see that the slot was given back");
    writes(slot, sizeof slot);  // the broker scrubs the slot
  }
  void finish() { require(holders == 1, "nobody holds a slot that was Ready"); }
  int holders = 0;
};

// Two processes want the slot, and the process that loses dies. A third process looks at the slot meanwhile.
struct Loser : Base {
  Loser() : Base(SlotState::Ready, true) {}
  void first() { dead[1] = !claim(1); }
  void second() { dead[2] = !claim(2); }
  void finder() {
    wait_for(&entry_.state, first_word.with(SlotState::Claimed).word());
    const auto judge = [this](const SlotOwner& owner) { return owner.pid != 0 && dead[owner.pid]; };
    require(!guest::bury(entry(), judge), "a living process is buried");
  }
  void finish() {}
  bool dead[3] = {};
};

// The holder has died. The broker and a process both notice the death; meanwhile the next process gets the slot.
struct Burial : Base {
  Burial() : Base(SlotState::Claimed, false) { seen_owner.store(1); }
  void broker() {
    std::uint32_t expected = known.word();  // the holder's connection has closed
    word().compare_exchange(expected, known.with(SlotState::Released).word(), std::memory_order_acq_rel);
    release();
  }
  void finder() {
    guest::bury(entry(), [this](const SlotOwner&) { return seen_owner.load(std::memory_order_relaxed) == 1; });
  }
  void next() {
    while (!(held = claim(2))) pause();
    use();
  }
  void finish() { require(word().load() == held->word(), "the slot of a living process is taken away"); }
  std::optional<SlotWord> held;
};

// The worker ends while a process uses the slot, before the broker sees the claim, or after the release.
struct WorkerEnds : Base {
  WorkerEnds() : Base(SlotState::Ready, true) {}
  void guest() {
    const auto word = claim(1);
    if (word) require(guest::release(entry(), *word), "a slot cannot be given back");
  }
  void broker() {
    on_worker_gone();
    while (known.epoch == 0 && known.state != SlotState::Ready) {
      if (word().load(std::memory_order_relaxed) == known.word()) pause();
      look();
    }
  }
  void finish() {
    if (known.epoch == 0) fail("a slot without a worker does not come back");
  }
};

}  // namespace

std::vector<Scenario> slot_scenarios() {
  return {
      {"slots", "claim", [](Options o) { return bounded<Claim, &Claim::first, &Claim::second, &Claim::broker>(o, 3); }},
      {"slots", "loser", [](Options o) { return bounded<Loser, &Loser::first, &Loser::second, &Loser::finder>(o, 3); }},
      {"slots", "burial",
       [](Options o) { return bounded<Burial, &Burial::broker, &Burial::finder, &Burial::next>(o, 3); }},
      {"slots", "worker ends",
       [](Options o) { return bounded<WorkerEnds, &WorkerEnds::guest, &WorkerEnds::broker>(o, 4); }},
  };
}

}  // namespace explore
