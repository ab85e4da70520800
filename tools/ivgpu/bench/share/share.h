// `ivgpu bench share`: loads (program/load.h) in several VMs at once on one GPU, natively as processes, and through
// ivgpu under each policy, which is changed under the running programs. mixes.h has the mixes, and share_table.h shows
// the results.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/ivgpu/bench/measure/runner.h"
#include "tools/ivgpu/bench/share/fairness.h"

namespace ivgpu::bench {

// One load of a mix, in how many VMs of which weight, and what it did by each way; means over VMs and rounds.
struct Shared {
  struct Did {
    double per_second = 0, mean_us = 0, p50_us = 0, p99_us = 0;
    Fairness fair = {};
  };
  std::string mix, load;
  int vms = 0, weight = 1;
  Did native = {}, slices = {}, leases = {};
};

struct ShareEffort {
  int pairs;          // of rounds by slices and by leases, and how many rounds natively
  double seconds;     // of each round
  bool alone = true;  // each load is measured alone, too
};

// `names`: of the mixes that are measured; empty: all. `measured` is called with each part of a mix as soon as it is there.
std::vector<Shared> measure_share(const Install& install, BrokerOptions broker, const SignalGate& gate,
                                  const ShareEffort& effort, const std::vector<std::string>& names,
                                  const std::function<void(const Shared&)>& measured);

}  // namespace ivgpu::bench
