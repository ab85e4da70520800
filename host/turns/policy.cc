#include "host/turns/policy.h"

#include <algorithm>
#include <set>

#include "ring/turn_gate.h"

namespace host::turns {
namespace {

using ring::Grant;
using ring::GrantMode;
using namespace std::chrono_literals;

// docs/design/028-turns.md has the measurements, and tests/turns/ tries the choices.
//
// The driver's, on an H200.
constexpr Time change = 137us;  // what a wait costs for each process that has work, under time slices
constexpr Time slice = 2ms;

// What programs do is looked at this often, and judged by a few looks.
constexpr Time sample_every = 10ms;
constexpr double newest = 0.25;           // the weight of the newest sample
constexpr double newest_in_turns = 0.02;  // which come back after several samples
constexpr int enough_samples = 5;
constexpr Time active_for = 100ms;   // a client that submitted so lately counts
constexpr Time quiet_after = 1s;     // without a submission for so long, the scheduler sleeps
constexpr Time look_anyway = 100ms;  // then: whoever rings may have rung in vain

// When turns begin and end. A try that fails is made again, but more and more seldom.
constexpr double gain_to_begin = 1.1, gain_to_go_on = 1.05;  // for the client that gains most
constexpr double share_to_go_on = 1 / 10.;                   // of a client's time, that changes would eat
constexpr Time known_for = 20s;                              // what a program did in turns is no news after that
constexpr Time pays_for = 200ms;                             // turns go on so long after they last paid
constexpr Time shortest_dwell = 100ms, longest_dwell = 5s;   // under slices, before the next try
constexpr Time a_success = 1s;                               // turns that went on for so long were no mistake

// Work that does not end. A program may have 1024 kernels queued, and each of them may take long.
constexpr Time short_ending = 100ms;   // whoever ends its work so soon has no deep queue
constexpr Time longest_settling = 2s;  // for each client: 1024 kernels of 1.25 ms, and as much again
constexpr unsigned most_overlong = 3;  // in a row
constexpr int retries_cost = 20;       // a client that cannot take turns may cost a twentieth of the time by tries

// Turns.
constexpr int waits_in_a_turn = 6;          // so that its end cuts a small part of its work
constexpr int longest_quantum = 4;          // quanta
constexpr Time short_pieces = 10 * change;  // of work: a change costs more than a tenth of it
constexpr Time cost_of_a_turn = 180us;      // a change, and two hand-overs
constexpr double newest_cost = 0.02;        // the weight of the newest turn in what turns cost
constexpr double highest_tax = 10;          // on the time of those who gain by turns
constexpr int credit_of_latency = 4;        // quanta by which a VM of the latency class may be ahead and still go first

double seconds(Time t) { return std::chrono::duration<double>(t).count(); }
Time over(Time t, double weight) { return std::chrono::duration_cast<Time>(t / weight); }

// A counter that goes backwards is wrong, and counts as nothing.
std::uint64_t since(std::uint64_t now, std::uint64_t before) { return now > before ? now - before : 0; }

}  // namespace

Policy::Policy(Limits limits) : limits_(limits), dwell_(shortest_dwell) {}

void Policy::add(Client client, Vm vm) {
  ClientState& state = clients_[client];
  state.vm = vm;
  vms_[vm].forgotten = false;  // with the usual weight, if none was set
  dwell_ = shortest_dwell;     // what was learnt was about others
  may_begin_ = std::min(may_begin_, began_ + dwell_);
}

void Policy::remove(Client client, Time now) {
  if (holder_ && holder_->client == client) end_turn(now);
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  const Vm vm = found->second.vm;
  clients_.erase(found);
  if (vms_[vm].forgotten) forget(vm);
}

void Policy::forget(Vm vm) {
  const bool has_clients = std::ranges::any_of(clients_, [&](const auto& one) { return one.second.vm == vm; });
  if (has_clients)
    vms_[vm].forgotten = true;
  else
    vms_.erase(vm);
}

Account Policy::account(Vm vm) const {
  const auto found = vms_.find(vm);
  return found == vms_.end() ? Account{} : found->second.account;
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
    state.said = ask(client);
    if (state.said.submitted != before.submitted || state.said.waits_for_turn) state.last_active = now;
    if (state.said.waits_for_turn && now - state.wanted > limits_.quantum) {
      state.came_back = true;
      Time& behind = vms_[state.vm].behind;
      behind = std::max(behind, floor_ - limits_.quantum);
    }
    if (state.said.waits_for_turn || (holder_ && holder_->client == client)) state.wanted = now;
  }
}

