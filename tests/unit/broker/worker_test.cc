// How the broker starts workers, reads their messages and ends them, and what their jail permits. The tests use a real
// ivgpud, the real start and jail, and a driver of a few lines. They depend on processes and time, but on no GPU.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstddef>

#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using ring::SlotState;

std::string file_of(pid_t pid, const char* name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Workers, AWorkerGoesBeforeTheBrokerWhenMemoryIsShort) {
  Broker broker;
  const auto workers = broker.workers();
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(file_of(workers[0], "oom_score_adj"), "900\n");
  EXPECT_LE(std::stoi(file_of(broker.pid, "oom_score_adj")), std::stoi(file_of(getpid(), "oom_score_adj")));
}

// The broker resets signals that its parent ignores or blocks, and exits on SIGTERM.
TEST(Workers, AreReplacedWhenTheBrokersParentIgnoresSigchld) {
  Broker broker("", "", [] {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
  });
  ASSERT_EQ(broker.workers().size(), 1U);
  kill(broker.workers()[0], SIGKILL);
  EXPECT_TRUE(broker.eventually_logged("was killed by signal 9"));
  EXPECT_TRUE(eventually([&] { return broker.workers().size() == 1; })) << "the next one";
  kill(broker.pid, SIGTERM);
  siginfo_t info{};
  EXPECT_TRUE(eventually([&] {
    return waitid(P_PID, static_cast<id_t>(broker.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
  }));
  EXPECT_EQ(info.si_code, CLD_EXITED);
}

// If control groups limit nothing, the per-user limit bounds threads, provided that the VM has its own user.
TEST(Workers, ThreadsAreBoundedForAUserOfTheVmsOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives workers another user";
  const auto bound = [](const std::string& keys) {
    Broker broker(keys);
    const auto workers = broker.workers();
    const std::string limits = workers.empty() ? "" : file_of(workers[0], "limits");
    const std::string line = limits.substr(limits.find("Max processes"));
    return line.substr(0, line.find("processes", 20));
  };
  EXPECT_NE(bound("worker_uid = 7001\npids_max = 50").find(" 50 "), std::string::npos);
  EXPECT_EQ(bound("worker_uid = 65534\npids_max = 50").find(" 50 "), std::string::npos) << "who else is nobody?";
  EXPECT_EQ(bound("worker_uid = 7001\npids_max = 0").find(" 0 "), std::string::npos);
}

TEST(Workers, WithoutControlGroupsOneWarningReportsWhatIsMissing) {
  Broker broker;
  const bool bounded = broker.logged("VMs have control groups below ");
  EXPECT_EQ(broker.times_logged("VMs get no control groups: "), bounded ? 0U : 1U) << "this machine may have them";
}

TEST(Workers, StartsAreLimitedPerSecond) {
  const auto begin = std::chrono::steady_clock::now();
  Broker broker("starts_per_second = 2\nstart_burst = 2\nslots = 1");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(1));
  for (int i = 0; i < 4; ++i) {  // two starts at once, then one start per half second
    ASSERT_EQ(guest.claim(), 0U);
    ASSERT_TRUE(guest.step(0, SlotState::Claimed, SlotState::Released));
    ASSERT_TRUE(eventually([&] { return guest.word(0).epoch == static_cast<std::uint32_t>(i) + 1; }));
  }
  EXPECT_GE(seconds_since(begin), 0.9);
}

TEST(Workers, AFailedStartIsReportedOnceWithItsLastWordsAndTriedAgainLater) {
  const auto begin = std::chrono::steady_clock::now();
  Broker broker("", "fail");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(eventually([&] { return broker.times_logged("the next is started in") >= 3; }));
  EXPECT_TRUE(
      broker.eventually_logged("exited with code 4 (the driver failed to start): no GPU today, said \\x1b[31m"));
  EXPECT_EQ(guest.count(SlotState::Ready), 0U);
  const std::size_t failures = broker.times_logged("the next is started in");  // logged after 250, 500, 1000 ms, ...
  EXPECT_GE(seconds_since(begin), 0.25 * ((1 << (failures - 1)) - 1)) << failures;
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Workers, KillsAWorkerThatSendsAnUnknownMessage) {
  Broker liar("", "lie");
  EXPECT_TRUE(eventually([&] { return liar.logged("killed: it said something that no worker says"); }));

  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  guest.command(0)[0] = 'm';
  guest.ring_peer(ring::peer_of_slot(0));
  EXPECT_TRUE(guest.becomes(0, SlotState::Dead));
}

TEST(Workers, WhatTheyPrintIsEscapedBoundedAndLimited) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(guest.tell(0, 'p')) << "it has printed its 200 lines";
  ASSERT_TRUE(broker.eventually_logged("t/0: line 40 \\x1b[2J###"));
  EXPECT_FALSE(broker.logged("\x1b[2J"));
  std::istringstream lines(broker.log());
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  EXPECT_LE(longest, 500U);
  // The time in which a broker that reads too much would show it.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::size_t printed = broker.times_logged("t/0: line ");
  EXPECT_LE(static_cast<double>(printed), 50 * (2 + seconds_since(begin))) << "50 lines a second";
}

