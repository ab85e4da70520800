// vsock doorbells: programs of a VM that connect by themselves, with valid and invalid messages. The tests use
// DoorbellServer alone on a UNIX socket, and a real ivgpud whose vsock sockets become UNIX sockets (vsock_by_unix.cc).
// tests/vm/vsock.sh tests real vsock; a developer has to start it.
#include <sys/eventfd.h>

#include <atomic>
#include <mutex>

#include "host/broker/config/config.h"
#include "host/broker/start_check.h"
#include "host/broker/transport/doorbell_server.h"
#include "tests/child.h"
#include "tests/unit/broker/by_vsock.h"

namespace {

using namespace broker_test;
using namespace std::chrono_literals;
using host::broker::DoorbellServer;
using host::broker::EventLoop;
using host::broker::Fd;
using ring::SlotState;

// The CID of the next client.
std::atomic<std::int64_t> next_cid{our_cid};  // below 0: the client has disconnected
std::atomic<int> asked{0};
std::optional<std::uint32_t> cid_of(int) {
  ++asked;
  const std::int64_t cid = next_cid.load();
  return cid < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(cid));
}

// A DoorbellServer with four slots and its own event loop.
class Doorbells {
 public:
  explicit Doorbells(const std::function<void(DoorbellServer::Options&)>& change = [](DoorbellServer::Options&) {}) {
    next_cid = our_cid;
    asked = 0;
    DoorbellServer::Options options;
    options.vm = "t", options.slots = 4, options.connections = 8;
    options.socket = {folder_ / "t.sock", {0600, "", ""}};
    options.vsock.emplace();
    options.vsock->socket.socket = bound(folder_ / "vsock");
    options.vsock->cid = our_cid;
    options.vsock->cid_of = cid_of;
    change(options);
    server_ =
        DoorbellServer::listen(loop_, std::move(options),
                               {[this] { ++looks; }, [this](std::uint32_t slot) { note(slot); }, [](auto, auto) {}})
            .value();
    for (std::uint32_t k = 0; k < 4; ++k) interrupts_[k] = server_->interrupt(k);
    loop_.watch(calls_.get(), POLLIN, [this](short) { make_call(); });
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~Doorbells() {
    call([this] { loop_.stop(); });
    thread_.join();
    server_.reset();
  }
  Doorbells(const Doorbells&) = delete;
  Doorbells& operator=(const Doorbells&) = delete;

  std::string vsock() const { return folder_ / "vsock"; }
  std::string ports() const { return folder_ / "t.sock"; }
  void interrupt(std::uint32_t slot) const { EXPECT_EQ(eventfd_write(interrupts_[slot], 1), 0); }
  std::size_t connected() {
    std::size_t count = 0;
    call([&] { count = server_->connected(); });
    return count;
  }
  void forget(std::uint32_t slot) {
    call([&] { server_->forget(slot); });
  }
  // The slots whose process has ended, in the order of the ends.
  std::vector<std::uint32_t> ended() {
    const std::lock_guard lock(lock_);
    return ended_;
  }

  // The number of the event loop's iteration. Only the loop's thread may call this.
  std::uint64_t iteration() const { return loop_.iterations().count; }

  std::atomic<int> looks{0};

 private:
  static Fd bound(const std::string& path) {
    Fd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return made;
  }
  void note(std::uint32_t slot) {
    const std::lock_guard lock(lock_);
    ended_.push_back(slot);
  }
  // Runs `what` on the loop's thread, and waits for the result.
  void call(const std::function<void()>& what) {
    const std::lock_guard one(one_call_);
    call_ = what;
    done_ = false;
    eventfd_write(calls_.get(), 1);
    EXPECT_TRUE(eventually([&] { return done_.load(); }));
  }
  void make_call() {
    eventfd_t count = 0;
    eventfd_read(calls_.get(), &count);
    call_();
    done_ = true;
  }

  Folder folder_;
  EventLoop loop_;
  Fd calls_{eventfd(0, EFD_CLOEXEC)};
  std::mutex lock_, one_call_;
  std::function<void()> call_;
  std::atomic<bool> done_{false};
  std::vector<std::uint32_t> ended_;
  std::array<int, 4> interrupts_{};
  std::unique_ptr<DoorbellServer> server_;
  std::thread thread_;
};

TEST(Vsock, NotifiesAnAcceptedProgramWhichThenRingsAndIsWoken) {
  Doorbells doorbells;
  const Port program(doorbells.vsock());
  EXPECT_TRUE(program.heard());
  ASSERT_TRUE(program.say(ring::doorbell_look));
  EXPECT_TRUE(eventually([&] { return doorbells.looks == 1; }));
  ASSERT_TRUE(program.say(2));
  EXPECT_TRUE(program.heard()) << "the worker may have rung before";
  doorbells.interrupt(2);
  EXPECT_TRUE(program.heard());
  doorbells.interrupt(1);
  EXPECT_EQ(program.woken(50), 0) << "of another's slot";
}

TEST(Vsock, APortOfVirtioSerialIsNotGreeted) {
  Doorbells doorbells;
  const Port port(doorbells.ports());
  EXPECT_EQ(port.woken(50), 0);
  ASSERT_TRUE(port.say(0));
  EXPECT_TRUE(port.heard());
}

TEST(Vsock, WithItsConnectionAProcessEnds) {
  Doorbells doorbells;
  Port first(doorbells.vsock()), second(doorbells.vsock()), third(doorbells.vsock()), port(doorbells.ports());
  for (const Port* p : {&first, &second, &third}) ASSERT_TRUE(p->heard());
  const auto name = [](const Port& p, unsigned char slot) { return p.say(slot) && p.heard(); };
  ASSERT_TRUE(name(first, 0) && name(second, 1) && name(third, 2) && name(port, 3));
  ASSERT_TRUE(name(second, 0));  // the second program owns the slot now
  doorbells.forget(2);           // the slot's next holder has not named the slot yet
  port.end(), third.end(), first.end();
  EXPECT_TRUE(eventually([&] { return doorbells.connected() == 1; }));
  EXPECT_EQ(doorbells.ended(), std::vector<std::uint32_t>());
  second.end();
  EXPECT_TRUE(eventually([&] { return doorbells.ended() == std::vector<std::uint32_t>{0, 1}; }));
}

TEST(Vsock, WhoHasAnotherCidIsRefused) {
  Doorbells doorbells;
  for (const std::int64_t cid : {1, 2, 6, -1}) {
    next_cid = cid;
    EXPECT_TRUE(Port(doorbells.vsock()).ended()) << cid;
  }
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(doorbells.connected(), 0u);
  next_cid = our_cid;
  EXPECT_TRUE(Port(doorbells.vsock()).heard());
}

TEST(Vsock, MoreThanConnectionsAreRefusedOfBothKinds) {
  Doorbells doorbells([](auto& options) { options.connections = 2; });
  const Port port(doorbells.ports()), program(doorbells.vsock());
  ASSERT_TRUE(program.heard() && port.say(0) && port.heard());
  EXPECT_TRUE(Port(doorbells.vsock()).ended());
  EXPECT_TRUE(Port(doorbells.ports()).ended());
}

TEST(Vsock, WhoNamesNoSlotMakesRoom) {
  // The time from connecting to naming the slot.
  Doorbells doorbells([](auto& options) { options.vsock->patience = 2s; });
  const Port port(doorbells.ports());
  const Port lost(doorbells.vsock());
  ASSERT_TRUE(lost.heard() && lost.say(1) && lost.heard());
  const Port holds(doorbells.vsock());
  ASSERT_TRUE(holds.heard() && holds.say(1) && holds.heard());
  const Port silent(doorbells.vsock()), rings(doorbells.vsock());
  ASSERT_TRUE(silent.heard() && rings.heard() && rings.say(ring::doorbell_look));
  EXPECT_TRUE(silent.ended());
  EXPECT_TRUE(rings.ended());
  EXPECT_TRUE(lost.ended());
  EXPECT_EQ(holds.woken(), 0) << "it came before the others, and has a slot";
  ASSERT_TRUE(holds.say(1));
  EXPECT_TRUE(holds.heard());
  EXPECT_EQ(doorbells.connected(), 2u) << "a port is QEMU's, and stays";
  EXPECT_EQ(doorbells.ended(), std::vector<std::uint32_t>());
}

// Attempts to bind a busy vsock port, made by the thread of `made`'s event loop, or by the test's thread before the
// loop exists.
std::atomic<int> tries{0}, iterations{0}, tries_without_loop{0};
std::atomic<const Doorbells*> made{nullptr};
std::atomic<std::thread::id> tests_thread;
std::uint64_t last_iteration = UINT64_MAX;  // the last iteration with an attempt

TEST(Vsock, WhileAnotherHasThePortTheLoopServes) {
  tries = iterations = tries_without_loop = 0;
  made = nullptr;
  tests_thread = std::this_thread::get_id();
  const auto begin = std::chrono::steady_clock::now();
  Doorbells doorbells([](auto& options) {
    options.vsock->socket.socket.reset();
    options.vsock->bind = [](std::uint32_t) {
      const Doorbells* const of_loop = made;
      const std::uint64_t now = of_loop != nullptr ? of_loop->iteration() : 0;
      iterations += std::exchange(last_iteration, now) != now;
      tries_without_loop += std::this_thread::get_id() == tests_thread.load();
      ++tries;
      return host::broker::BoundVsock{.socket = Fd(), .is_taken = true, .error = "it is another's"};
    };
  });
  EXPECT_LE(tries_without_loop, 1) << "listen() waits for the port of vsock";
  made = &doorbells;
  const int from = tries, iterations_from = iterations;
  const Port port(doorbells.ports());
  ASSERT_TRUE(port.say(3));
  EXPECT_TRUE(port.heard());
  EXPECT_TRUE(eventually([from] { return tries >= from + 3; }));
  EXPECT_GE(iterations - iterations_from, 2) << "the loop waits for the port of vsock";
  std::this_thread::sleep_for(1s);
  const int all = tries;
  EXPECT_LE(all, 22 + 2 * seconds_since(begin)) << "many a second for ever";
}

// Connects if the listen queue has space, and closes the connection.
void knock(const std::string& path) {
  const Fd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  [[maybe_unused]] const int result = connect(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
}

TEST(Vsock, ConnectionsWithoutEndAreTakenSoManyASecond) {
  Doorbells doorbells([](auto& options) {
    options.connections = 1;
    options.vsock->per_second = 50;
    options.vsock->burst = 10;
  });
  const Port port(doorbells.ports());
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<bool> over{false};
  std::vector<std::thread> flood;
  for (int k = 0; k < 2; ++k)
    flood.emplace_back([&] {
      while (!over) knock(doorbells.vsock());
    });
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(port.say(0) && port.heard());
    return asked >= 30;
  }));
  const int taken = asked;
  const double passed = seconds_since(begin);
  over = true;
  for (std::thread& thread : flood) thread.join();
  // After each pause the server accepts one more connection before it counts the connection.
  EXPECT_LE(taken, 2 * (10 + 50 * passed));
}