// ---- what programs do ----------------------------------------------------------------------------------------------

void Policy::sample(Time now) {
  const double elapsed = sampled_ ? seconds(now - *sampled_) : 0;
  sampled_ = now;
  for (auto& [client, state] : clients_) {
    if (elapsed > 0 && is_active(state, now)) add(state.waits, state, elapsed);
    if (regime_ == Regime::Slices) state.in_slices = state.waits;
    state.gains = does_more(state, now);
    state.sampled = state.said;
  }
}

void Policy::add(Waits& waits, const ClientState& client, double elapsed) const {
  const double least = regime_ == Regime::Slices ? newest : newest_in_turns;
  const double weight = std::max(least, 1. / ++waits.samples);  // the first are as good as the next
  const auto average = [&](double& rate, double amount) { rate += weight * (amount / elapsed - rate); };
  average(waits.each_second, static_cast<double>(since(client.said.waits, client.sampled.waits)));
  average(waits.part, static_cast<double>(since(client.said.waited_ns, client.sampled.waited_ns)) * 1e-9);
}

bool Policy::is_active(const ClientState& client, Time now) const {
  return client.last_active && now - *client.last_active < active_for;
}

std::size_t Policy::active(Time now) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(clients_, [&](const auto& one) { return is_active(one.second, now); }));
}

// The part of the GPU that turns would give each process of this VM.
double Policy::part_of_vm(Vm vm, Time now) const {
  std::map<Vm, std::size_t> processes;
  for (const auto& [client, state] : clients_)
    if (is_active(state, now)) ++processes[state.vm];
  double all = 0;
  for (const auto& [other, count] : processes) all += vms_.at(other).weight;
  return vms_.at(vm).weight / all / static_cast<double>(processes.at(vm));
}

// Whether a VM of the latency class uses the GPU, and another one, too.
bool Policy::wants_latency(Time now) const {
  std::set<Vm> vms;
  bool latency = false;
  for (const auto& [client, state] : clients_) {
    if (!is_active(state, now)) continue;
    vms.insert(state.vm);
    latency |= vms_.at(state.vm).latency;
  }
  return latency && vms.size() > 1;
}

bool Policy::somebody_is_sliced(Time now) const {
  return std::ranges::any_of(
      clients_, [&](const auto& one) { return is_active(one.second, now) && now < one.second.sliced_until; });
}

// How much more a client would do in turns than under slices. Its turns tell how long a piece of its work takes. Before
// they do, all of its waits are taken for loss, so that turns are tried; but a wait shorter than a change has met none.
double Policy::gain(const ClientState& client, Time now) const {
  const Waits& waits = client.in_slices;
  if (waits.samples < enough_samples || waits.each_second <= 0) return 0;
  const double part = part_of_vm(client.vm, now);
  if (client.piece && now - client.learnt_at < known_for)
    return *client.piece < short_pieces ? part / (seconds(*client.piece) * waits.each_second) : 0;
  const double changes = waits.each_second * seconds(change);  // if each wait had met one
  const double lost = waits.part < changes ? 0 : waits.part;
  return part / std::max(1 - lost, 1e-3);
}

bool Policy::would_pay(Time now) const {
  return std::ranges::any_of(
      clients_, [&](const auto& one) { return is_active(one.second, now) && gain(one.second, now) > gain_to_begin; });
}

bool Policy::has_short_pieces(const ClientState& client) { return client.piece && *client.piece < short_pieces; }

bool Policy::was_seen_in_slices(const ClientState& client, Time now) const {
  return active(now) == company_ && client.in_slices.samples >= enough_samples;
}

// Whether a client does more in turns, as far as it is known: a change is dear for each of its pieces of work, and in
// the same company it did less under slices.
bool Policy::does_more(const ClientState& client, Time now) const {
  if (!is_active(client, now) || !has_short_pieces(client)) return false;
  return !was_seen_in_slices(client, now) || gain(client, now) > 1;
}

