// Of the scheduler's decisions who goes before others: VMs of the latency class, and light ones. A light VM uses little of
// the GPU, now and then, beside one that uses it most of the time. Under slices each of its pieces of work waits for
// others' slices, and so it does in turns; if it ends others' turns instead, as one of the latency class does, they lose
// little, since it uses little.
#include <algorithm>
#include <optional>

#include "host/turns/policy.h"
#include "host/turns/policy_numbers.h"

namespace host::turns {

// A VM is light by what it has had in the newest samples. One that turns out to want more, once it goes first, was wrongly
// taken for light, since what it says of itself under slices need not be true.
void Policy::weigh(Time now, double elapsed) {
  for (auto& [vm, state] : vms_) {
    const auto part = elapsed > 0 ? part_wanted(vm, now, elapsed) : std::nullopt;
    state.wanted = 0;
    if (!part) continue;
    ++state.samples;
    state.part += std::max(newest_part, 1. / state.samples) * (std::min(*part, 1.) - state.part);
    const bool light = state.part < (state.light ? most_of_light : most_to_be_light);
    if (state.light && !light && regime_ == Regime::Turns) state.not_light_until = now + known_for;
    state.light = light && state.samples >= enough_to_weigh && now >= state.not_light_until;
  }
}

// In the newest sample: while one of its processes waited for the GPU or for a turn, or had one. Nothing: it is not known,
// since nobody looked.
std::optional<double> Policy::part_wanted(Vm vm, Time now, double elapsed) const {
  double busy = 0;
  bool looked = false, active = false;
  for (const auto& [client, state] : clients_) {
    if (state.vm != vm || !is_active(state, now)) continue;
    active = true;
    looked |= state.grant.watched && state.was_watched;
    const double waited = static_cast<double>(since(state.said.waited_ns, state.sampled.waited_ns)) * 1e-9 / elapsed;
    busy += std::max(busy_part(state, elapsed), waited);
  }
  if (!active || regime_ == Regime::Settling) return std::nullopt;
  if (regime_ == Regime::Turns) return vms_.at(vm).wanted / elapsed;
  return looked ? std::optional(busy) : std::nullopt;
}

// Whether a VM of the latency class uses the GPU, and another one, too.
bool Policy::wants_latency(Time now) const {
  std::optional<Vm> first;
  bool latency = false, others = false;
  for (const auto& [client, state] : clients_) {
    if (!is_active(state, now)) continue;
    others |= first.value_or(state.vm) != state.vm;
    first = state.vm;
    latency |= vms_.at(state.vm).latency;
  }
  return latency && others;
}

// Whether a light VM uses the GPU beside one that uses it most of the time.
bool Policy::light_beside_heavy(Time now) const {
  bool light = false, heavy = false;
  const double least = regime_ == Regime::Turns ? least_of_heavy : least_to_be_heavy;
  for (const auto& [client, state] : clients_) {
    if (!is_active(state, now)) continue;
    const VmState& vm = vms_.at(state.vm);
    light |= vm.light;
    heavy |= vm.samples >= enough_to_weigh && vm.part > least;
  }
  return light && heavy;
}

// Whether this VM ends others' turns. One that is too far ahead, or has used more than it said, waits for its turn like
// others.
bool Policy::at_once(const VmState& vm) const {
  return (vm.latency || vm.light) && read_ >= vm.not_first_until &&
         vm.behind < floor_ + credit_of_latency * limits_.quantum;
}

}  // namespace host::turns
