// Restarts of a broker while its sessions continue.
#include "tests/unit/broker/restart.h"
#include "host/broker/vm/vm_record.h"

namespace {

using namespace broker_test;

TEST_F(Restart, WhatIsMadeIsHeldAndWhatIsGoneIsNot) {
  begin();
  const std::string peer = "t/peer/" + std::to_string(guest->peer), own = "t/" + std::to_string(slot) + "/";
  // Descriptors of the VM, of two workers, of a connection, and the sockets.
  constexpr std::size_t everything = 7 + 2 * 7 + 1 + 4;
  eventually([&] { return fd_store.names().size() == everything; });
  const std::set<std::string> all = fd_store.names();
  for (const char* name :
       {"t/region", "t/record", "t/broker", "t/doorbell/0", "t/doorbell/1", "t/doorbell/2", "t/interrupt/0"})
    EXPECT_TRUE(all.contains(name)) << name;
  for (const char* name : {"control", "output", "process", "telemetry", "orders", "use", "bell"})
    EXPECT_TRUE(all.contains(own + name)) << own << name;
  const auto listens = [](const std::string& name) { return name.starts_with("listen-"); };
  EXPECT_EQ(std::ranges::count_if(all, listens), 4) << "the VM's socket, and those for status, traces and control";
  EXPECT_EQ(all.size(), everything) << "and nothing else";
  ASSERT_TRUE(guest->step(slot, SlotState::Claimed, SlotState::Released));
  EXPECT_TRUE(ends(worker));
  EXPECT_TRUE(eventually([&] { return !fd_store.holds(own + "control"); }));
  guest->hang_up();
  EXPECT_TRUE(eventually([&] { return !fd_store.holds(peer); }));
  EXPECT_EQ(broker->terminate(SIGINT), 0);
  EXPECT_EQ(fd_store.names(), std::set<std::string>()) << "SIGINT ends everything";
}

TEST_F(Restart, ASessionGoesOnAfterAnOrderlyEnd) {
  begin();
  const std::uint64_t before = guest->heartbeat().load();
  EXPECT_EQ(broker->terminate(SIGTERM), 0);
  EXPECT_TRUE(fd_store.hears("STOPPING=1"));
  EXPECT_TRUE(lives(worker));
  std::thread asking(
      [&] { eventually([&] { return guest->ring_peer(ring::peer_broker), guest->heartbeat().load() != before; }); });
  broker->again(fd_store.environment());
  asking.join();
  expect_the_session_goes_on();
  EXPECT_EQ(broker->times_logged("its sessions of before the restart end"), 0U);

  Client other(broker->socket_path());
  ASSERT_TRUE(other.greet(3));
  EXPECT_NE(other.peer, guest->peer);
  EXPECT_TRUE(other.claim()) << "new programs are served";
  ASSERT_TRUE(guest->step(slot, SlotState::Claimed, SlotState::Released));
  EXPECT_TRUE(ends(worker)) << "and an old session ends like any other";
  EXPECT_TRUE(guest->comes_back(slot));
  EXPECT_TRUE(eventually(
      [&] { return !fd_store.holds("t/" + std::to_string(slot) + "/control") || worker_of(*broker, slot) != worker; }));
}

class RestartTiming : public Restart {};

// Guests tolerate a pause of 0.7 s (docs/design/011-heartbeat.md).
TEST_F(RestartTiming, GuestsBearThePauseOfAnOrderlyRestart) {
  begin();
  const std::uint64_t before = guest->heartbeat().load();
  const auto since = std::chrono::steady_clock::now();
  EXPECT_EQ(broker->terminate(SIGTERM), 0);
  std::thread asking(
      [&] { eventually([&] { return guest->ring_peer(ring::peer_broker), guest->heartbeat().load() != before; }); });
  broker->again(fd_store.environment());
  asking.join();
  const double pause = seconds_since(since);
  printf("a pause of %.0f ms\n", pause * 1e3);
  EXPECT_LT(pause, 2) << "seconds without a broker";
}

// The guest rings the worker's doorbell directly, without the broker.
TEST_F(Restart, StartsWorkersWhoseDoorbellTheGuestSignals) {
  begin();
  EXPECT_NE(words_of(worker).find(" --doorbell-by guest "), std::string::npos) << words_of(worker);
}

TEST_F(Restart, ASessionGoesOnAfterAKill) {
  begin();
  for (int round = 0; round < 3; ++round) {
    end(SIGKILL);
    next();
    expect_the_session_goes_on();
    broker->folder.write("log", "");
  }
  guest->hang_up();
  EXPECT_TRUE(ends(worker)) << "the end of its connection is seen";
}

TEST_F(Restart, ASpareWorkerOfBeforeMakesPlaceUnlessItIsClaimedMeanwhile) {
  begin();
  std::uint32_t spare = 0;
  while (guest->word(spare).state != SlotState::Ready) ++spare;
  const pid_t old = worker_of(*broker, spare);
  ASSERT_GT(old, 1);
  end(SIGKILL);
  next();
  EXPECT_TRUE(ends(old)) << "it is of the program of before";
  EXPECT_TRUE(eventually([&] { return guest->count(SlotState::Ready) == 1; }));
  for (spare = 0; guest->word(spare).state != SlotState::Ready;) ++spare;
  const pid_t fresh = worker_of(*broker, spare);
  end(SIGTERM);
  ASSERT_EQ(guest->claim(), spare);
  EXPECT_TRUE(guest->tell(spare, 'c')) << "it serves at once";
  next();
  EXPECT_TRUE(broker->logged("t: 2 session(s) and 1 connection(s) of before the restart go on")) << broker->log();
  EXPECT_TRUE(lives(fresh));
  EXPECT_TRUE(guest->tell(spare, 'c'));
}

// The program file of a process, from its command line.
std::string program_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline");
  std::string name;
  std::getline(file, name, '\0');
  return name;
}

