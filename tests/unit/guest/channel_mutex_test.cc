// The lock of a channel: free of locked instructions for its owner, and a mutex from the second thread on.
#include "guest/session/channel_mutex.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <thread>
#include <vector>

#include "tests/child.h"
#include "tests/unit/under_tsan.h"

namespace {

using guest::ChannelLock, guest::ChannelMutex, guest::can_fence_process;

#ifdef IVGPU_UNDER_TSAN
constexpr bool reserves = false;  // ThreadSanitizer does not see the process fence
constexpr int rounds = 20;
#else
constexpr bool reserves = true;
constexpr int rounds = 200;
#endif

// Preconditions: the lock is shared.
bool is_free(ChannelMutex& mutex) {
  if (!mutex.try_lock()) return false;
  mutex.unlock();
  return true;
}

TEST(ChannelMutex, IsReservedUntilItIsShared) {
  ASSERT_TRUE(can_fence_process());
  ChannelMutex mutex;
  EXPECT_FALSE(mutex.is_reserved());
  mutex.reserve();
  EXPECT_EQ(mutex.is_reserved(), reserves);
  mutex.share();
  EXPECT_FALSE(mutex.is_reserved());
  mutex.reserve();
  EXPECT_FALSE(mutex.is_reserved()) << "threads that got the channel before may still use it";
}

TEST(ChannelMutex, IsHeldByItsOwner) {
  ASSERT_TRUE(can_fence_process());
  ChannelMutex mutex;
  mutex.reserve();
  std::atomic<bool> second_holds{false};
  mutex.lock();
  mutex.share();
  EXPECT_FALSE(is_free(mutex));
  std::thread second([&] {
    const ChannelLock lock(mutex);
    second_holds = true;
  });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(second_holds);
  mutex.unlock();
  second.join();
  EXPECT_TRUE(second_holds);
  EXPECT_TRUE(is_free(mutex));
}

// The counter is no atomic: it is wrong if two threads hold the lock at the same time.
TEST(ChannelMutex, ExcludesThreadsThatComeLater) {
  ASSERT_TRUE(can_fence_process());
  constexpr int threads = 3, steps = 200;
  for (int round = 0; round < rounds; ++round) {
    ChannelMutex mutex;
    mutex.reserve();
    int counter = 0;
    std::atomic<int> started{0};
    const auto add = [&](int n) {
      for (int i = 0; i < n; ++i) {
        const ChannelLock lock(mutex);
        counter = counter + 1;
      }
    };
    std::vector<std::thread> later;
    for (int i = 0; i < threads; ++i)
      later.emplace_back([&] {
        ++started;
        mutex.share();
        add(steps);
      });
    int own = 0;
    while (started < threads) add(1), ++own;
    add(steps);
    for (std::thread& t : later) t.join();
    ASSERT_EQ(counter, own + steps + threads * steps);
  }
}

// A seccomp filter refuses the system call.
bool refuse_membarrier() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(ProcessFence, IsUnknownWhereAFilterRefusesIt) {
  EXPECT_EQ(run_in_child([] { return refuse_membarrier() && !can_fence_process() ? 0 : 1; }), 0);
}

TEST(ProcessFence, ReturnsWhereAFilterRefusesItLater) {
  EXPECT_EQ(run_in_child([] {
              if (!can_fence_process()) return 1;
              ChannelMutex mutex;
              mutex.reserve();
              if (!refuse_membarrier()) return 2;
              mutex.share();
              return is_free(mutex) ? 0 : 3;
            }),
            0);
}

}  // namespace
