// Of the scheduler's decisions what programs do: how often and how long they wait, and whether they would do more in turns.
#include <algorithm>

#include "host/turns/policy.h"
#include "host/turns/policy_numbers.h"

namespace host::turns {

void Policy::sample(Time now) {
  const double elapsed = sampled_ ? seconds(now - *sampled_) : 0;
  sampled_ = now;
  if (regime_ == Regime::Slices) begin_anew_in_other_company(now);
  if (regime_ == Regime::Slices) keep_debts(now, elapsed);
  weigh(now, elapsed);
  for (auto& [client, state] : clients_) {
    if (elapsed > 0 && is_active(state, now)) add(state.waits, state, elapsed);
    if (regime_ == Regime::Slices) state.in_slices = state.waits;
    state.gains = does_more(state, now);
    state.sampled = state.said;
    state.was_watched = state.grant.watched;
  }
}

// What a program did alone says nothing of what slices give it beside others. One of many that comes or goes changes
// little, and shall not keep turns from being tried.
void Policy::begin_anew_in_other_company(Time now) {
  const std::size_t now_active = active(now);
  const std::size_t other = std::max(now_active, sampled_company_) - std::min(now_active, sampled_company_);
  if (4 * other <= sampled_company_) return;
  sampled_company_ = now_active;
  for (auto& [client, state] : clients_) state.waits = {};
  if (now_active < 2 || now_active == company_) return;  // the last try was in this company
  dwell_ = shortest_dwell;
  for (auto& [client, state] : clients_) state.tried.reset();
  may_begin_ = std::min(may_begin_, began_ + longest_dwell_of_others);
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

// The part of the GPU that turns would give each process of this VM, which has an active one.
Policy::Part Policy::part_of_vm(Vm vm, Time now) const {
  std::map<Vm, std::size_t> processes;
  for (const auto& [client, state] : clients_)
    if (is_active(state, now)) ++processes[state.vm];
  double all = 0;
  for (const auto& [other, count] : processes) all += vms_.at(other).weight;
  const auto its = static_cast<double>(processes.at(vm)), vms = static_cast<double>(processes.size());
  return {.by_weights = vms_.at(vm).weight / all / its, .of_equals = 1 / vms / its};
}

bool Policy::somebody_is_sliced(Time now) const {
  return std::ranges::any_of(clients_, [&](const auto& one) {
    const ClientState& client = one.second;
    return now < client.barred_until || (is_active(client, now) && now < client.sliced_until);
  });
}

// How much more a client would do in turns than under slices, if turns gave it this part of the GPU. Its turns tell how
// long a piece of its work takes. Before they do, all of its waits are taken for loss, so that turns are tried; but a wait
// shorter than a change has met none. More than if its waits took no time it cannot do in any case. Waits longer than one
// round of slices are of pieces that are not short. What could be little more, and was not in a try, is not tried again
// soon.
double Policy::gain(const ClientState& client, double part, Time now) const {
  const Waits& waits = client.in_slices;
  if (waits.samples < enough_samples || waits.each_second <= 0) return 0;
  const double without_waits = 1 / std::max(1 - waits.part, 1e-3);
  if (client.piece && now - client.learnt_at < known_for) {
    if (!has_short_pieces(client)) return 0;
    const double most = std::min(part / (seconds(*client.piece) * waits.each_second), without_waits);
    const bool was_tried = client.tried && now - *client.tried < known_for;
    return was_tried && most < small_gain ? 0 : most;
  }
  const double round = static_cast<double>(active(now)) * seconds(slice + change);
  if (waits.part > round * waits.each_second) return 0;
  const double changes = waits.each_second * seconds(change);  // if each wait had met one
  return waits.part < changes ? part : part * without_waits;
}

bool Policy::would_pay(Time now) const {
  return std::ranges::any_of(clients_, [&](const auto& one) {
    const ClientState& client = one.second;
    if (!is_active(client, now)) return false;
    return gain(client, part_of_vm(client.vm, now).by_weights, now) > (client.piece ? gain_to_begin : gain_to_try);
  });
}

bool Policy::has_short_pieces(const ClientState& client) { return client.piece && *client.piece < short_pieces; }

bool Policy::was_seen_in_slices(const ClientState& client, Time now) const {
  return active(now) == company_ && client.in_slices.samples >= enough_samples;
}

// Whether a client does more in turns, as far as it is known: a change is dear for each of its pieces of work, and in
// the same company it did less under slices. A small weight is no reason why it would not: such a VM is to have less than
// slices give it, and would have more than its part if it paid for no changes.
bool Policy::does_more(const ClientState& client, Time now) const {
  if (!is_active(client, now) || !has_short_pieces(client)) return false;
  if (!was_seen_in_slices(client, now)) return true;
  const Part part = part_of_vm(client.vm, now);
  return gain(client, std::max(part.by_weights, part.of_equals), now) > 1;  // it grows with the part
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

// Whether everybody has had a turn that told what its pieces of work are like, and turns have not paid so far.
bool Policy::has_tried_all(Time now) const {
  return paid_ == began_ && std::ranges::all_of(clients_, [&](const auto& one) {
           return !is_active(one.second, now) || (one.second.piece && one.second.learnt_at > began_);
         });
}

}  // namespace host::turns
