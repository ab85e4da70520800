// VMs whose QEMU opens the memory by a path, across a restart of the broker. The test stands in for the VM.
#include <future>

#include "tests/unit/broker/doorbell_port.h"
#include "tests/unit/broker/opened_memory.h"
#include "tests/unit/broker/restart.h"

namespace {

using namespace broker_test;

struct Form {
  const char* transport;
  bool file;
};

class RestartPaths : public ::testing::TestWithParam<Form> {
 protected:
  void begin(const std::string& more = "") {
    const std::string own = memory_file(std::string("restart-") + GetParam().transport);
    std::string keys = "transport = \"" + std::string(GetParam().transport) + "\"\n" + more;
    if (GetParam().file) keys += "plain_file = \"" + own + "\"\n";
    broker = std::make_unique<Broker>(keys, "", fd_store.environment());
    ASSERT_EQ(broker->ready, "ready\n") << broker->log();
    path = GetParam().file ? own : broker->folder / "t.memory";
    open_vm();
    ASSERT_TRUE(vm->there()) << broker->log();
    ASSERT_TRUE(vm->claim(0));
    ASSERT_TRUE(vm->becomes(1, SlotState::Ready)) << "the next one is ready";
    ASSERT_TRUE(eventually([&] { return (worker = worker_of(*broker, 0)) > 1; }));
    ASSERT_TRUE(fd_store.comes_to_hold("t/0/control"));
  }
  void open_vm() { vm = std::make_unique<OpenedMemory>(path, is_pmem() ? ring::devdax_start : 0); }
  static bool is_pmem() { return std::string(GetParam().transport) == "pmem"; }
  void next() {
    broker->again(fd_store.environment());
    ASSERT_EQ(broker->ready, "ready\n") << broker->log();
  }
  void expect_the_session_goes_on() const {
    EXPECT_TRUE(broker->logged("t: 1 session(s) and ")) << broker->log();
    EXPECT_TRUE(lives(worker));
    EXPECT_TRUE(vm->worker_answers(0));
    EXPECT_EQ(ring::SlotWord::of(vm->state(0).load()).state, SlotState::Claimed);
    EXPECT_EQ(worker_of(*broker, 0), worker);
  }
  bool comes_back(std::uint32_t slot) const {
    return eventually([&] {
      const SlotState now = ring::SlotWord::of(vm->state(slot).load()).state;
      return now == SlotState::Empty || now == SlotState::Ready;
    });
  }

  FakeFdStore fd_store;
  std::unique_ptr<Broker> broker;
  std::unique_ptr<OpenedMemory> vm;
  std::string path;
  pid_t worker = 0;
};

TEST_P(RestartPaths, RingsThatAWorkerHasNotTakenAreNotThoseOfTheNext) {
  begin();
  const int doorbell = fd_store.held("t/doorbell/0");
  const auto is_signalled = [&] {
    pollfd ring{doorbell, POLLIN, 0};
    return poll(&ring, 1, 0) == 1;
  };
  kill(worker, SIGSTOP);
  vm->ring_peer(ring::peer_of_slot(0));
  ASSERT_TRUE(eventually(is_signalled));
  vm->state(0).store(ring::SlotWord::of(vm->state(0).load()).with(SlotState::Released).word());
  vm->ring_peer(ring::peer_broker);
  ASSERT_TRUE(vm->becomes(0, SlotState::Empty)) << "the broker kills a worker that does not end";
  EXPECT_FALSE(is_signalled());
}

TEST_P(RestartPaths, SessionsGoOnAndNewOnesBegin) {
  begin();
  for (const int signal : {SIGTERM, SIGKILL, SIGKILL}) {
    broker->terminate(signal);
    EXPECT_TRUE(lives(worker));
    next();
    expect_the_session_goes_on();
    EXPECT_TRUE(vm->becomes(1, SlotState::Ready)) << "a worker of this broker's";
    broker->folder.write("log", "");
  }
  // The path still names the same memory.
  OpenedMemory other(path, is_pmem() ? ring::devdax_start : 0);
  ASSERT_TRUE(other.there());
  EXPECT_EQ(other.header().generation, vm->header().generation);
  ASSERT_TRUE(other.claim(1));
  EXPECT_TRUE(vm->worker_answers(1));
  vm->state(0).store(ring::SlotWord::of(vm->state(0).load()).with(SlotState::Released).word());
  vm->ring_peer(ring::peer_broker);
  EXPECT_TRUE(ends(worker)) << "and an old session ends like any other";
  other.end();
  vm->end();
  EXPECT_TRUE(broker->eventually_logged("t: the VM has ended"));
  EXPECT_EQ(broker->terminate(SIGINT), 0);
  EXPECT_EQ(fd_store.names(), std::set<std::string>());
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(path))) << "it was left behind";
}

