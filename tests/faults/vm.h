// A QEMU on the host under test, with the demo's guest and a job. The job's output arrives as lines.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "tests/faults/program.h"
#include "tools/ivgpu/support/temp_dir.h"
#include "tools/ivgpu/vm/guest.h"
#include "tools/ivgpu/vm/qemu.h"

namespace faults {

class Machine {
 public:
  // `job`: commands for the guest's shell, with the folder of the program under test in PATH.
  Machine(const Paths& paths, const std::string& socket, const std::string& job);
  Machine(const Paths& paths, const Host& host, const std::string& job) : Machine(paths, host.socket(guest_vm), job) {}

  pid_t pid() const { return qemu_->pid(); }
  // The next line; otherwise a Failure with the guest's standard error.
  std::string line();

  void expect_progress(const std::string& label);  // see Lines

  // A job of `count` rounds: two programs work for a while, and a third is killed at a random time. In the last round
  // the two work for ever.
  static std::string rounds(unsigned long count);
  // Waits for the next round, and for both its programs to begin.
  void expect_begun();
  // How both programs ended.
  struct Endings {
    Ending a, b;
  };
  Endings endings();
  void signal(int number) const { qemu_->signal(number); }
  void kill();  // throws a Failure if another signal came first

 private:
  void take_ending(const std::string& said);

  ivgpu::TempDir folder_;
  ivgpu::FdPair out_, err_, control_;
  std::optional<ivgpu::Child> qemu_;
  std::optional<Lines> lines_;
  std::pair<std::optional<Ending>, std::optional<Ending>> ended_;  // of this round's two programs
};

}  // namespace faults
