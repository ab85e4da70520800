// A QEMU on the host under test, with the demo's guest and a job. The test reads the job's output line by line.
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
  // The next line. Throws a Failure with the guest's standard error if no line arrives.
  std::string line();

  void expect_progress(const std::string& label);  // see Lines::expect_progress()

  // A job of `count` rounds: in each round two programs work for a while, and a third program is killed at a random
  // time. In the last round the two programs work forever.
  static std::string rounds(unsigned long count);
  // Waits until the next round and both of its programs have begun.
  void expect_begun();
  // How the two programs ended.
  struct Endings {
    Ending a, b;
  };
  Endings endings();
  void signal(int number) const { qemu_->signal(number); }
  void kill();  // throws a Failure if another signal ended QEMU first

 private:
  void take_ending(const std::string& said);

  ivgpu::TempDir folder_;
  ivgpu::FdPair out_, err_, control_;
  std::optional<ivgpu::Child> qemu_;
  std::optional<Lines> lines_;
  std::pair<std::optional<Ending>, std::optional<Ending>> ended_;  // of this round's two programs
};

}  // namespace faults