// Workers of such a VM poll by themselves when a broker stalls or exits slowly (host/base/process/liveness_pipe.h).
TEST_P(RestartPaths, StartsWorkersWhoseDoorbellTheBrokerSignals) {
  begin();
  EXPECT_NE(words_of(worker).find(" --doorbell-by broker "), std::string::npos) << words_of(worker);
}

// The only sign of the VM's end is that no process has its memory open.
TEST_P(RestartPaths, AVmThatEndsMeanwhileIsSeen) {
  begin();
  broker->terminate(SIGKILL);
  vm->end();
  next();
  EXPECT_TRUE(broker->eventually_logged("t: the VM has ended")) << broker->log();
  EXPECT_TRUE(ends(worker));
  open_vm();
  EXPECT_TRUE(comes_back(0));
}

// The next broker handles a doorbell that a guest rang between two brokers.
TEST_P(RestartPaths, RingsOfMeanwhileAreHeard) {
  begin();
  broker->terminate(SIGTERM);
  ASSERT_TRUE(vm->claim(1));
  vm->command(1)[0] = 'c';
  vm->ring_peer(ring::peer_of_slot(1));
  next();
  EXPECT_TRUE(eventually([&] { return vm->command(1)[1] == 'k'; }));
  EXPECT_TRUE(broker->logged("t: 2 session(s) and ")) << broker->log();
}

TEST_P(RestartPaths, AnotherConfigurationMakesTheMemoryAnew) {
  begin();
  broker->terminate(SIGTERM);
  broker->change_file("slots = 3", "slots = 2");
  next();
  EXPECT_TRUE(broker->logged(": keys that need a restart are others by now")) << broker->log();
  EXPECT_TRUE(ends(worker));
  OpenedMemory other(path, is_pmem() ? ring::devdax_start : 0);
  ASSERT_TRUE(other.there());
  EXPECT_NE(other.header().generation, vm->header().generation);
  EXPECT_TRUE(other.claim(0));
}

TEST_P(RestartPaths, WhatIsMissingEndsItsSessions) {
  for (const char* name : {"t/region", "t/record", "t/doorbell/1"}) {
    begin();
    broker->terminate(SIGKILL);
    fd_store.lose(name);
    next();
    EXPECT_TRUE(broker->logged("t: its sessions of before the restart end")) << name;
    EXPECT_TRUE(ends(worker)) << name;
    open_vm();
    ASSERT_TRUE(vm->there());
    EXPECT_TRUE(vm->claim(0)) << name;
    EXPECT_EQ(broker->terminate(SIGINT), 0);
    fd_store.drop_all();
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, RestartPaths,
                         ::testing::Values(Form{"plain", false}, Form{"plain", true}, Form{"pmem", false},
                                           Form{"pmem", true}),
                         [](const auto& one) {
                           return std::string(one.param.transport) + (one.param.file ? "_file" : "_memfd");
                         });

// ---- single cases ---------------------------------------------------------------------------------------------------

class RestartFile : public RestartPaths {};

TEST_P(RestartFile, OneThatIsAnotherByNowIsMadeAnew) {
  begin();
  broker->terminate(SIGKILL);
  std::filesystem::remove(path);
  next();
  EXPECT_TRUE(broker->logged("its plain_file is another by now")) << broker->log();
  EXPECT_TRUE(ends(worker));
  open_vm();
  ASSERT_TRUE(vm->there());
  EXPECT_TRUE(vm->claim(0));
}

INSTANTIATE_TEST_SUITE_P(Forms, RestartFile, ::testing::Values(Form{"plain", true}),
                         [](const auto&) { return std::string("plain"); });

class RestartLink : public RestartPaths {};

// A QEMU that finds no file creates a file, which would block the next broker.
TEST_P(RestartLink, BetweenTwoBrokersItLeadsNowhereAndNobodyCanMakeAFileThere) {
  begin();
  broker->terminate(SIGTERM);
  EXPECT_LT(open(path.c_str(), O_RDWR | O_CLOEXEC), 0);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_LT(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), 0);
  EXPECT_EQ(errno, EEXIST);
  next();
  OpenedMemory other(path);
  EXPECT_TRUE(other.there());
}

