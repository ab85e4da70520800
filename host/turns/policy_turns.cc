// Of the scheduler's decisions the turns: whose is next, when one is over, and what it is charged with.
#include <algorithm>

#include "host/turns/policy.h"
#include "host/turns/policy_numbers.h"
#include "ring/turn_gate.h"

namespace host::turns {

using ring::GrantMode;

void Policy::watch_holder(Time now, const Give& give) {
  ClientState& state = clients_.at(holder_->client);
  if (holder_is_done(state, now)) {
    learn(state, now);
    state.overlong_in_a_row = 0;
    return end_turn(now);
  }
  if (holder_->ended && is_held_up(state)) return end_held_up(now);
  const auto waiting = best_waiting();
  if (!holder_->ended) {
    const bool shut_out = is_held_up(state) && state.said.waits_for_turn;  // its turn was taken away meanwhile
    if (!waiting && !shut_out) return go_on_alone(now);
    if (waiting && (may_be_done(state, now) || now - holder_->since >= quantum_of(state, now) - woken_before))
      wake(*waiting, now, give);
    if (!shut_out && !must_end(clients_.at(*waiting), now)) return;
    holder_->ended = now;
    holder_->gave_up = is_held_up(state);
    set(state, holder_->client, {.mode = GrantMode::Closed}, give);
  }
  if (waiting) wake(*waiting, now, give);
  if (now - *holder_->ended >= limits_.longest) return end_overlong(now);
  if (goes_in_beside(waiting)) end_turn(now);
}

// One whose gate is open, since it goes before others, gives nothing back, since it is closed out by nobody: it is done
// when it has been quiet, which is soon believed once it has waited for all that it has submitted, and sooner if it has
// always made a pause then.
bool Policy::holder_is_done(const ClientState& holder, Time now) const {
  if (holder.grant.mode != GrantMode::Open) return ring::is_over(holder_->turn, holder.grant, holder.said.given_back);
  return now - holder_->worked > (has_waited_for_all(holder) ? holder.patience.now(quiet_as_always) : quiet_of_latency);
}

bool Policy::has_waited_for_all(const ClientState& holder) const {
  return holder_->waited && holder.said.submitted == holder_->submitted;
}

// Whether it has just waited for all that it has submitted, so that another may have its turn in a moment.
bool Policy::may_be_done(const ClientState& holder, Time now) const {
  return holder.grant.mode == GrantMode::Open && holder_->waited == now && has_waited_for_all(holder);
}

// By the same grant again. So whoever goes next is awake when the holder's work has ended.
void Policy::wake(Client waiting, Time now, const Give& give) {
  if (holder_->woke == waiting && now - holder_->woke_at < woken_again) return;
  holder_->woke = waiting, holder_->woke_at = now;
  give(waiting, clients_.at(waiting).grant);
}

// Whether this one, which goes next, does not wait for the holder's work to end: it is of the latency class. The driver
// slices between its work and what is left of the holder's, which can be a long kernel.
bool Policy::goes_in_beside(std::optional<Client> waiting) const {
  if (!waiting) return false;
  const ClientState &its = clients_.at(*waiting), &holder = clients_.at(holder_->client);
  return its.vm != holder.vm && at_once(vms_.at(its.vm)) && !at_once(vms_.at(holder.vm));
}

// Nobody waits. What the holder has now is not held against it when somebody comes.
void Policy::go_on_alone(Time now) {
  if (now - holder_->charged < limits_.quantum) return;
  charge(now);
  floor_ = std::max(floor_, vms_.at(clients_.at(holder_->client).vm).behind);
}

void Policy::end_turn(Time now) {
  const ClientState& client = clients_.at(holder_->client);
  VmState& vm = vms_.at(client.vm);
  const bool once = holder_->charged == holder_->since;
  const Time before = vm.behind;
  charge(now);
  // Its own short turns cost others a change each.
  if (once && (!holder_->ended || holder_->gave_up))
    vm.behind = std::max(vm.behind, before + over(2 * cost_of_a_turn, vm.weight));
  vm.wanted += seconds(std::max(2 * cost_of_a_turn - (now - holder_->since), Time::zero()));
  holder_.reset();
}

void Policy::end_overlong(Time now) {
  ClientState& state = clients_.at(holder_->client);
  ++vms_.at(state.vm).account.overlong;
  if (++state.overlong_in_a_row >= most_overlong) stand_aside(state, now, most_overlong * limits_.longest);
  end_turn(now);
}

// What waits for a value runs when it is there, beside others' turns if need be.
void Policy::end_held_up(Time now) {
  ClientState& state = clients_.at(holder_->client);
  ++vms_.at(state.vm).account.held_up;
  state.overlong_in_a_row = 0;
  end_turn(now);
}

// Whether the holder's turn is over for the sake of this one, which goes next: it is of the latency class; or its VM is
// further behind by now, and the holder has had its quantum; or all that the holder has waits for values in memory. Whoever comes back after a pause, as a light VM beside a
// heavy one does, waits for a quarter of that.
bool Policy::must_end(const ClientState& waiting, Time now) const {
  const ClientState& holder = clients_.at(holder_->client);
  const Time had = now - holder_->since;
  if (is_held_up(holder)) return true;
  if (waiting.vm == holder.vm) return had >= quantum_of(holder, now);
  const VmState& theirs = vms_.at(waiting.vm);
  VmState holders = vms_.at(holder.vm);
  holders.behind += price(holder, now);
  if (at_once(theirs) != at_once(holders)) return at_once(theirs);
  if (holders.behind <= theirs.behind) return false;
  return had >= quantum_of(holder, now) || (waiting.came_back && had >= limits_.quantum / 4);
}

// A program whose waits are long has a few of them in a turn. Beside one with long turns nobody has much shorter ones,
// or it would change the context more often than the other for the same time. Where turns are taken for a light VM, which
// ends them itself, the others change as seldom as they may.
Time Policy::quantum_of(const ClientState& client, Time now) const {
  const auto wants = [](const ClientState& one) { return waits_in_a_turn * one.wait.value_or(Time::zero()); };
  Time longest{};
  for (const auto& [other, state] : clients_)
    if (is_active(state, now)) longest = std::max(longest, wants(state));
  const Time most = longest_quantum * limits_.quantum;
  const Time longer = client.gains ? quanta_of_gainers * limits_.quantum : most;
  const bool is_longer = (client.gains || light_beside_heavy(now)) && !wants_latency(now);
  const Time usual = is_longer ? longer : limits_.quantum;
  return std::clamp(wants(client), std::max(std::min(longest, most) / 2, usual), most);
}

// What the holder's turn adds to its VM's virtual time. A turn's beginning, the change and the hand-over, is nobody's
// time. Whoever gains by turns pays for all beginnings, by the time that it has: the others would not lose that time
// under slices, and shall have their part of the GPU whole.
Time Policy::price(const ClientState& holder, Time now) const {
  const double tax = holder.gains && gainers_had_ > 0 ? std::min(costs_ / gainers_had_, highest_tax) : 0;
  return over(now - holder_->charged - cost_of_beginning(now), vms_.at(holder.vm).weight / (1 + tax));
}

// Of what was not charged yet. A turn that is ended very soon was not all beginning.
Time Policy::cost_of_beginning(Time now) const {
  return holder_->charged == holder_->since ? std::min(cost_of_a_turn, (now - holder_->since) / 5) : Time::zero();
}

void Policy::charge(Time now) {
  const ClientState& client = clients_.at(holder_->client);
  VmState& vm = vms_.at(client.vm);
  const Time had = now - holder_->charged, cost = cost_of_beginning(now);
  costs_ = (1 - newest_cost) * costs_ + seconds(cost);
  gainers_had_ = (1 - newest_cost) * gainers_had_ + (client.gains ? seconds(had - cost) : 0);
  vm.behind += price(client, now);
  vm.account.held += had;
  vm.wanted += seconds(had);
  holder_->charged = now;
}

// Sums, and not a mean of each turn's mean: a turn with few pieces, in which the program was slow to come back, says little
// beside one with many.
void Policy::Pieces::add(double waits, std::uint64_t waited_ns, Time time) {
  const auto sum = [](double& all, double newest) { all = older_turns * all + newest; };
  sum(count, waits), sum(waited, static_cast<double>(waited_ns) * 1e-9), sum(had, seconds(time));
}

Time Policy::Pieces::each(double sum) const {
  constexpr double longest = 3600;
  return time_of(std::min(sum / count, longest));
}

// From a turn that it had for itself. What follows the last wait that was seen in it belongs to the next piece of work,
// unless it was a pause: nothing was submitted any more, and the turn was given back. A wait that is counted though none
// was seen in this turn ended a little after the turn before.
void Policy::learn(ClientState& client, Time now) {
  client.learnt_at = now;
  const std::uint64_t waits = since(client.said.waits, client.learnt.waits);
  const bool late = waits != 0 && client.had > Time::zero();
  const Time last = holder_->waited.value_or(late ? holder_->since : now);
  const bool paused = holder_->waited && !holder_->ended && client.said.submitted == holder_->submitted;
  client.had += last - holder_->since;
  if (waits == 0) return;
  Pieces& pieces = client.pieces;
  pieces.add(static_cast<double>(waits), since(client.said.waited_ns, client.learnt.waited_ns), client.had);
  client.wait = pieces.each(pieces.waited);
  client.piece = pieces.each(pieces.had);
  client.learnt = client.said;
  client.had = paused ? Time::zero() : now - last;
}

void Policy::next_turn(Time now, const Give& give) {
  const auto next = best_waiting();
  if (!next) return;
  ClientState& state = clients_.at(*next);
  VmState& vm = vms_.at(state.vm);
  floor_ = std::max(floor_, vm.behind);
  ++vm.account.turns;
  const Time waited = now - state.asked.value_or(now);
  vm.account.waited += waited;
  vm.account.waits.add(waited);
  state.served = ++turns_;
  state.came_back = false;
  if (state.grant.mode != GrantMode::Open) set(state, *next, {.mode = GrantMode::Turn}, give);
  holder_ = Holder{.client = *next, .turn = state.grant.number, .since = now, .charged = now, .worked = now};
}

// Of those that are about as far behind as the one that goes before all, the one that has waited for the most turns: so
// equal VMs go round, whatever a few microseconds say.
std::optional<Policy::Client> Policy::best_waiting() const {
  const auto waits = [&](Client client, const ClientState& state) {
    return wants_turn(state) && !(holder_ && holder_->client == client);
  };
  std::optional<Client> first;
  for (const auto& [client, state] : clients_)
    if (waits(client, state) && (!first || goes_before(state, clients_.at(*first)))) first = client;
  if (!first) return {};
  const VmState& its = vms_.at(clients_.at(*first).vm);
  Client best = *first;
  for (const auto& [client, state] : clients_) {
    const VmState& vm = vms_.at(state.vm);
    const bool as_far = at_once(vm) == at_once(its) && vm.behind - its.behind < limits_.quantum / 4;
    if (waits(client, state) && as_far && state.served < clients_.at(best).served) best = client;
  }
  return best;
}

// A VM of the latency class, unless it is far ahead; then the VM that is furthest behind; in one VM the client that has
// waited for the most turns.
bool Policy::goes_before(const ClientState& a, const ClientState& b) const {
  if (a.vm == b.vm) return a.served < b.served;
  const VmState &first = vms_.at(a.vm), &second = vms_.at(b.vm);
  if (at_once(first) != at_once(second)) return at_once(first);
  return first.behind < second.behind;
}

}  // namespace host::turns
