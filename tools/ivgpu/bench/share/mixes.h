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
  bool latency = false;  // of the latency class with policy = "shared"
  int weight = 1;        // of each of these VMs, with policy = "shared"
};
struct Mix {
  std::string_view name;
  std::vector<Part> parts;
};

inline constexpr std::string_view torch = "torch ";  // prefix of loads that run in PyTorch

// The VMs of a mix are numbered from 0, in the order of the mix's parts.
std::string vm_name(int number);

// Throws an Error if a name is no mix.
void check_mixes(const std::vector<std::string>& names);

bool needs_torch(const Mix& mix);
// The sharing of the mix's VMs with policy = "shared".
Sharing sharing_of(const Mix& mix);

// A mix, and its number of pairs of rounds.
struct Planned {
  const Mix* mix;
  int pairs;
};
// The mixes to measure for these names; without names, all mixes of several VMs. With `alone`, each load of these mixes
// is first measured as a mix of its own, with few rounds unless the user named it.
std::vector<Planned> planned_mixes(const std::vector<std::string>& names, int pairs, bool alone);

// The number of VMs of the largest mix.
int most_vms_of(const std::vector<Planned>& plan);

// True if this mix is one load in one VM.
bool is_alone(const Mix& mix);

}  // namespace ivgpu::bench
