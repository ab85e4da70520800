// `ivgpu bench`: measures natively and through ivgpu in one run, and shows both beside each other.
#include <fcntl.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>

#include "tools/ivgpu/bench/measure/groups.h"
#include "tools/ivgpu/bench/measure/mps.h"
#include "tools/ivgpu/bench/measure/setting.h"
#include "tools/ivgpu/bench/picture.h"
#include "tools/ivgpu/bench/report/against.h"
#include "tools/ivgpu/bench/report/histogram.h"
#include "tools/ivgpu/bench/report/json.h"
#include "tools/ivgpu/bench/report/table.h"
#include "tools/ivgpu/bench/share/mixes.h"
#include "tools/ivgpu/bench/share/share.h"
#include "tools/ivgpu/bench/share/share_table.h"
#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/output_file.h"
#include "tools/ivgpu/support/standard_output.h"

namespace ivgpu {
namespace {

using namespace bench;

constexpr int exit_worse = 1;

std::string read_file(const std::filesystem::path& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char bytes[16384];
  ssize_t length = file ? 1 : -1;
  while (length > 0) {
    length = read(file.get(), bytes, sizeof bytes);
    if (length > 0) text.append(bytes, static_cast<std::size_t>(length));
  }
  if (length < 0) throw Error(exit_code::usage, path.string() + " cannot be read: " + std::strerror(errno));
  return text;
}

std::optional<Report> read_older(const std::filesystem::path& path) {
  if (path.empty()) return std::nullopt;
  return report_from_json(read_file(path), path.string());
}

bool wanted(const BenchOptions& options, const std::string& group) {
  const auto& groups = options.groups;
  return groups.empty() || std::find(groups.begin(), groups.end(), group) != groups.end();
}

// The group `share` prints its own table, so `ivgpu bench` measures it alone.
bool is_share(const BenchOptions& options) {
  const bool named = std::ranges::find(options.groups, "share") != options.groups.end();
  if (named && (options.groups.size() > 1 || !options.against.empty() || options.mps))
    throw Error(exit_code::usage, "share is measured alone, and takes no --against or --mps");
  if (!named && !options.mixes.empty()) throw Error(exit_code::usage, "--mix is for share");
  if (!named && (options.pairs > 0 || options.round_s > 0 || options.no_alone))
    throw Error(exit_code::usage, "--pairs, --round and --no-alone are for share");
  check_mixes(options.mixes);
  return named;
}

// The region size at which each of eight slots can hold pinned copies of 256 MiB, if the machine has enough memory.
std::string useful_region(bool quick) {
  const double memory = static_cast<double>(memory_of_machine());
  return !quick && memory >= 16e9 ? "8GiB" : "1GiB";
}

double idle_seconds(const BenchOptions& options) {
  if (options.idle_s > 0) return options.idle_s;
  return options.quick ? 0.5 : 10;
}

// Measures all groups of one side before the next side starts: Runner explains why no broker may run during native
// measurements.
void measure_side(const BenchOptions& options, Runner& runner, Side side, Report& report) {
  runner.take_side(side);
  ask_about(runner, side, report.setting);
  const auto group = [&](const char* name, const auto& measure) {
    if (!wanted(options, name)) return;
    runner.take_side(side);
    measure();
  };
  group("latency", [&] {
    measure_latency(runner, side, report);
    measure_idle(runner, side, idle_seconds(options), report);
  });
  group("copy", [&] { measure_copy(runner, side, report); });
  group("kernels", [&] { measure_kernels(runner, side, report); });
  group("memory", [&] { measure_memory(runner, side, report); });
  group("start", [&] { measure_start(runner, side, report); });
  group("sessions", [&] { measure_sessions(runner, side, report); });
}

BrokerOptions broker_here(const BenchOptions& options) {
  BrokerOptions broker = options.broker;
  if (broker.region_size.empty()) broker.region_size = useful_region(options.quick);
  broker = for_a_program_here(std::move(broker));
  if (broker.gpu != "auto" && broker.gpu != "sim")
    broker.gpu = std::filesystem::absolute(require(broker.gpu, "the GPU's libcuda"));
  return broker;
}

Report measure_all(const BenchOptions& options, const Install& install, const SignalGate& gate) {
  BrokerOptions broker = broker_here(options);
  const bool simulated = broker.gpu == "sim";
  if (options.mps && simulated) throw Error(exit_code::usage, "--mps needs a GPU; the simulated one has no MPS");
  std::optional<MpsDaemon> mps;
  if (options.mps) mps.emplace(gate);
  Report report{this_machine(simulated), {}, {}};
  report.setting.quick = options.quick;
  Runner runner(install, broker, options.quick, gate);
  for (const Side side : {Side::Native, Side::Ivgpu}) measure_side(options, runner, side, report);
  return report;
}

int measure_and_show_share(const BenchOptions& options, const Install& install, const SignalGate& gate,
                           OutputFile& json, Picture& picture) {
  BrokerOptions broker = broker_here(options);
  const ShareEffort usual =
      options.quick ? ShareEffort{.pairs = 1, .seconds = 0.2} : ShareEffort{.pairs = 2, .seconds = 0.6};
  const ShareEffort effort{.pairs = options.pairs > 0 ? options.pairs : usual.pairs,
                           .seconds = options.round_s > 0 ? options.round_s : usual.seconds,
                           .alone = !options.no_alone};
  print(share_head());
  const auto shared =
      measure_share(install, broker, gate, effort, options.mixes, [](const Shared& one) { print(share_row(one)); });
  const std::string document = share_json(shared);
  json.write(document);
  json.finish();
  picture.draw(document);
  return 0;
}

Letters letters() {
  std::setlocale(LC_CTYPE, "");
  const bool utf8 = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  return utf8 && isatty(STDOUT_FILENO) == 1 ? Letters::Unicode : Letters::Plain;
}

void show(const Report& report, Style style) {
  std::string text = setting_text(report.setting, style) + metrics_text(report, style);
  if (style == Style::Plain) text += histograms_text(report, letters());
  print(text);
}

int show_against(const Report& older, const Report& report, double margin, Style style) {
  const Comparison comparison = compare(older, report, margin);
  if (comparison.changes.empty()) throw Error(exit_code::usage, "the older run has no figure that this one measured");
  print(comparison_text(comparison, margin, style));
  return comparison.worse() ? exit_worse : 0;
}

// Rejects an unsuitable older report before the benchmark spends minutes on measuring.
void check_older(const Report& older, const BenchOptions& options) {
  const auto asked_for = [&](const Metric& metric) { return wanted(options, metric.group); };
  if (std::none_of(older.metrics.begin(), older.metrics.end(), asked_for))
    throw Error(exit_code::usage, options.against.string() + " has no figure of those that are asked for");
}

}  // namespace

int benchmark(const BenchOptions& options) {
  const Install install = find_install();
  require(install.measure, "the measuring program");
  require(install.guest_lib / "libcuda.so.1", "the guest library");
  const std::optional<Report> older = read_older(options.against);
  if (older) check_older(*older, options);
  OutputFile json(options.json);
  const SignalGate gate;
  Picture picture(install, options.plot);
  if (is_share(options)) return measure_and_show_share(options, install, gate, json, picture);
  const Report report = measure_all(options, install, gate);
  const Style style = options.markdown ? Style::Markdown : Style::Plain;
  const std::string document = as_json(report);
  json.write(document);
  json.finish();
  show(report, style);
  picture.draw(document);
  return older ? show_against(*older, report, options.margin_percent / 100, style) : 0;
}

}  // namespace ivgpu
