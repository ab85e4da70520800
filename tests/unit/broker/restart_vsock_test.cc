// Programs that connect by vsock, across a restart of the broker. The tests use a real ivgpud whose vsock sockets
// become UNIX sockets (vsock_by_unix.cc), fake workers, and a stand-in for systemd.
#include "host/base/fd.h"
#include "tests/unit/broker/by_vsock.h"
#include "tests/unit/broker/restart.h"

namespace {

using namespace broker_test;
using namespace std::chrono_literals;

constexpr const char* first_kept = "t/program/1";
constexpr const char* port_kept = "listen-vsock-5000";

// A broker, and a program that has claimed slot 0.
class RestartVsock : public ::testing::Test {
 protected:
  void begin(const std::string& more = "") {
    file = memory_file("restart-vsock");
    broker = std::make_unique<Broker>(by_vsock(file, more), "", environment());
    ASSERT_EQ(broker->ready, "ready\n") << broker->log();
    vm = std::make_unique<VmByVsock>(file);
    ASSERT_TRUE(vm->claim(0));
    program = connect(0);
    ASSERT_TRUE(vm->becomes(1, SlotState::Ready)) << "the next one is ready";
    ASSERT_TRUE(eventually([&] { return (worker = worker_of(*broker, 0)) > 1; }));
    for (const char* name : {"t/0/control", "t/1/control", first_kept, port_kept}) ASSERT_TRUE(is_kept(name)) << name;
    held = word(0);
  }
  // Waits for the name, since the manager receives many messages at once.
  bool is_kept(const std::string& name) { return fd_store.comes_to_hold(name); }
  std::function<void()> environment() {
    return [this, manager = fd_store.environment()] {
      manager();
      sockets.preload();
    };
  }
  // Connects a program and names its slot.
  std::unique_ptr<Port> connect(unsigned char slot) const {
    auto made = std::make_unique<Port>(sockets.port());
    EXPECT_TRUE(made->heard()) << "it is taken";
    EXPECT_TRUE(made->say(slot) && made->heard());
    return made;
  }
  void next() {
    broker->again(environment());
    ASSERT_EQ(broker->ready, "ready\n") << broker->log();
  }
  ring::SlotWord word(std::uint32_t k) const { return ring::SlotWord::of(vm->state(k).load()); }
  bool session_ends(std::uint32_t k = 0) const {
    return eventually([&] { return word(k).epoch != held.epoch; });
  }
  void release(std::uint32_t k) const {
    vm->state(k).store(word(k).with(SlotState::Released).word());
    vm->ring_peer(ring::peer_broker);
  }
  bool went_on(int sessions, int connections) const {
    return broker->logged("t: " + std::to_string(sessions) + " session(s) and " + std::to_string(connections) +
                          " connection(s) of before the restart go on");
  }

