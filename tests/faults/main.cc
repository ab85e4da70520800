// Sends kill -9 at random times, under load, to a program, its worker, a spare worker, the broker or QEMU, round after
// round. Undisturbed programs must finish with correct results, and programs that lose their worker or broker must get
// an error. After each round no slot, worker, descriptor, memory, shared memory or file may remain. No process may end
// by a signal from a sender other than this test or the broker, or with an unexpected exit code.
//
// usage: faults [--seed N] [--rounds N] [--vm-rounds N] [--pause SECONDS]
// The same seed makes the same choices. Exit codes: 0 passed, 1 a round failed, 2 usage.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include "tests/deadline.h"
#include "tests/faults/host.h"
#include "tests/faults/program.h"
#include "tests/faults/vm.h"
#include "tests/search_options.h"

namespace {

using namespace faults;
using std::chrono::milliseconds;

struct Options {
  unsigned long seed = search_option("IVGPU_TEST_SEED", 1), rounds = search_option("IVGPU_TEST_EXECUTIONS", 290);
  unsigned long vm_rounds = 10;
  unsigned long pause = 6;  // in seconds; longer than a guest waits for a silent host
};

// The number of rounds of each kind, for the summary.
struct Tally {
  std::map<std::string, int> kinds;
  long long longest_ns = 0;
  void took(long long ns) { longest_ns = std::max(longest_ns, ns); }
};

class Dice {
 public:
  explicit Dice(unsigned long seed) : random_(seed) {}
  int upto(int most) { return static_cast<int>(random_() % static_cast<unsigned>(most + 1)); }
  void sleep(int most_ms) { std::this_thread::sleep_for(std::chrono::microseconds(1000 * upto(most_ms))); }

