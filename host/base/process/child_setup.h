// Starts a child process by posix_spawn(). fork() would copy the broker's page tables. The broker would then fault on
// each page that it writes, and every fault waits for the machine's other processors. posix_spawn() blocks the broker
// until the child has executed its program. Setup that can wait is therefore done in the child (host/worker/place.h).
//
// The child gets the passed descriptors, no blocked signals, and /dev/null as standard input unless one is passed. It
// has its own process group, so that a terminal's signals reach the broker alone.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "host/base/fd.h"

namespace host::broker {

class ChildSetup {
 public:
  // The child closes its descriptors from `first_free` on.
  explicit ChildSetup(int first_free);
  ~ChildSetup();
  ChildSetup(const ChildSetup&) = delete;
  ChildSetup& operator=(const ChildSetup&) = delete;

  // Opens `fd` as `number` in the child. The caller keeps `fd`; -1 is ignored.
  void pass(int fd, int number);
  // Returns 0 or an error number. The first argument is the program's path; `environment` is complete (NAME=value).
  [[nodiscard]] int start(pid_t& pid, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment);

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
  std::vector<Fd> moved_;
  const int first_free_;
  bool failed_ = false, has_input_ = false;
};

}  // namespace host::broker
