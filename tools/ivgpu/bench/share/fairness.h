// How evenly VMs share a GPU. A VM's progress is its program's rate in a mix over the program's rate alone. Unlike
// rates, progress can be compared between loads.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ivgpu::bench {

// The fairness of one load of a mix in one way of sharing: a mean over the load's VMs and the rounds. Unknown values
// are nullopt.
struct Fairness {
  std::optional<double> of_alone;  // progress
  // the VM's share of the progress of all VMs, over its share of all weights; 1 is even
  std::optional<double> by_weight;
  // Jain's index of progress / weight over all VMs of the mix, so all loads of a mix have the same index. It is 1 if
  // all VMs have equal values, and 1 / VMs if one VM has everything. `jain` is the mean over the rounds, `least_jain`
  // the minimum of a round.
  std::optional<double> jain, least_jain;
};

// A VM of a mix: the rate of its program in each round, and the program's rate alone if that is known.
struct VmRates {
  std::string load;
  int weight;
  std::optional<double> alone;  // operations a second
  std::vector<double> rounds;   // operations a second, in each round
};

double jain(const std::vector<double>& numbers);

// Returns the fairness of each VM. If some rates alone are unknown, only VMs of the same load can be compared, by their
// rates.
std::vector<Fairness> fairness_of(const std::vector<VmRates>& vms);
// The mean over the VMs of one load. Precondition: `vms` is not empty.
Fairness mean_of(std::span<const Fairness> vms);

}  // namespace ivgpu::bench