// QEMU retries, and opens the region once the next broker has made the link again.
TEST_P(RestartLink, AQemuThatStartsMeanwhileWaits) {
  begin();
  broker->terminate(SIGKILL);
  auto qemu = std::async(std::launch::async, [&] {
    return run_program("/bin/sh", {"-c", "(sleep 1; echo info pci; echo quit) | timeout 60 " QEMU
                                         " -nodefaults -display none -machine q35 -accel tcg -S -monitor stdio -object "
                                         "memory-backend-file,id=m,size=128M,share=on,mem-path=" +
                                             path + " -device ivshmem-plain,memdev=m"});
  });
  EXPECT_EQ(qemu.wait_for(milliseconds(1500)), std::future_status::timeout) << "without its memory";
  next();
  const Outcome outcome = qemu.get();
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("PCI device 1af4:1110"), std::string::npos) << outcome.text;
  expect_the_session_goes_on();
  EXPECT_TRUE(std::filesystem::is_symlink(path)) << "QEMU has made a file";
}

TEST_P(RestartLink, ReportsAndLeavesForeignFilesInItsWay) {
  begin();
  broker->terminate(SIGINT);
  fd_store.drop_all();
  std::ofstream(path) << "QEMU's";
  broker->again(fd_store.environment(false));
  EXPECT_NE(broker->ready, "ready\n");
  EXPECT_TRUE(broker->logged(path +
                             ": is in the way and no link; QEMU does that where the VM is started before ivgpud: end "
                             "the VM and remove the file"))
      << broker->log();
  EXPECT_EQ(broker->folder.read("t.memory"), "QEMU's");
}

INSTANTIATE_TEST_SUITE_P(Forms, RestartLink, ::testing::Values(Form{"plain", false}),
                         [](const auto&) { return std::string("plain"); });

class RestartChannels : public RestartPaths {};

// The program of the channel does not name its slot a second time.
TEST_P(RestartChannels, AChannelStaysAndHasItsSlotsInterrupts) {
  begin();
  Port first(broker->socket_path()), second(broker->socket_path());
  ASSERT_TRUE(first.say(0));
  EXPECT_TRUE(first.heard_once());
  ASSERT_TRUE(second.say(1));
  EXPECT_TRUE(second.heard_once());
  for (const int signal : {SIGTERM, SIGKILL}) {
    ASSERT_TRUE(fd_store.comes_to_hold("t/port/1") && fd_store.comes_to_hold("t/port/2"));
    broker->terminate(signal);
    vm->command(0)[2] = 0;
    vm->ask_for_interrupt(0);
    next();
    EXPECT_TRUE(broker->logged("t: 1 session(s) and 2 connection(s) of before the restart go on")) << broker->log();
    EXPECT_TRUE(first.heard()) << "what it rang meanwhile is passed on";
    first.woken();
    EXPECT_EQ(second.woken(), 0);
    broker->folder.write("log", "");
  }
  // A new channel gets a new number.
  Port third(broker->socket_path());
  ASSERT_TRUE(third.say(ring::doorbell_look));
  EXPECT_TRUE(fd_store.comes_to_hold("t/port/3"));
  first.end();
  EXPECT_TRUE(eventually([&] { return !fd_store.holds("t/port/1"); }));
  vm->command(0)[2] = 0;
  vm->ask_for_interrupt(0);
  EXPECT_TRUE(eventually([&] { return vm->command(0)[2] == 'y'; }));
  EXPECT_EQ(second.woken() + third.woken(), 0);
  EXPECT_EQ(broker->terminate(SIGINT), 0);
  EXPECT_TRUE(second.ended());
}

TEST_P(RestartChannels, OneThatHasGoneMeanwhileIsSeenAndItsNumberIsNobodyElses) {
  begin("doorbell_idle_poll_ms = 500\n");
  Port first(broker->socket_path());
  ASSERT_TRUE(first.say(0));
  EXPECT_TRUE(first.heard_once());
  ASSERT_TRUE(fd_store.comes_to_hold("t/port/1"));
  broker->terminate(SIGKILL);
  first.end();
  Port early(broker->socket_path());  // waits, like a VM that starts between two brokers
  next();
  EXPECT_TRUE(eventually([&] { return !fd_store.holds("t/port/1") && fd_store.holds("t/port/2"); }));
  vm->ask_for_interrupt(0);
  EXPECT_TRUE(eventually([&] { return vm->command(0)[2] == 'y'; }));
  EXPECT_EQ(early.woken(), 0);
  ASSERT_TRUE(early.say(0));
  EXPECT_TRUE(early.heard_once());
}

INSTANTIATE_TEST_SUITE_P(Forms, RestartChannels, ::testing::Values(Form{"pmem", true}),
                         [](const auto&) { return std::string("pmem"); });

}  // namespace
