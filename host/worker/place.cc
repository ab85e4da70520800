#include "host/worker/place.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace host::worker {
namespace {

// When memory is short, the kernel should kill workers before other processes: a worker serves one guest process, may
// have used the memory itself, and can be replaced. Raising the score needs no privilege.
void go_first_when_memory_is_short() {
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  [[maybe_unused]] const auto n = write(score, "900", 3);
  close(score);
}

}  // namespace

std::string take_place(const Options& options) {
  if (options.group_fd >= 0) {
    const bool entered = write(options.group_fd, "0", 1) == 1;
    const int why = errno;
    close(options.group_fd);
    if (!entered) return std::string("a worker cannot enter its VM's control group: ") + std::strerror(why);
  }
  // A process session of its own protects the worker from signals of the broker's terminal. Linux may also divide
  // processors by process session (autogroup).
  setsid();
  setpriority(PRIO_PROCESS, 0, options.nice);
  go_first_when_memory_is_short();
  return {};
}

}  // namespace host::worker
