// Tests of the faults' oracle: each kind of death that it must report, and each that it must accept.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>

#include "tests/deadline.h"
#include "tests/faults/host.h"
#include "tests/faults/program.h"
#include "tests/unit/process_life.h"

namespace {

using namespace faults;

// The message of the Failure that `f` throws; "" if it throws none.
template <class F>
std::string complaint(F f) {
  try {
    f();
  } catch (const Failure& failed) {
    return failed.what();
  }
  return {};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// True if the signal is still pending for the process.
bool is_pending(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;)
    if (unsigned long long mask = 0; word == "ShdPnd:" && status >> std::hex >> mask)
      return (mask >> (signal - 1) & 1) != 0;
  return false;
}

class Oracle : public testing::Test {
 protected:
  void SetUp() override { host_.expect_settled(0); }
  pid_t spare() const { return host_.workers(local_vm, "ready").at(0); }
  // Waits until the broker has reaped the worker.
  static void expect_gone(pid_t worker) {
    EXPECT_TRUE(before_deadline([&] { return kill(worker, 0) != 0; })) << "worker " << worker << " lives";
  }
  // Kills a spare worker from outside the broker, and returns its pid.
  pid_t end_spare(int signal) const {
    const pid_t worker = spare();
    kill(worker, signal);
    expect_gone(worker);
    return worker;
  }
  void kill_spare() {
    const pid_t worker = spare();
    host_.kill_worker(worker);
    expect_gone(worker);
  }
  std::string after_the_round() {
    return complaint([this] { host_.expect_settled(0); });
  }

  const Paths paths_{BUILD, IVGPUD, PROGRAM, GUEST_CUDA};
  Host host_{paths_};
};

TEST_F(Oracle, AWorkerThatEndsByAFault) {
  const pid_t worker = end_spare(SIGSEGV);
  const std::string words = after_the_round();
  EXPECT_TRUE(has(words, "worker " + std::to_string(worker) + " was killed by signal 11 (SEGV)")) << words;
  EXPECT_EQ(after_the_round(), "") << "it is told once";
}

TEST_F(Oracle, AWorkerThatEndsByAnAssertion) {
  end_spare(SIGABRT);
  const std::string words = after_the_round();
  EXPECT_TRUE(has(words, "was killed by signal 6 (ABRT)")) << words;
}

TEST_F(Oracle, AWorkerThatTheTestHasKilledIsNoFailure) {
  for (int i = 0; i < 3; ++i) {
    kill_spare();
    EXPECT_EQ(after_the_round(), "");
  }
  int told = 0;
  const nlohmann::json status = host_.status();
  for (const auto& vm : status["vms"]) told += vm["worker_ends"]["signal"].get<int>();
  EXPECT_EQ(told, 3);
  EXPECT_EQ(complaint([this] { host_.end(); }), "");
}

TEST_F(Oracle, AnotherWorkerBesideTheKilledOne) {
  kill_spare();
  EXPECT_EQ(after_the_round(), "");
  end_spare(SIGKILL);
  const std::string words = after_the_round();
  EXPECT_TRUE(has(words, "was killed by signal 9 (KILL)")) << words;
}

TEST_F(Oracle, AFaultOfAWorkerBeforeTheTestKillsIt) {
  const pid_t worker = end_spare(SIGSEGV);
  host_.kill_worker(worker);
  const std::string words = after_the_round();
  EXPECT_TRUE(has(words, "was killed by signal 11 (SEGV)")) << words;
}

TEST_F(Oracle, AWorkerThatEndsByAFaultBeforeTheBrokerIsKilled) {
  end_spare(SIGSEGV);
  const std::string words = complaint([this] { host_.kill_broker(); });
  EXPECT_TRUE(has(words, "was killed by signal 11 (SEGV)")) << words;
}

// The socket no longer exists at that time, so only the last status reports the death.
TEST_F(Oracle, AWorkerThatEndsByAFaultWhileTheBrokerEnds) {
  const pid_t worker = spare();
  kill(host_.broker(), SIGSTOP);
  kill(worker, SIGSEGV);
  ASSERT_TRUE(before_deadline([&] { return !broker_test::lives(worker); }));
  std::thread goes_on([this] {
    EXPECT_TRUE(before_deadline([this] { return is_pending(host_.broker(), SIGTERM); }));
    kill(host_.broker(), SIGCONT);
  });
  const std::string words = complaint([this] { host_.end(); });
  goes_on.join();
  EXPECT_TRUE(has(words, "worker " + std::to_string(worker) + " was killed by signal 11 (SEGV)")) << words;
}

TEST_F(Oracle, ABrokerThatEndsByAFault) {
  kill(host_.broker(), SIGSEGV);
  const std::string words = complaint([this] { host_.end(); });
  EXPECT_TRUE(has(words, "ivgpud was killed by signal 11 (SEGV), which the test has not sent")) << words;
}

TEST_F(Oracle, AProgramThatEndsByAFault) {
  Program program(paths_, host_.socket(local_vm), "busy", endless_ms);
  program.expect_begun();
  kill(program.pid(), SIGSEGV);
  const std::string words = complaint([&] { program.expect_right(); });
  EXPECT_TRUE(has(words, "the program was killed by signal 11 (SEGV), which the test has not sent")) << words;
}

TEST_F(Oracle, AProgramThatEndsByAFaultBeforeItIsKilled) {
  Program program(paths_, host_.socket(local_vm), "busy", endless_ms);
  program.expect_begun();
  kill(program.pid(), SIGSEGV);
  ASSERT_TRUE(before_deadline([&] { return !broker_test::lives(program.pid()); }));
  EXPECT_NE(complaint([&] { program.kill(); }), "");
}

}  // namespace
