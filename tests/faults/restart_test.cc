// Programs that launch kernels all the time while their broker is restarted, in order and by kill -9, under a stand-in for
// systemd: real workers on the simulated GPU. Every result has to be right.
#include <gtest/gtest.h>

#include <future>

#include "tests/unit/fd_keeper.h"

namespace {

using namespace broker_test;

// Its line: "right NUMBER at TIME".
Outcome busy(const Broker& broker, int milliseconds) {
  return run_program("/usr/bin/env", {"IVGPU_REGION=" + broker.socket_path(), PROGRAM, GUEST_CUDA, "busy",
                                      std::to_string(milliseconds)});
}

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

INSTANTIATE_TEST_SUITE_P(Policies, FaultsRestart, ::testing::Values("turns", "time-slice"),
                         [](const auto& one) { return std::string(one.param) == "turns" ? "turns" : "slices"; });

}  // namespace
