// One GPU, the VMs that share it, and the shipping scheduler's decisions (host/turns/policy.h), in virtual time.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "host/turns/policy.h"
#include "tests/turns/gpu.h"
#include "tests/turns/loads.h"
#include "tests/turns/timeline.h"

namespace turns_world {

class World {
 public:
  struct Options {
    bool turns = true;  // else the driver's slices alone, as natively
    host::turns::Limits limits;
    std::uint32_t seed = 1;
  };
  struct Share {
    double weight = 1;
    bool latency = false;
  };
  using Vm = host::turns::Policy::Vm;

  World() : World(Options()) {}
  explicit World(const Options& options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Vm add_vm(Share share);
  // A process of the VM, which begins at once.
  Program& add(Vm vm, const Load& load);
  Program& add(const Load& load) { return add(add_vm({}), load); }

  void run_for(Time time) { timeline_.run_until(timeline_.now() + time); }
  // What was counted and timed so far.
  void forget();

  const host::turns::Policy& policy() const { return policy_; }
  const std::vector<std::unique_ptr<Program>>& programs() const { return programs_; }
  Time now() const { return timeline_.now(); }
  const SharedGpu& gpu() const { return gpu_; }

 private:
  void look();
  void look_soon();

  const Options options_;
  Timeline timeline_;
  SharedGpu gpu_;
  host::turns::Policy policy_;
  Alarm alarm_;
  std::optional<Time> next_look_;
  std::vector<std::unique_ptr<Program>> programs_;
  Vm vms_ = 0;
};

// What a load does alone in a second.
double alone(const Load& load);

}  // namespace turns_world
