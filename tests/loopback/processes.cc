// A real ivgpud, real workers on the simulated GPU, and programs that die or whose host ends.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "ring/api/entry_points.h"
#include "ring/view.h"
#include "tests/oracle.h"
#include "tests/other_side.h"
#include "tests/unit/broker/harness.h"

namespace {

using broker_test::Client, broker_test::eventually;
using Clock = std::chrono::steady_clock;

// After the line "waiting" a program makes its call, and usually sleeps in that call after this time. A call that
// starts later returns the same error.
constexpr std::chrono::milliseconds asleep_by_then{100};

// A program whose output the test reads. The program's library notices the end of the broker and of the worker at once.
// IVGPU_HOST_PATIENCE makes the library wait forever for answers, so a call that misses such an end hangs.
class Program {
 public:
  // `closed`: a bit mask of the descriptors 0 to 2 that are closed when the program starts.
  Program(const std::string& mode, const std::string& region, unsigned closed = 0, const char* library = GUEST_CUDA) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    pid = fork();
    if (pid == 0) {
      dup2(ends[1], 1);
      for (int fd = 0; fd < 3; ++fd)
        if ((closed >> fd & 1) != 0) close(fd);
      setenv("IVGPU_REGION", region.c_str(), 1);
      unsetenv("IVGPU_OFF");
      execl(PROGRAM, PROGRAM, library, mode.c_str(), nullptr);
      _exit(126);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  ~Program() {
    if (!ended_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    close(output_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // The next line, or an incomplete line if the deadline passes first.
  std::string line() {
    const auto end = Clock::now() + test_deadline;
    for (;;) {
      if (const std::size_t at = text_.find('\n'); at != std::string::npos) {
        const std::string first = text_.substr(0, at);
        text_.erase(0, at + 1);
        return first;
      }
      pollfd wait{output_, POLLIN, 0};
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
      char bytes[256];
      ssize_t n = 0;
      if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) != 1 || (n = read(output_, bytes, sizeof bytes)) <= 0)
        return "nothing but '" + text_ + "'";
      text_.append(bytes, static_cast<std::size_t>(n));
    }
  }
  // The exit code; -1 if a signal ended the program, -2 after the deadline.
  int code() {
    int status = 0;
    ended_ = eventually([&] { return waitpid(pid, &status, WNOHANG) == pid; });
    return !ended_ ? -2 : WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  pid_t pid = -1;

 private:
  int output_ = -1;
  bool ended_ = false;
  std::string text_;
};

// An ivgpud with one VM, "t", that has three slots. The oracle checks how ivgpud and its workers end (tests/oracle.h).
class Processes : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("c.toml", "[broker]\nruntime_dir = \"" + folder_.path() +
                                "\"\nworker = \"" WORKER "\"\n[gpu]\nlibrary = \"" SIMULATED_GPU
                                "\"\n[vm.t]\nregion_size = \"256MiB\"\nslots = 3\n" +
                                more_keys_);
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const int log = open((folder_ / "log").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    const int last = open((folder_ / "last-status").c_str(), O_CREAT | O_WRONLY, 0600);
    broker_ = fork();
    if (broker_ == 0) {
      dup2(log, 2);
      close(ready[0]);
      execl(IVGPUD, "ivgpud", "--config", (folder_ / "c.toml").c_str(), "--ready-fd", std::to_string(ready[1]).c_str(),
            "--last-status-fd", std::to_string(last).c_str(), nullptr);
      _exit(126);
    }
    close(log);
    close(last);
    close(ready[1]);
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1) << folder_.read("log");
    close(ready[0]);
    client_.emplace(region());
    ASSERT_TRUE(client_->greet(3));
  }
  void TearDown() override {
    const auto last = [this] { return folder_.read("last-status"); };
    EXPECT_EQ(broker_ > 0 ? oracle_.end_broker(broker_, last) : "", "");
    if (HasFailure()) std::fprintf(stderr, "---- ivgpud's log\n%s----\n", folder_.read("log").c_str());
  }

  std::string region() const { return folder_ / "t.sock"; }
  std::vector<pid_t> workers() const {
    std::ifstream file("/proc/" + std::to_string(broker_) + "/task/" + std::to_string(broker_) + "/children");
    std::vector<pid_t> all;
    for (pid_t child; file >> child;) all.push_back(child);
    return all;
  }
  std::optional<std::uint32_t> claimed_slot() const {
    for (std::uint32_t k = 0; k < 3; ++k)
      if (client_->word(k).state == ring::SlotState::Claimed) return k;
    return std::nullopt;
  }
  // True if no slot is claimed and one slot is Ready.
  bool all_slots_are_back() const {
    return eventually([&] {
      return client_->count(ring::SlotState::Claimed) == 0 && client_->count(ring::SlotState::Dead) == 0 &&
             client_->count(ring::SlotState::Released) == 0 && client_->count(ring::SlotState::Ready) >= 1;
    });
  }
  void expect_that_a_new_program_works() {
    Program next("work", region());
    EXPECT_EQ(next.line(), "works");
    EXPECT_EQ(next.code(), 0);
  }

  std::string more_keys_;
  broker_test::Folder folder_;
  pid_t broker_ = -1;
  std::optional<Client> client_;
  oracle::Workers oracle_;
};

class OnePoller : public Processes {
 protected:
  OnePoller() { more_keys_ = "spin_threads = 1\nspin_us = 200\n"; }
  nlohmann::json slots() const {
    const auto told = broker_test::run_program(IVGPU, {"status", "--json", "--runtime-dir", folder_.path()});
    return nlohmann::json::parse(told.text).at("vms").at(0).at("slots");
  }
};

// Idle workers beyond the key spin_threads sleep, whatever guests do.
TEST_F(OnePoller, AFloodOfThreeSessionsKeepsOneWorkerPolling) {
  Program a("flood", region()), b("flood", region()), c("flood", region());
  ASSERT_TRUE(eventually([&] { return client_->count(ring::SlotState::Claimed) == 3; }));
  int busy = 0, polling = 0;
  ASSERT_TRUE(eventually([&] {
    busy = polling = 0;
    for (const auto& slot : slots()) {
      busy += slot.contains("counters") && slot.at("counters").at("waited") > 500;
      polling += slot.contains("counters") && slot.at("counters").at("spun") > 0;
    }
    return busy == 3 && polling > 0;  // polling may start late, since it does not pay on a busy machine
  }));
  EXPECT_EQ(polling, 1);
}

TEST_F(Processes, AProgramWorksAndGivesItsSlotBack) {
  for (int i = 0; i < 3; ++i) expect_that_a_new_program_works();
  EXPECT_TRUE(all_slots_are_back());
}

// For a missing symbol, NVIDIA's runtime would report that the driver is too old. The library therefore returns a
// function that fails and logs the reason.
TEST_F(Processes, WhatIsNotServedRefusesByName) {
  const std::string file = folder_ / "guest.log";
  setenv("IVGPU_LOG_FILE", file.c_str(), 1);
  Program p("refused", region());
  unsetenv("IVGPU_LOG_FILE");
  EXPECT_EQ(p.line(), "refused");
  EXPECT_EQ(p.code(), 0);
  EXPECT_EQ(folder_.read("guest.log"),
            "ivgpu: cuGraphAddMemFreeNode is refused: nodes that allocate or free memory are not served yet\n"
            "ivgpu: `ivgpu coverage PROGRAM` lists all that a program calls and ivgpu does not serve\n");
}

TEST_F(Processes, SeveralAtATime) {
  Program a("work", region()), b("work", region()), c("work", region());
  for (Program* p : {&a, &b, &c}) {
    EXPECT_EQ(p->line(), "works");
    EXPECT_EQ(p->code(), 0);
  }
  EXPECT_TRUE(all_slots_are_back());
}

TEST_F(Processes, ForkBeforeCuInitMakesTwoPrograms) {
  Program p("fork-before", region());
  std::multiset<std::string> lines = {p.line(), p.line(), p.line()};
  EXPECT_EQ(lines, (std::multiset<std::string>{"works", "works", "child 0"}));
  EXPECT_EQ(p.code(), 0);
  EXPECT_TRUE(all_slots_are_back());
}

TEST_F(Processes, ForkAfterCuInitLeavesTheChildWithoutCuda) {
  Program p("fork-after", region());
  EXPECT_EQ(p.line(), "child 0");
  EXPECT_EQ(p.line(), "works");
  EXPECT_EQ(p.code(), 0);
  EXPECT_TRUE(all_slots_are_back());
}

TEST_F(Processes, ExitWithWorkInFlight) {
  Program p("exit-in-flight", region());
  EXPECT_EQ(p.line(), "leaving");
  EXPECT_EQ(p.code(), 0) << "its exit waits for a kernel that never ends";
  EXPECT_TRUE(all_slots_are_back());
  expect_that_a_new_program_works();
}

TEST_F(Processes, AProgramKilledInMidCall) {
  Program p("wait", region());
  ASSERT_EQ(p.line(), "waiting");
  ASSERT_TRUE(claimed_slot());
  kill(p.pid, SIGKILL);
  EXPECT_EQ(p.code(), -1);
  EXPECT_TRUE(all_slots_are_back());
  expect_that_a_new_program_works();
}

TEST_F(Processes, AWorkerKilledInMidCall) {
  const std::vector<pid_t> before = workers();
  Program p("wait", region());
  ASSERT_EQ(p.line(), "waiting");
  ASSERT_TRUE(claimed_slot());
  std::this_thread::sleep_for(asleep_by_then);
  // The program's worker existed before the program, as the spare worker. Other workers start later.
  ASSERT_FALSE(before.empty());
  for (const pid_t worker : before) oracle_.kill(worker);
  EXPECT_EQ(p.line(), "cuCtxSynchronize 46");  // CUDA_ERROR_DEVICE_UNAVAILABLE
  EXPECT_EQ(p.code(), 1);
  EXPECT_TRUE(all_slots_are_back());
  expect_that_a_new_program_works();
}

// Another program of the VM has overwritten Ready slots. The broker must still serve the next program.
TEST_F(Processes, ASpoiltSlotIsGivenBackForAnother) {
  const auto spoil_what_is_ready = [&](auto spoil) {
    ASSERT_TRUE(eventually([&] { return client_->count(ring::SlotState::Ready) > 0; }));
    for (std::uint32_t k = 0; k < 3; ++k) {
      const ring::SlotView slot(client_->slot(k), client_->header().slot_bytes);
      if (client_->word(k).state == ring::SlotState::Ready) spoil(slot);
    }
    expect_that_a_new_program_works();
  };
  spoil_what_is_ready([](const ring::SlotView& slot) { other_side::header(slot).magic = 0; });
  spoil_what_is_ready([](const ring::SlotView& slot) { other_side::header(slot).version = 0; });
  spoil_what_is_ready([](const ring::SlotView& slot) { other_side::control(slot, 0).reply_position = 1; });
  spoil_what_is_ready([](const ring::SlotView& slot) { other_side::header(slot).fault = 226931228; });
  spoil_what_is_ready([](const ring::SlotView& slot) { other_side::callback_slot(slot, 7).done = 1; });
  EXPECT_TRUE(all_slots_are_back());
}

TEST_F(Processes, TheBrokerKilledInMidCall) {
  Program p("wait", region());
  ASSERT_EQ(p.line(), "waiting");
  std::this_thread::sleep_for(asleep_by_then);
  kill(broker_, SIGKILL);
  waitpid(broker_, nullptr, 0);
  broker_ = -1;
  EXPECT_EQ(p.line(), "cuCtxSynchronize 46");
  EXPECT_EQ(p.code(), 1);
  Program next("work", region());
  EXPECT_EQ(next.line(), "cuInit 100");
  EXPECT_EQ(next.code(), 1);
}

// ---- memory and faults ---------------------------------------------------------------------------------------------

// The numbers in these lines are CUDA_SUCCESS (0), CUDA_ERROR_OUT_OF_MEMORY (2) and CUDA_ERROR_ILLEGAL_ADDRESS (700).
class FullArena : public Processes {
 protected:
  void expect_that_it_fills(const std::string& mode) {
    Program p(mode, region());
    for (const char* line : {"full 2", "whole", "given back 0", "taken 0", "whole", "full 2", "whole"})
      EXPECT_EQ(p.line(), line);
    EXPECT_EQ(p.code(), 0);
    expect_that_a_new_program_works();
  }
};

TEST_F(FullArena, HasNoRoomForManagedMemoryUntilSomeIsFreed) { expect_that_it_fills("fill-managed"); }
TEST_F(FullArena, HasNoRoomForRegisteredMemoryUntilSomeIsFreed) { expect_that_it_fills("fill-registered"); }

class FewObjects : public Processes {
 protected:
  FewObjects() { more_keys_ = "session_objects = 64\n"; }
};

// A registration occupies arena memory, whose size is bounded. It does not count as an object of the session.
TEST_F(FewObjects, RegistrationsTakeNone) {
  Program p("register-many", region());
  EXPECT_EQ(p.line(), "registered 0");
  EXPECT_EQ(p.line(), "streams end with 400") << "a creation is posted, so it is the use that finds no such stream";
  const int streams = std::atoi(p.line().c_str());
  EXPECT_GE(streams, 32) << "the session's registrations of the arena count, and those are few";
  EXPECT_LT(streams, 64);
  EXPECT_EQ(p.code(), 0);
}

TEST_F(Processes, AReservationDoesNotLieOverWhatTheProgramHas) {
  const std::string file = folder_ / "guest.log";
  setenv("IVGPU_LOG_FILE", file.c_str(), 1);
  setenv("IVGPU_LOG", "debug", 1);
  Program p("reserve-taken", region());
  unsetenv("IVGPU_LOG_FILE");
  unsetenv("IVGPU_LOG");
  for (const char* line : {"beside it 0", "as hinted", "over it 0", "elsewhere", "whole", "used", "kept free"})
    EXPECT_EQ(p.line(), line);
  EXPECT_EQ(p.line(), "after it 0");
  EXPECT_EQ(p.line(), "as hinted") << "the driver has back what collided";
  EXPECT_EQ(p.code(), 0);
  EXPECT_NE(folder_.read("guest.log").find("7d0000000000 collides with a mapping of this process"), std::string::npos);
}

TEST_F(Processes, ATextureThatWasNeverMadeFaultsItsOwnSessionOnly) {
  Program other("work-on", region());
  EXPECT_EQ(other.line(), "works");
  Program p("made-up-texture", region());
  EXPECT_EQ(p.line(), "cuLaunchKernel 0");
  EXPECT_EQ(p.line(), "cuCtxSynchronize 700");
  EXPECT_EQ(p.line(), "cuMemAlloc_v2 700");
  EXPECT_EQ(p.code(), 0);
  expect_that_a_new_program_works();
  kill(other.pid, SIGTERM);
  EXPECT_EQ(other.line(), "works");
  EXPECT_EQ(other.code(), 0);
  EXPECT_TRUE(all_slots_are_back());
}

// ---- closed standard descriptors -----------------------------------------------------------------------------------

// Text that a program prints to a closed output must not get into the library's files, since other programs share the
// region.
class ClosedDescriptors : public Processes {
 protected:
  void expect_that_none_is_taken(char moment) {
    Program neighbour("work-on", region());
    ASSERT_EQ(neighbour.line(), "works");
    for (unsigned which = 1; which < 8; ++which) {
      const std::string mode = std::string("closed-") + moment + std::to_string(which);
      Program p(mode, region(), moment == 's' ? which : 0);
      EXPECT_EQ(p.code(), 0) << mode;
      EXPECT_EQ(client_->header().magic, ring::region_magic) << mode;
    }
    kill(neighbour.pid, SIGTERM);
    EXPECT_EQ(neighbour.line(), "works");
    EXPECT_EQ(neighbour.code(), 0);
    EXPECT_TRUE(all_slots_are_back());
  }
};

TEST_F(ClosedDescriptors, StayClosedInAProgramThatIsStartedWithoutThem) { expect_that_none_is_taken('s'); }
TEST_F(ClosedDescriptors, StayClosedWhereTheProgramClosesThemBeforeCuInit) { expect_that_none_is_taken('b'); }
TEST_F(ClosedDescriptors, StayClosedWhereTheProgramClosesThemAfterCuInit) { expect_that_none_is_taken('a'); }

// ---- checks that only the driver makes -----------------------------------------------------------------------------

// The driver accepts a texture that is longer than its memory. A kernel that reads beyond the memory faults.
TEST_F(Processes, ATextureMayBeLongerThanItsMemory) {
  Program other("work-on", region());
  EXPECT_EQ(other.line(), "works");
  for (const char* library : {SIMULATED_GPU, GUEST_CUDA}) {
    Program p("long-texture", region(), 0, library);
    for (const char* line : {"linear 0", "rows 0", "reference 0", "rows of a reference 0", "launch 0", "inside 0", "77",
                             "launch 0", "beyond 700"})
      EXPECT_EQ(p.line(), line) << library;
    EXPECT_EQ(p.code(), 0) << library;
  }
  kill(other.pid, SIGTERM);
  EXPECT_EQ(other.line(), "works");
  EXPECT_EQ(other.code(), 0);
  EXPECT_TRUE(all_slots_are_back());
}

// CUDA bounds neither kernel names nor variable names, and C++ templates produce long ones.
TEST_F(Processes, NamesMayBeLongerThanARecord) {
  for (const char* library : {SIMULATED_GPU, GUEST_CUDA}) {
    Program p("long-names", region(), 0, library);
    for (const char* line : {"module 0", "function 0", "its name 0", "same", "listed 0", "its name 0", "same",
                             "launch 0", "variable 0", "5", "no such function 500", "no such variable 500", "library 0",
                             "kernel 0", "its name 0", "same", "variable 0", "no such kernel 500"})
      EXPECT_EQ(p.line(), line) << library;
    EXPECT_EQ(p.code(), 0) << library;
  }
  EXPECT_TRUE(all_slots_are_back());
}

// ---- a program's surroundings --------------------------------------------------------------------------------------

// Sets an environment variable for the programs that start during the object's lifetime.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
};

TEST_F(Processes, LaunchesWaitAndGiveTheKernelsErrorWithLaunchBlocking) {
  for (const char* library : {SIMULATED_GPU, GUEST_CUDA}) {
    const Variable blocking("CUDA_LAUNCH_BLOCKING", "1");
    Program p("illegal-launch", region(), 0, library);
    EXPECT_EQ(p.line(), "cuLaunchKernel 700") << library;
    EXPECT_EQ(p.line(), "cuCtxSynchronize 700") << library;
    EXPECT_EQ(p.code(), 0) << library;
  }
  EXPECT_TRUE(all_slots_are_back());
}

TEST_F(Processes, LaunchesDoNotWaitWithoutLaunchBlocking) {
  for (const char* value : {"", "0"}) {
    const Variable blocking("CUDA_LAUNCH_BLOCKING", value);
    Program p("illegal-launch", region());
    EXPECT_EQ(p.line(), "cuLaunchKernel 0") << value;
    EXPECT_EQ(p.line(), "cuCtxSynchronize 700") << value;
    EXPECT_EQ(p.code(), 0) << value;
  }
}

// For each form of a launch and each kind of stream, the kernel's result must exist when the launch returns.
TEST_F(Processes, EachFormOfALaunchWaitsWithLaunchBlocking) {
  for (const char* library : {SIMULATED_GPU, GUEST_CUDA}) {
    const Variable blocking("CUDA_LAUNCH_BLOCKING", "1");
    Program p("blocking-launches", region(), 0, library);
    for (const char* line : {"the NULL stream: done", "a stream: done", "the thread's stream: done", "attributes: done",
                             "cooperative: done", "the old form: done"})
      EXPECT_EQ(p.line(), line) << library;
    // The simulated GPU refuses a launch on the NULL stream if no context is current.
    const std::string without_context = p.line();
    if (library != std::string(SIMULATED_GPU)) {
      EXPECT_EQ(without_context, "no current context: done");
    }
    EXPECT_EQ(p.code(), 0) << library;
  }
  EXPECT_TRUE(all_slots_are_back());
}

// A cancelled thread must end at its own cancellation point, never inside a call, even where the library sleeps or
// reads a file.
TEST_F(Processes, CallsAreNoCancellationPoints) {
  for (const char* off : {"", "wakes", "spin", "spin,wakes"}) {
    const Variable switched("IVGPU_TEST_OFF", off);
    const Variable log("IVGPU_LOG", "trace"), file("IVGPU_LOG_FILE", folder_ / "guest.log");
    Program p("cancelled", region());
    for (const char* line : {"cuInit 0", "calls 0", "cancelled", "works"}) EXPECT_EQ(p.line(), line) << off;
    EXPECT_EQ(p.code(), 0) << off;
  }
  EXPECT_TRUE(all_slots_are_back());
}

// After the chroot the program's root is an empty folder, so the library cannot open any path.
TEST_F(Processes, MemoryIsRegisteredAfterAChroot) {
  const Variable log("IVGPU_LOG_FILE", folder_ / "guest.log");
  Program p("chroot", region());
  for (const char* line : {"registered 0", "whole", "unregistered 0", "refused 1", "works"}) EXPECT_EQ(p.line(), line);
  EXPECT_EQ(p.code(), 0);
  EXPECT_NE(folder_.read("guest.log").find("cuMemHostRegister"), std::string::npos)
      << "the log was opened before the root changed";
  EXPECT_TRUE(all_slots_are_back());
}

// main() returns while other threads launch, copy and wait. After the exit handler has run, their calls return
// CUDA_ERROR_DEINITIALIZED.
TEST_F(Processes, ExitWhileThreadsCall) {
  for (int round = 0; round < 20; ++round) {
    Program p("exit-while-calling", region());
    EXPECT_EQ(p.line(), "leaving");
    EXPECT_EQ(p.line(), "deinitialized") << "in a handler that was registered before cuInit";
    ASSERT_EQ(p.code(), 7) << "round " << round;
  }
  EXPECT_TRUE(all_slots_are_back());
}

// The child's exit must not end the session of the parent, since the parent's exit handlers may still use pinned
// memory.
TEST_F(Processes, AForkInAnExitHandlerLeavesTheSlotToTheParent) {
  Program p("fork-at-exit", region());
  EXPECT_EQ(p.line(), "child 7");
  EXPECT_TRUE(claimed_slot());
  kill(p.pid, SIGTERM);
  EXPECT_EQ(p.code(), 7);
  EXPECT_TRUE(all_slots_are_back());
}

// ---- without a broker ----------------------------------------------------------------------------------------------

TEST(WithoutABroker, CuInitFindsNoDevice) {
  Program p("work", "/no/such/socket");
  EXPECT_EQ(p.line(), "cuInit 100");
  EXPECT_EQ(p.code(), 1);
}

TEST(WithoutABroker, NothingHappensBeforeCuInit) {
  Program p("loaded", "/no/such/socket");
  EXPECT_EQ(p.line(), "quiet");
  EXPECT_EQ(p.code(), 0);
}

// ---- the library as a file -----------------------------------------------------------------------------------------

std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  FILE* out = popen(command.c_str(), "r");
  char line[512];
  while (out != nullptr && fgets(line, sizeof line, out) != nullptr) {
    lines.emplace_back(line);
    lines.back().erase(lines.back().find_last_not_of('\n') + 1);
  }
  EXPECT_TRUE(out != nullptr && pclose(out) == 0) << command;
  return lines;
}

