#include "tools/ivgpu/bench/share/mixes.h"

#include <algorithm>

#include "tools/ivgpu/support/error.h"

namespace ivgpu::bench {
namespace {

constexpr int pairs_alone = 2;

// A mix of a single load has that load's name.
const std::vector<Mix>& mixes() {
  static const std::vector<Mix> all = {
      {"wait", {{"wait", 1}}},
      {"burst", {{"burst", 1}}},
      {"busy", {{"busy", 1}}},
      {"long", {{"long", 1}}},
      {"train", {{"train", 1}}},
      {"infer", {{"infer", 1}}},
      {"full", {{"full", 1}}},
      {"copy", {{"copy", 1}}},
      {"await", {{"await", 1}}},
      {"torch train", {{"torch train", 1}}},
      {"torch infer", {{"torch infer", 1}}},
      {"torch full", {{"torch full", 1}}},
      {"torch generate", {{"torch generate", 1}}},
      {"4 wait", {{"wait", 4}}},
      {"8 wait", {{"wait", 8}}},
      {"16 wait", {{"wait", 16}}},
      {"2 full", {{"full", 2}}},
      {"full, infer", {{"full", 1}, {"infer", 1}}},
      {"wait, full", {{"wait", 1}, {"full", 1}}},
      {"train, infer", {{"train", 1}, {"infer", 1}}},
      {"wait, train", {{"wait", 1}, {"train", 1}}},
      {"4 burst", {{"burst", 4}}},
      {"4 busy", {{"busy", 4}}},
      {"4 long", {{"long", 4}}},
      {"2 train", {{"train", 2}}},
      {"4 train", {{"train", 4}}},
      {"wait, copy", {{"wait", 1}, {"copy", 1}}},
      {"copy, train", {{"copy", 1}, {"train", 1}}},
      {"2 wait, await", {{"wait", 2}, {"await", 1}}},
      {"wait, burst, long, copy", {{"wait", 1}, {"burst", 1}, {"long", 1}, {"copy", 1}}},
      {"wait, burst, long", {{"wait", 1}, {"burst", 1}, {"long", 1}}},
      {"3 wait, weights 1 2 4", {{"wait", 1}, {"wait", 1, false, 2}, {"wait", 1, false, 4}}},
      {"3 burst, weights 1 2 4", {{"burst", 1}, {"burst", 1, false, 2}, {"burst", 1, false, 4}}},
      {"3 long, weights 1 2 4", {{"long", 1}, {"long", 1, false, 2}, {"long", 1, false, 4}}},
      {"3 full, weights 1 2 4", {{"full", 1}, {"full", 1, false, 2}, {"full", 1, false, 4}}},
      {"2 torch train", {{"torch train", 2}}},
      {"4 torch train", {{"torch train", 4}}},
      {"torch train, torch infer", {{"torch train", 1}, {"torch infer", 1}}},
      {"torch full, torch infer", {{"torch full", 1}, {"torch infer", 1}}},
      {"copy, torch train", {{"copy", 1}, {"torch train", 1}}},
      {"wait, torch train", {{"wait", 1}, {"torch train", 1}}},
      {"full, quick infer", {{"full", 1}, {"infer", 1, true}}},
      {"train, quick infer", {{"train", 1}, {"infer", 1, true}}},
      {"torch train, quick torch infer", {{"torch train", 1}, {"torch infer", 1, true}}},
      {"torch full, quick torch infer", {{"torch full", 1}, {"torch infer", 1, true}}},
      {"torch train, quick torch generate", {{"torch train", 1}, {"torch generate", 1, true}}},
      {"torch full, quick torch generate", {{"torch full", 1}, {"torch generate", 1, true}}},
  };
  return all;
}

const Mix& mix_named(std::string_view name) { return *std::ranges::find(mixes(), name, &Mix::name); }

bool is_in(const std::vector<Planned>& plan, const Mix& mix) {
  return std::ranges::find(plan, &mix, &Planned::mix) != plan.end();
}

bool names_it(const std::vector<std::string>& names, const Mix& mix) {
  return std::ranges::find(names, mix.name) != names.end();
}

int vms_of(const Mix& mix) {
  int all = 0;
  for (const Part& part : mix.parts) all += part.vms;
  return all;
}

}  // namespace

std::string vm_name(int number) { return "m" + std::to_string(number); }

void check_mixes(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (std::ranges::find(mixes(), name, &Mix::name) == mixes().end())
      throw Error(exit_code::usage, "there is no mix '" + name + "'; the table of `ivgpu bench share` names them");
}

bool needs_torch(const Mix& mix) {
  return std::ranges::any_of(mix.parts, [](const Part& part) { return part.load.starts_with(torch); });
}

bool is_alone(const Mix& mix) { return vms_of(mix) == 1; }

Sharing sharing_of(const Mix& mix) {
  Sharing sharing{.policy = "shared"};
  int vm = 0;
  for (const Part& part : mix.parts)
    for (int i = 0; i < part.vms; ++i, ++vm) {
      if (part.latency) sharing.latency_vms.push_back(vm_name(vm));
      if (part.weight != 1) sharing.weights[vm_name(vm)] = part.weight;
    }
  return sharing;
}

std::vector<Planned> planned_mixes(const std::vector<std::string>& names, int pairs, bool alone) {
  std::vector<Planned> plan;
  const auto add = [&](const Mix& mix) {
    if (!is_in(plan, mix)) plan.push_back({&mix, names_it(names, mix) ? pairs : std::min(pairs, pairs_alone)});
  };
  for (const Mix& mix : mixes()) {
    if (names.empty() ? is_alone(mix) : !names_it(names, mix)) continue;
    if (alone)
      for (const Part& part : mix.parts) add(mix_named(part.load));
    if (!is_in(plan, mix)) plan.push_back({&mix, pairs});
  }
  return plan;
}

int most_vms_of(const std::vector<Planned>& plan) {
  int most = 0;
  for (const Planned& planned : plan) most = std::max(most, vms_of(*planned.mix));
  return most;
}

}  // namespace ivgpu::bench
