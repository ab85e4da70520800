#include "host/turns/policy.h"

#include <algorithm>

namespace host::turns {
namespace {

using ring::Grant;
using ring::GrantMode;
using namespace std::chrono_literals;

// Every number has its measurement in docs/design/028-turns.md.
constexpr Time change = 137us;             // what a wait costs for each process that has work, under time slices
constexpr Time sample_every = 10ms;        // how often waits are counted
constexpr Time active_for = 100ms;         // a client that submitted so lately counts
constexpr Time quiet_after = 1s;           // without a submission for so long, the scheduler sleeps
constexpr Time look_anyway = 100ms;        // then: whoever rings may have rung in vain
constexpr Time dwell = 100ms;              // between two changes of the regime
constexpr Time pays_for = 200ms;           // turns go on so long after they last paid
constexpr double newest = 0.25;            // the weight of the newest sample in a rate
constexpr double share_to_begin = 1 / 6.;  // of the time, eaten by changes
constexpr double share_to_go_on = 1 / 8.;
constexpr int credit_of_latency = 4;  // quanta by which a VM of the latency class may be ahead and still go first

double seconds(Time t) { return std::chrono::duration<double>(t).count(); }
Time over(Time t, double weight) { return std::chrono::duration_cast<Time>(t / weight); }

}  // namespace

void Policy::add(Client client, Vm vm) {
  ClientState& state = clients_[client];
  state.vm = vm;
  vms_[vm];  // with the usual weight, if none was set
}

void Policy::remove(Client client, Time now) {
  if (holder_ && holder_->client == client) {
    charge(now);
    holder_.reset();
  }
  clients_.erase(client);
}

Account Policy::account(Vm vm) const {
  const auto found = vms_.find(vm);
  return found == vms_.end() ? Account{} : found->second.account;
}

Time Policy::step(Time now, const Ask& ask, const Give& give) {
  if (!on_ || clients_.size() < 2) return let_everybody(now, give);
  read(now, ask);
  if (!sampled_ || now - *sampled_ >= sample_every) sample(now);
  return regime_ == Regime::Turns ? in_turns(now, give) : in_slices(now, give);
}

// A client that waits again after a pause starts where the others are, less one quantum: it has no claim to the time
// that it did not want.
void Policy::read(Time now, const Ask& ask) {
  for (auto& [client, state] : clients_) {
    const Request before = state.said;
    state.said = ask(client);
    if (state.said.submitted != before.submitted || state.said.waits_for_turn) state.last_active = now;
    if (before.waits_for_turn || !state.said.waits_for_turn) continue;
    Time& behind = vms_[state.vm].behind;
    behind = std::max(behind, floor_ - limits_.quantum);
  }
}

// ---- what programs do ----------------------------------------------------------------------------------------------

void Policy::sample(Time now) {
  const double elapsed = sampled_ ? seconds(now - *sampled_) : 0;
  sampled_ = now;
  for (auto& [client, state] : clients_) {
    // A counter that goes backwards is a wrong one, and counts as nothing.
    const std::uint64_t waits = std::max(state.said.waits, state.waits) - state.waits;
    if (elapsed > 0) state.waits_per_second += newest * (static_cast<double>(waits) / elapsed - state.waits_per_second);
    state.waits = state.said.waits;
  }
}

bool Policy::is_active(const ClientState& client, Time now) const {
  return client.last_active && now - *client.last_active < active_for;
}

std::size_t Policy::active(Time now) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(clients_, [&](const auto& one) { return is_active(one.second, now); }));
}

// The part of its time that the client with the most waits loses, or would lose, to changes under time slices.
double Policy::share_of_changes(Time now) const {
  double most = 0;
  for (const auto& [client, state] : clients_)
    if (is_active(state, now)) most = std::max(most, state.waits_per_second);
  return most * seconds(change) * static_cast<double>(active(now));
}

// ---- regimes -------------------------------------------------------------------------------------------------------

// There is nothing to decide.
Time Policy::let_everybody(Time now, const Give& give) {
  if (regime_ == Regime::Turns) end_turns(now, give);
  set_all(GrantMode::Open, give);
  return Time::max();
}

Time Policy::in_slices(Time now, const Give& give) {
  if (active(now) >= 2 && now >= may_change_ && share_of_changes(now) > share_to_begin) {
    begin_turns(now, give);
    return in_turns(now, give);
  }
  const bool quiet = std::ranges::none_of(
      clients_, [&](const auto& one) { return one.second.last_active && now - *one.second.last_active < quiet_after; });
  set_all(quiet ? GrantMode::Told : GrantMode::Open, give);
  return quiet ? look_anyway : *sampled_ + sample_every - now;
}