TEST(Vsock, ManyNamingsAreAnsweredByOneByte) {
  Doorbells doorbells;
  const Port program(doorbells.vsock());
  ASSERT_TRUE(program.heard());
  program.flood(std::string(4096, '\1'));
  EXPECT_LE(program.woken(), 4096 / 256 + 1);
}

// ---- a real ivgpud --------------------------------------------------------------------------------------------------

TEST(VsockBroker, AKilledProgramsSlotIsGivenBack) {
  const VsockFolder sockets;
  const std::string file = memory_file("vsock");
  Broker broker(by_vsock(file), "", [&] { sockets.preload(); });
  VmByVsock vm(file);
  ASSERT_TRUE(vm.there()) << broker.log();
  EXPECT_EQ(vm.header().doorbell_port, 5000u);
  ASSERT_TRUE(vm.claim(0));
  Port program(sockets.port());
  ASSERT_TRUE(program.heard() && program.say(ring::doorbell_look));
  EXPECT_TRUE(vm.becomes(1, SlotState::Ready));
  ASSERT_TRUE(program.say(0) && program.heard());
  vm.ask_for_interrupt(0);
  ASSERT_TRUE(program.say(ring::doorbell_look));
  EXPECT_TRUE(program.heard());
  const ring::SlotWord held = ring::SlotWord::of(vm.state(0).load());
  EXPECT_EQ(held.state, SlotState::Claimed);
  program.end();
  EXPECT_TRUE(eventually([&] { return ring::SlotWord::of(vm.state(0).load()).epoch != held.epoch; }));
  EXPECT_TRUE(broker.eventually_logged("ends after"));
  EXPECT_EQ(broker.terminate(), 0);
}

