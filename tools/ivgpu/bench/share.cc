#include "tools/ivgpu/bench/share.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/ivgpu/bench/groups.h"
#include "tools/ivgpu/error.h"

namespace ivgpu::bench {
namespace {

using Did = Shared::Did;

struct Part {
  const char* load;
  int vms;
  bool latency = false;  // of the latency class under turns
};
struct Mix {
  const char* name;
  std::vector<Part> parts;
};

const std::vector<Mix>& mixes() {
  static const std::vector<Mix> all = {
      {"4 wait", {{"wait", 4}}},
      {"8 wait", {{"wait", 8}}},
      {"full, infer", {{"full", 1}, {"infer", 1}}},
      {"wait, full", {{"wait", 1}, {"full", 1}}},
      {"train, infer", {{"train", 1}, {"infer", 1}}},
      {"wait, train", {{"wait", 1}, {"train", 1}}},
      {"4 burst", {{"burst", 4}}},
      {"4 busy", {{"busy", 4}}},
      {"4 long", {{"long", 4}}},
      {"2 train", {{"train", 2}}},
      {"4 train", {{"train", 4}}},
      {"copy, train", {{"copy", 1}, {"train", 1}}},
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
      {"wait", {{"wait", 1}}},
      {"train", {{"train", 1}}},
  };
  return all;
}
constexpr int most_vms = 8;

constexpr std::string_view torch = "torch ";  // loads of which PyTorch makes

bool needs_torch(const Mix& mix) {
  return std::ranges::any_of(mix.parts,
                             [](const Part& part) { return std::string_view(part.load).starts_with(torch); });
}

bool there_is_torch() {
  return std::system(
             "python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(\"torch\") is None)' "
             ">/dev/null 2>&1") == 0;
}

std::string vm_name(int number) { return "m" + std::to_string(number); }

Sharing by_turns(const Mix& mix) {
  Sharing sharing{.policy = "turns"};
  int vm = 0;
  for (const Part& part : mix.parts)
    for (int i = 0; i < part.vms; ++i, ++vm)
      if (part.latency) sharing.latency_vms.push_back(vm_name(vm));
  return sharing;
}

// The programs of a mix, each ready.
class Crowd {
 public:
  Crowd(const Runner& runner, Side side, const Mix& mix, double seconds) : runner_(runner), side_(side) {
    int vm = 0;
    for (const Part& part : mix.parts)
      for (int i = 0; i < part.vms; ++i) {
        programs_.push_back(std::make_unique<Measurer>(runner, side, command(part.load, vm_name(vm++), seconds)));
        programs_.back()->expect_ready();  // one after the other: each measures the GPU's speed first
      }
  }
  // What each program does in one round, by its numbers.
  std::vector<Did> round() {
    std::vector<Did> all;
    for (const auto& program : programs_) program->go();
    for (const auto& program : programs_) {
      const auto numbers = samples_of(*program, runner_, side_).samples;
      if (numbers.size() != 4) runner_.fail(side_, "a load told other numbers than expected");
      all.push_back({numbers[0], numbers[1], numbers[2], numbers[3]});
    }
    return all;
  }

 private:
  Command command(std::string_view load, const std::string& vm, double seconds) const {
    const std::string time = std::to_string(seconds);
    if (!load.starts_with(torch)) return runner_.command(side_, {"load", std::string(load), time}, vm);
    return runner_.torch_command(side_, {std::string(load.substr(torch.size())), time}, vm);
  }

