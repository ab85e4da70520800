// Managed memory of processes, read from the kernel's list of their mappings. No GPU.
#include "host/broker/gpu/managed_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

#include "tests/child.h"
#include "tests/unit/broker/harness.h"

namespace {

namespace broker = host::broker;
using broker::ManagedMemory, broker::Mapped;
using namespace std::chrono_literals;

constexpr std::uint64_t mebi = 1 << 20;

Mapped in(const std::string& text, std::chrono::milliseconds time = 1h) {
  std::istringstream maps(text);
  return broker::managed_in(maps, broker::MapsClock::now() + time);
}

// ---- one list ------------------------------------------------------------------------------------------------------

TEST(ManagedMemoryList, CountsTheModulesFile) {
  EXPECT_EQ(in("").bytes, 0u);
  const Mapped mapped =
      in("7f0000000000-7f0000200000 rw-s 00000000 00:06 1 /dev/nvidia-uvm\n"
         "7f0000400000-7f0000401000 rw-p 00000000 00:00 0 \n"
         "7f0000600000-7f0000601000 rw-s 00000000 00:06 1 /dev/nvidia0\n"
         "7f1000000000-7f1040000000 rw-s 00000000 00:06 1 /a/namespace's/dev/nvidia-uvm (deleted)");
  EXPECT_EQ(mapped.end, Mapped::End::Whole);
  EXPECT_EQ(mapped.bytes, 2 * mebi + 1024 * mebi);
  for (const char* nonsense : {"/nvidia-uvm", "7f00-/nvidia-uvm", "7f00 7f01 /nvidia-uvm", "7f01-7f00 /nvidia-uvm",
                               "-1-5 /nvidia-uvm", "1ffffffffffffffff-2ffffffffffffffff /nvidia-uvm"})
    EXPECT_EQ(in(nonsense).bytes, 0u) << nonsense;
}

// A worker could hide mappings behind a line without an end.
TEST(ManagedMemoryList, WithoutAnEndIsTooLong) {
  const std::string line = "7f0000000000-7f0000001000 rw-p 00000000 00:06 1 /" + std::string(4000, 'x') + "\n";
  std::string text;
  while (text.size() + line.size() <= 4 * mebi) text += line;
  EXPECT_EQ(in(text).end, Mapped::End::Whole);
  EXPECT_EQ(in(text + line).end, Mapped::End::TooLong);
}

TEST(ManagedMemoryList, ThatTakesLongIsTooSlow) {
  EXPECT_EQ(in("7f0000000000-7f0000200000 rw-s 00000000 00:06 1 /dev/nvidia-uvm\n", -1ms).end, Mapped::End::TooSlow);
}

// ---- processes -----------------------------------------------------------------------------------------------------

TEST(ManagedMemoryOf, AProcessThatHasEndedIsNone) {
  const Mapped nobody = broker::managed_memory_of(5'000'000);
  EXPECT_EQ(nobody.end, Mapped::End::Whole);
  EXPECT_EQ(nobody.bytes, 0u);
}

// A process of another user without dumpable memory, like a worker. The kernel refuses to show the process's maps even
// to that user.
TEST(ManagedMemoryOf, AWorkerTakesACapability) {
  if (geteuid() != 0 || prctl(PR_CAPBSET_READ, CAP_SYS_PTRACE) != 1) GTEST_SKIP() << "nobody may look here";
  const broker_test::Folder folder;
  const AnsweringChild<bool> child([&] {
    const int file = open((folder / "nvidia-uvm").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const bool mapped =
        ftruncate(file, 2 * mebi) == 0 && mmap(nullptr, 2 * mebi, PROT_READ, MAP_SHARED, file, 0) != MAP_FAILED;
    const bool other = setgid(1) == 0 && setuid(1) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
    // The kernel refuses to show this process its parent's maps.
    const Mapped parents = broker::managed_memory_of(getppid());
    const bool refused = parents.end == Mapped::End::Unread &&
                         parents.why.ends_with("/maps: Permission denied; ivgpud needs CAP_SYS_PTRACE for it");
    return mapped && other && refused;
  });
  EXPECT_EQ(child.answer, true);
  const Mapped mapped = broker::managed_memory_of(child.pid);
  EXPECT_EQ(mapped.end, Mapped::End::Whole) << mapped.why;
  EXPECT_EQ(mapped.bytes, 2 * mebi);
}

// ---- many ----------------------------------------------------------------------------------------------------------

TEST(ManagedMemory, IsReportedForEachProcess) {
  ManagedMemory managed([](pid_t process) {
    if (process == 3) return Mapped{Mapped::End::Unread, 0, "not today"};
    return Mapped{process == 2 ? Mapped::End::TooLong : Mapped::End::Whole, 10};
  });
  const auto held = managed.look({1, 2, 3}, test_deadline);
  ASSERT_EQ(held.size(), 3u);
  EXPECT_EQ(held.at(1).bytes, 10u);
  EXPECT_EQ(held.at(2).bytes, std::nullopt) << "more than anybody has";
  EXPECT_EQ(held.at(3).bytes, 0u);
  EXPECT_EQ(held.at(3).unread, "not today");
  EXPECT_TRUE(managed.look({}, test_deadline).empty());
}

// A single list that is too slow only indicates a busy machine.
TEST(ManagedMemory, WhoseListIsAlwaysTooSlowHidesSomething) {
  std::atomic<bool> slow{false};
  ManagedMemory managed([&](pid_t) {
    return Mapped{slow ? Mapped::End::TooSlow : Mapped::End::Whole, slow ? 1u : 7u};
  });
  const auto bytes = [&] { return managed.look({1}, test_deadline).at(1).bytes; };
  EXPECT_EQ(bytes(), 7u);
  for (int round = 0; round < 2; ++round) {
    slow = true;
    for (int i = 1; i < ManagedMemory::most_slow; ++i) EXPECT_EQ(bytes(), 7u) << "as it was";
    EXPECT_EQ(bytes(), std::nullopt);
    EXPECT_EQ(bytes(), std::nullopt);
    slow = false;
    EXPECT_EQ(bytes(), 7u);
  }
}

// A stuck process must not block the caller forever, and the remaining processes keep their last answers.
TEST(ManagedMemory, AListThatDoesNotComeIsNotWaitedFor) {
  std::atomic<bool> stuck{false};
  std::atomic<std::uint64_t> bytes{5};
  ManagedMemory managed([&](pid_t process) {
    while (process == 2 && stuck) std::this_thread::sleep_for(1ms);
    return Mapped{Mapped::End::Whole, bytes};
  });
  EXPECT_EQ(managed.look({1, 2}, test_deadline).at(2).bytes, 5u);
  stuck = true, bytes = 6;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(managed.look({1, 2}, 50ms).at(2).bytes, 5u);
  stuck = false;
  const auto held = managed.look({1, 2}, test_deadline);
  EXPECT_EQ(held.at(1).bytes, 6u);
  EXPECT_EQ(held.at(2).bytes, 6u);
}

}  // namespace
