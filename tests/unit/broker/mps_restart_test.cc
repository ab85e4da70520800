// policy = "mps" while a broker restarts under running sessions: either the daemon and its sessions all continue, or
// all of them end. The tests use a fake control program (tests/fake/nvidia-cuda-mps-control) and a stand-in for
// systemd.
#include "host/broker/mps/mps_store.h"
#include "tests/unit/broker/mps_harness.h"
#include "tests/unit/broker/restart.h"

namespace {

using namespace broker_test;
using host::broker::SavedMps;

class MpsRestart : public ::testing::Test {
 protected:
  // Begins a session of VM "t" on GPU 0.
  void begin(const std::string& vms = "", const std::string& keys = "") {
    broker = std::make_unique<Broker>("gpus = [0]\n" + vms, "", environment(), "sim", keys, mps_keys(control));
    ASSERT_EQ(broker->ready, "ready\n");
    guest = std::make_unique<Client>(broker->socket_path());
    ASSERT_TRUE(guest->greet(3));
    const auto taken = guest->claim();
    ASSERT_TRUE(taken && guest->tell(*taken, 'c'));
    slot = *taken;
    ASSERT_TRUE(eventually([&] { return (worker = worker_of(*broker, slot)) > 1; }));
    ASSERT_TRUE(eventually([&] { return guest->count(SlotState::Ready) == 1; })) << "the next one is ready";
    ASSERT_TRUE(fd_store.comes_to_hold("t/peer/" + std::to_string(guest->peer)));
    daemon = daemon_of(*broker, 0);
    ASSERT_TRUE(lives(daemon));
  }
  std::function<void()> environment(bool pass = true) {
    return [of_store = fd_store.environment(pass)] {
      setenv("IVGPU_SIM_DEVICES", "3", 1);
      of_store();
    };
  }
  void end(int signal) {
    broker->terminate(signal);
    ASSERT_TRUE(lives(worker) && lives(daemon)) << "they go on without a broker";
  }
  void next() {
    broker->again(environment());
    ASSERT_EQ(broker->ready, "ready\n");
  }
  void expect_all_goes_on() {
    EXPECT_TRUE(broker->eventually_logged(of_before + " goes on, for t"));
    EXPECT_TRUE(broker->logged("t: 1 session(s) and 1 connection(s) of before the restart go on"));
    EXPECT_TRUE(lives(worker) && guest->tell(slot, 'c')) << "the worker serves";
    EXPECT_EQ(worker_of(*broker, slot), worker);
    EXPECT_TRUE(lives(daemon));
    EXPECT_EQ(daemon_of(*broker, 0), daemon);
    EXPECT_FALSE(broker->logged("all clients of MPS")) << broker->log();
  }
  // Expects that the VM's programs get the driver's error, and that a fresh daemon then serves the VM.
  void expect_all_begins_anew() {
    EXPECT_TRUE(ends(daemon));
    EXPECT_TRUE(guest->becomes(slot, SlotState::Dead));
    EXPECT_TRUE(ends(worker));
    EXPECT_TRUE(guest->claim()) << "new programs are served";
    const pid_t fresh = daemon_of(*broker, 0);
    EXPECT_TRUE(fresh != daemon && lives(fresh));
    EXPECT_EQ(control.times("daemon " + gpu(0)), 2U) << control.told();
  }
  bool lost_for(const std::string& why) const {
    return broker->eventually_logged("t: all clients of MPS on " + gpu(0) + " are lost: " + why);
  }
  void TearDown() override {
    if (broker && !broker->ended()) {
      EXPECT_EQ(broker->terminate(SIGINT), 0);
      EXPECT_EQ(fd_store.names(), std::set<std::string>()) << "SIGINT ends everything";
    }
    if (daemon <= 1 || ends(daemon)) return;
    ADD_FAILURE() << "the daemon has not ended";
    kill(daemon, SIGKILL);
  }

  Control control;
  FakeFdStore fd_store;
  std::unique_ptr<Broker> broker;
  std::unique_ptr<Client> guest;
  std::uint32_t slot = 0;
  pid_t worker = 0, daemon = 0;
  const std::string of_before = "the MPS daemon of " + gpu(0) + " of before the restart";
  const std::string not_gone_on_with = of_before + " is not gone on with: ";
};

pid_t parent_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  return std::atoi(stat.c_str() + stat.rfind(')') + 4);
}

