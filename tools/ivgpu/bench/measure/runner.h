// Starts the measuring program natively or through ivgpu, and reads its lines. Through ivgpu there is a private broker;
// natively there is none: a driver starts faster while another process holds the GPU, and that would be measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/ivgpu/bench/measure/progress.h"
#include "tools/ivgpu/bench/report/report.h"
#include "tools/ivgpu/support/broker.h"
#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/install.h"
#include "tools/ivgpu/support/temp_dir.h"

namespace ivgpu::bench {

// For a broker's status: see Runner::settle().
bool is_settled(const std::string& status);

class Runner {
 public:
  Runner(const Install& install, BrokerOptions broker, bool quick, const SignalGate& gate);

  const Install& install() const { return install_; }
  const SignalGate& gate() const { return gate_; }
  const Progress& progress() const { return progress_; }
  bool quick() const { return quick_; }
  bool simulated() const { return options_.gpu == "sim"; }

  // Of this side from here on. Through ivgpu with a new broker: the right of a worker to poll depends on its slot, and
  // an earlier measurement would decide which worker has it.
  void take_side(Side side);
  // `vm`: through ivgpu, which of the broker's VMs the program is in; empty: the only one.
  Command command(Side side, const std::vector<std::string>& words, const std::string& vm = {}) const;
  // The same of a load that PyTorch makes (torch_load.py).
  Command torch_command(Side side, const std::vector<std::string>& words, const std::string& vm) const;
  // Changes how the GPU is shared, under what runs.
  void take_sharing(const Sharing& sharing);

  // While the broker is there.
  std::string broker_status() const;
  pid_t broker_pid() const { return broker_->pid(); }
  // Until the broker has nothing more to do: a worker waits for the next program, or all are taken. One that starts is
  // another process on the GPU, and takes its slices of time.
  void settle() const;

  // The same as an Error, with the broker's log lines before it.
  [[noreturn]] void fail(Side side, const std::string& what) const;
  // Sleeps; a signal meanwhile is an Error.
  void pause(double seconds) const;

 private:
  std::string library_of(Side side) const;
  std::string socket_of(const std::string& vm) const;

  const Install& install_;
  const BrokerOptions options_;
  const bool quick_;
  const SignalGate& gate_;
  const Progress progress_;
  std::optional<TempDir> folder_;
  std::optional<PrivateBroker> broker_;
};

// One measuring program. It is killed with its object.
class Measurer {
 public:
  Measurer(const Runner& runner, Side side, const std::vector<std::string>& words, const std::string& vm = {});
  Measurer(const Runner& runner, Side side, const Command& command);

  // The next line; nothing at the end. An Error where the program fails, is silent for too long, or a signal arrives.
  std::optional<std::string> line();
  void expect_ready();
  void go();      // lets it begin, or go on
  void finish();  // no more is wanted; an Error where it does not end well
  pid_t pid() const { return process_.pid(); }

 private:
  bool read_more();  // false at the end
  void check_end();

  const Runner& runner_;
  const Side side_;
  FdPair input_, output_;
  Child process_;
  std::string read_;
  std::size_t used_ = 0;
};

}  // namespace ivgpu::bench
