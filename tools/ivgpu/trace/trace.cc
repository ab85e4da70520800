// `ivgpu trace` watches sessions of a running broker, or runs a program as `ivgpu run` does and watches it.
#include <poll.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/standard_output.h"
#include "tools/ivgpu/support/temp_dir.h"
#include "tools/ivgpu/trace/output.h"
#include "tools/ivgpu/trace/source.h"

namespace ivgpu {
namespace {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, the clock of the workers' telemetry
using std::chrono::milliseconds;

// A busy program fills a channel's telemetry in about 8 ms, so the pauses between reads are shorter.
constexpr int shortest_pause_ms = 1, longest_pause_ms = 4;
// The time between the program's end and its worker's end.
constexpr milliseconds end_patience{3000};
// The time between the program's end and the broker's report of the program's session.
constexpr milliseconds claim_patience{200};

std::uint64_t now_ns() { return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()); }

class Tracing {
 public:
  Tracing(const TraceOptions& options, const SignalGate& gate)
      : options_(options), gate_(gate), to_(options.program.empty() ? stdout : stderr) {
    if (!options.perfetto.empty()) outputs_.push_back(std::make_unique<trace::Perfetto>(options.perfetto, start_ns_));
    if (options.summary) outputs_.push_back(std::make_unique<trace::Summary>(to_));
    if (outputs_.empty()) outputs_.push_back(std::make_unique<trace::Lines>(to_, start_ns_));
  }

  void watch(const std::filesystem::path& runtime_dir, const trace::Filter& filter) {
    source_.emplace(runtime_dir, filter);
  }
  void narrow(pid_t process) { source_->narrow(static_cast<std::uint32_t>(process)); }

  // Runs until a signal, the time limit or the broker's end.
  void run() {
    const auto end = options_.seconds > 0
                         ? std::optional(Clock::now() + std::chrono::duration<double>(options_.seconds))
                         : std::nullopt;
    while (!end || Clock::now() < *end) {
      if (!turn(-1)) throw_after_finish();
      if (gate_.take()) break;
    }
    finish();
  }

  // Runs until the program and its sessions end. Returns the program's exit code.
  int run(Child& program) {
    while (!program.wait_for(milliseconds(0))) {
      turn(program.pidfd());
      if (const auto arrived = gate_.take_for_program(); arrived && !arrived->from_terminal)
        program.signal(arrived->number);
    }
    linger();
    finish();
    return program.wait();
  }

 private:
  // The broker may learn of a session's end, and even of its claim, after the program has ended.
  void linger() {
    const auto now = Clock::now();
    const auto over = [&] {
      if (source_->held() > 0) return Clock::now() > now + end_patience;
      return source_->ended() > 0 || Clock::now() > now + claim_patience;
    };
    while (turn(-1) && !over()) continue;
  }

  // Passes on new calls, or waits briefly if there is no new call. Returns false when the broker has ended.
  bool turn(int program) {
    const bool broker = source_->listen();
    pause_ms_ = take() ? shortest_pause_ms : std::min(2 * pause_ms_, longest_pause_ms);
    flush(to_);
    std::array<pollfd, 3> news = {pollfd{broker ? source_->fd() : -1, POLLIN, 0}, pollfd{gate_.fd(), POLLIN, 0},
                                  pollfd{program, POLLIN, 0}};
    poll(news.data(), news.size(), pause_ms_);
    return broker;
  }

  bool take() {
    return source_->take([this](const trace::Call& call) { add(call); });
  }

  void add(const trace::Call& call) {
    for (const auto& output : outputs_) output->add(call);
  }

  void finish() {
    source_->listen();
    source_->take_rest([this](const trace::Call& call) { add(call); });
    for (const auto& output : outputs_) output->finish();
    flush(to_);
    if (const std::uint64_t lost = source_->lost(); lost != 0)
      std::fprintf(stderr, "ivgpu: %llu calls came faster than they could be read and are missing\n",
                   static_cast<unsigned long long>(lost));
  }

  [[noreturn]] void throw_after_finish() {
    finish();
    throw Error(exit_code::missing, "the broker has ended");
  }

  const TraceOptions& options_;
  const SignalGate& gate_;
  const std::uint64_t start_ns_ = now_ns();
  std::FILE* const to_;
  std::vector<std::unique_ptr<trace::Output>> outputs_;
  std::optional<trace::Source> source_;
  int pause_ms_ = shortest_pause_ms;
};

// Watches all sessions of the VM before the program starts, so that no call is missed.
int run_program(const TraceOptions& options, Tracing& tracing, const std::filesystem::path& region, bool own_broker) {
  tracing.watch(region.parent_path(), {.vm = region.stem().string()});
  Child program(loopback_command(find_install(), options.program, region.string()));
  if (!own_broker) tracing.narrow(program.pid());
  return tracing.run(program);
}

}  // namespace

int trace_calls(const TraceOptions& options) {
  const SignalGate gate;
  Tracing tracing(options, gate);
  if (options.program.empty()) {
    tracing.watch(options.runtime_dir, {options.vm, options.slot, options.process});
    tracing.run();
    return 0;
  }
  if (!options.own_broker)
    if (const auto region = running_broker()) return run_program(options, tracing, *region, false);
  const TempDir folder;
  PrivateBroker broker(find_install(), for_a_program_here(options.broker), folder.path(), gate);
  return broker.end(run_program(options, tracing, broker.socket(), true));
}

}  // namespace ivgpu
