#include "guest/base/process_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace guest {
namespace {

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

bool can_fence_process() { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

// A seccomp filter that the program installs later may refuse the system call. A processor keeps a store to itself for
// less than a microsecond, and a load waits at most as long for its turn, so a sleep is then sufficient.
void process_fence() {
  constexpr auto far_longer_than_a_store_waits = std::chrono::milliseconds(10);
  if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) std::this_thread::sleep_for(far_longer_than_a_store_waits);
}

}  // namespace guest