 private:
  std::minstd_rand random_;
};

// ---- on this machine ------------------------------------------------------------------------------------------------

enum class Victim { Program, Worker, Spare, Broker };

Victim choose_victim(Dice& dice) {
  const int percent = dice.upto(99);
  return percent < 42 ? Victim::Program : percent < 84 ? Victim::Worker : percent < 92 ? Victim::Spare : Victim::Broker;
}

using Programs = std::vector<std::unique_ptr<Program>>;

// The first program is the victim's. It waits forever in a third of all rounds, and works forever in another third; in
// these rounds it must lose its worker. A program that is about to finish may finish correctly. In some rounds one
// program allocates all memory.
Programs start_programs(const Paths& paths, const Host& host, Victim victim, Dice& dice) {
  const int first = victim != Victim::Spare ? dice.upto(2) : 2;
  const bool greedy = dice.upto(9) == 0;
  Programs programs;
  for (const char* mode : {first == 0 ? "wait" : "busy", "busy", greedy ? "exhaust" : "busy"}) {
    const int work_ms = programs.empty() && first == 1 ? endless_ms : 130 + dice.upto(60);
    programs.push_back(std::make_unique<Program>(paths, host.socket(local_vm), mode, work_ms));
  }
  for (const auto& program : programs) program->expect_begun();
  return programs;
}

void expect_others_right(const Programs& programs, std::size_t from) {
  for (std::size_t i = from; i < programs.size(); ++i) programs[i]->expect_right();
}

void kill_program(const Programs& programs, Tally& tally) {
  programs[0]->kill();
  expect_others_right(programs, 1);
  ++tally.kinds["program"];
}

void kill_worker(Host& host, const Programs& programs, Tally& tally) {
  pid_t worker = 0;
  const auto named = [&] { return (worker = host.worker_of(local_vm, programs[0]->pid())) != 0; };
  if (!before_deadline([&] { return named() || programs[0]->has_ended(); }))
    throw Failure("the status names no worker of a program that works");
  const long long when = now_ns();
  if (worker != 0) host.kill_worker(worker);
  tally.took(programs[0]->expect_lost(when));
  expect_others_right(programs, 1);
  ++tally.kinds["worker"];
}

void kill_spare(Host& host, const Programs& programs, Tally& tally) {
  for (const pid_t spare : host.workers(local_vm, "ready")) host.kill_worker(spare);
  expect_others_right(programs, 0);
  ++tally.kinds["spare worker"];
}

void kill_broker(Host& host, const Programs& programs, Tally& tally) {
  const long long when = host.kill_broker();
  for (const auto& program : programs) tally.took(program->expect_lost(when));
  host.start();
  ++tally.kinds["broker"];
}

void loopback_round(const Paths& paths, Host& host, Dice& dice, Tally& tally) {
  const Victim victim = choose_victim(dice);
  {
    const Programs programs = start_programs(paths, host, victim, dice);
    dice.sleep(80);
    switch (victim) {
      case Victim::Program: kill_program(programs, tally); break;
      case Victim::Worker: kill_worker(host, programs, tally); break;
      case Victim::Spare: kill_spare(host, programs, tally); break;
      case Victim::Broker: kill_broker(host, programs, tally); break;
    }
  }
  host.expect_settled(0);
}

// ---- with a VM ------------------------------------------------------------------------------------------------------

// A guest has its own clock, so the summary uses the duration of the call there.
void expect_lost(const Ending& how, Tally& tally) {
  if (!how.ended || how.error != 46)
    throw Failure("in the guest: a program whose host side has gone says: " + how.line);
  tally.took(how.took);
}

void kill_a_guests_worker(Host& host, Machine& machine, Dice& dice, Tally& tally) {
  const std::vector<pid_t> workers = host.workers(guest_vm, "claimed");
  if (!workers.empty()) host.kill_worker(workers[static_cast<std::size_t>(dice.upto(99)) % workers.size()]);
  const Machine::Endings how = machine.endings();
  if (!how.a.right && !how.b.right) throw Failure("in the guest: two sessions ended with one worker: " + how.a.line);
  for (const Ending& one : {how.a, how.b})
    if (!one.right) expect_lost(one, tally);
  ++tally.kinds["worker of a guest's program"];
}

void pause(const Machine& machine, unsigned long seconds) {
  machine.signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  machine.signal(SIGCONT);
}

void pause_the_machine(Machine& machine, unsigned long seconds, Tally& tally) {
  pause(machine, seconds);
  const Machine::Endings how = machine.endings();
  if (!how.a.right || !how.b.right) throw Failure("after a pause: " + how.a.line + "; " + how.b.line);
  ++tally.kinds["paused VM"];
}

// Waits until the last program of this machine has exited, so that only QEMU remains.
void kill_qemu(Host& host, Machine& machine, Program& beside, Tally& tally) {
  machine.kill();
  beside.expect_right();
  host.expect_settled(0);
  ++tally.kinds["QEMU"];
}

void kill_broker_of_a_guest(Host& host, Machine& machine, Program& beside, Tally& tally) {
  tally.took(beside.expect_lost(host.kill_broker()));
  const Machine::Endings how = machine.endings();
  for (const Ending& one : {how.a, how.b}) expect_lost(one, tally);
  machine.kill();
  host.start();
  host.expect_settled(0);
  ++tally.kinds["broker of a VM"];
}

// One boot of the guest with some rounds. The last round ends the boot.
void boot(const Paths& paths, Host& host, const Options& options, unsigned long rounds, bool with_broker, Dice& dice,
          Tally& tally) {
  Machine machine(paths, host, Machine::rounds(rounds));
  for (unsigned long i = 1; i <= rounds; ++i) {
    machine.expect_begun();
    const bool broker_goes = i == rounds && with_broker;
    Program beside(paths, host.socket(local_vm), "busy", broker_goes ? endless_ms : 1500);
    beside.expect_begun();
    dice.sleep(500);
    if (i == rounds)
      return broker_goes ? kill_broker_of_a_guest(host, machine, beside, tally)
                         : kill_qemu(host, machine, beside, tally);
    if (i == 1 && !with_broker && options.pause != 0)
      pause_the_machine(machine, options.pause, tally);
    else
      kill_a_guests_worker(host, machine, dice, tally);
    beside.expect_right();
  }
}

// ---- all ------------------------------------------------------------------------------------------------------------

int run(const Options& options) {
  const Paths paths{BUILD, IVGPUD, PROGRAM, GUEST_CUDA};
  Dice dice(options.seed);
  Tally tally;
  Host host(paths);
  unsigned long round = 0;
  try {
    host.expect_settled(0);
    for (; round < options.rounds; ++round) loopback_round(paths, host, dice, tally);
    for (unsigned long left = options.vm_rounds, boots = 0; left > 0; ++boots) {
      const unsigned long rounds = std::min(left, (options.vm_rounds + 1) / 2);
      boot(paths, host, options, rounds, boots % 2 == 1, dice, tally);
      left -= rounds;
      round += rounds;
    }
    host.end();
  } catch (const std::exception& failed) {
    const std::string status = host.running() ? host.status().dump(1) : "it does not run";
    std::printf("round %lu, seed %lu: %s\n---- ivgpud's status\n%s\n---- ivgpud's log\n%s----\n", round, options.seed,
                failed.what(), status.c_str(), host.log().c_str());
    return 1;
  }
  std::printf("%lu rounds with seed %lu:", round, options.seed);
  for (const auto& [kind, count] : tally.kinds) std::printf(" %s %d;", kind.c_str(), count);
  std::printf(" the longest wait for a host side that had gone was %.0f ms\n",
              static_cast<double>(tally.longest_ns) / 1e6);
  return 0;
}

int usage() {
  std::fputs("usage: faults [--seed N] [--rounds N] [--vm-rounds N] [--pause SECONDS]\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    unsigned long* value = name == "--seed"        ? &options.seed
                           : name == "--rounds"    ? &options.rounds
                           : name == "--vm-rounds" ? &options.vm_rounds
                           : name == "--pause"     ? &options.pause
                                                   : nullptr;
    char* end = nullptr;
    if (value == nullptr || i + 1 == argc) return usage();
    *value = std::strtoul(argv[i + 1], &end, 10);
    if (end == argv[i + 1] || *end != '\0') return usage();
  }
  std::printf("seed %lu\n", options.seed);
  std::fflush(stdout);
  return run(options);
}
