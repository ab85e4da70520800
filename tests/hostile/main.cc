// A hostile guest program runs beside others, in loopback and in a VM. First it only writes words that cannot harm its
// own VM, then any word. Undisturbed sessions must finish with right results. Afterwards no resource may remain in use,
// and the hostile program's VM must serve the next program.
//
// usage: hostile [--rounds N] [--seconds N] [--seed N] [--vm 0|1]
// Rounds and seconds count per part; a round is five worn-out slots, or one overwrite of the region. A VM runs a third
// as many. Exit codes: 0, 1 failed, 2 usage.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/faults/host.h"
#include "tests/faults/program.h"
#include "tests/faults/vm.h"
#include "tests/search_options.h"

namespace {

using namespace faults;

struct Options {
  unsigned long rounds = search_option("IVGPU_TEST_EXECUTIONS", 3), seed = search_option("IVGPU_TEST_SEED", 1), vm = 1;
  unsigned long seconds = 0;  // 0: limited by rounds
  // The bound in the hostile program's syntax.
  std::string bound() const { return seconds != 0 ? std::to_string(seconds) : std::to_string(rounds) + "x"; }
  std::string bound_in_a_vm() const {
    return seconds != 0 ? std::to_string(seconds) : std::to_string(std::max(1UL, rounds / 3)) + "x";
  }
};

ivgpu::Child start_hostile(const Host& host, const std::string& scope, const Options& options) {
  return ivgpu::Child({.argv = {HOSTILE, host.socket(local_vm), scope, options.bound(), std::to_string(options.seed)}});
}

// The number of programs that may fail because of what the hostile program destroyed. A Ready slot that it overwrote
// fails the next program that claims the slot; afterwards the slot is fresh.
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

void expect_it_went_on(Program& program) {
  program.ask_to_end();
  program.expect_right();
}

void loopback(const Paths& paths, Host& host, const std::string& scope, const Options& options) {
  std::printf("loopback, %s\n", scope.c_str());
  std::fflush(stdout);
  {
    Program other_vm(paths, host.socket(guest_vm), "busy", endless_ms);
    other_vm.expect_begun();
    std::optional<Program> same_vm;
    if (scope == "slot") same_vm.emplace(paths, host.socket(local_vm), "busy", endless_ms);
    if (same_vm) same_vm->expect_begun();
    ivgpu::Child hostile = start_hostile(host, scope, options);
    if (const int code = hostile.wait(); code != 0)
      throw Failure("the hostile program ended with " + std::to_string(code));
    expect_it_went_on(other_vm);
    if (same_vm) expect_it_went_on(*same_vm);
  }
  host.expect_settled(0);
  expect_that_a_new_program_works(paths, host);
  host.expect_settled(0);
}

// Both scopes run in one boot. On a busy host the guest's programs may wait for a long time.
std::string job(const Options& options) {
  const std::string bound = options.bound_in_a_vm(), seed = std::to_string(options.seed);
  return "export IVGPU_HOST_PATIENCE=600\nfaults_program libcuda.so.1 busy " + std::to_string(endless_ms) +
         " a & a=$!\nhostile_program pci slot " + bound + " " + seed +
         "\nkill $a; wait $a; echo slot over\nfaults_program libcuda.so.1 busy 200 b\nhostile_program pci region " +
         bound + " " + seed +
         "\nfor i in 1 2 3 4 5; do faults_program libcuda.so.1 busy 200 c && echo c works && break; done\n" +
         "echo region over\nsleep 1000\n";
}

// Reads the guest's output up to a line. Throws a Failure if a program failed, except for the programs that run after
// the hostile one on what it has destroyed.
void follow(Machine& machine, const std::string& last) {
  bool a_right = false, c_tried = false, c_works = false;
  for (std::string line = machine.line(); line != last; line = machine.line()) {
    std::printf("  %s\n", line.c_str());
    a_right |= line.rfind("a right ", 0) == 0;
    c_tried |= line.rfind("c ", 0) == 0;
    c_works |= line == "c works";
    const bool ended = line.find(" ended ") != std::string::npos && line.rfind("c ", 0) != 0;
    if (ended || line.find(" wrong") != std::string::npos) throw Failure("in the guest: " + line);
  }
  if (last == "slot over" && !a_right) throw Failure("in the guest: the program beside the hostile one has no results");
  if (c_tried && !c_works) throw Failure("in the guest: no program works after the hostile one");
}

void in_a_vm(const Paths& paths, Host& host, const Options& options) {
  std::printf("in a VM\n");
  std::fflush(stdout);
  Machine machine(paths, host, job(options));
  for (const char* part : {"slot over", "region over"}) {
    Program beside(paths, host.socket(local_vm), "busy", endless_ms);
    beside.expect_begun();
    follow(machine, part);
    expect_it_went_on(beside);
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
    unsigned long* value = name == "--rounds"    ? &options.rounds
                           : name == "--seconds" ? &options.seconds
                           : name == "--seed"    ? &options.seed
                           : name == "--vm"      ? &options.vm
                                                 : nullptr;
    char* end = nullptr;
    if (value != nullptr && i + 1 < argc) *value = std::strtoul(argv[i + 1], &end, 10);
    if (end != nullptr && end != argv[i + 1] && *end == '\0') continue;
    std::fputs("usage: hostile [--rounds N] [--seconds N] [--seed N] [--vm 0|1]\n", stderr);
    return 2;
  }
  std::printf("seed %lu\n", options.seed);
  std::fflush(stdout);
  return run(options);
}