  const VsockFolder sockets;
  FakeFdStore fd_store;
  std::string file;
  std::unique_ptr<Broker> broker;
  std::unique_ptr<VmByVsock> vm;
  std::unique_ptr<Port> program;
  ring::SlotWord held;
  pid_t worker = 0;
};

TEST_F(RestartVsock, AProgramGoesOnAndItsEndEndsItsSession) {
  begin();
  for (const int signal : {SIGTERM, SIGKILL, SIGKILL}) {
    broker->terminate(signal);
    EXPECT_TRUE(lives(worker));
    vm->ask_for_interrupt(0);
    ASSERT_TRUE(program->say(ring::doorbell_look)) << "it waits in the socket";
    next();
    EXPECT_TRUE(went_on(1, 1)) << broker->log();
    EXPECT_TRUE(program->heard()) << "its worker's interrupt of meanwhile";
    EXPECT_TRUE(vm->worker_answers(0));
    EXPECT_EQ(worker_of(*broker, 0), worker);
    EXPECT_TRUE(fd_store.comes_to_hold(first_kept));
    broker->folder.write("log", "");
  }
  ASSERT_TRUE(vm->claim(1));
  const auto second = connect(1);
  program->end();
  EXPECT_TRUE(session_ends());
  EXPECT_TRUE(ends(worker));
  EXPECT_TRUE(broker->eventually_logged(" ends after ")) << broker->log();
  EXPECT_TRUE(eventually([&] { return !fd_store.holds(first_kept); }));
  EXPECT_EQ(word(1).state, SlotState::Claimed) << "another's";
  EXPECT_TRUE(vm->worker_answers(1));
  EXPECT_EQ(broker->terminate(SIGINT), 0);
  EXPECT_TRUE(second->ended());
  EXPECT_EQ(fd_store.names(), std::set<std::string>());
}

TEST_F(RestartVsock, WhoConnectsMeanwhileWaits) {
  begin();
  for (const int signal : {SIGTERM, SIGKILL}) {
    broker->terminate(signal);
    Port late(sockets.port());
    EXPECT_EQ(late.woken(50), 0);
    next();
    EXPECT_TRUE(late.heard());
    ASSERT_TRUE(vm->claim(1));
    ASSERT_TRUE(late.say(1) && late.heard());
    vm->ask_for_interrupt(1);
    EXPECT_TRUE(late.heard());
    late.end();
    ASSERT_TRUE(vm->becomes(1, SlotState::Ready));
  }
}

TEST_F(RestartVsock, OneThatEndedMeanwhileEndsItsSessionAlone) {
  begin();
  ASSERT_TRUE(vm->claim(1));
  const auto second = connect(1);
  broker->terminate(SIGKILL);
  program->end();
  next();
  EXPECT_TRUE(session_ends());
  EXPECT_TRUE(ends(worker));
  EXPECT_TRUE(eventually([&] { return !fd_store.holds(first_kept); }));
  EXPECT_EQ(word(1).state, SlotState::Claimed);
  vm->ask_for_interrupt(1);
  EXPECT_TRUE(second->heard());
}

TEST_F(RestartVsock, WhoHasNoSlotIsDropped) {
  begin();
  Port silent(sockets.port());
  ASSERT_TRUE(silent.heard());
  const auto second = connect(0);  // the second connection owns the slot now
  ASSERT_TRUE(is_kept("t/program/3") && !fd_store.holds("t/program/2")) << "only who has named a slot is kept";
  broker->terminate(SIGKILL);
  EXPECT_TRUE(silent.ended());
  EXPECT_EQ(program->woken(50), 0);
  next();
  EXPECT_TRUE(program->ended()) << "no slot is its own";
  EXPECT_TRUE(went_on(1, 1)) << broker->log();
  vm->ask_for_interrupt(0);
  EXPECT_TRUE(second->heard());
  EXPECT_EQ(word(0).word(), held.word());
  EXPECT_TRUE(lives(worker));
  second->end();
  EXPECT_TRUE(session_ends());
}

// The next holder of the slot has no connection.
TEST_F(RestartVsock, ASlotThatItHadIsNotItsOwnAfterwards) {
  begin("spare = 2\n");
  release(0);
  ASSERT_TRUE(session_ends());
  ASSERT_TRUE(vm->claim(0));
  const std::uint32_t next_holder = vm->state(0).load();
  ASSERT_TRUE(eventually([&] { return worker_of(*broker, 0) > 1; }));
  ASSERT_TRUE(is_kept("t/0/control") && is_kept(first_kept));
  broker->terminate(SIGKILL);
  program->end();
  next();
  EXPECT_TRUE(eventually([&] { return !fd_store.holds(first_kept); }));
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(vm->state(0).load(), next_holder);
  EXPECT_TRUE(vm->worker_answers(0));
}

TEST_F(RestartVsock, AnotherCidIsRefusedAndItsSessionEnds) {
  begin();
  broker->terminate(SIGKILL);
  sockets.cid(7);
  next();
  EXPECT_TRUE(
      broker->logged("t: a doorbell channel of before the restart is refused: it comes from CID 7, and the VM's "
                     "vsock_cid is 5"))
      << broker->log();
  EXPECT_TRUE(program->ended());
  EXPECT_TRUE(session_ends());
  EXPECT_TRUE(ends(worker));
  EXPECT_FALSE(fd_store.holds(first_kept));
}

TEST_F(RestartVsock, WhatIsNoConnectionOfVsockIsNotHeard) {
  begin();
  ASSERT_TRUE(vm->claim(1));
  const auto second = connect(1);
  int forged[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, forged), 0);
  ASSERT_EQ(send(forged[1], "\1", 1, 0), 1) << "it names the other's slot";
  broker->terminate(SIGKILL);
  fd_store.replace(first_kept, forged[0]);
  close(forged[0]);
  next();
  EXPECT_TRUE(session_ends());
  EXPECT_TRUE(ends(worker));
  pollfd end{forged[1], POLLIN, 0};
  EXPECT_TRUE(poll(&end, 1, deadline_ms) == 1 && (end.revents & POLLHUP) != 0) << "it is shut";
  close(forged[1]);
  vm->ask_for_interrupt(1);
  EXPECT_TRUE(second->heard());
  EXPECT_EQ(word(1).state, SlotState::Claimed);
}

// No broker stores a descriptor under these names.
TEST_F(RestartVsock, ANumberThatNoSlotHasIsNobody) {
  begin();
  broker->terminate(SIGKILL);
  const int kept = fcntl(fd_store.held(first_kept), F_DUPFD_CLOEXEC, 0);
  fd_store.lose(first_kept);
  for (const char* name : {"t/program/0", "t/program/", "t/program/9", "t/program/99999999999999999999999"})
    fd_store.replace(name, kept);
  close(kept);
  next();
  EXPECT_TRUE(program->ended());
  EXPECT_EQ(word(0).word(), held.word());
  EXPECT_TRUE(vm->worker_answers(0));
  EXPECT_TRUE(went_on(1, 0)) << broker->log();
  for (const std::string& name : fd_store.names()) EXPECT_FALSE(name.starts_with("t/program/")) << name;
  EXPECT_EQ(connect(1)->woken(50), 0) << "the next one has a number";
}

