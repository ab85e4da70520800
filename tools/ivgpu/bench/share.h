// `ivgpu bench share`: loads (program/load.h) in several VMs at once on one GPU, natively as processes, and through
// ivgpu under each policy, which is changed under the running programs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/ivgpu/bench/runner.h"

namespace ivgpu::bench {

// One load of a mix, in how many VMs, and what it did by each way; means over VMs and rounds.
struct Shared {
  struct Did {
    double per_second = 0, mean_us = 0, p50_us = 0, p99_us = 0;
    double fairness = 1;  // Jain's index of the VMs' rates
  };
  std::string mix, load;
  int vms = 0;
  Did native, slices, turns;
};

struct ShareEffort {
  int pairs;       // of rounds by slices and by turns, and how many rounds natively
  double seconds;  // of each round
};

// Names of mixes; an Error for one that there is not.
void check_mixes(const std::vector<std::string>& names);

// `names`: of the mixes that are measured; empty: all. `measured` is called with each part of a mix as soon as it is there.
std::vector<Shared> measure_share(const Install& install, BrokerOptions broker, const SignalGate& gate,
                                  const ShareEffort& effort, const std::vector<std::string>& names,
                                  const std::function<void(const Shared&)>& measured);

// A table in Markdown, row by row; a rate's `x` is its ratio to the native one.
std::string share_head();
std::string share_row(const Shared& one);
std::string share_json(const std::vector<Shared>& all);

}  // namespace ivgpu::bench
