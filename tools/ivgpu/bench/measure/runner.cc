#include "tools/ivgpu/bench/measure/runner.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/error.h"

namespace ivgpu::bench {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// The slowest measurement takes seconds. A driver that starts for eight processes on a busy machine takes ten seconds.
constexpr int silence_ms = 60'000;
constexpr auto settle_patience = std::chrono::seconds(20);

const char* way_of(Side side) { return side == Side::Native ? "natively" : "through ivgpu"; }

Command with_pipes(Command command, const FdPair& input, const FdPair& output) {
  command.in = input.theirs.get();
  command.out = output.theirs.get();
  return command;
}

}  // namespace

bool is_settled(const std::string& status) {
  const auto slots = nlohmann::json::parse(status).at("vms").at(0).at("slots");
  std::size_t ready = 0, claimed = 0, empty = 0;
  for (const auto& slot : slots) {
    const std::string state = slot.at("state");
    ready += state == "ready";
    claimed += state == "claimed";
    empty += state == "empty";
  }
  return ready + claimed + empty == slots.size() && (ready > 0 || claimed == slots.size());
}

Runner::Runner(const Install& install, BrokerOptions broker, bool quick, const SignalGate& gate)
    : install_(install), options_(std::move(broker)), quick_(quick), gate_(gate) {}

void Runner::take_side(Side side) {
  if (broker_ && broker_->end(0) != 0) throw Error(exit_code::died, "");
  broker_.reset();
  folder_.reset();
  if (side == Side::Native) return;
  progress_.show("starting the broker");
  folder_.emplace();
  broker_.emplace(install_, options_, folder_->path(), gate_);
}

Command Runner::command(Side side, const std::vector<std::string>& words, const std::string& vm) const {
  Command command{.argv = {install_.measure.string()}};
  if (quick_) command.argv.emplace_back("--quick");
  command.argv.insert(command.argv.end(), {"--library", library_of(side)});
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  if (side == Side::Ivgpu) command.environment = {{"IVGPU_REGION", socket_of(vm)}};
  return command;
}

// PyTorch loads the first libcuda.so.1 on the loader's path.
Command Runner::torch_command(Side side, const std::vector<std::string>& words, const std::string& vm) const {
  Command command{.argv = {"python3", install_.torch_load.string()}};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  if (side == Side::Ivgpu) command.environment = {{"IVGPU_REGION", socket_of(vm)}};
  const std::filesystem::path library = library_of(side);
  if (!library.has_parent_path()) return command;
  const char* const others = std::getenv("LD_LIBRARY_PATH");
  command.environment.emplace_back(
      "LD_LIBRARY_PATH", library.parent_path().string() + (others != nullptr ? std::string(":") + others : ""));
  return command;
}

std::string Runner::library_of(Side side) const {
  if (side == Side::Ivgpu) return (install_.guest_lib / "libcuda.so.1").string();
  if (options_.gpu == "sim") return (install_.sim_lib / "libcuda.so.1").string();
  return options_.gpu == "auto" ? "libcuda.so.1" : options_.gpu;
}

std::string Runner::socket_of(const std::string& vm) const {
  const std::filesystem::path socket = broker_->socket();
  return vm.empty() ? socket.string() : (socket.parent_path() / (vm + ".sock")).string();
}

void Runner::take_sharing(const Sharing& sharing) { broker_->take_sharing(sharing); }

std::string Runner::broker_status() const { return read_status(folder_->path()); }

void Runner::settle() const {
  const auto end = Clock::now() + settle_patience;
  while (!is_settled(broker_status())) {
    if (Clock::now() > end) fail(Side::Ivgpu, "no worker was ready");
    pause(0.002);
  }
}

void Runner::pause(double seconds) const {
  pollfd arrives{gate_.fd(), POLLIN, 0};
  poll(&arrives, 1, static_cast<int>(seconds * 1000));
  if (const auto signal = gate_.take()) throw Error(exit_code::signal_base + signal->number, "interrupted");
}

void Runner::fail(Side side, const std::string& what) const {
  progress_.show("");
  if (side == Side::Ivgpu && broker_) broker_->explain(1);
  throw Error(exit_code::missing, std::string("measuring ") + way_of(side) + " failed: " + what);
}

Measurer::Measurer(const Runner& runner, Side side, const std::vector<std::string>& words, const std::string& vm)
    : Measurer(runner, side, runner.command(side, words, vm)) {}

Measurer::Measurer(const Runner& runner, Side side, const Command& command)
    : runner_(runner),
      side_(side),
      input_(make_pipe_from_us()),
      output_(make_pipe_to_us()),
      process_(with_pipes(command, input_, output_)) {
  input_.theirs.reset();
  output_.theirs.reset();
}

bool Measurer::read_more() {
  pollfd events[2] = {{output_.ours.get(), POLLIN, 0}, {runner_.gate().fd(), POLLIN, 0}};
  if (poll(events, 2, silence_ms) == 0) runner_.fail(side_, "the measuring program is silent");
  if (const auto signal = runner_.gate().take()) throw Error(exit_code::signal_base + signal->number, "interrupted");
  char bytes[16384];
  const ssize_t length = read(output_.ours.get(), bytes, sizeof bytes);
  if (length < 0) runner_.fail(side_, std::strerror(errno));
  read_.append(bytes, static_cast<std::size_t>(length));
  return length > 0;
}

std::optional<std::string> Measurer::line() {
  std::size_t searched = used_;
  std::size_t end;
  while ((end = read_.find('\n', searched)) == std::string::npos) {
    searched = read_.size();
    if (read_more()) continue;
    check_end();
    return std::nullopt;
  }
  const std::string line = read_.substr(used_, end - used_);
  used_ = end + 1;
  if (line.starts_with("error ")) runner_.fail(side_, line.substr(6));
  return line;
}

void Measurer::check_end() {
  const auto code = process_.wait_for(milliseconds(silence_ms));
  if (!code) runner_.fail(side_, "the measuring program does not end");
  if (*code != 0) runner_.fail(side_, "the measuring program ended with exit code " + std::to_string(*code));
}

void Measurer::expect_ready() {
  if (const auto said = line(); !said || *said != "ready") runner_.fail(side_, "the measuring program is not ready");
}

void Measurer::go() {
  if (write(input_.ours.get(), "\n", 1) != 1) runner_.fail(side_, "the measuring program has gone");
}

void Measurer::finish() {
  input_.ours.reset();
  while (line()) {
  }
}

}  // namespace ivgpu::bench
