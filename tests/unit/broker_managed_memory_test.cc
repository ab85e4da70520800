// How much managed memory a process has, by what the kernel says of its mappings. No GPU.
#include "host/broker/managed_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

namespace {

namespace broker = host::broker;

TEST(ManagedMemory, IsWhatIsMappedOfTheModulesFile) {
  const auto in = [](const std::string& text) {
    std::istringstream maps(text);
    return broker::managed_in(maps);
  };
  EXPECT_EQ(in(""), 0u);
  EXPECT_EQ(in("7f0000000000-7f0000200000 rw-s 00000000 00:06 1 /dev/nvidia-uvm\n"
               "7f0000400000-7f0000401000 rw-p 00000000 00:00 0 \n"
               "7f0000600000-7f0000601000 rw-s 00000000 00:06 1 /dev/nvidia0\n"
               "7f1000000000-7f1040000000 rw-s 00000000 00:06 1 /a/namespace's/dev/nvidia-uvm (deleted)"),
            (std::uint64_t{2} << 20) + (std::uint64_t{1} << 30));
  for (const char* nonsense : {"/nvidia-uvm", "7f00-/nvidia-uvm", "7f00 7f01 /nvidia-uvm", "7f01-7f00 /nvidia-uvm",
                               "-1-5 /nvidia-uvm", "1ffffffffffffffff-2ffffffffffffffff /nvidia-uvm"})
    EXPECT_EQ(in(nonsense), 0u) << nonsense;
}

// Else a worker hides what it has behind a long list, or keeps ivgpu-nvml from all others.
TEST(ManagedMemory, OfAListWithoutEndIsNotBelievedToBeNone) {
  std::string line = "7f0000000000-7f0000001000 rw-p 00000000 00:06 1 /" + std::string(4000, 'x') + "\n", text;
  while (text.size() <= (16 << 20)) text += line;
  std::istringstream maps(text + "7f1000000000-7f1040000000 rw-s 00000000 00:06 1 /dev/nvidia-uvm\n");
  EXPECT_EQ(broker::managed_in(maps), std::nullopt);
}

TEST(ManagedMemory, OfAnotherUsersProcessIsNotKnown) {
  EXPECT_EQ(broker::managed_memory_of(5'000'000, 7).unread, "") << "a process that has ended has none";
  EXPECT_EQ(broker::managed_memory_of(getpid(), 7).bytes, 0u);
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(1) != 0 || setuid(1) != 0) _exit(2);
    const auto managed = broker::managed_memory_of(getppid(), 7);
    _exit(managed.bytes == 0 && managed.unread.ends_with("/maps: Permission denied") ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