TEST(GuestLibrary, ExportsTheTableAndNothingElse) {
  std::set<std::string> table;
  for (const api::EntryPoint& e : api::entry_points) table.emplace(e.name);
  std::set<std::string> exported;
  for (const std::string& line : lines_of("nm -D --defined-only --format=posix " GUEST_CUDA))
    exported.insert(line.substr(0, line.find(' ')));
  EXPECT_GT(exported.size(), 400u);
  for (const std::string& name : exported) EXPECT_TRUE(table.count(name)) << name << " is exported and in no line";
  for (const std::string& name : table) EXPECT_TRUE(exported.count(name)) << name << " is in the table, not exported";
}

TEST(GuestLibrary, NeedsLibcAndTheLoaderOnly) {
  const std::set<std::string> allowed = {"libc.so.6", "ld-linux-x86-64.so.2"};
  int needed = 0;
  for (const std::string& line : lines_of("readelf -dW " GUEST_CUDA)) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    const std::size_t from = line.find('[') + 1;
    EXPECT_TRUE(allowed.count(line.substr(from, line.find(']') - from))) << line;
    ++needed;
  }
  EXPECT_GE(needed, 1);
}

TEST(GuestLibrary, IsCalledLibcudaAndStays) {
  bool name = false, stays = false;
  for (const std::string& line : lines_of("readelf -dW " GUEST_CUDA)) {
    name |= line.find("(SONAME)") != std::string::npos && line.find("[libcuda.so.1]") != std::string::npos;
    stays |= line.find("NODELETE") != std::string::npos;
  }
  EXPECT_TRUE(name);
  EXPECT_TRUE(stays);
}

}  // namespace