TEST_F(MpsRestart, WhatTheNextBrokerNeedsIsHeld) {
  begin();
  for (const char* what : {"mps-control-", "mps-output-", "mps-process-", "mps-record-"})
    EXPECT_TRUE(fd_store.comes_to_hold(what + gpu(0))) << what;
  EXPECT_TRUE(fd_store.comes_to_hold("t/" + std::to_string(slot) + "/door"));
  EXPECT_EQ(broker->terminate(SIGINT), 0);
  EXPECT_EQ(control.last_line(), "ends by quit") << "a stop ends the daemon in order";
  EXPECT_FALSE(lives(daemon) || lives(worker));
  EXPECT_EQ(fd_store.names(), std::set<std::string>());
}

TEST_F(MpsRestart, ASessionAndItsDaemonGoOn) {
  begin();
  for (const int signal : {SIGTERM, SIGKILL, SIGKILL}) {
    end(signal);
    broker->folder.write("log", "");
    next();
    expect_all_goes_on();
    EXPECT_EQ(control.times("daemon "), 1U) << control.told();
    EXPECT_TRUE(eventually([&] { return guest->count(SlotState::Ready) == 1; })) << "the next programs' workers start";
  }
  Client other(broker->socket_path());
  ASSERT_TRUE(other.greet(3));
  EXPECT_TRUE(other.claim()) << "new programs are served";
  // The next broker queries the daemon as the last broker did. If one client fails, all clients of the daemon fail.
  guest->tell(slot, 'm');
  EXPECT_TRUE(guest->becomes(slot, SlotState::Dead));
  EXPECT_EQ(control.times("terminate_client 4711 " + std::to_string(worker) + " alive"), 1U) << control.told();
  EXPECT_FALSE(broker->logged("all clients of MPS")) << "it was let go before it was killed";
  EXPECT_EQ(broker->terminate(SIGINT), 0);
  EXPECT_EQ(control.last_line(), "ends by quit");
}

TEST_F(MpsRestart, ADaemonThatDiesLaterIsSeen) {
  begin();
  end(SIGKILL);
  next();
  expect_all_goes_on();
  kill(daemon, SIGKILL);
  EXPECT_TRUE(lost_for("its MPS daemon was killed by signal 9"));
  EXPECT_TRUE(eventually([&] { return !fd_store.holds("mps-process-" + gpu(0)); }));
}

TEST_F(MpsRestart, ADaemonThatDiesMeanwhileIsSeen) {
  begin();
  end(SIGTERM);
  kill(daemon, SIGKILL);
  ASSERT_TRUE(ends(daemon));
  const auto begun = std::chrono::steady_clock::now();
  next();
  EXPECT_TRUE(broker->logged(not_gone_on_with + "it was killed by signal 9 meanwhile")) << broker->log();
  EXPECT_TRUE(lost_for("its MPS daemon was lost when ivgpud was restarted"));
  expect_all_begins_anew();
  EXPECT_GE(seconds_since(begun), 5) << "its program has time to learn the driver's error";
}

// A supervisor process holds the daemon for the next broker.
TEST_F(MpsRestart, ADaemonEndsWithItsSupervisor) {
  begin();
  const pid_t keeps = parent_of(daemon);
  ASSERT_NE(keeps, broker->pid);
  kill(keeps, SIGKILL);
  EXPECT_TRUE(ends(daemon));
  EXPECT_TRUE(lost_for("its MPS daemon was killed by signal 9"));
}

TEST_F(MpsRestart, ADaemonThatDoesNotQuitIsSignalled) {
  for (const char* how : {"deaf", "stubborn"}) control.misbehave(how);
  begin();
  end(SIGKILL);
  next();
  expect_all_goes_on();
  EXPECT_EQ(broker->terminate(SIGINT), 0);
  EXPECT_EQ(control.times("quit\n"), 1U) << control.told();
  EXPECT_EQ(control.last_line(), "SIGTERM is ignored") << control.told();
  EXPECT_TRUE(ends(daemon)) << "and SIGKILL is not";
}

// ---- faults ---------------------------------------------------------------------------------------------------------

