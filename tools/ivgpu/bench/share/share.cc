#include "tools/ivgpu/bench/share/share.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>

#include "tools/ivgpu/bench/measure/groups.h"
#include "tools/ivgpu/bench/share/mixes.h"
#include "tools/ivgpu/support/error.h"

namespace ivgpu::bench {
namespace {

using Did = Shared::Did;
using Round = std::vector<Did>;               // one element per VM
using Alone = std::map<std::string, Shared>;  // what each load achieves alone

bool there_is_torch() {
  return std::system(
             "python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(\"torch\") is None)' "
             ">/dev/null 2>&1") == 0;
}

// The parameters that each load gets.
struct Terms {
  std::string seconds;  // the length of a round
  std::string speed;    // the GPU's speed, measured once for all loads
};

Terms terms_of(Runner& runner, double seconds) {
  runner.take_side(Side::Native);
  Measurer program(runner, Side::Native, {"speed"});
  const double speed = samples_of(program, runner, Side::Native).samples.front();
  program.finish();
  return {std::to_string(seconds), std::to_string(speed)};
}

// The programs of a mix. Each program has reported "ready".
class Crowd {
 public:
  Crowd(const Runner& runner, Side side, const Mix& mix, const Terms& terms) : runner_(runner), side_(side) {
    int vm = 0;
    for (const Part& part : mix.parts)
      for (int i = 0; i < part.vms; ++i) {
        programs_.push_back(std::make_unique<Measurer>(runner, side, command(part.load, vm_name(vm++), terms)));
        programs_.back()->expect_ready();  // one after the other, so that no start delays another
      }
  }
  // Runs one round. Returns each program's result, in the order of the programs.
  Round round() {
    Round all;
    for (const auto& program : programs_) program->go();
    for (const auto& program : programs_) {
      const auto numbers = samples_of(*program, runner_, side_).samples;
      if (numbers.size() != 4) runner_.fail(side_, "a load told other numbers than expected");
      all.push_back({numbers[0], numbers[1], numbers[2], numbers[3], {}});
    }
    return all;
  }

 private:
  Command command(std::string_view load, const std::string& vm, const Terms& terms) const {
    if (load.starts_with(torch))
      return runner_.torch_command(side_, {std::string(load.substr(torch.size())), terms.seconds}, vm);
    return runner_.command(side_, {"load", std::string(load), terms.seconds, terms.speed}, vm);
  }

  const Runner& runner_;
  const Side side_;
  std::vector<std::unique_ptr<Measurer>> programs_;
};

struct Rounds {
  std::vector<Round> native, slices, leases;
};

// `by_leases`: the sharing of the mix's VMs with policy = "shared". Native rounds alternate with the others, and the
// native programs idle in between: a GPU that has worked for a minute is warmer and, with a power limit, slower.
Rounds measure_mix(Runner& runner, const Mix& mix, const Sharing& by_leases, int pairs, const Terms& terms) {
  Rounds rounds;
  runner.progress().show("natively and through ivgpu: " + std::string(mix.name));
  runner.take_side(Side::Native);
  Crowd native(runner, Side::Native, mix, terms);
  runner.take_side(Side::Ivgpu);
  Crowd crowd(runner, Side::Ivgpu, mix, terms);
  for (int i = 0; i < pairs; ++i) {
    rounds.native.push_back(native.round());
    for (const bool leases : {i % 2 == 0, i % 2 != 0}) {
      runner.take_sharing(leases ? by_leases : Sharing());
      crowd.round();  // the scheduler learns the programs' behaviour in this round
      (leases ? rounds.leases : rounds.slices).push_back(crowd.round());
    }
  }
  return rounds;
}

// `first`: the number of the part's first VM.
Did mean_of(const std::vector<Round>& rounds, std::size_t first, const Shared& part) {
  Did mean;
  const auto vms = static_cast<std::size_t>(part.vms);
  const double all = static_cast<double>(rounds.size() * vms);
  for (const Round& round : rounds)
    for (std::size_t i = first; i < first + vms; ++i) {
      mean.per_second += round[i].per_second / all;
      mean.mean_us += round[i].mean_us / all;
      mean.p50_us += round[i].p50_us / all;
      mean.p99_us += round[i].p99_us / all;
    }
  return mean;
}

std::vector<VmRates> rates_of(const std::vector<Shared>& parts, const std::vector<Round>& rounds, Did Shared::*way,
                              const Alone& alone) {
  std::vector<VmRates> vms;
  for (const Shared& part : parts) {
    const auto known = alone.find(part.load);
    for (int i = 0; i < part.vms; ++i) {
      VmRates vm{part.load, part.weight, std::nullopt, {}};
      if (known != alone.end()) vm.alone = (known->second.*way).per_second;
      for (const Round& round : rounds) vm.rounds.push_back(round[vms.size()].per_second);
      vms.push_back(std::move(vm));
    }
  }
  return vms;
}

void add_way(std::vector<Shared>& parts, const std::vector<Round>& rounds, Did Shared::*way, const Alone& alone) {
  const std::vector<Fairness> fair = fairness_of(rates_of(parts, rounds, way, alone));
  std::size_t first = 0;
  for (Shared& part : parts) {
    const auto vms = static_cast<std::size_t>(part.vms);
    part.*way = mean_of(rounds, first, part);
    (part.*way).fair = mean_of(std::span(fair).subspan(first, vms));
    first += vms;
  }
}

std::vector<Shared> parts_of(const Mix& mix, const Rounds& rounds, const Alone& alone) {
  std::vector<Shared> parts;
  for (const Part& part : mix.parts)
    parts.push_back(
        {.mix = std::string(mix.name), .load = std::string(part.load), .vms = part.vms, .weight = part.weight});
  add_way(parts, rounds.native, &Shared::native, alone);
  add_way(parts, rounds.slices, &Shared::slices, alone);
  add_way(parts, rounds.leases, &Shared::leases, alone);
  return parts;
}

}  // namespace

std::vector<Shared> measure_share(const Install& install, BrokerOptions broker, const SignalGate& gate,
                                  const ShareEffort& effort, const std::vector<std::string>& names,
                                  const std::function<void(const Shared&)>& measured) {
  const std::vector<Planned> plan = planned_mixes(names, effort.pairs, effort.alone);
  broker.vm = vm_name(0);
  for (int i = 1; i < most_vms_of(plan); ++i) broker.more_vms.push_back(vm_name(i));
  std::vector<Shared> all;
  Alone alone;
  Runner runner(install, broker, false, gate);
  const bool torch_is_there = there_is_torch();
  const Terms terms = terms_of(runner, effort.seconds);
  for (const auto& [mix, pairs] : plan) {
    if (needs_torch(*mix) && !torch_is_there) {
      std::fprintf(stderr, "left out: %s: python3 has no torch\n", std::string(mix->name).c_str());
      continue;
    }
    Sharing by_leases = sharing_of(*mix);
    for (const Shared& part : parts_of(*mix, measure_mix(runner, *mix, by_leases, pairs, terms), alone)) {
      if (is_alone(*mix)) alone.emplace(part.load, part);
      all.push_back(part);
      measured(part);
    }
  }
  return all;
}

}  // namespace ivgpu::bench