  const Runner& runner_;
  const Side side_;
  std::vector<std::unique_ptr<Measurer>> programs_;
};

double jain(const std::vector<double>& rates) {
  double sum = 0, squares = 0;
  for (const double rate : rates) sum += rate, squares += rate * rate;
  return squares == 0 ? 1 : sum * sum / (squares * static_cast<double>(rates.size()));
}

// Of `count` programs from `first` on, over all rounds.
Did mean_of(const std::vector<std::vector<Did>>& rounds, std::size_t first, std::size_t count) {
  Did mean;
  std::vector<double> rates(count);
  const double all = static_cast<double>(rounds.size() * count);
  for (const auto& round : rounds)
    for (std::size_t i = 0; i < count; ++i) {
      const Did& one = round[first + i];
      mean.per_second += one.per_second / all;
      mean.mean_us += one.mean_us / all;
      mean.p50_us += one.p50_us / all;
      mean.p99_us += one.p99_us / all;
      rates[i] += one.per_second;
    }
  mean.fairness = jain(rates);
  return mean;
}

struct Rounds {
  std::vector<std::vector<Did>> native, slices, turns;
};

Rounds measure_mix(Runner& runner, const Mix& mix, const ShareEffort& effort) {
  Rounds rounds;
  runner.progress().say(std::string("natively: ") + mix.name);
  runner.take_side(Side::Native);
  {
    Crowd crowd(runner, Side::Native, mix, effort.seconds);
    for (int i = 0; i < effort.pairs; ++i) rounds.native.push_back(crowd.round());
  }
  runner.progress().say(std::string("through ivgpu: ") + mix.name);
  runner.take_side(Side::Ivgpu);
  Crowd crowd(runner, Side::Ivgpu, mix, effort.seconds);
  for (int i = 0; i < effort.pairs; ++i)
    for (const bool turns : {i % 2 == 0, i % 2 != 0}) {
      runner.take_sharing(turns ? by_turns(mix) : Sharing());
      crowd.round();  // in which the policy learns what the programs do
      (turns ? rounds.turns : rounds.slices).push_back(crowd.round());
    }
  return rounds;
}

using Cells = std::vector<std::string>;

std::string row(const Cells& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

// A rate, its ratio to the native one, and two times.
void add_ratios(Cells& cells, const Did& did, const Did& native) {
  for (const double number : {did.per_second, did.per_second / native.per_second, did.p50_us, did.p99_us})
    cells.push_back(number_text(number));
}

nlohmann::json as_json(const Did& did) {
  return {{"per_second", did.per_second},
          {"mean_us", did.mean_us},
          {"p50_us", did.p50_us},
          {"p99_us", did.p99_us},
          {"jain", did.fairness}};
}

}  // namespace

void check_mixes(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (std::ranges::none_of(mixes(), [&](const Mix& mix) { return name == mix.name; }))
      throw Error(exit_code::usage, "there is no mix '" + name + "'; the table of `ivgpu bench share` names them");
}

std::vector<Shared> measure_share(const Install& install, BrokerOptions broker, const SignalGate& gate,
                                  const ShareEffort& effort, const std::vector<std::string>& names,
                                  const std::function<void(const Shared&)>& measured) {
  broker.vm = vm_name(0);
  for (int i = 1; i < most_vms; ++i) broker.more_vms.push_back(vm_name(i));
  std::vector<Shared> all;
  Runner runner(install, broker, false, gate);
  const bool torch_is_there = there_is_torch();
  for (const Mix& mix : mixes()) {
    if (!names.empty() && std::ranges::find(names, mix.name) == names.end()) continue;
    if (needs_torch(mix) && !torch_is_there) {
      std::fprintf(stderr, "left out: %s: python3 has no torch\n", mix.name);
      continue;
    }
    const Rounds rounds = measure_mix(runner, mix, effort);
    std::size_t first = 0;
    for (const Part& part : mix.parts) {
      const auto count = static_cast<std::size_t>(part.vms);
      all.push_back({mix.name, part.load, part.vms, mean_of(rounds.native, first, count),
                     mean_of(rounds.slices, first, count), mean_of(rounds.turns, first, count)});
      measured(all.back());
      first += count;
    }
  }
  return all;
}

std::string share_head() {
  const Cells head = {"mix",    "load",     "native /s", "p50 us", "p99 us", "time-slice /s", "x",   "p50 us",
                      "p99 us", "turns /s", "x",         "p50 us", "p99 us", "mean us",       "Jain"};
  return row(head) + row(Cells(head.size(), "---"));
}

std::string share_row(const Shared& one) {
  Cells cells = {one.mix, one.load};
  for (const double number : {one.native.per_second, one.native.p50_us, one.native.p99_us})
    cells.push_back(number_text(number));
  add_ratios(cells, one.slices, one.native);
  add_ratios(cells, one.turns, one.native);
  cells.push_back(number_text(one.turns.mean_us));
  cells.push_back(number_text(one.turns.fairness));
  return row(cells);
}

std::string share_json(const std::vector<Shared>& all) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Shared& one : all)
    rows.push_back({{"mix", one.mix},
                    {"load", one.load},
                    {"vms", one.vms},
                    {"native", as_json(one.native)},
                    {"time_slice", as_json(one.slices)},
                    {"turns", as_json(one.turns)}});
  return rows.dump(1) + "\n";
}

}  // namespace ivgpu::bench