// The next holder of the slot is another process, which has no connection.
TEST(VsockBroker, AnEndThatComesLateFreesNobodyElsesSlot) {
  const VsockFolder sockets;
  const std::string file = memory_file("late");
  Broker broker(by_vsock(file, "spare = 2\n"), "", [&] { sockets.preload(); });
  VmByVsock vm(file);
  ASSERT_TRUE(vm.claim(0));
  Port program(sockets.port());
  ASSERT_TRUE(program.heard() && program.say(0) && program.heard());
  const ring::SlotWord held = ring::SlotWord::of(vm.state(0).load());
  vm.state(0).store(held.with(SlotState::Released).word());
  vm.ring_peer(ring::peer_broker);
  ASSERT_TRUE(eventually([&] { return ring::SlotWord::of(vm.state(0).load()).epoch != held.epoch; }));
  ASSERT_TRUE(vm.claim(0));
  const std::uint32_t next = vm.state(0).load();
  program.end();
  ASSERT_TRUE(broker.eventually_logged("a doorbell channel has ended"));
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(vm.state(0).load(), next);
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(VsockBroker, TheLogReportsAForeignCid) {
  const VsockFolder sockets;
  const std::string file = memory_file("cid");
  Broker broker(by_vsock(file), "", [&] { sockets.preload(); });
  sockets.cid(7);
  EXPECT_TRUE(Port(sockets.port()).ended());
  EXPECT_TRUE(broker.eventually_logged(
      "t: a connection by vsock is refused: it comes from CID 7, and the VM's vsock_cid is 5"));
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(VsockBroker, AHeaderThatAGuestHasSpoiltIsPutBack) {
  const VsockFolder sockets;
  const std::string file = memory_file("port");
  Broker broker(by_vsock(file), "", [&] { sockets.preload(); });
  VmByVsock vm(file);
  vm.header().doorbell_port = 22;
  vm.ring_peer(ring::peer_broker);
  EXPECT_TRUE(eventually([&] { return other_side::shared(vm.header().doorbell_port).load() == 5000; }));
  EXPECT_EQ(broker.terminate(), 0);
}

// Makes socket() fail for AF_VSOCK, as on a kernel without vsock.
void take_vsock_away() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
                        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_VSOCK, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) _exit(125);
}