// The key `connections` may change at a restart.
TEST_F(RestartVsock, OfMoreThanConnectionsThoseThatAreThereStay) {
  begin("connections = 8\n");
  ASSERT_TRUE(vm->claim(1));
  const auto second = connect(1);
  ASSERT_TRUE(is_kept("t/program/2"));
  broker->terminate(SIGTERM);
  broker->change_file("connections = 8", "connections = 1");
  next();
  EXPECT_TRUE(went_on(2, 2)) << broker->log();
  EXPECT_TRUE(Port(sockets.port()).ended()) << "there is no room for another";
  for (const std::uint32_t k : {0U, 1U}) vm->ask_for_interrupt(k);
  EXPECT_TRUE(program->heard());
  EXPECT_TRUE(second->heard());
}

// ---- beyond the store's limit ---------------------------------------------------------------------------------------

TEST_F(RestartVsock, BeyondTheStoresMaximumAProgramUsesTimedSleepsAndItsSessionGoesOn) {
  begin();
  ASSERT_TRUE(vm->claim(1));
  ASSERT_TRUE(eventually([&] { return worker_of(*broker, 1) > 1; }));
  fd_store.bound(fd_store.names().size());
  const auto second = connect(1);
  ASSERT_FALSE(fd_store.holds("t/program/2"));
  ASSERT_EQ(fd_store.beyond(), 1U);
  broker->terminate(SIGKILL);
  EXPECT_TRUE(second->ended());
  next();
  EXPECT_TRUE(went_on(2, 1)) << broker->log();
  vm->ask_for_interrupt(0);
  EXPECT_TRUE(program->heard());
  EXPECT_EQ(word(1).state, SlotState::Claimed);
  EXPECT_TRUE(vm->worker_answers(1));
  EXPECT_EQ(word(1).state, SlotState::Claimed) << "nobody knows of its end";
}

// A VM must not keep the manager busy. The VM's programs start and end, and each program names a slot.
TEST_F(RestartVsock, SoManyASecondAreKept) {
  begin("spare = 2\n");
  constexpr int programs = 1000;
  const auto begun = std::chrono::steady_clock::now();
  for (int k = 0; k < programs; ++k) {
    const Port one(sockets.port());
    ASSERT_TRUE(one.heard() && one.say(1) && one.heard());
  }
  const auto last = connect(1);
  const std::string its_name = "t/program/" + std::to_string(programs + 2);
  EXPECT_TRUE(eventually([&] { return last->say(1) && last->heard() && fd_store.holds(its_name); }))
      << "it goes on saying it";
  const auto told = static_cast<double>(fd_store.times_told("t/program/"));
  EXPECT_LE(told, 2 + 200 + 200 * seconds_since(begun));
  EXPECT_GE(told, 200);
}

// ---- the socket that listens ----------------------------------------------------------------------------------------

// True if a server at this path accepts a connection and answers.
bool serves(const std::string& path) {
  const host::broker::Fd knocks(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  pollfd taken{knocks.get(), POLLIN, 0};
  unsigned char byte = 0;
  return connect(knocks.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         poll(&taken, 1, 2000) == 1 && recv(knocks.get(), &byte, 1, 0) == 1;
}

TEST_F(RestartVsock, OneThatIsNotTheRightOneIsMadeAnew) {
  begin();
  for (const char* path : {"other", "4999"}) {
    const int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (std::string(path) == "other" ? file + ".sock" : sockets / path)
        .copy(address.sun_path, sizeof address.sun_path - 1);
    unlink(address.sun_path);
    ASSERT_EQ(bind(other, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(other, 1), 0);
    broker->terminate(SIGKILL);
    fd_store.replace(port_kept, other);
    close(other);
    next();
    EXPECT_TRUE(went_on(1, 1)) << broker->log();
    EXPECT_TRUE(eventually([&] { return serves(sockets.port()); })) << "the kernel lets go of a killed broker's soon";
    connect(1)->end();
    unlink(address.sun_path);
  }
}

// The port is free, since no other VM had it.
TEST_F(RestartVsock, AVmThatIsMadeAnewHasThePortStill) {
  begin();
  broker->terminate(SIGTERM);
  Port late(sockets.port());
  broker->change_file("slots = 2", "slots = 1");
  next();
  EXPECT_TRUE(broker->logged(": keys that need a restart are others by now")) << broker->log();
  EXPECT_TRUE(program->ended());
  EXPECT_TRUE(ends(worker));
  EXPECT_TRUE(late.heard());
}

TEST_F(RestartVsock, ANextVmMayHaveThePortOfOneThatIsRemoved) {
  begin();
  broker->change_file("[vm.t]", "[vm.u]");
  broker->change_file(file, memory_file("restart-vsock-next"));
  kill(broker->pid, SIGHUP);
  EXPECT_TRUE(program->ended());
  EXPECT_TRUE(broker->eventually_logged("u: programs of CID 5 connect to port 5000 of vsock")) << broker->log();
  ASSERT_TRUE(broker->eventually_logged("VM u: added")) << "it listens";
  EXPECT_TRUE(connect(0)->woken(50) == 0);
}

}  // namespace
