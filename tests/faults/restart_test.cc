// Programs that launch kernels all the time while their broker is restarted, in order and by kill -9, under a stand-in for
// systemd: real workers on the simulated GPU, and a guest in QEMU. Every result has to be right. And what a program sees
// where the next broker comes late, or not at all.
#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "ring/api/cuda.h"
#include "tests/faults/vm.h"
#include "tests/unit/broker_restart.h"

namespace {

using namespace broker_test;

Outcome program(const Broker& broker, const char* mode, int milliseconds) {
  return run_program("/usr/bin/env",
                     {"IVGPU_REGION=" + broker.socket_path(), PROGRAM, GUEST_CUDA, mode, std::to_string(milliseconds)});
}
// Its line: "right NUMBER at TIME".
Outcome busy(const Broker& broker, int milliseconds) { return program(broker, "busy", milliseconds); }

class FaultsRestart : public ::testing::TestWithParam<const char*> {};

TEST_P(FaultsRestart, ProgramsGoOnWithRightResults) {
  FdKeeper keeper;
  Broker broker("", "", keeper.environment(), "sim", "", std::string("policy = \"") + GetParam() + "\"\n", "");
  ASSERT_EQ(broker.ready, "ready\n") << broker.log();
  constexpr int work_ms = 6000;
  std::vector<std::future<Outcome>> programs;
  for (int i = 0; i < 2; ++i) programs.push_back(std::async(std::launch::async, busy, std::cref(broker), work_ms));
  ASSERT_TRUE(eventually([&] { return broker.times_logged(" starts") == 2; }, 20000)) << broker.log();
  for (const int signal : {SIGTERM, SIGKILL, SIGTERM, SIGKILL}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    broker.terminate(signal);
    if (signal == SIGKILL) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    broker.again(keeper.environment());
    ASSERT_EQ(broker.ready, "ready\n") << broker.log();
  }
  EXPECT_EQ(broker.times_logged("t: 2 session(s) and 2 connection(s) of before the restart go on"), 4U) << broker.log();
  for (auto& program : programs) {
    const Outcome outcome = program.get();
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_NE(outcome.text.find("\nright "), std::string::npos) << outcome.text;
  }
  EXPECT_EQ(broker.terminate(SIGINT), 0);
}

// Its guest boots in some seconds, on a busy machine in more. It has no connection to the broker, so it hears from its worker
// alone when the next broker comes late.
TEST(FaultsRestartInQemu, AProgramGoesOnWithRightResults) {
  FdKeeper keeper;
  Broker broker("", "", keeper.environment(), "sim", "outlive_s = 30\n", "", "");
  ASSERT_EQ(broker.ready, "ready\n") << broker.log();
  const faults::Paths paths{BUILD, IVGPUD, PROGRAM, GUEST_CUDA};
  faults::Machine machine(paths, broker.socket_path(), "faults_program libcuda.so.1 busy 8000 a");
  ASSERT_EQ(machine.line(), "a begun");
  for (const auto& [signal, pause_ms] : {std::pair(SIGTERM, 0), std::pair(SIGKILL, 0), std::pair(SIGKILL, 2000)}) {
    std::this_thread::sleep_for(milliseconds(900));
    broker.terminate(signal);
    std::this_thread::sleep_for(milliseconds(pause_ms));
    broker.again(keeper.environment());
    ASSERT_EQ(broker.ready, "ready\n") << broker.log();
  }
  EXPECT_EQ(broker.times_logged("t: 1 session(s) and 1 connection(s) of before the restart go on"), 3U) << broker.log();
  const std::string last = machine.line();
  EXPECT_TRUE(faults::parse_ending(last.substr(2)).right) << last;
  machine.kill();
  EXPECT_EQ(broker.terminate(SIGINT), 0);
}

// ---- a next broker that comes late -------------------------------------------------------------------------------------

// A program of this machine that makes calls all the time, whatever they return; its worker.
class FaultsRestartLate : public ::testing::Test {
 protected:
  void begin(const char* keys, int work_ms) {
    broker = std::make_unique<Broker>("", "", keeper.environment(), "sim", keys, "", "");
    ASSERT_EQ(broker->ready, "ready\n") << broker->log();
    stubborn = std::async(std::launch::async, program, std::cref(*broker), "again", work_ms);
    ASSERT_TRUE(eventually([&] { return broker->times_logged(" starts") == 1; }, 20000)) << broker->log();
    ASSERT_TRUE(eventually([&] { return (worker = worker_of(*broker, 0)) > 1; }));
    std::this_thread::sleep_for(milliseconds(500));  // that it has begun
  }
  void next_after(int wait_ms) {
    std::this_thread::sleep_for(milliseconds(wait_ms));
    broker->again(keeper.environment());
    ASSERT_EQ(broker->ready, "ready\n") << broker->log();
  }
  void expect_it_was_told(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 3) << outcome.text;
    const std::string unavailable = std::to_string(CUDA_ERROR_DEVICE_UNAVAILABLE);
    EXPECT_NE(outcome.text.find("\nlost " + unavailable + " took "), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("\nended " + unavailable + " at "), std::string::npos) << outcome.text;
    EXPECT_EQ(outcome.text.find("back"), std::string::npos) << outcome.text;
  }

  FdKeeper keeper;
  std::unique_ptr<Broker> broker;
  std::future<Outcome> stubborn;
  pid_t worker = 0;
};

// Its worker answers all the while; then a call waits, for longer than a guest of a VM would.
TEST_F(FaultsRestartLate, WithinTheWorkersTimeItDoesNotNotice) {
  begin("outlive_s = 30\n", 4500);
  broker->terminate(SIGKILL);
  std::this_thread::sleep_for(milliseconds(1000));
  kill(worker, SIGSTOP);
  next_after(1500);
  kill(worker, SIGCONT);
  const Outcome outcome = stubborn.get();
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(outcome.text.find("lost"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("\nright "), std::string::npos) << outcome.text;
}

// Its connection lives as long as systemd holds it, so it waits for somebody to say what has become of its worker.
TEST_F(FaultsRestartLate, AfterItTheNextBrokerTellsItThatItsWorkerHasEnded) {
  begin("outlive_s = 1\n", 4000);
  broker->terminate(SIGKILL);
  EXPECT_TRUE(ends(worker, 5000));
  next_after(1000);
  EXPECT_TRUE(broker->eventually_logged(" ends after ")) << broker->log();
  const Outcome late = busy(*broker, 100), outcome = stubborn.get();
  EXPECT_EQ(late.code, 0) << "new programs are served: " << late.text;
  expect_it_was_told(outcome);
}

TEST_F(FaultsRestartLate, WithoutANextBrokerTheEndOfTheServiceTellsIt) {
  begin("outlive_s = 30\n", 2000);
  broker->terminate(SIGKILL);
  std::this_thread::sleep_for(milliseconds(500));
  keeper.drop_all();
  EXPECT_TRUE(ends(worker, 5000));
  expect_it_was_told(stubborn.get());
}

INSTANTIATE_TEST_SUITE_P(Policies, FaultsRestart, ::testing::Values("turns", "time-slice"),
                         [](const auto& one) { return std::string(one.param) == "turns" ? "turns" : "slices"; });

}  // namespace
