// Tests the order of steps at a worker's start: the real start and jail in a child, with a driver that records the
// order.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "host/base/process/control.h"
#include "host/worker/start.h"
#include "ring/ops/telemetry.h"
#include "tests/child.h"

namespace {

using host::worker::Options;

// The state of the child's signal handler. A signal handler can only use globals.
struct Watch {
  std::byte* slot = nullptr;
  std::size_t bytes = 0;
  volatile int touches = 0;   // 1 if the slot was touched, else 0
  volatile int unjailed = 0;  // the number of touches before seccomp was in force
} watch;

// Our filter refuses this prctl() with EPERM. A filter that the whole machine has allows it.
bool seccomp_in_force() { return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == -1; }

void on_touch(int, siginfo_t* info, void*) {
  const auto* at = static_cast<std::byte*>(info->si_addr);
  if (at < watch.slot || at >= watch.slot + watch.bytes) _exit(99);
  watch.touches = watch.touches + 1;
  if (!seccomp_in_force()) watch.unjailed = watch.unjailed + 1;
  mprotect(watch.slot, watch.bytes, PROT_READ | PROT_WRITE);
}

// Protects the mapping of the slot's file, so that the next access is recorded.
bool watch_slot(std::size_t bytes) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0;
    if (line.find("memfd:worker-start-region") == std::string::npos) continue;
    if (std::sscanf(line.c_str(), "%lx-", &from) != 1) continue;
    watch.slot = reinterpret_cast<std::byte*>(from);
    watch.bytes = bytes;
    struct sigaction action {};
    action.sa_sigaction = on_touch;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    return mprotect(watch.slot, bytes, PROT_NONE) == 0;
  }
  return false;
}

constexpr std::size_t slot_bytes = ring::min_slot_bytes;
int control_of_broker = -1;  // the control socket of the worker whose options were made last

Options options_for_a_child(host::worker::JailMode jail) {
  Options options;
  int control[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control), 0);
  options.control_fd = control[0];
  control_of_broker = control[1];
  options.region_fd = memfd_create("worker-start-region", 0);
  options.doorbell_fd = open("/dev/null", O_RDWR);
  options.telemetry_fd = memfd_create("worker-start-telemetry", 0);
  EXPECT_EQ(ftruncate(options.region_fd, slot_bytes), 0);
  EXPECT_EQ(ftruncate(options.telemetry_fd, static_cast<off_t>(ring::telemetry_bytes)), 0);
  options.slot_bytes = slot_bytes;
  options.library = "/proc/self/exe";
  options.jail = jail;
  return options;
}

TEST(WorkerStart, TouchesItsSlotInTheJailOnly) {
  const Options options = options_for_a_child(host::worker::JailMode::BestEffort);
  const int code = run_in_child([&] {
    const auto start = [](const std::string&) -> host::Result<void> {
      if (!watch_slot(slot_bytes)) return host::Error{"the slot is not found"};
      return {};
    };
    const auto describe = [](ring::DevicePage& page) {
      page.driver_version = 4242;
      page.device_count = 3;
      std::memset(page.device[15].bus_id, 'x', sizeof page.device[15].bus_id);
    };
    const auto serve = [](ring::SlotView slot, const host::worker::Shared&) {
      if (watch.touches != 1 || !seccomp_in_force()) return 40;
      if (watch.unjailed != 0) return 41;
      const ring::DevicePage page = slot.device_page().copy_out();
      const bool filled = page.driver_version == 4242 && page.device_count == 3 && page.device[15].bus_id[31] == 'x';
      return filled && slot.header()[&ring::SlotHeader::magic].load() == ring::slot_magic ? 42 : 43;
    };
    return host::worker::run(options, {start, describe, serve});
  });
  EXPECT_EQ(code, 42) << "41: the slot was touched before seccomp was in force; 43: it was not filled";
}

// Starts a worker on a GPU with this attribute. Returns the worker's exit code, or its report about its jail.
std::string told_of_jail(host::worker::JailMode mode, int attribute) {
  const Options options = options_for_a_child(mode);
  const int code = run_in_child([&] {
    const auto start = [](const std::string&) { return host::Result<void>(); };
    const auto describe = [&](ring::DevicePage& page) {
      page.device_count = 2;
      if (attribute >= 0) page.device[1].attribute[attribute] = 1;
    };
    return host::worker::run(options, {start, describe, [](ring::SlotView, const host::worker::Shared&) { return 0; }});
  });
  if (code != 0) return "exit " + std::to_string(code);
  host::worker::ReadyMessage message{};
  if (recv(control_of_broker, &message, sizeof message, MSG_DONTWAIT) != sizeof message) return "nothing";
  return message.text;
}

TEST(WorkerStart, LooksWhetherKernelsReachItsMemory) {
  using host::worker::JailMode;
  constexpr int pageable = 88, host_page_tables = 100;  // CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS...
  const std::string before = told_of_jail(JailMode::BestEffort, -1);
  EXPECT_EQ(before.find("GPU"), std::string::npos) << before;
  const std::string hmm = told_of_jail(JailMode::BestEffort, pageable);
  EXPECT_NE(hmm.find("memory out of kernels' reach (GPU 1 has HMM: load nvidia_uvm with uvm_disable_hmm=1)"),
            std::string::npos)
      << hmm;
  const std::string ats = told_of_jail(JailMode::BestEffort, host_page_tables);
  EXPECT_NE(ats.find("GPU 1 has ATS"), std::string::npos) << ats;
  for (const int attribute : {pageable, host_page_tables})
    EXPECT_EQ(told_of_jail(JailMode::Required, attribute), "exit 5") << attribute;
  EXPECT_EQ(told_of_jail(JailMode::Off, pageable), "the jail is off");
}

// A mapping occupies one of the guest's arena windows. The worker must not offer this window to the session.
TEST(WorkerStart, ReportsWhichWindowsItReserved) {
  const Options options = options_for_a_child(host::worker::JailMode::Off);
  const int code = run_in_child([&] {
    constexpr std::size_t taken_bytes = 4096;
    void* const wanted = reinterpret_cast<void*>(ring::window_address(2) + ring::window_bytes / 2);
    void* const taken =
        mmap(wanted, taken_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (taken != wanted) return 50;
    std::memset(taken, 0x5a, taken_bytes);
    const auto start = [](const std::string&) { return host::Result<void>(); };
    const auto serve = [&](ring::SlotView, const host::worker::Shared& shared) {
      return static_cast<unsigned char*>(taken)[taken_bytes - 1] == 0x5a ? static_cast<int>(shared.windows) : 51;
    };
    return host::worker::run(options, {start, [](ring::DevicePage&) {}, serve});
  });
  EXPECT_EQ(code, 0b1011);
}

}  // namespace