// In turns: whether some client with short pieces of work does more than it did under slices in the same company. In
// another company: whether it waits so often that changes would eat much of its time.
bool Policy::pays(Time now) const {
  const double changes = seconds(change) * static_cast<double>(active(now));
  return std::ranges::any_of(clients_, [&](const auto& one) {
    const ClientState& client = one.second;
    if (!is_active(client, now) || !has_short_pieces(client)) return false;
    if (!was_seen_in_slices(client, now)) return client.waits.each_second * changes > share_to_go_on;
    return client.waits.each_second > gain_to_go_on * client.in_slices.each_second;
  });
}

// ---- regimes -------------------------------------------------------------------------------------------------------

// There is nothing to decide.
Time Policy::let_everybody(Time now, const Give& give) {
  if (regime_ != Regime::Slices) begin_slices(now, give);
  set_all(GrantMode::Open, give);
  return Time::max();
}

Time Policy::in_slices(Time now, const Give& give) {
  const bool may = now >= may_begin_ && active(now) >= 2 && !somebody_is_sliced(now);
  if (may && (wants_latency(now) || would_pay(now))) {
    begin_settling(now, give);
    return Time::zero();
  }
  const bool quiet = std::ranges::none_of(
      clients_, [&](const auto& one) { return one.second.last_active && now - *one.second.last_active < quiet_after; });
  set_all(quiet ? GrantMode::Told : GrantMode::Open, give);
  return quiet ? look_anyway : *sampled_ + sample_every - now;
}

void Policy::begin_settling(Time now, const Give& give) {
  regime_ = Regime::Settling;
  began_ = now;
  company_ = active(now);
  settling_ = Round::First;
  close_all(now, give);
}

void Policy::close_all(Time now, const Give& give) {
  closed_ = now;
  set_all(GrantMode::Closed, give);
}

// First everybody is Closed, for as long as the driver's slices take to go round once. Those whose work is not done by
// then have much of it queued. Until it is, the others are let in, since the driver slices anyway, and so is whoever
// had only one long kernel. Then everybody is Closed once more, which now takes no time.
Time Policy::in_settling(Time now, const Give& give) {
  const bool all = std::ranges::none_of(clients_, [](const auto& one) { return is_ending(one.second); });
  const bool round_is_over = now - closed_ > static_cast<int>(active(now)) * (slice + change);
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
      if (is_ending(state)) stand_aside(state, now, now - began_);
    return begin_slices(now, give);
  }
  if (now - closed_ > short_ending) return;
  for (auto& [client, state] : clients_)
    if (!is_ending(state) && state.grant.mode == GrantMode::Closed) set(state, client, GrantMode::Open, give);
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
  }
}

// Has been told to end what it has submitted, and has not said that it is done.
bool Policy::is_ending(const ClientState& client) {
  return client.grant.mode == GrantMode::Closed && !ring::is_answered(client.grant, client.said.given_back);
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
  if (now == *sampled_ && (wants_latency(now) || pays(now))) paid_ = now;
  const bool together = active(now) >= 2;
  if (!together || now - paid_ > pays_for || somebody_is_sliced(now)) {
    if (together) dwell_ = now - began_ < a_success ? std::min(2 * dwell_, longest_dwell) : shortest_dwell;
    begin_slices(now, give);
    return Time::zero();
  }
  for (auto& [client, state] : clients_)
    if (state.grant.mode == GrantMode::Open || state.grant.mode == GrantMode::Told)
      set(state, client, GrantMode::Closed, give);  // it has come since
  if (holder_) watch_holder(now, give);
  if (!holder_) next_turn(now, give);
  return Time::zero();
}

// ---- turns ---------------------------------------------------------------------------------------------------------

void Policy::watch_holder(Time now, const Give& give) {
  ClientState& state = clients_.at(holder_->client);
  if (ring::is_over(holder_->turn, state.grant, state.said.given_back)) {
    learn(state, now);
    state.overlong_in_a_row = 0;
    return end_turn(now);
  }
  if (holder_->ended) {
    if (now - *holder_->ended >= limits_.longest) end_overlong(now);
    return;
  }
  const auto waiting = best_waiting();
  if (!waiting) return go_on_alone(now);
  if (!must_end(clients_.at(*waiting), now)) return;
  holder_->ended = now;
  set(state, holder_->client, GrantMode::Closed, give);
  give(*waiting, clients_.at(*waiting).grant);  // the same again: it wakes up while the holder's work ends
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
  if (once && !holder_->ended) vm.behind = std::max(vm.behind, before + over(2 * cost_of_a_turn, vm.weight));
  holder_.reset();
}

