// Programs launch kernels without pause while their broker restarts, with SIGTERM and with kill -9, under a stand-in
// for systemd. The workers are real, on the simulated GPU; one guest runs in QEMU. Every result must be right. Some
// tests start the next broker late, or never.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tests/faults/program.h"
#include "tests/faults/vm.h"
#include "tests/unit/broker/restart.h"

namespace {

using namespace broker_test;

const faults::Paths paths{BUILD, IVGPUD, PROGRAM, GUEST_CUDA};
constexpr const char* outlives = "outlive_s = 60\n";

class FaultsRestart : public ::testing::TestWithParam<const char*> {};

TEST_P(FaultsRestart, ProgramsGoOnWithRightResults) {
  FakeFdStore fd_store;
  Broker broker("", "", fd_store.environment(), "sim", outlives, std::string("policy = \"") + GetParam() + "\"\n", "");
  ASSERT_EQ(broker.ready, "ready\n") << broker.log();
  faults::Program a(paths, broker.socket_path(), "steady", 0), b(paths, broker.socket_path(), "steady", 0);
  for (faults::Program* program : {&a, &b}) program->expect_begun();
  for (const int signal : {SIGTERM, SIGKILL, SIGTERM, SIGKILL}) {
    for (faults::Program* program : {&a, &b}) program->expect_progress();
    broker.terminate(signal);
    if (signal == SIGKILL)
      for (faults::Program* program : {&a, &b}) program->expect_progress();
    broker.again(fd_store.environment());
    ASSERT_EQ(broker.ready, "ready\n") << broker.log();
  }
  EXPECT_EQ(broker.times_logged("t: 2 session(s) and 2 connection(s) of before the restart go on"), 4U) << broker.log();
  for (faults::Program* program : {&a, &b}) {
    program->expect_progress();
    program->ask_to_end();
    program->expect_right();
  }
  EXPECT_EQ(broker.terminate(SIGINT), 0);
}

// The guest boots in seconds, or more slowly on a busy machine. The guest has no connection to the broker. A guest asks
// a silent host 30 times, for 3 s. If the next broker comes later than that, only the worker answers the guest.
TEST(FaultsRestartInQemu, AProgramGoesOnWithRightResults) {
  FakeFdStore fd_store;
  Broker broker("", "", fd_store.environment(), "sim", outlives, "", "");
  ASSERT_EQ(broker.ready, "ready\n") << broker.log();
  faults::Machine machine(paths, broker.socket_path(), "IVGPU_HOST_PATIENCE=30 faults_program libcuda.so.1 steady 0 a");
  ASSERT_EQ(machine.line(), "a begun");
  for (const auto& [signal, pause_ms] : {std::pair(SIGTERM, 0), std::pair(SIGKILL, 0), std::pair(SIGKILL, 4000)}) {
    machine.expect_progress("a ");
    broker.terminate(signal);
    std::this_thread::sleep_for(milliseconds(pause_ms));
    broker.again(fd_store.environment());
    ASSERT_EQ(broker.ready, "ready\n") << broker.log();
  }
  EXPECT_EQ(broker.times_logged("t: 1 session(s) and 1 connection(s) of before the restart go on"), 3U) << broker.log();
  machine.expect_progress("a ");
  machine.kill();
  EXPECT_EQ(broker.terminate(SIGINT), 0);
}

// ---- a next broker that comes late ----------------------------------------------------------------------------------

// A program of this machine that calls without pause and ignores errors, and the program's worker.
class FaultsRestartLate : public ::testing::Test {
 protected:
  void begin(const char* keys) {
    broker = std::make_unique<Broker>("", "", fd_store.environment(), "sim", keys, "", "");
    ASSERT_EQ(broker->ready, "ready\n") << broker->log();
    stubborn = std::make_unique<faults::Program>(paths, broker->socket_path(), "stubborn", 0);
    stubborn->expect_begun();
    ASSERT_TRUE(eventually([&] { return (worker = worker_of(*broker, 0)) > 1; }));
  }
  void next() {
    broker->again(fd_store.environment());
    ASSERT_EQ(broker->ready, "ready\n") << broker->log();
  }

  FakeFdStore fd_store;
  std::unique_ptr<Broker> broker;
  std::unique_ptr<faults::Program> stubborn;
  pid_t worker = 0;
};

// The program's worker answers in the meantime. Therefore a call waits for longer than a VM's guest would wait.
TEST_F(FaultsRestartLate, WithinTheWorkersTimeItDoesNotNotice) {
  begin(outlives);
  broker->terminate(SIGKILL);
  stubborn->expect_progress();
  kill(worker, SIGSTOP);
  std::this_thread::sleep_for(milliseconds(1500));
  next();
  kill(worker, SIGCONT);
  stubborn->expect_progress();
  stubborn->ask_to_end();
  stubborn->expect_right();
}

// systemd keeps the program's connection open, so the program waits until a broker reports that the worker has exited.
TEST_F(FaultsRestartLate, AfterItTheNextBrokerReportsTheEndOfItsWorker) {
  begin("outlive_s = 1\n");
  broker->terminate(SIGKILL);
  EXPECT_TRUE(ends(worker));
  next();
  EXPECT_TRUE(broker->eventually_logged(" ends after ")) << broker->log();
  faults::Program late(paths, broker->socket_path(), "busy", 100);
  late.expect_begun();
  late.expect_right();
  stubborn->expect_lost_for_good();
}

TEST_F(FaultsRestartLate, WithoutANextBrokerTheEndOfTheServiceReportsIt) {
  begin(outlives);
  broker->terminate(SIGKILL);
  stubborn->expect_progress();
  fd_store.drop_all();
  EXPECT_TRUE(ends(worker));
  stubborn->expect_lost_for_good();
}

INSTANTIATE_TEST_SUITE_P(Policies, FaultsRestart, ::testing::Values("turns", "time-slice"),
                         [](const auto& one) { return std::string(one.param) == "turns" ? "turns" : "slices"; });

}  // namespace