// All workers of a VM share one limit of printed bytes and lines.
TEST(Workers, WhatTheyPrintInSumIsLimited) {
  Broker broker("slots = 3\nspare = 3\n[vm.other]");
  Client guest(broker.socket_path()), other(broker.folder / "other.sock");
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(other.greet(3));
  const auto began = std::chrono::steady_clock::now();
  for (std::uint32_t k = 0; k < 3; ++k) {
    ASSERT_TRUE(guest.becomes(k, SlotState::Ready));
    guest.command(k)[0] = 'n';
    guest.ring_peer(ring::peer_of_slot(k));
  }
  ASSERT_TRUE(broker.eventually_logged(" lines were left out)"));
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  const std::size_t lines = broker.times_logged(": x\n");
  EXPECT_LE(static_cast<double>(lines), 100 + 50 * seconds_since(began) + 1);
  EXPECT_GE(lines, 50U);
  ASSERT_EQ(other.claim(), 0U);
  ASSERT_TRUE(other.becomes(0, SlotState::Claimed));
  other.command(0)[0] = 'p';
  other.ring_peer(ring::peer_of_slot(0));
  EXPECT_TRUE(broker.eventually_logged("other/0: line 40 ")) << "another VM has its own share";
}

TEST(Workers, TheyAreJailed) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_TRUE(guest.tell(0, 'o'));
  EXPECT_EQ(guest.command(0)[2], 'n');
  const std::string status = "/proc/" + std::to_string(broker.workers().at(0)) + "/status";
  std::ifstream file(status);
  std::map<std::string, std::string> fields;
  for (std::string name, rest; file >> name && std::getline(file, rest);) fields[name] = rest;
  EXPECT_EQ(fields["NoNewPrivs:"], "\t1");
  EXPECT_EQ(fields["Seccomp:"], "\t2");
  EXPECT_EQ(fields["CapEff:"], "\t0000000000000000");
  if (geteuid() == 0) {
    EXPECT_EQ(fields["CapBnd:"], "\t0000000000000000");
    EXPECT_EQ(fields["Uid:"], "\t65534\t65534\t65534\t65534");
  }
}

TEST(Workers, EachVmsHaveAUserOfTheirOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be others";
  Broker broker(
      "[vm.b]\nworker_gid = 44\n[vm.a]\nworker_uid = 7\n[vm.c]", "", [] {}, "", "worker_uids = \"70000-70002\"");
  EXPECT_EQ(broker.ready, "ready\n");
  std::vector<std::string> users;
  for (const pid_t worker : broker.workers()) {
    std::ifstream file("/proc/" + std::to_string(worker) + "/status");
    std::map<std::string, std::string> fields;
    for (std::string name, rest; file >> name && std::getline(file, rest);) fields[name] = rest;
    users.push_back(fields["Uid:"] + fields["Gid:"]);
  }
  std::sort(users.begin(), users.end());
  const auto of = [](int uid, int gid) {
    std::string text;
    for (const int id : {uid, gid})
      for (int i = 0; i < 4; ++i) text += "\t" + std::to_string(id);
    return text;
  };
  // VMs t, b and c get their users in the order of the file; VM a names its own user.
  EXPECT_EQ(users, (std::vector{of(7, 65534), of(70000, 70000), of(70001, 44), of(70002, 70002)}));
}

TEST(Workers, TheyDoNotComeFirstThoughTheBrokerDoes) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  const int ours = getpriority(PRIO_PROCESS, 0);
  EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(broker.workers().at(0))), ours);
  EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(broker.pid)), geteuid() == 0 ? -10 : ours);
}

TEST(Workers, TheyHoldNoDescriptorOfTheRegion) {
  Broker broker("jail = \"off\"");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  std::vector<std::string> targets;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(broker.workers().at(0)) + "/fd")) {
    targets.push_back(std::filesystem::read_symlink(entry.path()).string());
  }
  EXPECT_EQ(targets.size(), 7U);  // /dev/null, two outputs, control socket, doorbell, interrupt, the scheduler
  for (const std::string& target : targets) EXPECT_EQ(target.find("memfd"), std::string::npos) << target;
  EXPECT_TRUE(eventually([&] { return broker.logged("the jail is off"); }));
}

TEST(Workers, ALayerThatTheMachineLacksIsReportedAndTheRestHolds) {
  Broker broker("", "", [] { take_away(SYS_landlock_create_ruleset); });
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  EXPECT_TRUE(
      eventually([&] { return broker.logged("the workers' jail is incomplete: landlock (the kernel has no"); }));
  ASSERT_TRUE(guest.tell(0, 'o'));
  EXPECT_EQ(guest.command(0)[2], 'n');
}

TEST(Workers, ALayerThatIsRequiredAndMissingKeepsThemFromStarting) {
  Broker broker("jail = \"required\"", "", [] { take_away(SYS_landlock_create_ruleset); });
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  EXPECT_TRUE(eventually([&] {
    return broker.logged(
        "exited with code 5 (the jail is incomplete): the jail is required, but this machine does not "
        "give landlock (the kernel has no Landlock: Function not implemented)");
  }));
  EXPECT_EQ(guest.count(SlotState::Ready), 0U);
}