void Policy::begin_turns(Time now, const Give& give) {
  regime_ = Regime::Turns;
  may_change_ = now + dwell;
  paid_ = now;
  settles_ = now + 2 * limits_.quantum;
  set_all(GrantMode::Closed, give);
}

void Policy::end_turns(Time now, const Give& give) {
  if (holder_) charge(now);
  holder_.reset();
  regime_ = Regime::Slices;
  may_change_ = now + dwell;
  set_all(GrantMode::Open, give);
}

Time Policy::in_turns(Time now, const Give& give) {
  const bool together = active(now) >= 2;
  if (together && share_of_changes(now) > share_to_go_on) paid_ = now;
  if (now >= may_change_ && (!together || now - paid_ > pays_for)) {
    end_turns(now, give);
    return Time::zero();
  }
  for (auto& [client, state] : clients_)
    if (state.grant.mode == GrantMode::Open || state.grant.mode == GrantMode::Told)
      set(state, client, GrantMode::Closed, give);  // it has come since
  if (holder_) watch_holder(now, give);
  if (!holder_ && settled(now)) next_turn(now, give);
  return Time::zero();
}

// ---- turns ---------------------------------------------------------------------------------------------------------

void Policy::watch_holder(Time now, const Give& give) {
  ClientState& state = clients_.at(holder_->client);
  const std::uint32_t answer = state.said.given_back;
  if (answer == holder_->turn || (holder_->ended && answer == state.grant.number)) {
    charge(now);
    holder_.reset();
  } else if (!holder_->ended) {
    const auto waiting = best_waiting();
    if (!waiting || !must_end(clients_.at(*waiting), now)) return;
    holder_->ended = now;
    set(state, holder_->client, GrantMode::Closed, give);
    give(*waiting, clients_.at(*waiting).grant);  // the same again: it wakes up while the holder's work ends
  } else if (now - *holder_->ended >= limits_.longest) {
    ++vms_[state.vm].account.overlong;
    charge(now);
    holder_.reset();
  }
}

// Whether the holder's turn is over for the sake of this one: by time; because it is of the latency class; or because
// it is so far behind that it need not wait for the whole quantum, as a light VM beside a heavy one is.
bool Policy::must_end(const ClientState& waiting, Time now) const {
  const Time had = now - holder_->since;
  const VmState& theirs = vms_.at(waiting.vm);
  if (theirs.latency || had >= limits_.quantum) return true;
  const VmState& holders = vms_.at(clients_.at(holder_->client).vm);
  return had >= limits_.quantum / 4 && holders.behind + over(had, holders.weight) - theirs.behind > limits_.quantum;
}

void Policy::charge(Time now) {
  VmState& vm = vms_[clients_.at(holder_->client).vm];
  const Time had = now - holder_->since;
  vm.behind += over(had, vm.weight);
  vm.account.held += had;
}

// When turns begin, everybody still has work of the time before.
bool Policy::settled(Time now) const {
  return now >= settles_ || std::ranges::all_of(clients_, [](const auto& one) {
           return one.second.said.given_back == one.second.grant.number;
         });
}

void Policy::next_turn(Time now, const Give& give) {
  const auto next = best_waiting();
  if (!next) return;
  ClientState& state = clients_.at(*next);
  VmState& vm = vms_[state.vm];
  floor_ = std::max(floor_, vm.behind);
  ++vm.account.turns;
  state.served = ++turns_;
  set(state, *next, GrantMode::Turn, give);
  holder_ = Holder{.client = *next, .turn = state.grant.number, .since = now, .ended = {}};
}

std::optional<Policy::Client> Policy::best_waiting() const {
  std::optional<Client> best;
  for (const auto& [client, state] : clients_) {
    if (!state.said.waits_for_turn || (holder_ && holder_->client == client)) continue;
    if (!best || goes_before(state, clients_.at(*best))) best = client;
  }
  return best;
}

// A VM of the latency class, unless it is far ahead; then the VM that is furthest behind; in one VM the client that has
// waited for the most turns.
bool Policy::goes_before(const ClientState& a, const ClientState& b) const {
  if (a.vm == b.vm) return a.served < b.served;
  const VmState &first = vms_.at(a.vm), &second = vms_.at(b.vm);
  const auto at_once = [&](const VmState& vm) {
    return vm.latency && vm.behind < floor_ + credit_of_latency * limits_.quantum;
  };
  if (at_once(first) != at_once(second)) return at_once(first);
  return first.behind < second.behind;
}

void Policy::set_all(GrantMode mode, const Give& give) {
  for (auto& [client, state] : clients_)
    if (state.grant.mode != mode) set(state, client, mode, give);
}

void Policy::set(ClientState& state, Client client, GrantMode mode, const Give& give) {
  number_ = (number_ + 1) & Grant::number_mask;
  state.grant = {mode, number_};
  give(client, state.grant);
}

}  // namespace host::turns
