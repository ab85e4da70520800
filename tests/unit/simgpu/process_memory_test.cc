// Tests which memory the simulated GPU treats as a file mapping. Memory in a tmpfs must not count, at any mount point.
#include "host/simgpu/api/memory/process_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/child.h"

namespace {

constexpr std::size_t page = 4096;

simgpu::ProcessMemory shared(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_TRUE(file >= 0 && ftruncate(file, page) == 0) << path;
  void* at = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  unlink(path.c_str());
  return simgpu::process_memory(reinterpret_cast<simgpu::Address>(at), page);
}

std::string folder() {
  char path[] = "/var/tmp/ivgpu-memory-XXXXXX";
  return mkdtemp(path);
}

enum Outcome { Memory, File, NotAllowed };

// Runs in a process with its own mount namespace.
Outcome in_own_tmpfs(const std::string& at) {
  if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
      mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("ivgpu-test", at.c_str(), "tmpfs", 0, nullptr) != 0)
    return NotAllowed;
  return shared(at + "/region").shared_file ? File : Memory;
}

TEST(ProcessMemory, AFileOfADiskIsAFile) {
  const std::string at = folder();
  EXPECT_TRUE(shared(at + "/region").shared_file);
  std::filesystem::remove(at);
}

TEST(ProcessMemory, SharedMemoryIsNone) { EXPECT_FALSE(shared("/dev/shm/ivgpu-memory-test").shared_file); }

TEST(ProcessMemory, ATmpfsOfOnesOwnHoldsNone) {
  const std::string at = folder();
  const int outcome = run_in_child([&] { return in_own_tmpfs(at); });
  std::filesystem::remove(at);
  if (outcome == NotAllowed) GTEST_SKIP() << "nobody may mount here";
  EXPECT_EQ(outcome, Memory);
}

TEST(ProcessMemory, AHoleIsNotThere) {
  auto* at = static_cast<char*>(mmap(nullptr, 3 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(at + page, page);
  EXPECT_FALSE(simgpu::process_memory(reinterpret_cast<simgpu::Address>(at), 3 * page).there);
  EXPECT_TRUE(simgpu::process_memory(reinterpret_cast<simgpu::Address>(at), page).there);
  EXPECT_FALSE(simgpu::process_memory(reinterpret_cast<simgpu::Address>(at), page).writable);
}

}  // namespace
