// `ivgpu bench share`: runs loads (program/load.h) in several VMs at once on one GPU, natively as processes, and
// through ivgpu under each policy. The policy changes while the programs run. mixes.h has the mixes, and share_table.h
// shows the results.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/ivgpu/bench/measure/runner.h"
#include "tools/ivgpu/bench/share/fairness.h"

namespace ivgpu::bench {

// One load of a mix: the number and weight of its VMs, and its results under each policy, as means over VMs and rounds.
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
  int pairs;          // of rounds by time slices and by leases; also the number of native rounds
  double seconds;     // the length of a round
  bool alone = true;  // measures each load alone, too
};

// `names`: the mixes to measure; empty: all. Calls `measured` with each part of a mix as soon as its result is
// complete.
std::vector<Shared> measure_share(const Install& install, BrokerOptions broker, const SignalGate& gate,
                                  const ShareEffort& effort, const std::vector<std::string>& names,
                                  const std::function<void(const Shared&)>& measured);

}  // namespace ivgpu::bench
