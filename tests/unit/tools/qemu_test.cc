// Tests of QEMU's command line.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/tools/text.h"
#include "tools/ivgpu/vm/emulated_clock.h"
#include "tools/ivgpu/vm/qemu.h"

namespace ivgpu {
namespace {

std::string line(const QemuOptions& options) {
  std::string text;
  for (const std::string& word : qemu_command(options)) text += word + " ";
  return text;
}

TEST(Virtualisation, IsAFlagOfTheProcessorAndAWholeWord) {
  EXPECT_TRUE(has_virtualisation("processor: 0\nflags\t\t: fpu vmx sse\n"));
  EXPECT_TRUE(has_virtualisation("flags : svm\n"));
  EXPECT_FALSE(has_virtualisation("flags : fpu svm_lock sse\n"));
  EXPECT_FALSE(has_virtualisation("model name : vmx\nvmx flags : vnmi\nflags : fpu\n"));
  EXPECT_FALSE(has_virtualisation(""));
}

TEST(QemuCommand, TheAcceleratorTakesItsProcessorAlong) {
  EXPECT_TRUE(has(line({.accelerator = Accelerator::Kvm}), "-accel kvm -cpu host "));
  EXPECT_TRUE(has(line({.accelerator = Accelerator::Tcg}), "-accel tcg,thread=multi -cpu max "));
}

// QEMU's emulator omits memory barriers for a VM that can have only one processor.
TEST(QemuCommand, AnEmulatedProcessorIsNeverTheOnlyOnePossible) {
  EXPECT_TRUE(has(line({.accelerator = Accelerator::Tcg, .cpus = 1}), "-smp 1,sockets=2,maxcpus=2 "));
  EXPECT_TRUE(has(line({.accelerator = Accelerator::Tcg, .cpus = 3}), "-smp 3 "));
  EXPECT_TRUE(has(line({.accelerator = Accelerator::Kvm, .cpus = 1}), "-smp 1 "));
}

TEST(QemuCommand, OnlyTheEmulatorsClockIsDeclaredReliable) {
  EXPECT_FALSE(has(line({.accelerator = Accelerator::Kvm}), "tsc"));
  EXPECT_TRUE(has(line({.accelerator = Accelerator::Tcg}), "tsc=reliable no_timer_check tsc_early_khz="));
}

// Measures while other threads use the processors. A guest's kernel rejects a clock that differs by 1 %.
TEST(EmulatedClock, CountsEquallyFastOnABusyMachine) {
  const auto quiet = static_cast<double>(tsc_khz());
  EXPECT_GT(quiet, 100'000);
  std::atomic<bool> done{false};
  std::vector<std::jthread> others;
  for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i)
    others.emplace_back([&] {
      while (!done.load(std::memory_order_relaxed)) {
      }
    });
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(static_cast<double>(tsc_khz()) / quiet, 1, 0.001);
  done = true;
}

TEST(QemuCommand, HasTheDeviceAndNoNetwork) {
  const std::string text = line({.device = {.socket = "/run/x/guest.sock"}});
  EXPECT_TRUE(has(text,
                  "-chardev socket,id=ivgpu,path=/run/x/guest.sock "
                  "-device ivshmem-doorbell,chardev=ivgpu,vectors=1 "));
  EXPECT_TRUE(has(text, "-nic none "));
}

TEST(QemuCommand, TheDeviceHasTheConfiguredNumberOfInterrupts) {
  EXPECT_TRUE(has(line({.device = {.vectors = 64}}), "-device ivshmem-doorbell,chardev=ivgpu,vectors=64 "));
}

TEST(QemuCommand, TheSerialPortsKeepTheirOrder) {
  const std::string text = line({.serial = {.console_log = "/c", .out = 5, .err = 6, .control = 7}});
  EXPECT_TRUE(has(text,
                  "-serial file:/c -chardev socket,id=out,fd=5 -serial chardev:out "
                  "-chardev socket,id=err,fd=6 -serial chardev:err "
                  "-chardev socket,id=control,fd=7 -serial chardev:control "));
}

TEST(QemuCommand, WithoutALogTheConsoleIsTheTerminal) {
  EXPECT_TRUE(has(line({}), "-chardev stdio,id=console,mux=on,signal=off -serial chardev:console "));
}

}  // namespace
}  // namespace ivgpu
