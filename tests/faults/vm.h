// A QEMU of the faults: boots the demo's guest with programs that come and go, round after round, one of them killed in
// each. What they print arrives as lines, each behind its label.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "tests/faults/program.h"
#include "tools/ivgpu/guest.h"
#include "tools/ivgpu/qemu.h"

namespace faults {

class Machine {
 public:
  Machine(const Paths& paths, const Host& host);

  pid_t pid() const { return qemu_->pid(); }
  // Waits for the beginning of the guest's next round, and of both its programs.
  void expect_begun();
  // Both programs' endings.
  struct Endings {
    Ending a, b;
  };
  Endings endings();
  void signal(int number) const { qemu_->signal(number); }
  void kill();

 private:
  std::string line();
  void take_ending(const std::string& said);

  ivgpu::TempDir folder_;
  ivgpu::FdPair out_, err_, control_;
  std::optional<ivgpu::Child> qemu_;
  std::optional<Lines> lines_;
  std::pair<std::optional<Ending>, std::optional<Ending>> ended_;  // of this round's programs
};

}  // namespace faults