TEST_F(MpsRestart, AFaultIsSeenByTheNextBroker) {
  begin();
  broker->terminate(SIGKILL);
  ASSERT_TRUE(guest->tell(slot, 'e'));
  next();
  EXPECT_TRUE(lost_for("session " + std::to_string(slot) + " of VM t has had CUDA's error 700"));
  EXPECT_TRUE(lives(daemon)) << "another client's fault ends no daemon";
}

TEST_F(MpsRestart, WhatIsLostIsLostAfterARestart) {
  begin();
  const auto guilty = guest->claim();
  ASSERT_TRUE(guilty);
  guest->command(*guilty)[0] = 'a';
  guest->ring_peer(ring::peer_of_slot(*guilty));
  ASSERT_TRUE(lost_for("a worker of VM t was killed by signal 6 (ABRT)"));
  end(SIGKILL);
  EXPECT_EQ(guest->word(slot).state, SlotState::Claimed);
  next();
  EXPECT_TRUE(lost_for("it was so before ivgpud was restarted"));
  EXPECT_TRUE(guest->becomes(slot, SlotState::Dead)) << "an idle session would keep the server from new clients";
  EXPECT_TRUE(guest->claim());
  broker->terminate(SIGKILL);
  broker->folder.write("log", "");
  next();
  EXPECT_TRUE(broker->eventually_logged(of_before + " goes on, for t"));
  EXPECT_FALSE(broker->logged("all clients of MPS")) << broker->log();
}

TEST_F(MpsRestart, AWorkerThatDiesLaterIsTakenForACrash) {
  begin();
  ASSERT_TRUE(guest->claim());
  end(SIGKILL);
  next();
  kill(worker, SIGKILL);
  EXPECT_TRUE(lost_for("a worker of VM t ended, and how is not known"));
}

// ---- sessions that cannot be adopted --------------------------------------------------------------------------------

TEST_F(MpsRestart, AStoreWithoutItsProcessEndsIt) {
  begin();
  end(SIGKILL);
  fd_store.lose("mps-process-" + gpu(0));
  next();
  EXPECT_TRUE(broker->logged(not_gone_on_with + "not all of its descriptors were kept (FileDescriptorStoreMax)"));
  EXPECT_TRUE(lost_for("its MPS daemon was lost when ivgpud was restarted"));
  EXPECT_EQ(broker->times_logged(of_before), 1U) << broker->log();
  expect_all_begins_anew();
}

TEST_F(MpsRestart, AStoreThatMakesNoSenseEndsIt) {
  const auto spoilt = [this](const std::function<void(SavedMps&)>& spoil) {
    void* at =
        mmap(nullptr, sizeof(SavedMps), PROT_READ | PROT_WRITE, MAP_SHARED, fd_store.held("mps-record-" + gpu(0)), 0);
    ASSERT_NE(at, MAP_FAILED);
    spoil(*static_cast<SavedMps*>(at));
    munmap(at, sizeof(SavedMps));
  };
  const auto replaced = [this](const std::string& name) {
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    fd_store.replace(name + gpu(0), nothing);
    close(nothing);
  };
  const char *other_release = "its record is missing, or of another release",
             *other_place = "its folder or its clients' user is another by now",
             *incomplete = "not all of its descriptors were kept (FileDescriptorStoreMax)";
  const std::pair<const char*, std::function<void()>> all[] = {
      {other_release, [&] { spoilt([](SavedMps& mps) { mps.magic ^= 1; }); }},
      {other_release, [&] { spoilt([](SavedMps& mps) { ++mps.version; }); }},
      {other_release, [&] { spoilt([](SavedMps& mps) { mps.bytes = 8; }); }},
      {other_release, [&] { spoilt([](SavedMps& mps) { mps.is_lost = 2; }); }},
      {other_release, [&] { replaced("mps-record-"); }},
      {other_release, [&] { fd_store.lose("mps-record-" + gpu(0)); }},
      {other_place, [&] { spoilt([](SavedMps& mps) { ++mps.place; }); }},
      {incomplete, [&] { fd_store.lose("mps-control-" + gpu(0)); }},
      {incomplete, [&] { fd_store.lose("mps-output-" + gpu(0)); }},
      {"what was kept of it is no process", [&] { replaced("mps-process-"); }},
  };
  for (const auto& [why, spoil] : all) {
    begin();
    end(SIGKILL);
    spoil();
    next();
    EXPECT_TRUE(broker->logged(not_gone_on_with + why)) << why << "\n" << broker->log();
    EXPECT_TRUE(lost_for("its MPS daemon was lost when ivgpud was restarted")) << why;
    EXPECT_TRUE(ends(daemon)) << why;
    EXPECT_EQ(broker->terminate(SIGINT), 0);
    fd_store.drop_all();
  }
}

