// Of the scheduler's decisions the regimes: who is a client, and when slices give way to turns and come back.
#include "host/turns/policy.h"

#include <algorithm>
#include <set>
#include <utility>

#include "host/turns/policy_numbers.h"
#include "ring/turn_gate.h"

namespace host::turns {

using ring::Grant;
using ring::GrantMode;

Policy::Policy(Limits limits) : limits_(limits), dwell_(shortest_dwell) {}

void Policy::add(Client client, Vm vm, bool makes_context) {
  ClientState& state = clients_[client];
  state.vm = vm;
  state.makes_context = makes_context;
  vms_[vm].forgotten = false;  // with the usual weight, if none was set
  charge_for_context(state, cost_of_a_start);
  dwell_ = shortest_dwell;  // what was learnt was about others
  hold_dwell_ = {};
  may_hold_ = {};
  may_begin_ = std::min(may_begin_, began_ + dwell_);
}

void Policy::take_over(Client client, ring::Grant shown, const Request& said) {
  ClientState& state = clients_.at(client);
  state.grant = shown;
  state.said = state.sampled = said;
  state.let_in = said.submitted;
  state.hears = said.heard != 0;  // a worker of before it did says nothing
  number_ = std::max(number_, shown.number);
}

void Policy::remove(Client client, Time now) {
  if (holder_ && holder_->client == client) end_turn(now);
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  const Vm vm = found->second.vm;
  charge_for_context(found->second, cost_of_an_end);
  const bool was_suspected = found->second.suspected_until.has_value();
  clients_.erase(found);
  if (was_suspected) learn_anew(now);
  if (vms_[vm].forgotten) forget(vm);
}

// In turns alone, as for the GPU's time. So a VM that starts processes without end gets no more than its part.
void Policy::charge_for_context(const ClientState& client, Time cost) {
  VmState& vm = vms_.at(client.vm);
  if (client.makes_context && regime_ == Regime::Turns) vm.behind += over(cost, vm.weight);
}

void Policy::forget(Vm vm) {
  const bool has_clients = std::ranges::any_of(clients_, [&](const auto& one) { return one.second.vm == vm; });
  if (has_clients)
    vms_[vm].forgotten = true;
  else
    vms_.erase(vm);
}

Account Policy::account(Vm vm, Time now) const {
  const auto found = vms_.find(vm);
  if (found == vms_.end()) return {};
  Account account = found->second.account;
  account.sliced = static_cast<std::uint64_t>(std::ranges::count_if(
      clients_, [&](const auto& one) { return one.second.vm == vm && now < one.second.sliced_until; }));
  return account;
}

Time Policy::step(Time now, const Ask& ask, const Give& give) {
  if (!on_ || clients_.size() < 2) return let_everybody(now, give);
  read(now, ask);
  if (!sampled_ || now - *sampled_ >= sample_every) sample(now);
  switch (regime_) {
    case Regime::Slices: return in_slices(now, give);
    case Regime::Settling: return in_settling(now, give);
    case Regime::Turns: break;
  }
  return in_turns(now, give);
}

// A client that waits again after a pause starts where the others are, less one quantum: it has no claim to the time
// that it did not want. Between two turns there is no pause.
void Policy::read(Time now, const Ask& ask) {
  for (auto& [client, state] : clients_) {
    const Request before = state.said;
    // Until it is asked: its answer may be this old.
    const bool might_use = may_use(client, state), had_work = has_work(state);
    state.said = ask(client);
    note_right(state, might_use, now);
    if (had_work && !has_work(state)) state.done_at = now;
    const bool works = state.said.submitted != before.submitted || state.said.busy_ns != before.busy_ns;
    const bool holds = holder_ && holder_->client == client;
    if (state.said.submitted != before.submitted) note_pause(state, now);
    if (holds) watch_work(state, before, now);
    const bool wants = wants_turn(state);
    const bool is_held_at_work = vms_[state.vm].held && has_work(state);  // its worker counts nothing then
    if (works || wants || is_held_at_work) state.last_active = now;
    if (wants && now - state.wanted > limits_.quantum) {
      state.came_back = true;
      Time& behind = vms_[state.vm].behind;
      behind = std::max(behind, floor_ - limits_.quantum);
    }
    if (wants || holds) state.wanted = now;
    if (wants && !holds) vms_[state.vm].wanted += seconds(now - read_);
    if (!holds) charge_work_beside_turns(state, now - read_);
    state.asked = state.said.waits_for_turn && !holds ? std::optional(state.asked.value_or(now)) : std::nullopt;
  }
  read_ = now;
}

void Policy::watch_work(ClientState& holder, const Request& before, Time now) {
  const Request& said = holder.said;
  const bool waited = said.waits != before.waits;
  if (waited) holder_->waited = holder.waited_for_all = now, holder_->submitted = said.submitted;
  if (waited || said.submitted != before.submitted || said.under_way) holder_->worked = now;
  holder.let_in = said.submitted;
}

// It submits again after it had waited for all that it had submitted. Its pauses tell what the next is like.
void Policy::note_pause(ClientState& client, Time now) {
  if (!client.waited_for_all) return;
  const bool was_long = now - *std::exchange(client.waited_for_all, {}) > ring::TurnPatience::longest;
  was_long ? client.patience.stayed_away() : client.patience.came_back();
}

// ---- regimes -------------------------------------------------------------------------------------------------------

// There is nothing to decide.
Time Policy::let_everybody(Time now, const Give& give) {
  if (regime_ != Regime::Slices) begin_slices(now, give);
  forgive_debts();
  set_all(GrantMode::Open, give);
  return Time::max();
}

Time Policy::in_slices(Time now, const Give& give) {
  const bool may = now >= may_begin_ && active(now) >= 2 && !somebody_is_sliced(now);
  if (may && (somebody_goes_first(now) || would_pay(now))) {
    begin_settling(now, give);
    return Time::zero();
  }
  const bool quiet = std::ranges::none_of(
      clients_, [&](const auto& one) { return one.second.last_active && now - *one.second.last_active < quiet_after; });
  set_in_slices(quiet, now, give);
  return quiet ? look_anyway : *sampled_ + sample_every - now;
}

void Policy::begin_settling(Time now, const Give& give) {
  regime_ = Regime::Settling;
  began_ = now;
  company_ = active(now);
  forgive_debts();
  settling_ = Round::First;
  close_all(now, give);
}

void Policy::close_all(Time now, const Give& give) {
  closed_ = now;
  for (auto& [client, state] : clients_) set_unless_it_has(state, client, {.mode = without_turn(state)}, give);
}

// What a client may do while another has the turn. One of the latency class is never closed out. So it need not ask for
// its turn first: others' turns end once it has submitted, and until it is quiet.
GrantMode Policy::without_turn(const ClientState& client) const {
  return at_once(vms_.at(client.vm)) ? GrantMode::Open : GrantMode::Closed;
}

bool Policy::wants_turn(const ClientState& client) const {
  const bool was_let_in = regime_ == Regime::Turns && client.grant.mode == GrantMode::Open;
  return client.said.waits_for_turn || (was_let_in && client.said.submitted != client.let_in);
}

// First everybody is Closed, for as long as the driver's slices take to go round once. Those whose work is not done by
// then have much of it queued. Until it is, the others are let in, since the driver slices anyway, and so is whoever
// had only one long kernel. Then everybody is Closed once more, which now takes no time.
Time Policy::in_settling(Time now, const Give& give) {
  const bool round_is_over = now - closed_ > static_cast<int>(active(now)) * (slice + change);
  const bool first_round = settling_ == Round::First && !round_is_over;
  const bool all = std::ranges::none_of(
      clients_, [&](const auto& one) { return first_round ? still_ends(one.second) : has_work(one.second); });
  if (active(now) < 2) {
    begin_slices(now, give);
  } else if (settling_ == Round::Others) {
    let_others(now, all, give);
  } else if (all || (settling_ == Round::Last && round_is_over)) {
    begin_turns(now);
    return in_turns(now, give);
  } else if (round_is_over) {
    settling_ = Round::Others;
  }
  return Time::zero();
}

void Policy::let_others(Time now, bool all, const Give& give) {
  if (all) {
    settling_ = Round::Last;
    return close_all(now, give);
  }
  if (now - began_ > static_cast<int>(active(now)) * longest_settling) {
    for (auto& [client, state] : clients_)
      if (has_work(state)) stand_aside(state, now, now - began_);
    return begin_slices(now, give);
  }
  if (now - closed_ > short_ending) return;
  for (auto& [client, state] : clients_)
    if (!is_ending(state) && state.grant.mode == GrantMode::Closed) set(state, client, {.mode = GrantMode::Open}, give);
}

void Policy::begin_turns(Time now) {
  regime_ = Regime::Turns;
  began_ = paid_ = now;
  for (auto& [vm, state] : vms_) state.behind = std::max(state.behind, floor_ - limits_.quantum);
  for (auto& [client, state] : clients_) {
    state.waits = {};
    state.learnt = state.said;
    state.had = {};
    state.wanted = now;
    state.came_back = false;
    state.let_in = state.said.submitted;
  }
}

void Policy::begin_slices(Time now, const Give& give) {
  if (holder_) end_turn(now);
  regime_ = Regime::Slices;
  began_ = now;
  for (auto& [client, state] : clients_) state.waits = {};
  may_begin_ = now + dwell_;
  set_all(GrantMode::Open, give);
}

// A client has made others, or itself, lose this time because its work does not end.
void Policy::stand_aside(ClientState& client, Time now, Time lost) {
  client.sliced_until = now + retries_cost * lost;
  client.overlong_in_a_row = 0;
}

Time Policy::in_turns(Time now, const Give& give) {
  const bool sampled = now == *sampled_;
  if (sampled && (somebody_goes_first(now) || pays(now))) paid_ = now;
  const bool together = active(now) >= 2;
  bar_who_does_not_end(now);
  if (!together || now - paid_ > patience(now) || somebody_is_sliced(now)) {
    if (together) note_success(now, now - began_ >= a_success);
    begin_slices(now, give);
    return Time::zero();
  }
  close_who_is_not(give);
  if (holder_) watch_holder(now, give);
  if (!holder_) next_turn(now, give);
  return holder_ && !holder_->ended ? look_in_a_turn : Time::zero();
}

// Who has come since, who has begun or ceased to be suspected, and who of the latency class has given its turn back.
void Policy::close_who_is_not(const Give& give) {
  for (auto& [client, state] : clients_) {
    if (holder_ && holder_->client == client) continue;
    const GrantMode mode = state.grant.mode, wanted = without_turn(state);
    const bool gave_back = mode == GrantMode::Turn && wanted == GrantMode::Closed;
    const bool other = state.grant.copies != copies_need_turns(state, mode);
    if ((mode != wanted && !gave_back) || (mode == GrantMode::Closed && other))
      set(state, client, {.mode = wanted}, give);
  }
}

void Policy::note_success(Time now, bool success) {
  dwell_ = success ? shortest_dwell : std::min(4 * dwell_, longest_dwell);
  for (auto& [client, state] : clients_)
    if (!success && is_active(state, now)) state.tried = now;
}

// How long turns go on that do not pay.
Time Policy::patience(Time now) const {
  const bool were_good = paid_ - began_ >= a_success, pay = now - paid_ <= pays_for;
  if (watched_ && were_good && !pay && somebody_might_cheat(now)) return watched_for;
  if (now != *sampled_ || !has_tried_all(now)) return pays_for;
  return std::min(static_cast<int>(company_) * std::max(tried_for, tried_quanta * limits_.quantum), pays_for);
}

void Policy::set_all(GrantMode mode, const Give& give) {
  for (auto& [client, state] : clients_) set_unless_it_has(state, client, {.mode = mode}, give);
}

// Whoever is held back is Closed. The others are Open, and watched while they are of several VMs.
void Policy::set_in_slices(bool quiet, Time now, const Give& give) {
  std::set<Vm> vms;
  for (const auto& [client, state] : clients_)
    if (is_active(state, now)) vms.insert(state.vm);
  for (auto& [client, state] : clients_) {
    const VmState& vm = vms_.at(state.vm);
    Grant grant{.mode = quiet ? GrantMode::Told : GrantMode::Open};
    grant.watched = !quiet && vms.size() > 1;
    grant.shallow = grant.watched && vm.shallow;
    set_unless_it_has(state, client,
                      vm.held && !has_waited_enough(state, now) ? Grant{.mode = GrantMode::Closed} : grant, give);
  }
}

void Policy::set_unless_it_has(ClientState& state, Client client, Grant grant, const Give& give) {
  grant.number = state.grant.number;
  grant.copies = copies_need_turns(state, grant.mode);
  if (state.grant != grant) set(state, client, grant, give);
}

void Policy::set(ClientState& state, Client client, Grant grant, const Give& give) {
  number_ = (number_ + 1) & Grant::number_mask;
  grant.number = number_;
  grant.copies = copies_need_turns(state, grant.mode);
  state.grant = grant;
  if (grant.mode == GrantMode::Open) state.let_in = state.said.submitted;
  give(client, state.grant);
}

}  // namespace host::turns