TEST_F(Restart, AnUpgradeLeavesSessionsTheirWorkersAndStartsSpareOnesAnew) {
  begin();
  const std::string upgraded = broker->folder / "upgraded";
  std::filesystem::copy_file(FAKE_WORKER, upgraded);
  end(SIGTERM);
  broker->change_file(FAKE_WORKER, upgraded);
  next();
  expect_the_session_goes_on();
  EXPECT_EQ(program_of(worker), FAKE_WORKER);
  pid_t fresh = 0;
  EXPECT_TRUE(eventually([&] {
    std::uint32_t spare = 0;
    while (spare < 3 && guest->word(spare).state != SlotState::Ready) ++spare;
    return spare < 3 && (fresh = worker_of(*broker, spare)) > 1 && program_of(fresh) == upgraded;
  })) << program_of(fresh);
}

TEST_F(Restart, ASessionThatEndsMeanwhileIsSeen) {
  begin();
  end(SIGTERM);
  ASSERT_TRUE(guest->step(slot, SlotState::Claimed, SlotState::Released));
  next();
  EXPECT_TRUE(ends(worker));
  EXPECT_TRUE(broker->eventually_logged("ends after"));
  EXPECT_TRUE(guest->comes_back(slot));
}

TEST_F(Restart, AGuestThatGoesMeanwhileIsSeen) {
  begin();
  end(SIGKILL);
  guest->hang_up();
  next();
  EXPECT_TRUE(ends(worker));
  EXPECT_TRUE(guest->comes_back(slot));
  EXPECT_TRUE(eventually([&] { return !fd_store.holds("t/peer/" + std::to_string(guest->peer)); }));
}

TEST_F(Restart, AWorkerThatDiesMeanwhileIsSeen) {
  begin();
  end(SIGTERM);
  kill(worker, SIGKILL);
  EXPECT_TRUE(ends(worker));
  next();
  EXPECT_TRUE(guest->becomes(slot, SlotState::Dead)) << "its program learns of it";
  EXPECT_TRUE(broker->eventually_logged("while its guest used it"));
}

// The worker may return as much memory as it had borrowed, and no more.
TEST_F(Restart, ReservedMemoryStaysReserved) {
  begin();
  const auto number = reinterpret_cast<volatile std::uint64_t*>(guest->command(slot) + 8);
  *number = 1 << 20;
  ASSERT_TRUE(guest->tell(slot, 'B'));
  const std::uint64_t lent = number[1];
  ASSERT_GE(lent, 1U << 20);
  end(SIGKILL);
  next();
  *number = lent;
  ASSERT_TRUE(guest->tell(slot, 'G'));
  *number = 1 << 20;
  ASSERT_TRUE(guest->tell(slot, 'B')) << "it is answered";
  EXPECT_EQ(number[1], lent);
  *number = lent + 1;
  guest->command(slot)[0] = 'G';  // the worker may die before it answers, so the test does not wait for an answer
  guest->ring_peer(ring::peer_of_slot(slot));
  EXPECT_TRUE(ends(worker)) << "nobody was lent so much";
}

