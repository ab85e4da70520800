#include "tools/ivgpu/bench/measure/groups.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

namespace ivgpu::bench {
namespace {

std::string what(const std::string& group, const Reported& reported) {
  return group + ": " + reported.name + (reported.bytes != 0 ? " " + size_text(reported.bytes) : "");
}

// Converts the times of transfers to rates.
std::vector<double> as_rates(std::vector<double> times, std::uint64_t bytes) {
  for (double& value : times) value = static_cast<double>(bytes) / value / 1000;
  return times;
}

std::vector<double> as_milliseconds(std::vector<double> times) {
  for (double& value : times) value /= 1000;
  return times;
}

// The program reports all times in microseconds. The report shows long times in milliseconds.
bool is_long(const std::string& name) {
  return name.starts_with("register_") || name.starts_with("unregister_") || name == "texture_kernel";
}

Unit unit_of(const Reported& reported) {
  if (reported.bytes != 0) return Unit::GigabytesPerSecond;
  return is_long(reported.name) ? Unit::Milliseconds : Unit::Microseconds;
}

std::vector<double> in(Unit unit, const Reported& reported) {
  if (unit == Unit::GigabytesPerSecond) return as_rates(reported.samples, reported.bytes);
  return unit == Unit::Milliseconds ? as_milliseconds(reported.samples) : reported.samples;
}

void add(Report& report, const std::string& group, Side side, const Reported& reported) {
  const Unit unit = unit_of(reported);
  Metric& metric = report.metric({.group = group, .name = reported.name, .unit = unit, .bytes = reported.bytes});
  metric.side(side) = summary_of(in(unit, reported), more_is_better(unit));
}

void read_all(Measurer& measurer, const Runner& runner, const std::string& group, Side side, Report& report) {
  while (const auto line = measurer.line()) {
    const auto reported = parse_reported(*line);
    if (!reported) runner.fail(side, "the measuring program said '" + line->substr(0, 60) + "'");
    if (reported->word == "begin") runner.progress().show(std::string(name_of(side)) + ", " + what(group, *reported));
    if (reported->word == "samples") add(report, group, side, *reported);
    if (reported->word == "left-out")
      report.left_out.push_back(reported->name + ", " + name_of(side) + ": " + reported->reason);
  }
}

void add_switches(const std::string& status, Setting& setting) {
  const auto vm = nlohmann::json::parse(status).at("vms").at(0);
  for (const char* name : {"spin_us", "spin_threads"}) setting.switches.emplace_back(name, vm.at(name).dump());
  setting.switches.emplace_back("jail", vm.at("jail").get<std::string>());
  setting.switches.emplace_back("region", size_text(vm.at("region_bytes").get<std::uint64_t>()));
}

}  // namespace

void run_part(Runner& runner, Side side, const std::string& group, Report& report) {
  Measurer measurer(runner, side, {group});
  measurer.expect_ready();
  if (side == Side::Ivgpu) runner.settle();
  measurer.go();
  read_all(measurer, runner, group, side, report);
}

std::optional<Reported> parse_reported(const std::string& line) {
  std::istringstream words(line);
  Reported reported;
  if (!(words >> reported.word >> reported.name >> reported.bytes)) return std::nullopt;
  if (reported.word == "samples") {
    for (double sample = 0; words >> sample;) reported.samples.push_back(sample);
    const bool all_read = words.eof() && !reported.samples.empty();
    const bool all_times =
        std::all_of(reported.samples.begin(), reported.samples.end(), [](double s) { return s >= 0; });
    return all_read && all_times ? std::optional(reported) : std::nullopt;
  }
  if (reported.word == "left-out") std::getline(words >> std::ws, reported.reason);
  return reported.word == "begin" || reported.word == "left-out" ? std::optional(reported) : std::nullopt;
}

Reported samples_of(Measurer& measurer, const Runner& runner, Side side) {
  while (const auto line = measurer.line())
    if (const auto reported = parse_reported(*line); reported && reported->word == "samples") return *reported;
  runner.fail(side, "the measuring program reported no samples");
}

void measure_latency(Runner& runner, Side side, Report& report) { run_part(runner, side, "latency", report); }

void measure_copy(Runner& runner, Side side, Report& report) { run_part(runner, side, "copy", report); }

void measure_memory(Runner& runner, Side side, Report& report) { run_part(runner, side, "memory", report); }

void ask_about(Runner& runner, Side side, Setting& setting) {
  Measurer measurer(runner, side, {"about"});
  const auto line = measurer.line();
  std::istringstream words(line.value_or(""));
  std::string about;
  if (!(words >> about >> setting.cuda) || about != "about") runner.fail(side, "the measuring program reported no GPU");
  std::getline(words >> std::ws, setting.gpu);
  // The option --gpu may also name the simulated GPU by the path of its library.
  setting.simulated = setting.simulated || setting.gpu == "ivgpu simulated GPU";
  measurer.finish();
  if (side == Side::Ivgpu) add_switches(runner.broker_status(), setting);
}

}  // namespace ivgpu::bench
