// Of the scheduler's decisions the debts between VMs under slices. The driver slices by process: a VM of three has three
// parts, whatever its weight. So each VM is charged with what it is taken to have of the GPU, and whoever is ahead by too
// much, while another VM wants the GPU all the time, too, is Closed until it is less so.
//
// What a VM has is an estimate. A client says for how long its calls have waited for the GPU, or for room in its queue.
// Meanwhile it has work, and of those that have work each gets an equal part; but for one whose pieces of work are
// known from its turns, which has as many of them as it waits. The account is apart from the virtual time of turns,
// which is measured: an estimate that is wrong shall not reach into it.
//
// A client that says too little keeps what slices give it. One that says too much is charged for it, and makes others
// lose no more than what is beyond their own parts.
#include <algorithm>

#include "host/turns/policy.h"
#include "host/turns/policy_numbers.h"

namespace host::turns {

void Policy::keep_debts(Time now, double elapsed) {
  if (elapsed <= 0) return;
  const std::map<Vm, Use> all = uses(now, elapsed);
  charge_debts(all, elapsed);
  judge_hold(all, elapsed);
  hold_back(now, all);
}

// Of the newest sample, for each VM that is active.
std::map<Policy::Vm, Policy::Use> Policy::uses(Time now, double elapsed) {
  std::map<Vm, double> busy;
  double known = 0, shared = 0;
  for (const auto& [client, state] : clients_) {
    if (!is_active(state, now)) continue;
    busy[state.vm] += busy_part(state, elapsed);
    (has_known_use(state, now, elapsed) ? known : shared) += part_used(state, now, elapsed);
  }
  const double rest = std::max(0., 1 - known), left = rest / std::max({shared, rest, 1e-9});
  std::map<Vm, Use> result;
  for (const auto& [client, state] : clients_) {
    if (!is_active(state, now)) continue;
    const double scale = has_known_use(state, now, elapsed) ? 1 / std::max(known, 1.) : left;
    Use& use = result[state.vm];
    use.had += elapsed * scale * part_used(state, now, elapsed);
    use.busy += elapsed * busy_part(state, elapsed);
    use.wants |= vms_.at(state.vm).held && state.said.waits_for_turn;
  }
  const bool all_pause = known + shared < all_pause_below;
  for (auto& [vm, use] : result) {
    VmState& state = vms_.at(vm);
    const double part = std::min(busy.at(vm), 1.);
    const double weight = part > state.busy ? newest_of_more : newest;
    if (!state.held && !all_pause) state.busy += weight * (part - state.busy);
    use.wants |= state.busy > busy_all_the_time;
  }
  return result;
}

// Whether a client's waits tell what it had: it was seen in turns, and its waits are not longer than its pieces make them.
// Or its work ended after its gate was closed.
bool Policy::has_known_use(const ClientState& client, Time now, double elapsed) const {
  if (ending_part(client, elapsed) > 0) return true;
  const double wait = client.waits.part / std::max(client.waits.each_second, 1e-3);
  return has_short_pieces(client) && client.waits.each_second > 0 &&
         wait < static_cast<double>(active(now)) * seconds(*client.piece + slice + change);
}

// Where that is not known, how much of the time it has work. Waits no longer than one round of slices may have met
// nothing but others' work. Whose work has ended had the last slice whole, or half of it if it never waits, since its queue
// ends anywhere.
double Policy::part_used(const ClientState& client, Time now, double elapsed) const {
  const double busy = busy_part(client, elapsed);
  const double all = static_cast<double>(active(now));
  if (ending_part(client, elapsed) > 0) {
    const double last = (client.waits.each_second > 0 ? 1 : 0.5) * seconds(slice) / elapsed;
    return std::max(busy / all, std::min(busy, last));
  }
  if (has_known_use(client, now, elapsed))
    return std::min(busy, client.waits.each_second * seconds(*client.piece + change));
  const double round = all * seconds(slice + change);
  const bool is_short =
      !client.piece && client.waits.each_second > 0 && client.waits.part < round * client.waits.each_second;
  return is_short ? busy / all : busy;
}

// Whoever was told to end its work has some until it says that it is done, which is in the middle of a sample. Its worker
// does not count that time.
double Policy::busy_part(const ClientState& client, double elapsed) const {
  if (has_work(client)) return 1;
  const double said = static_cast<double>(since(client.said.busy_ns, client.sampled.busy_ns)) * 1e-9;
  return std::clamp(std::max(said / elapsed, ending_part(client, elapsed)), 0., 1.);
}

// For how much of the sample it has gone on with what was under way when its gate was closed.
double Policy::ending_part(const ClientState& client, double elapsed) const {
  return client.done_at ? std::max(0., 1 - seconds(*sampled_ - *client.done_at) / elapsed) : 0;
}

// Each VM that wants the GPU all the time has a claim to its part of what these have had together. What changes cost is
// everybody's loss by weight, but for half of it, which is nobody's use. If all of it were, as in turns, those who are
// held back would have more than their parts, and whoever is not would miss some (docs/design/028). Who does not want the GPU
// all the time has no claim, and its debt goes with the time.
void Policy::charge_debts(const std::map<Vm, Use>& uses, double elapsed) {
  double had = 0, weights = 0, all_weights = 0, busy = 0;
  std::size_t want = 0;
  for (const auto& [vm, use] : uses) {
    all_weights += vms_.at(vm).weight, busy += use.busy;
    if (use.wants) ++want, had += use.had, weights += vms_.at(vm).weight;
  }
  const double charged = busy > elapsed ? 1 - changes_not_charged * seconds(change) / seconds(slice + change) : 1;
  for (auto& [vm, state] : vms_) {
    const auto found = uses.find(vm);
    const double pays = elapsed * state.weight / std::max(all_weights, state.weight);
    if (found != uses.end() && found->second.wants && want > 1) {
      state.longest_hold = hold_of(vm, state.weight / weights);
      state.debt += charged * found->second.had - had * state.weight / weights;
      state.debt = std::clamp(state.debt, -most_debt, most_debt);
    } else {
      state.debt = state.debt > 0 ? std::max(0., state.debt - pays) : std::min(0., state.debt + pays);
    }
  }
}

// How long a VM with this part may be kept from the GPU: until it has paid back what it owes, but not much longer than
// its pieces of work take in any case.
Time Policy::hold_of(Vm vm, double part) const {
  double longest_wait = 0;
  for (const auto& [client, state] : clients_)
    if (state.vm == vm && state.waits.each_second > 0)
      longest_wait = std::max(longest_wait, state.waits.part / state.waits.each_second);
  const Time most = std::clamp(time_of(waits_in_a_hold * longest_wait), longest_hold, longest_hold_of_long_pieces);
  return std::clamp(over(std::max(longest_debt, time_of(vms_.at(vm).debt)), part), usual_hold, most);
}

// What a VM that is held back leaves must be of use to those who want it. If it is not, they wait for something else,
// and nobody is held back for a while.
void Policy::judge_hold(const std::map<Vm, Use>& uses, double elapsed) {
  double used = 0;
  for (const auto& [vm, use] : uses) used += use.busy;
  if (std::ranges::none_of(vms_, [](const auto& one) { return one.second.idle.has_value(); })) return;
  freed_ += elapsed;
  freed_used_ += std::min(used, elapsed);
}

bool Policy::held_in_vain() const { return freed_used_ < use_of_a_hold * freed_; }

void Policy::hold_back(Time now, const std::map<Vm, Use>& uses) {
  const auto want = std::ranges::count_if(uses, [](const auto& one) { return one.second.wants; });
  for (auto& [vm, state] : vms_) {
    const auto found = uses.find(vm);
    if (found == uses.end()) state.busy = 0;
    const bool competes = want > 1 && found != uses.end() && found->second.wants;
    const double bound = seconds(longest_debt);
    state.shallow = competes && state.debt > (state.shallow ? -bound : bound / 2);
    if (state.held && (!competes || is_held_enough(vm, now, uses)))
      let_in(vm, now);
    else if (!state.held && competes && may_be_held(vm, now, uses))
      state.held = now;
  }
}

// Somebody who is not held back must want the GPU, and whoever was let in has had a round of slices.
bool Policy::may_be_held(Vm vm, Time now, const std::map<Vm, Use>& uses) const {
  const VmState& state = vms_.at(vm);
  if (state.debt < seconds(longest_debt) || now < may_hold_) return false;
  if (now - state.let_in < static_cast<int>(active(now)) * (slice + change)) return false;
  return std::ranges::any_of(uses, [&](const auto& one) {
    return one.first != vm && one.second.wants && one.second.busy > 0 && !vms_.at(one.first).held &&
           vms_.at(one.first).debt < 0;
  });
}

bool Policy::is_held_enough(Vm vm, Time now, const std::map<Vm, Use>& uses) {
  VmState& state = vms_.at(vm);
  const bool all_idle = note_idle(vm, now);
  const bool all_let_in = std::ranges::all_of(
      clients_, [&](const auto& one) { return one.second.vm != vm || has_waited_enough(one.second, now); });
  state.idle = all_idle ? std::optional(state.idle.value_or(now)) : std::nullopt;
  const bool for_others =
      std::ranges::any_of(uses, [&](const auto& one) { return one.second.wants && !vms_.at(one.first).held; });
  return held_in_vain() || !for_others || all_let_in || now - *state.held >= longest_hold_at_work || state.debt < 0;
}

// Notes which clients of a VM that is held back have nothing under way. True: none has.
bool Policy::note_idle(Vm vm, Time now) {
  bool all = true;
  for (auto& [client, state] : clients_) {
    if (state.vm != vm) continue;
    if (has_work(state)) state.idle.reset();
    if (!has_work(state) && !state.idle) state.idle = now;
    all = all && state.idle;
  }
  return all;
}

// Nobody is kept from the GPU for longer than it takes to pay back what its VM owes, though another process of that VM still
// has work. Whose work goes on for long after the gate was closed has had that time already.
bool Policy::has_waited_enough(const ClientState& client, Time now) const {
  const VmState& vm = vms_.at(client.vm);
  if (!vm.held || !client.idle) return false;
  return now - *client.idle >= std::max(vm.longest_hold, *client.idle - *vm.held);
}

void Policy::let_in(Vm number, Time now) {
  VmState& vm = vms_.at(number);
  for (auto& [client, state] : clients_)
    if (state.vm == number) state.idle.reset();
  const bool was_at_work = !vm.idle && now - *vm.held >= longest_hold_at_work;
  vm.let_in = was_at_work ? now + longest_hold_at_work : now;
  vm.held = vm.idle = std::nullopt;
  if (freed_ == 0) return;
  if (held_in_vain())
    note_vain_hold(now);
  else
    hold_dwell_ = Time::zero();
  freed_ = freed_used_ = 0;
}

// Once may have been a pause of all programs, which happens to come then.
void Policy::note_vain_hold(Time now) {
  may_hold_ = now + hold_dwell_;
  if (hold_dwell_ > Time::zero())
    for (auto& [vm, state] : vms_) state.debt = 0;
  hold_dwell_ = std::clamp(4 * hold_dwell_, shortest_dwell, longest_dwell);
}

void Policy::forgive_debts() {
  for (auto& [vm, state] : vms_) {
    state.debt = state.busy = 0;
    state.shallow = false;
    state.held = state.idle = std::nullopt;
  }
  for (auto& [client, state] : clients_) state.idle.reset();
  freed_ = freed_used_ = 0;
}

}  // namespace host::turns
