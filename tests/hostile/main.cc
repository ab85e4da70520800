// A hostile guest program at work while others are: in loopback and in a VM, within what a program may write without
// harming its own VM, and without any bound. Undisturbed sessions must finish with right results, and afterwards
// nothing may be left, and the hostile program's own VM must serve the next program.
//
// usage: hostile [--seconds N] [--seed N] [--vm 0|1]. Seconds are of each of its parts. Exit codes: 0, 1 failed, 2
// usage.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "tests/faults/host.h"
#include "tests/faults/program.h"
#include "tests/faults/vm.h"

namespace {

using namespace faults;

struct Options {
  unsigned long seconds = 5, seed = static_cast<unsigned long>(std::time(nullptr)), vm = 1;
  int milliseconds() const { return static_cast<int>(seconds) * 1000; }
};

ivgpu::Child start_hostile(const Host& host, const std::string& scope, const Options& options) {
  return ivgpu::Child(
      {.argv = {HOSTILE, host.socket(local_vm), scope, std::to_string(options.seconds), std::to_string(options.seed)}});
}

// How many programs may meet what the hostile one has destroyed: a slot that it wrote over while a worker was ready
// there fails the program that takes it, and is new after that.
constexpr int most_attempts = 5;

bool works(const Paths& paths, const Host& host) {
  try {
    Program next(paths, host.socket(local_vm), "busy", 50);
    next.expect_begun();
    next.expect_right();
    return true;
  } catch (const Failure& failed) {
    std::printf("  %s\n", failed.what());
    return false;
  }
}

void expect_that_a_new_program_works(const Paths& paths, const Host& host) {
  for (int i = 0; i < most_attempts; ++i)
    if (works(paths, host)) return;
  throw Failure("no program works after the hostile one");
}

void loopback(const Paths& paths, Host& host, const std::string& scope, const Options& options) {
  std::printf("loopback, %s, %lu s\n", scope.c_str(), options.seconds);
  std::fflush(stdout);
  {
    Program other_vm(paths, host.socket(guest_vm), "busy", options.milliseconds());
    other_vm.expect_begun();
    std::optional<Program> same_vm;
    if (scope == "slot") same_vm.emplace(paths, host.socket(local_vm), "busy", options.milliseconds());
    if (same_vm) same_vm->expect_begun();
    ivgpu::Child hostile = start_hostile(host, scope, options);
    other_vm.expect_right();
    if (same_vm) same_vm->expect_right();
    if (const int code = hostile.wait(); code != 0)
      throw Failure("the hostile program ended with " + std::to_string(code));
  }
  host.expect_settled(0);
  expect_that_a_new_program_works(paths, host);
  host.expect_settled(0);
}

// Both scopes in one boot.
std::string job(const Options& options) {
  const std::string seconds = std::to_string(options.seconds), seed = std::to_string(options.seed);
  return "hostile_program pci slot " + seconds + " " + seed + " & faults_program libcuda.so.1 busy " + seconds +
         "000 a; wait; echo slot over\nfaults_program libcuda.so.1 busy 200 b\nhostile_program pci region " + seconds +
         " " + seed +
         "\nfor i in 1 2 3 4 5; do faults_program libcuda.so.1 busy 200 c && echo c works && break; done\n" +
         "echo region over\nsleep 1000\n";
}

// Everything that the guest prints up to a line; a program of it that did not end right is a Failure, but for those
// that try what the hostile one has left.
void follow(Machine& machine, const std::string& last) {
  bool c_tried = false, c_works = false;
  for (std::string line = machine.line(); line != last; line = machine.line()) {
    std::printf("  %s\n", line.c_str());
    c_tried |= line.rfind("c ", 0) == 0;
    c_works |= line == "c works";
    const bool ended = line.find(" ended ") != std::string::npos && line.rfind("c ", 0) != 0;
    if (ended || line.find(" wrong") != std::string::npos) throw Failure("in the guest: " + line);
  }
  if (c_tried && !c_works) throw Failure("in the guest: no program works after the hostile one");
}

void in_a_vm(const Paths& paths, Host& host, const Options& options) {
  std::printf("in a VM, %lu s each\n", options.seconds);
  std::fflush(stdout);
  Machine machine(paths, host, job(options));
  for (const char* part : {"slot over", "region over"}) {
    Program beside(paths, host.socket(local_vm), "busy", options.milliseconds());
    beside.expect_begun();
    follow(machine, part);
    beside.expect_right();
  }
  machine.kill();
  host.expect_settled(0);
}

int run(const Options& options) {
  const Paths paths{BUILD, IVGPUD, PROGRAM, GUEST_CUDA};
  Host host(paths);
  try {
    host.expect_settled(0);
    loopback(paths, host, "slot", options);
    loopback(paths, host, "region", options);
    if (options.vm != 0) in_a_vm(paths, host, options);
    host.end();
  } catch (const std::exception& failed) {
    std::printf("seed %lu: %s\n---- ivgpud's log\n%s----\n", options.seed, failed.what(), host.log().c_str());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    unsigned long* value = name == "--seconds" ? &options.seconds
                           : name == "--seed"  ? &options.seed
                           : name == "--vm"    ? &options.vm
                                               : nullptr;
    char* end = nullptr;
    if (value != nullptr && i + 1 < argc) *value = std::strtoul(argv[i + 1], &end, 10);
    if (end != nullptr && end != argv[i + 1] && *end == '\0') continue;
    std::fputs("usage: hostile [--seconds N] [--seed N] [--vm 0|1]\n", stderr);
    return 2;
  }
  std::printf("seed %lu\n", options.seed);
  return run(options);
}