// QEMU cannot be greeted twice. QEMU's machine stays stopped.
TEST_F(Restart, QemuKeepsItsConnection) {
  broker = std::make_unique<Broker>("", "", fd_store.environment());
  ASSERT_EQ(broker->ready, "ready\n");
  const std::string go = broker->folder / "go";
  const std::string command = "(while [ ! -e " + go +
                              " ]; do sleep 0.1; done; echo info pci; echo quit) | timeout 60 " QEMU
                              " -nodefaults -display none -machine q35 -accel tcg -S -monitor stdio -chardev "
                              "socket,id=c,path=" +
                              broker->socket_path() + " -device ivshmem-doorbell,chardev=c,vectors=1";
  Outcome outcome{-1, ""};
  std::thread qemu([&] { outcome = run_program("/bin/sh", {"-c", command}); });
  EXPECT_TRUE(eventually([&] { return fd_store.holds("t/peer/65"); }));
  for (const int signal : {SIGTERM, SIGKILL}) {
    broker->terminate(signal);
    broker->again(fd_store.environment());
    EXPECT_EQ(broker->ready, "ready\n");
  }
  EXPECT_EQ(broker->times_logged("t: 0 session(s) and 1 connection(s) of before the restart go on"), 2U);
  EXPECT_FALSE(broker->logged("peer 65 (process")) << "its connection has not ended";
  broker->folder.write("go", "");
  qemu.join();
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("PCI device 1af4:1110"), std::string::npos) << outcome.text;
  EXPECT_TRUE(broker->eventually_logged("is gone: its connection was closed"));
}

// ---- sessions that cannot be adopted --------------------------------------------------------------------------------

TEST_F(Restart, ARecordThatMakesNoSenseEndsItsSessions) {
  using host::broker::SavedVm;
  const std::pair<const char*, std::function<void(SavedVm&)>> all[] = {
      {": the record of the ivgpud before this one is of another release", [](SavedVm& vm) { vm.magic ^= 1; }},
      {": the record of the ivgpud before this one is of another release", [](SavedVm& vm) { ++vm.version; }},
      {": the record of the ivgpud before this one is of another release", [](SavedVm& vm) { vm.bytes = 8; }},
      {": keys that need a restart are others by now", [](SavedVm& vm) { ++vm.configuration; }},
      {": keys that need a restart are others by now", [](SavedVm& vm) { vm.slots = 64; }},
      {": the record of the ivgpud before this one makes no sense", [](SavedVm& vm) { vm.slot[1].word = 0xff; }},
      {": the record of the ivgpud before this one makes no sense", [](SavedVm& vm) { vm.slot[0].worker = 1; }},
      {": the record of the ivgpud before this one makes no sense", [](SavedVm& vm) { vm.slot[0].reported.kind = 0; }},
      {": the record of the ivgpud before this one makes no sense", [](SavedVm& vm) { vm.slot[1].channel = ~0ULL; }},
  };
  for (const auto& [why, spoil] : all) {
    begin();
    end(SIGKILL);
    void* at = mmap(nullptr, sizeof(SavedVm), PROT_READ | PROT_WRITE, MAP_SHARED, fd_store.held("t/record"), 0);
    ASSERT_NE(at, MAP_FAILED);
    spoil(*static_cast<SavedVm*>(at));
    munmap(at, sizeof(SavedVm));
    next();
    expect_the_session_has_ended(why);
    EXPECT_EQ(broker->terminate(SIGINT), 0);
    fd_store.drop_all();
  }
}

TEST_F(Restart, ADescriptorThatIsMissingEndsItsSessions) {
  for (const char* name : {"t/region", "t/record", "t/broker", "t/doorbell/1", "t/interrupt/0"}) {
    begin();
    end(SIGKILL);
    fd_store.lose(name);
    next();
    expect_the_session_has_ended("");
    EXPECT_EQ(broker->terminate(SIGINT), 0);
    fd_store.drop_all();
  }
}

TEST_F(Restart, AWorkerOfWhichSomethingIsMissingIsLostAlone) {
  begin();
  end(SIGKILL);
  fd_store.lose("t/" + std::to_string(slot) + "/telemetry");
  next();
  EXPECT_TRUE(ends(worker));
  EXPECT_TRUE(guest->becomes(slot, SlotState::Dead));
  EXPECT_TRUE(is_connected());
  EXPECT_TRUE(broker->logged("its worker was lost when ivgpud was restarted")) << broker->log();
}

