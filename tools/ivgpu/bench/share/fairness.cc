#include "tools/ivgpu/bench/share/fairness.h"

#include <algorithm>

namespace ivgpu::bench {
namespace {

// The divisors that make the VMs' rates comparable: each VM's rate alone, or 1 if all VMs run the same load. Returns
// nullopt if the rates cannot be compared.
std::optional<std::vector<double>> units_of(const std::vector<VmRates>& vms) {
  std::vector<double> units;
  for (const VmRates& vm : vms)
    if (vm.alone && *vm.alone > 0) units.push_back(*vm.alone);
  if (units.size() == vms.size()) return units;
  const bool alike = std::ranges::all_of(vms, [&](const VmRates& vm) { return vm.load == vms.front().load; });
  if (!alike) return std::nullopt;
  return std::vector<double>(vms.size(), 1);
}

// Each VM's share of the progress of one round, over its share of the weights; 0 for all VMs if no VM made progress.
std::vector<double> by_weight(const std::vector<VmRates>& vms, const std::vector<double>& units, std::size_t round) {
  double weights = 0, all = 0;
  for (std::size_t i = 0; i < vms.size(); ++i) {
    weights += vms[i].weight;
    all += vms[i].rounds[round] / units[i];
  }
  std::vector<double> parts;
  for (std::size_t i = 0; i < vms.size(); ++i)
    parts.push_back(all > 0 ? vms[i].rounds[round] / units[i] / all / (vms[i].weight / weights) : 0);
  return parts;
}

double mean(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum / static_cast<double>(numbers.size());
}

}  // namespace

double jain(const std::vector<double>& numbers) {
  double sum = 0, squares = 0;
  for (const double number : numbers) sum += number, squares += number * number;
  return squares == 0 ? 1 : sum * sum / (squares * static_cast<double>(numbers.size()));
}

std::vector<Fairness> fairness_of(const std::vector<VmRates>& vms) {
  std::vector<Fairness> all(vms.size());
  if (vms.empty() || vms.front().rounds.empty()) return all;
  for (std::size_t i = 0; i < vms.size(); ++i)
    if (vms[i].alone && *vms[i].alone > 0) all[i].of_alone = mean(vms[i].rounds) / *vms[i].alone;
  const auto units = units_of(vms);
  if (!units) return all;
  std::vector<double> indices;
  std::vector<std::vector<double>> parts(vms.size());
  for (std::size_t round = 0; round < vms.front().rounds.size(); ++round) {
    const std::vector<double> in_round = by_weight(vms, *units, round);
    indices.push_back(jain(in_round));
    for (std::size_t i = 0; i < vms.size(); ++i) parts[i].push_back(in_round[i]);
  }
  for (std::size_t i = 0; i < vms.size(); ++i) {
    all[i].by_weight = mean(parts[i]);
    all[i].jain = mean(indices);
    all[i].least_jain = *std::ranges::min_element(indices);
  }
  return all;
}

Fairness mean_of(std::span<const Fairness> vms) {
  Fairness all = vms.front();  // all VMs have the same load, thus the same fields
  for (const Fairness& vm : vms.subspan(1)) {
    if (all.of_alone) *all.of_alone += vm.of_alone.value_or(0);
    if (all.by_weight) *all.by_weight += vm.by_weight.value_or(0);
  }
  const auto count = static_cast<double>(vms.size());
  if (all.of_alone) *all.of_alone /= count;
  if (all.by_weight) *all.by_weight /= count;
  return all;
}

}  // namespace ivgpu::bench
