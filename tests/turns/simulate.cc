// Many VMs on several GPUs in virtual time, under the shipping scheduler's decisions. No GPU is needed. It prints what
// every VM gets, and fails if a bound is broken:
//
//   a VM gets at least the smaller of 0.95 of what the driver's slices give it and its part of what it gets alone
//   a VM waits for its turn at most four quanta, a change and the work under way for each of the others
//   Jain's index of those VMs' parts that gain by turns is at least 0.99
//
// GPUs do not know each other, so each is a world of its own; the VMs are dealt out in turn.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/turns/world.h"

namespace {

using namespace std::chrono_literals;
using namespace turns_world;

constexpr const char* usage = R"(usage: turns_simulation [--vms N] [--gpus N] [--seconds S] [--seed N]

What VMs get that share GPUs by turns, in virtual time.

  --vms N      how many VMs, each with one program, from 1 to 1024 (default 64)
  --gpus N     how many GPUs, from 1 to 64 (default 8)
  --seconds S  how long is measured, from 0.1 to 60 (default 2)
  --seed N     of the choice of programs (default 1)
)";

struct Choice {
  std::size_t vms = 64, gpus = 8;
  double seconds = 2;
  std::uint32_t seed = 1;
};

template <class T>
bool read_number(const char* text, T least, T most, T& number) {
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), number);
  return error == std::errc() && *end == '\0' && number >= least && number <= most;
}

bool read(int argc, char** argv, Choice& choice) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const char* const value = ++i < argc ? argv[i] : "";
    const bool read = option == "--vms"       ? read_number<std::size_t>(value, 1, 1024, choice.vms)
                      : option == "--gpus"    ? read_number<std::size_t>(value, 1, 64, choice.gpus)
                      : option == "--seconds" ? read_number(value, 0.1, 60., choice.seconds)
                      : option == "--seed"    ? read_number<std::uint32_t>(value, 0, ~0u, choice.seed)
                                              : false;
    if (!read) {
      std::fprintf(stderr, "turns_simulation: %s %s is not understood; see --help\n", option.c_str(), value);
      return false;
    }
  }
  return true;
}

const std::vector<Load>& loads() {
  static const std::vector<Load> all = {launch_and_wait(), burst(20, 1500ns), burst(20, 19500ns), long_kernels(),
                                        trainer(),         inference(),       products(),         copies()};
  return all;
}

double alone_once(const Load& load) {
  static std::map<std::string, double> known;
  const auto [found, is_new] = known.try_emplace(load.name);
  if (is_new) found->second = alone(load);
  return found->second;
}

struct Vm {
  std::size_t number;
  Load load;
  double slices = 0, turns = 0;  // of what it does alone
  std::vector<Time> waits;       // for a turn
};

double ms(Time time) { return std::chrono::duration<double, std::milli>(time).count(); }

double quantile(std::vector<Time> times, double q) {
  if (times.empty()) return 0;
  std::sort(times.begin(), times.end());
  return ms(times[static_cast<std::size_t>(static_cast<double>(times.size() - 1) * q)]);
}

class Gpu {
 public:
  Gpu(std::size_t number, std::vector<Vm> vms, const Choice& choice)
      : number_(number), vms_(std::move(vms)), choice_(choice) {
    run(false);
    run(true);
  }

  void print() const {
    for (const Vm& vm : vms_)
      std::printf("%3zu %4zu  %-24s %6.3f %6.3f %7.2f  %8.2f %8.2f %8.2f %s\n", number_, vm.number,
                  vm.load.name.c_str(), vm.turns, vm.slices, vm.turns / vm.slices, quantile(vm.waits, .5),
                  quantile(vm.waits, .99), quantile(vm.waits, 1), has_its_part(vm) ? "" : "less than its part");
    std::printf("%3zu       %zu VMs %s; Jain's index %.4f, of those that gain %.4f\n", number_, vms_.size(),
                takes_turns_ ? "take turns" : "are sliced", jain(false), jain(true));
  }

  bool keeps_its_bounds() const {
    bool all = true;
    for (const Vm& vm : vms_) all = all && has_its_part(vm) && waits_no_longer(vm);
    if (!all) std::printf("%3zu       a bound is broken\n", number_);
    return all && jain(true) >= 0.99;
  }

 private:
  void run(bool turns) {
    World world({.turns = turns, .limits = {}, .seed = choice_.seed});
    for (const Vm& vm : vms_) world.add(vm.load);
    world.run_for(turns ? settles() : 500ms);
    world.forget();
    world.run_for(std::chrono::duration_cast<Time>(std::chrono::duration<double>(choice_.seconds)));
    for (std::size_t i = 0; i < vms_.size(); ++i) {
      const Worker& worker = world.programs()[i]->worker();
      (turns ? vms_[i].turns : vms_[i].slices) =
          static_cast<double>(worker.done()) / choice_.seconds / alone_once(vms_[i].load);
      vms_[i].waits = worker.waits_for_turn();
    }
    takes_turns_ = world.policy().takes_turns();
  }

  // Until turns have begun. A program that never waits has 1.3 seconds of work queued, which ends first, beside
  // everybody else's.
  Time settles() const {
    const bool deep = std::ranges::any_of(vms_, [](const Vm& vm) { return !vm.load.waits; });
    return 2s + deep * vms_.size() * 1500ms;
  }

  // But for a turn, which may begin after the time that is measured, and a percent.
  bool has_its_part(const Vm& vm) const {
    const double part = 1 / static_cast<double>(vms_.size());
    return vm.turns >= 0.99 * std::min(0.95 * vm.slices, part) - 0.005 / choice_.seconds;
  }

  // What is under way at a turn's end may be two batches. The program's own last turn may have been long, and
  // inferences come between. One that never waits has a queue of its own to wait for when turns are tried.
  bool waits_no_longer(const Vm& vm) const {
    double most = 4 + 10;
    for (const Vm& other : vms_)
      if (&other != &vm) most += 4 + 0.2 + 2 * ms(std::max<Time>(1ms, other.load.kernel * other.load.kernels));
    return !vm.load.waits || quantile(vm.waits, 1) <= most;
  }

  double jain(bool of_those_that_gain) const {
    double sum = 0, squares = 0, count = 0;
    for (const Vm& vm : vms_) {
      if (of_those_that_gain && (!takes_turns_ || vm.load.think == 0ns || vm.turns < 2 * vm.slices)) continue;
      sum += vm.turns, squares += vm.turns * vm.turns, ++count;
    }
    return count == 0 ? 1 : sum * sum / squares / count;
  }

  const std::size_t number_;
  std::vector<Vm> vms_;
  const Choice choice_;
  bool takes_turns_ = false;
};

std::vector<std::vector<Vm>> deal(const Choice& choice) {
  std::minstd_rand random(choice.seed);
  std::vector<std::vector<Vm>> gpus(choice.gpus);
  for (std::size_t i = 0; i < choice.vms; ++i)
    gpus[i % choice.gpus].push_back({i, loads()[random() / 64 % loads().size()], 0, 0, {}});
  return gpus;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    std::fputs(usage, stdout);
    return 0;
  }
  Choice choice;
  if (!read(argc, argv, choice)) return 2;
  std::printf("GPU   VM  load                     of alone: by   against  wait, ms:\n");
  std::printf("                                    turns slices  slices       p50      p99  longest\n");
  bool all = true;
  std::size_t number = 0;
  for (auto& vms : deal(choice)) {
    const Gpu gpu(number++, std::move(vms), choice);
    gpu.print();
    all = gpu.keeps_its_bounds() && all;
  }
  return all ? 0 : 1;
}
