// Of the scheduler's decisions by what right a client may have used the GPU, and what is done with work that goes on without a
// turn: since it does not end, since it has waited for a value in memory, or since its worker passes no gate.
#include <algorithm>

#include "host/turns/policy.h"
#include "host/turns/policy_numbers.h"
#include "ring/turn_gate.h"

namespace host::turns {

using ring::GrantMode;

// ---- what is left of a client's work -------------------------------------------------------------------------------

// Has been told to end what it has submitted, and has not said that it is done.
bool Policy::is_ending(const ClientState& client) {
  return client.grant.mode == GrantMode::Closed && !ring::is_answered(client.grant, client.said.given_back);
}

// Has said, in place of that, that what is left waits for values in memory. It may go on at any time, and then has a right to.
bool Policy::is_held_up(const ClientState& client) const {
  if (client.grant.mode != GrantMode::Closed && client.grant.mode != GrantMode::Turn) return false;
  return ring::is_held_up(client.grant, client.said.held_up) && read_ >= client.at_work_until &&
         !ring::is_answered(client.grant, client.said.given_back);
}

bool Policy::still_ends(const ClientState& client) const { return is_ending(client) && !is_held_up(client); }

// A worker that is only starting, as spare ones are, does not answer and has nothing to end.
bool Policy::has_work(const ClientState& client) const { return still_ends(client) && client.said.submitted != 0; }

// Whether its answer is missed: nobody else can say whether its copies are done.
bool Policy::owes_an_answer(const ClientState& client) const {
  return has_work(client) || (is_ending(client) && client.grant.copies);
}

// Work that goes on beside others' turns has half of the GPU, whatever its VM's part is. Whether its client says that it
// is active does not count: it may be one that lies.
//
// One that owes an answer about its copies alone may have a long queue of them. It gets longer the next time.
void Policy::bar_who_does_not_end(Time now) {
  for (auto& [client, state] : clients_) {
    if (!owes_an_answer(state)) continue;
    const bool copies_alone = !has_work(state);
    const unsigned times = copies_alone ? std::min(state.unanswered, most_unanswered - 1) : 0;
    if (now - state.ended <= long_ending * (1 << 2 * times)) continue;
    state.barred_until = now + retries_cost * long_ending;
    if (copies_alone) ++state.unanswered;
  }
}

// Work that goes on beside others' turns, since the value is there that it has waited for. It may be half of what the GPU does,
// and is charged like a turn: so nobody gains by work that outlives its turn.
void Policy::charge_work_beside_turns(ClientState& client, Time time) {
  client.was_held_up = is_held_up(client) || (client.was_held_up && has_work(client));
  if (regime_ != Regime::Turns || !client.was_held_up || is_held_up(client)) return;
  VmState& vm = vms_.at(client.vm);
  vm.behind = std::max(vm.behind, floor_ - limits_.quantum) + over(time, vm.weight);
}

// ---- rights, and who is suspected ----------------------------------------------------------------------------------

// What a client has just said tells by what right it may have used the GPU.
void Policy::note_right(ClientState& client, bool might_use, Time now) const {
  if (might_use) client.by_right = now;
  if (!owes_an_answer(client)) client.ended = now;
  if (!client.grant.copies) client.no_copies_since.reset();
  client.hears |= client.said.heard != 0;
  const bool is_unheard = client.grant.copies && client.said.heard != client.grant.number;
  client.unheard = is_unheard ? std::optional(client.unheard.value_or(now)) : std::nullopt;
  if (client.grant.copies && !is_ending(client)) {
    client.no_copies_since = client.no_copies_since.value_or(now);
    client.unanswered = 0;
  }
  if (client.suspected_until && now >= *client.suspected_until) client.suspected_until.reset();
}

// A turn that was given back early is over, whatever the grant says. One that has never submitted has nothing to end, and
// no right to the GPU by that.
bool Policy::may_use(Client client, const ClientState& state) const {
  if (regime_ != Regime::Turns || (holder_ && holder_->client == client)) return true;
  return state.grant.mode == GrantMode::Open || state.grant.mode == GrantMode::Told || has_work(state) ||
         is_held_up(state);
}

Right Policy::right_of(Client client, Time now) const {
  const ClientState& state = clients_.at(client);
  Right right{may_use(client, state) ? now : state.by_right, state.no_copies_since, state.unanswered};
  right.is_deaf = state.hears && state.unheard && now - *state.unheard >= longest_deafness;
  const bool is_let_in = state.grant.mode == GrantMode::Open || is_held_up(state);
  if (regime_ == Regime::Turns && is_let_in) right.charged = vms_.at(state.vm).part;
  return right;
}

void Policy::suspect(Client client, Time now) {
  ClientState& state = clients_.at(client);
  VmState& vm = vms_.at(state.vm);
  if (at_once(vm)) vm.not_first_until = now + known_for;
  if (is_held_up(state)) state.at_work_until = now + known_for;
  state.suspected_until = now + suspected_for;
}

bool Policy::copies_need_turns(const ClientState& client, GrantMode mode) {
  return client.suspected_until && (mode == GrantMode::Closed || mode == GrantMode::Turn);
}

// Whether there is a client that could be found to submit without a turn: the others have turns.
bool Policy::somebody_might_cheat(Time now) const {
  return std::ranges::any_of(clients_,
                             [&](const auto& one) { return now - right_of(one.first, now).until > pays_for; });
}

// One is gone whose work, without a turn, made the others' turns look as if they did not pay.
void Policy::learn_anew(Time now) {
  for (auto& [client, state] : clients_) {
    state.pieces = {}, state.had = {}, state.learnt = state.said;
    state.wait.reset(), state.piece.reset(), state.tried.reset();
  }
  dwell_ = shortest_dwell;
  may_begin_ = std::min(may_begin_, now + dwell_);
}

}  // namespace host::turns