// The manager has noticed that its socket's peer is closed.
TEST_F(MpsRestart, ADaemonOfWhichNothingIsLeftIsWaitedFor) {
  begin();
  end(SIGKILL);
  for (const char* what : {"mps-control-", "mps-output-", "mps-process-", "mps-record-"}) fd_store.lose(what + gpu(0));
  fd_store.lose("t/record");
  broker->again(environment());
  EXPECT_FALSE(broker->logged("already: end it by")) << broker->log();
  EXPECT_TRUE(ends(daemon));
  Client other(broker->socket_path());
  ASSERT_TRUE(other.greet(3));
  EXPECT_TRUE(other.claim()) << "new programs are served";
  EXPECT_EQ(control.times("daemon " + gpu(0)), 2U) << control.told();
  EXPECT_LT(control.told().find("ends by SIGTERM"), control.told().rfind("daemon ")) << control.told();
}

TEST_F(MpsRestart, AnotherPolicyEndsIt) {
  begin();
  end(SIGTERM);
  broker->change_file("policy = \"mps\"", "policy = \"time-slice\"");
  next();
  EXPECT_TRUE(
      broker->logged("t: its sessions of before the restart end, and the VM has to be started again: keys that "
                     "need a restart are others by now"))
      << broker->log();
  EXPECT_TRUE(broker->logged(of_before + " ends: nobody uses it any more")) << broker->log();
  EXPECT_TRUE(ends(worker));
  EXPECT_TRUE(ends(daemon));
  EXPECT_EQ(control.last_line(), "ends by SIGTERM") << control.told();
  const auto is_of_mps = [](const std::string& name) { return name.starts_with("mps-") || name.ends_with("/door"); };
  EXPECT_TRUE(std::ranges::none_of(fd_store.names(), is_of_mps));
  Client other(broker->socket_path());
  ASSERT_TRUE(other.greet(3));
  EXPECT_TRUE(other.claim()) << "new programs are served";
}

// The reverse case: the next broker does not adopt workers as clients of MPS if they are none.
TEST_F(MpsRestart, WorkersOfAnotherPolicyAreNotGoneOnWith) {
  broker = std::make_unique<Broker>("gpus = [0]\n", "", environment(), "sim", "",
                                    "policy = \"time-slice\"\nmps_control = \"" + control.path() + "\"\n");
  guest = std::make_unique<Client>(broker->socket_path());
  ASSERT_TRUE(guest->greet(3) && guest->claim());
  broker->terminate(SIGTERM);
  broker->change_file("policy = \"time-slice\"", "policy = \"mps\"");
  next();
  EXPECT_TRUE(broker->logged("keys that need a restart are others by now")) << broker->log();
  daemon = daemon_of(*broker, 0);
  EXPECT_TRUE(lives(daemon));
}

TEST_F(MpsRestart, AGpuThatNoVmUsesLosesItsDaemon) {
  begin();
  end(SIGTERM);
  broker->change_file("gpus = [0]", "gpus = [1]");
  next();
  EXPECT_TRUE(broker->logged(of_before + " ends: nobody uses it any more")) << broker->log();
  EXPECT_TRUE(ends(daemon));
  EXPECT_TRUE(ends(worker));
  EXPECT_TRUE(lives(daemon_of(*broker, 1)));
  EXPECT_TRUE(fd_store.comes_to_hold("mps-process-" + gpu(1)));
  EXPECT_TRUE(eventually([&] { return !fd_store.holds("mps-process-" + gpu(0)); }));
}

