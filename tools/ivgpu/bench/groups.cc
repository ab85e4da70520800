#include "tools/ivgpu/bench/groups.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

namespace ivgpu::bench {
namespace {

std::string what(const std::string& group, const Told& told) {
  return group + ": " + told.name + (told.bytes != 0 ? " " + size_text(told.bytes) : "");
}

// Copies are timed, and shown as rates.
std::vector<double> as_rates(std::vector<double> times, std::uint64_t bytes) {
  for (double& value : times) value = static_cast<double>(bytes) / value / 1000;
  return times;
}

void add(Report& report, const std::string& group, Side side, const Told& told) {
  const Unit unit = told.bytes != 0 ? Unit::GigabytesPerSecond : Unit::Microseconds;
  Figure& figure = report.figure({.group = group, .name = told.name, .unit = unit, .bytes = told.bytes});
  figure.side(side) =
      summary_of(told.bytes != 0 ? as_rates(told.samples, told.bytes) : told.samples, more_is_better(unit));
}

void read_all(Measurer& measurer, const Runner& runner, const std::string& group, Side side, Report& report) {
  while (const auto line = measurer.line()) {
    const auto told = parse_told(*line);
    if (!told) runner.fail(side, "the measuring program said '" + line->substr(0, 60) + "'");
    if (told->word == "begin") runner.progress().say(std::string(name_of(side)) + ", " + what(group, *told));
    if (told->word == "samples") add(report, group, side, *told);
    if (told->word == "left-out") report.left_out.push_back(told->name + ", " + name_of(side) + ": " + told->reason);
  }
}

void run_part(Runner& runner, Side side, const std::string& group, Report& report) {
  Measurer measurer(runner, side, {group});
  measurer.expect_ready();
  if (side == Side::Ivgpu) runner.settle();
  measurer.go();
  read_all(measurer, runner, group, side, report);
}

void add_switches(const std::string& status, Setting& setting) {
  const auto vm = nlohmann::json::parse(status).at("vms").at(0);
  for (const char* name : {"spin_us", "spin_threads"}) setting.switches.emplace_back(name, vm.at(name).dump());
  setting.switches.emplace_back("jail", vm.at("jail").get<std::string>());
  setting.switches.emplace_back("region", size_text(vm.at("region_bytes").get<std::uint64_t>()));
}

}  // namespace

std::optional<Told> parse_told(const std::string& line) {
  std::istringstream words(line);
  Told told;
  if (!(words >> told.word >> told.name >> told.bytes)) return std::nullopt;
  if (told.word == "samples") {
    for (double sample = 0; words >> sample;) told.samples.push_back(sample);
    const bool all_read = words.eof() && !told.samples.empty();
    const bool all_times = std::all_of(told.samples.begin(), told.samples.end(), [](double s) { return s >= 0; });
    return all_read && all_times ? std::optional(told) : std::nullopt;
  }
  if (told.word == "left-out") std::getline(words >> std::ws, told.reason);
  return told.word == "begin" || told.word == "left-out" ? std::optional(told) : std::nullopt;
}

Told samples_of(Measurer& measurer, const Runner& runner, Side side) {
  while (const auto line = measurer.line())
    if (const auto told = parse_told(*line); told && told->word == "samples") return *told;
  runner.fail(side, "the measuring program told no samples");
}

void measure_latency(Runner& runner, Side side, Report& report) { run_part(runner, side, "latency", report); }

void measure_copy(Runner& runner, Side side, Report& report) { run_part(runner, side, "copy", report); }

void ask_about(Runner& runner, Side side, Setting& setting) {
  Measurer measurer(runner, side, {"about"});
  const auto line = measurer.line();
  std::istringstream words(line.value_or(""));
  std::string about;
  if (!(words >> about >> setting.cuda) || about != "about") runner.fail(side, "the measuring program told no GPU");
  std::getline(words >> std::ws, setting.gpu);
  // It may also have been named by the path of its library.
  setting.simulated = setting.simulated || setting.gpu == "ivgpu simulated GPU";
  measurer.finish();
  if (side == Side::Ivgpu) add_switches(runner.broker_status(), setting);
}

}  // namespace ivgpu::bench
