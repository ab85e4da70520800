// How evenly VMs share a GPU. A VM's progress is the part of what its program does alone that it does in a mix: unlike
// rates, it can be compared between loads.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ivgpu::bench {

// Of one load of a mix by one way; a mean over its VMs and the rounds. Nothing where it is not known.
struct Fairness {
  std::optional<double> of_alone;   // progress
  std::optional<double> by_weight;  // its part of the progress of all VMs, over its part of all weights; 1 is even
  // Jain's index of progress / weight over all VMs of the mix, thus the same for each of its loads: 1 where it is the
  // same for all, 1 / VMs where one has everything. A mean over the rounds, and the least of one.
  std::optional<double> jain, least_jain;
};

// A VM of a mix: what its program did in each round, and what it does alone, where that is known.
struct VmRates {
  std::string load;
  int weight;
  std::optional<double> alone;  // a second
  std::vector<double> rounds;   // the same, in each
};

double jain(const std::vector<double>& numbers);

// For each VM. Where not all are known alone, VMs of one and the same load are compared by their rates.
std::vector<Fairness> fairness_of(const std::vector<VmRates>& vms);
// Of VMs of one load, of which there is at least one.
Fairness mean_of(std::span<const Fairness> vms);

}  // namespace ivgpu::bench
