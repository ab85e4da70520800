// The mixes of loads that `ivgpu bench share` measures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/ivgpu/support/broker.h"

namespace ivgpu::bench {

struct Part {
  std::string_view load;
  int vms;
  bool latency = false;  // of the latency class under leases
  int weight = 1;        // of each of these VMs, under leases
};
struct Mix {
  std::string_view name;
  std::vector<Part> parts;
};

inline constexpr std::string_view torch = "torch ";  // loads of which PyTorch makes

// The VMs of a mix are numbered in the order of its parts, from 0.
std::string vm_name(int number);

// An Error for a name of no mix.
void check_mixes(const std::vector<std::string>& names);

bool needs_torch(const Mix& mix);
// Under leases.
Sharing sharing_of(const Mix& mix);

// A mix, and for how many pairs of rounds.
struct Planned {
  const Mix* mix;
  int pairs;
};
// What is measured for these names (none: all mixes of several VMs). Where `alone`, each of their loads comes before them
// as a mix of its own, once, with few rounds if it was not named itself.
std::vector<Planned> planned_mixes(const std::vector<std::string>& names, int pairs, bool alone);

// The VMs of the largest mix.
int most_vms_of(const std::vector<Planned>& plan);

// Whether this mix is one load in one VM.
bool is_alone(const Mix& mix);

}  // namespace ivgpu::bench
