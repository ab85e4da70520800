// Starts the measuring program natively or through ivgpu, and reads its lines. Through ivgpu, the Runner starts a
// private broker. Natively it runs no broker: a driver starts faster while another process holds the GPU, which would
// falsify the native figures.
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

// True if the broker of this status has nothing to do; see Runner::settle().
bool is_settled(const std::string& status);

class Runner {
 public:
  Runner(const Install& install, BrokerOptions broker, bool quick, const SignalGate& gate);

  const Install& install() const { return install_; }
  const SignalGate& gate() const { return gate_; }
  const Progress& progress() const { return progress_; }
  bool quick() const { return quick_; }
  bool simulated() const { return options_.gpu == "sim"; }

  // Selects the side of the next programs. The side of ivgpu starts a new broker: a worker may poll only in some slots,
  // and an earlier measurement would decide which worker gets such a slot.
  void take_side(Side side);
  // `vm`: the broker's VM for the program, on the side of ivgpu; empty: the only VM.
  Command command(Side side, const std::vector<std::string>& words, const std::string& vm = {}) const;
  // Same for a load that runs in PyTorch (torch_load.py).
  Command torch_command(Side side, const std::vector<std::string>& words, const std::string& vm) const;
  // Changes how VMs share the GPU while programs run.
  void take_sharing(const Sharing& sharing);

  // Precondition: the broker runs.
  std::string broker_status() const;
  pid_t broker_pid() const { return broker_->pid(); }
  // Waits until the broker is idle: a spare worker is ready for the next program, or all slots are in use. A worker
  // that is still starting is another process on the GPU and takes time slices.
  void settle() const;

  // Throws `what` as an Error, preceded by the broker's log lines.
  [[noreturn]] void fail(Side side, const std::string& what) const;
  // Sleeps. Throws an Error if a signal arrives.
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

// One measuring program. The destructor kills the program.
class Measurer {
 public:
  Measurer(const Runner& runner, Side side, const std::vector<std::string>& words, const std::string& vm = {});
  Measurer(const Runner& runner, Side side, const Command& command);

  // The next line; nullopt at the end. Throws an Error if the program fails, is silent for too long, or a signal
  // arrives.
  std::optional<std::string> line();
  void expect_ready();
  void go();      // lets the program begin or continue
  void finish();  // ends the program; throws an Error if it fails
  pid_t pid() const { return process_.pid(); }

 private:
  bool read_more();  // false at the end of the program's output
  void check_end();

  const Runner& runner_;
  const Side side_;
  FdPair input_, output_;
  Child process_;
  std::string read_;
  std::size_t used_ = 0;
};

}  // namespace ivgpu::bench
