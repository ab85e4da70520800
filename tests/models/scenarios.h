// The explorer's scenarios: a few threads around the product's headers. A scenario has several worlds
// (tests/models/explore.h); a mistake must show in at least one world.
#pragma once

#include <string_view>
#include <vector>

#include "tests/models/explore.h"

namespace explore {

struct Scenario {
  const char* name;  // as in ring/verify/mutants.def
  const char* world;
  Verdict (*run)(Options);
};

std::vector<Scenario> scenarios();

// Each function is in its own file.
std::vector<Scenario> parking_scenarios();
std::vector<Scenario> ring_scenarios();
std::vector<Scenario> order_scenarios();
std::vector<Scenario> callback_slot_scenarios();
std::vector<Scenario> slot_scenarios();
std::vector<Scenario> address_scenarios();
std::vector<Scenario> channel_mutex_scenarios();

// The usual `run` of a Scenario. The bounds are given here, and all other options come from the caller.
template <class World, auto... threads>
Verdict bounded(Options options, unsigned preemptions, unsigned daemons = 0) {
  options.preemptions = preemptions;
  options.daemons = daemons;
  return every_schedule<World>({threads...}, options);
}

}  // namespace explore