TEST(Workers, ALiftedListOfIoctlsIsReportedOnce) {
  Broker broker("jail_ioctls = \"any\"");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  EXPECT_EQ(broker.times_logged("t: jail_ioctls = \"any\": its workers may make every request"), 1U);
}

TEST(Workers, WithEveryLayerRequiredTheyStartWhereTheMachineGivesThem) {
  Broker broker("jail = \"required\"");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  const auto is_ready = [&] { return guest.word(0).state == SlotState::Ready; };
  EXPECT_TRUE(eventually([&] { return is_ready() || broker.logged("does not give"); }));
  if (!is_ready()) GTEST_SKIP() << broker.log();
}

TEST(Workers, TheirEnvironmentIsMadeFromScratch) {
  Broker broker("jail = \"off\"", "", [] {
    setenv("SECRET", "x", 1);
    setenv("LD_LIBRARY_PATH", "/tmp", 1);
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/mps", 1);
  });
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  std::ifstream file("/proc/" + std::to_string(broker.workers().at(0)) + "/environ");
  std::stringstream all;
  all << file.rdbuf();
  const std::string environment = all.str();
  EXPECT_EQ(environment.find("SECRET"), std::string::npos);
  EXPECT_EQ(environment.find("LD_LIBRARY_PATH"), std::string::npos);
  EXPECT_NE(environment.find("CUDA_MPS_PIPE_DIRECTORY=/tmp/mps"), std::string::npos);
  EXPECT_NE(environment.find("CUDA_MODULE_LOADING=LAZY"), std::string::npos);
}

TEST(Workers, OnesThatHangAreKilledWhenTheBrokerEnds) {
  Broker broker("", "hang");
  ASSERT_TRUE(eventually([&] { return broker.workers().size() == 1; }));
  EXPECT_EQ(broker.terminate(), 0);
  EXPECT_TRUE(broker.eventually_logged("killed: it did not end when asked to"));
}

TEST(Workers, ABadCommandLineIsOneSentence) {
  const auto said = [](const std::vector<std::string>& arguments) { return run_program(FAKE_WORKER, arguments); };
  const Outcome none = said({});
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.text.find("--library are needed; ivgpud starts workers, nobody else"), std::string::npos) << none.text;
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"--control-fd", "x"},
                                              {"--control-fd"},
                                              {"--jail", "maybe"},
                                              {"--ioctls", "some"},
                                              {"--slot-bytes", "-1"},
                                              {"--nonsense", "1"}}) {
    const Outcome outcome = said(bad);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.text.find("is no option of a worker"), std::string::npos) << outcome.text;
  }
}

const std::string least_slot = std::to_string(ring::min_slot_bytes);

TEST(Workers, ASlotThatIsNotInTheRegionIsRefused) {
  const int region = memfd_create("test", 0);
  ASSERT_EQ(ftruncate(region, 64 << 20), 0);
  for (const auto& [offset, bytes] : {std::pair("0", "134217728"), std::pair("67108864", least_slot.c_str()),
                                      std::pair("18446744073709551615", least_slot.c_str()), std::pair("0", "4096")}) {
    const Outcome outcome = run_program(
        FAKE_WORKER, {"--control-fd", "0", "--doorbell-fd", "0", "--telemetry-fd", "0", "--region-fd",
                      std::to_string(region), "--library", "/x", "--slot-offset", offset, "--slot-bytes", bytes});
    EXPECT_EQ(outcome.code, 6);
    EXPECT_NE(outcome.text.find("cannot be mapped: it is not in the region"), std::string::npos) << outcome.text;
  }
  close(region);
}

TEST(Workers, TelemetryThatIsTooSmallIsRefused) {
  const int region = memfd_create("test", 0);
  ASSERT_EQ(ftruncate(region, 64 << 20), 0);
  const int telemetry = memfd_create("test", 0);
  for (const off_t bytes : {0, 4096}) {
    ASSERT_EQ(ftruncate(telemetry, bytes), 0);
    const Outcome outcome = run_program(
        FAKE_WORKER, {"--control-fd", "0", "--doorbell-fd", "0", "--telemetry-fd", std::to_string(telemetry),
                      "--region-fd", std::to_string(region), "--library", "/x", "--slot-bytes", least_slot});
    EXPECT_EQ(outcome.code, 6);
    EXPECT_NE(outcome.text.find("the telemetry cannot be mapped"), std::string::npos) << outcome.text;
  }
  close(telemetry);
  close(region);
}

TEST(Broker, WithoutIoUringItServesTheSame) {
  Broker broker("", "", [] { take_away(SYS_io_uring_setup); });
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  EXPECT_TRUE(broker.eventually_logged("waiting through epoll"));
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_TRUE(guest.step(0, SlotState::Claimed, SlotState::Released));
  EXPECT_TRUE(eventually([&] { return guest.word(0).epoch == 1; }));
  EXPECT_EQ(broker.terminate(), 0);
}

}  // namespace