void Policy::end_overlong(Time now) {
  ClientState& state = clients_.at(holder_->client);
  ++vms_.at(state.vm).account.overlong;
  if (++state.overlong_in_a_row >= most_overlong) stand_aside(state, now, most_overlong * limits_.longest);
  end_turn(now);
}

// Whether the holder's turn is over for the sake of this one, which goes next: it is of the latency class; or its VM is
// further behind by now, and the holder has had its quantum. Whoever comes back after a pause, as a light VM beside a
// heavy one does, waits for a quarter of that.
bool Policy::must_end(const ClientState& waiting, Time now) const {
  const ClientState& holder = clients_.at(holder_->client);
  const Time had = now - holder_->since;
  if (waiting.vm == holder.vm) return had >= quantum_of(holder, now);
  const VmState& theirs = vms_.at(waiting.vm);
  VmState holders = vms_.at(holder.vm);
  holders.behind += price(holder, now);
  if (at_once(theirs) != at_once(holders)) return at_once(theirs);
  if (holders.behind <= theirs.behind) return false;
  return had >= quantum_of(holder, now) || (waiting.came_back && had >= limits_.quantum / 4);
}

// A program whose waits are long has a few of them in a turn. Beside one with long turns nobody has much shorter ones,
// or it would change the context more often than the other for the same time.
Time Policy::quantum_of(const ClientState& client, Time now) const {
  const auto wants = [](const ClientState& one) { return waits_in_a_turn * one.wait.value_or(Time::zero()); };
  Time longest{};
  for (const auto& [other, state] : clients_)
    if (is_active(state, now)) longest = std::max(longest, wants(state));
  const Time most = longest_quantum * limits_.quantum;
  return std::clamp(wants(client), std::max(std::min(longest, most) / 2, limits_.quantum), most);
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
  holder_->charged = now;
}

// From a turn that it had for itself. Its last wait may end a little after the turn.
void Policy::learn(ClientState& client, Time now) {
  client.learnt_at = now;
  client.had += now - holder_->since;
  const std::uint64_t waits = since(client.said.waits, client.learnt.waits);
  if (waits == 0) return;
  const auto each = [&](std::uint64_t ns) {
    return Time(std::min<std::uint64_t>(ns / waits, std::chrono::nanoseconds(1h).count()));
  };
  const Time wait = each(since(client.said.waited_ns, client.learnt.waited_ns));
  const Time piece = each(static_cast<std::uint64_t>(client.had.count()));
  client.wait = client.wait ? (*client.wait + wait) / 2 : wait;
  client.piece = client.piece ? (*client.piece + piece) / 2 : piece;
  client.learnt = client.said;
  client.had = {};
}

void Policy::next_turn(Time now, const Give& give) {
  const auto next = best_waiting();
  if (!next) return;
  ClientState& state = clients_.at(*next);
  VmState& vm = vms_.at(state.vm);
  floor_ = std::max(floor_, vm.behind);
  ++vm.account.turns;
  state.served = ++turns_;
  state.came_back = false;
  set(state, *next, GrantMode::Turn, give);
  holder_ = Holder{.client = *next, .turn = state.grant.number, .since = now, .charged = now, .ended = {}};
}

// Of those that are about as far behind as the one that goes before all, the one that has waited for the most turns: so
// equal VMs go round, whatever a few microseconds say.
std::optional<Policy::Client> Policy::best_waiting() const {
  const auto waits = [&](Client client, const ClientState& state) {
    return state.said.waits_for_turn && !(holder_ && holder_->client == client);
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

// Whether a VM of the latency class is not too far ahead to end others' turns.
bool Policy::at_once(const VmState& vm) const {
  return vm.latency && vm.behind < floor_ + credit_of_latency * limits_.quantum;
}

// A VM of the latency class, unless it is far ahead; then the VM that is furthest behind; in one VM the client that has
// waited for the most turns.
bool Policy::goes_before(const ClientState& a, const ClientState& b) const {
  if (a.vm == b.vm) return a.served < b.served;
  const VmState &first = vms_.at(a.vm), &second = vms_.at(b.vm);
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