TEST(VsockBroker, WithoutVsockInTheKernelTheStartReportsTheRemedy) {
  Broker broker(by_vsock(memory_file("missing")), "", take_vsock_away);
  ASSERT_TRUE(broker.ready.empty());
  EXPECT_NE(broker.wait(), 0);
  EXPECT_TRUE(broker.logged("VM t: vsock_port = 5000: this machine's kernel has no vsock")) << broker.log();
  EXPECT_TRUE(broker.logged("`modprobe vhost_vsock`"));
}

TEST(VsockBroker, TheCheckReportsItBefore) {
  const auto check = [] {
    take_vsock_away();
    const std::string text = "[vm.t]\ntransport = \"pmem\"\nvsock_cid = 5\nvsock_port = 5000\n";
    const auto config = host::broker::parse_config(text, "f.toml", 4);
    if (!config) return 2;
    for (const std::string& sentence : check_start(*config).wrong)
      if (sentence.starts_with("VM t: vsock_port = 5000: this machine's kernel has no vsock")) return 0;
    return 1;
  };
  EXPECT_EQ(run_in_child(check), 0);
}

TEST(VsockBroker, APortThatIsTakenIsNamedAndHadWhenItIsFree) {
  const VsockFolder sockets;
  sockets.write("5000", "");
  Broker broker(by_vsock(memory_file("taken")), "", [&] { sockets.preload(); });
  ASSERT_EQ(broker.ready, "ready\n") << broker.log();
  EXPECT_TRUE(broker.eventually_logged("VM t: vsock_port = 5000: another program listens at this port"))
      << broker.log();
  std::this_thread::sleep_for(1200ms);
  EXPECT_EQ(broker.times_logged("another program listens"), 1U) << "it is said at each try";
  unlink(sockets.port().c_str());
  EXPECT_TRUE(broker.eventually_logged("t: port 5000 of vsock is free now")) << broker.log();
  EXPECT_TRUE(Port(sockets.port()).heard());
  EXPECT_EQ(broker.terminate(SIGINT), 0);
}

}  // namespace