// SIGKILL of a client with running GPU work would end the sessions of VM "t", too.
TEST_F(MpsRestart, WorkersOfAVmThatIsInTheFileNoMoreAreLetGo) {
  begin("[vm.u]\ngpus = [0]\n");
  Client other(broker->folder / "u.sock");
  ASSERT_TRUE(other.greet(3));
  const auto orderly = other.claim(), stubborn = other.claim();
  ASSERT_TRUE(orderly && stubborn);
  const auto in_u = [&](std::uint32_t k) {
    const int process = fd_store.held("u/" + std::to_string(k) + "/process");
    std::ifstream info("/proc/self/fdinfo/" + std::to_string(process));
    pid_t found = 0;
    for (std::string line; std::getline(info, line);)
      if (line.starts_with("Pid:")) found = std::atoi(line.c_str() + 4);
    return found;
  };
  const pid_t ends_by_itself = in_u(*orderly), does_not = in_u(*stubborn);
  ASSERT_TRUE(lives(ends_by_itself) && lives(does_not));
  end(SIGTERM);
  kill(does_not, SIGSTOP);
  broker->change_file("[vm.u]\ngpus = [0]\n", "");
  next();
  EXPECT_TRUE(ends(ends_by_itself));
  EXPECT_TRUE(ends(does_not));
  EXPECT_EQ(control.times("terminate_client"), 1U) << control.told();
  EXPECT_EQ(control.times("terminate_client 4711 " + std::to_string(does_not) + " alive"), 1U) << control.told();
  EXPECT_TRUE(broker->logged("u: its sessions of before the restart end"));
  EXPECT_TRUE(broker->eventually_logged(of_before + " goes on, for t"));
  EXPECT_TRUE(lives(worker) && guest->tell(slot, 'c'));
  EXPECT_FALSE(broker->logged("all clients of MPS")) << broker->log();
}

// ---- no broker ------------------------------------------------------------------------------------------------------

TEST_F(MpsRestart, WithoutABrokerADaemonEndsAfterItsClients) {
  begin("", "outlive_s = 1\n");
  const auto since = std::chrono::steady_clock::now();
  broker->terminate(SIGKILL);
  EXPECT_TRUE(ends(worker));
  EXPECT_TRUE(ends(daemon));
  EXPECT_GE(seconds_since(since), 2.9) << "its clients end first, after one second";
  EXPECT_EQ(control.last_line(), "ends by SIGTERM") << control.told();
}

TEST_F(MpsRestart, TheEndOfTheServiceIsTheEndOfItsDaemons) {
  control.misbehave("stubborn");
  begin();
  end(SIGTERM);
  fd_store.drop_all();
  EXPECT_TRUE(ends(worker));
  EXPECT_TRUE(ends(daemon));
  EXPECT_EQ(control.last_line(), "SIGTERM is ignored") << control.told();
}

TEST_F(MpsRestart, SwitchedOffDaemonsEndWithTheirBroker) {
  broker = std::make_unique<Broker>("gpus = [0]\n", "", environment(), "sim", "outlive_s = 0\n", mps_keys(control));
  ASSERT_EQ(broker->ready, "ready\n");
  daemon = daemon_of(*broker, 0);
  EXPECT_EQ(parent_of(daemon), broker->pid);
  EXPECT_TRUE(fd_store.names().empty());
  EXPECT_EQ(broker->terminate(SIGTERM), 0);
  EXPECT_FALSE(lives(daemon));
  EXPECT_EQ(control.last_line(), "ends by quit");
}

TEST_F(MpsRestart, SwitchedOffMeanwhileADaemonEnds) {
  begin();
  end(SIGTERM);
  broker->change_file("outlive_s = 60", "outlive_s = 0");
  broker->again(environment());
  EXPECT_TRUE(broker->eventually_logged(of_before + " ends: nobody uses it any more")) << broker->log();
  EXPECT_TRUE(ends(daemon));
  EXPECT_TRUE(ends(worker));
  Client other(broker->socket_path());
  ASSERT_TRUE(other.greet(3));
  EXPECT_TRUE(other.claim()) << "a fresh one serves";
  EXPECT_EQ(broker->terminate(SIGTERM), 0);
  EXPECT_TRUE(fd_store.names().empty());
  EXPECT_EQ(control.last_line(), "ends by quit");
}

TEST(MpsSupervisor, TakesNothingElse) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, {"1000", "0"}, {"1000", "0", "/bin/true"}})
    EXPECT_EQ(run_program(MPS_SUPERVISOR, arguments).code, 2) << "nothing is passed to it";
}

}  // namespace