TEST_F(Restart, AVmThatIsInTheFileNoMoreEndsItsSessions) {
  begin();
  end(SIGTERM);
  broker->change_file("[vm.t]", "[vm.u]");
  next();
  EXPECT_TRUE(broker->logged("t: its sessions of before the restart end")) << broker->log();
  EXPECT_TRUE(ends(worker));
  EXPECT_FALSE(is_connected());
  const auto is_of_t = [](const std::string& name) { return name.starts_with("t/"); };
  EXPECT_TRUE(eventually([&] { return std::ranges::none_of(fd_store.names(), is_of_t); }));
}

TEST_F(Restart, WhatAManagerPassesWithoutSenseIsLeftOut) {
  const auto nonsense = [own = fd_store.environment(false)](const char* pid, const char* count, const char* names) {
    return [=] {
      own();
      setenv("LISTEN_PID", std::string(pid) == "own" ? std::to_string(getpid()).c_str() : pid, 1);
      setenv("LISTEN_FDS", count, 1);
      setenv("LISTEN_FDNAMES", names, 1);
    };
  };
  for (const auto& before : {nonsense("1", "3", "a:b:c"), nonsense("own", "-1", "a"), nonsense("own", "x", ":::")}) {
    Broker other("", "", before);
    ASSERT_EQ(other.ready, "ready\n") << other.log();
    Client client(other.socket_path());
    ASSERT_TRUE(client.greet(3));
    EXPECT_TRUE(client.claim());
    EXPECT_EQ(other.terminate(SIGINT), 0);
    fd_store.drop_all();
  }
}

// The next broker adopts no descriptor that has no name.
TEST_F(Restart, NamesThatAreMissingEndSessions) {
  begin();
  end(SIGKILL);
  const auto environment = fd_store.environment();
  fd_store.lose_names();
  broker->again([environment] {
    environment();
    unsetenv("LISTEN_FDNAMES");
  });
  ASSERT_EQ(broker->ready, "ready\n");
  Client other(broker->socket_path());
  ASSERT_TRUE(other.greet(3));
  EXPECT_TRUE(other.claim()) << "new programs are served";
  EXPECT_EQ(broker->terminate(SIGINT), 0);
  fd_store.drop_all();
  EXPECT_TRUE(ends(worker)) << "nobody holds the other end of its socket";
}

// ---- no broker ------------------------------------------------------------------------------------------------------

TEST_F(Restart, WithoutABrokerAWorkerEndsAfterTheStatedTime) {
  begin("", "outlive_s = 1\n");
  const auto since = std::chrono::steady_clock::now();
  broker->terminate(SIGKILL);
  EXPECT_TRUE(ends(worker));
  EXPECT_GE(seconds_since(since), 0.9);
}

TEST_F(Restart, TheEndOfTheServiceIsTheEndOfItsWorkers) {
  begin();
  end(SIGTERM);
  fd_store.drop_all();
  EXPECT_TRUE(ends(worker));
  EXPECT_FALSE(is_connected());
}

// A test of LivenessPipe checks how long a worker outlives each broker.
TEST_F(Restart, ASecondBrokerIsOutlivedAsWell) {
  begin();
  for (int brokers = 1; brokers <= 2; ++brokers) {
    end(SIGKILL);
    next();
    expect_the_session_goes_on();
  }
  end(SIGTERM);
  fd_store.drop_all();
  EXPECT_TRUE(ends(worker)) << "nobody holds the other end of its socket";
}

TEST_F(Restart, SwitchedOffSessionsEndWithTheirBroker) {
  broker = std::make_unique<Broker>("", "", fd_store.environment(), "", "outlive_s = 0\n");
  Client client(broker->socket_path());
  ASSERT_TRUE(client.greet(3));
  ASSERT_TRUE(client.claim());
  ASSERT_TRUE(eventually([&] { return broker->workers().size() == 2; }));
  const std::vector<pid_t> workers = broker->workers();
  EXPECT_TRUE(fd_store.names().empty());
  EXPECT_EQ(broker->terminate(SIGTERM), 0);
  for (const pid_t one : workers) EXPECT_FALSE(lives(one)) << "before its broker";
}

TEST_F(Restart, SwitchedOffMeanwhileWhatWasKeptEnds) {
  begin();
  end(SIGTERM);
  broker->change_file("outlive_s = 60", "outlive_s = 0");
  next();
  expect_the_session_has_ended("");
  EXPECT_TRUE(eventually([&] { return fd_store.names().empty(); }));
}

}  // namespace
