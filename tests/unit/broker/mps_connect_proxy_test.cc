// Connections of a jailed worker to its GPU's MPS daemon (host/broker/mps/mps_connect_proxy.h). Workers connect as
// NVIDIA's driver does for a context, or to other addresses; daemons are busy, unresponsive or absent.
#include "host/broker/mps/mps_connect_proxy.h"

#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include <atomic>
#include <mutex>

#include "tests/unit/broker/fake_fd_store.h"
#include "tests/unit/broker/mps_client.h"
#include "tests/unit/broker/mps_harness.h"

namespace {

using namespace broker_test;
using ring::SlotState;

int listen_at(const std::string& path, int queue) {
  const sockaddr_un address = mps_play::address_of(path);
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  EXPECT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(listener, queue), 0);
  chmod(path.c_str(), 0666);
  return listener;
}

// Replaces the fake daemon's pipe during the object's lifetime. The fake daemon receives nothing in this time.
class PlayedDaemon {
 public:
  struct Client {
    ucred peer{};    // the process that connected, as the kernel reports it
    ucred sender{};  // the process that sent the message
    std::string said;
  };

  // `queue`: length of the listen queue. An unresponsive (`deaf`) daemon accepts no connection.
  explicit PlayedDaemon(const std::string& folder, bool deaf = false, int queue = 64)
      : path_(folder + "/pipe/control") {
    std::filesystem::rename(path_, path_ + ".fake");
    listener_ = listen_at(path_, queue);
    if (!deaf) wake();
  }
  ~PlayedDaemon() {
    go();
    std::filesystem::rename(path_ + ".fake", path_);
  }
  PlayedDaemon(const PlayedDaemon&) = delete;
  PlayedDaemon& operator=(const PlayedDaemon&) = delete;

  void wake() {
    thread_ = std::thread([this] { serve(); });
  }
  void go() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    if (listener_ >= 0) close(listener_);
    listener_ = -1;
    std::filesystem::remove(path_);
  }
  const std::string& path() const { return path_; }
  std::vector<Client> clients() {
    const std::lock_guard lock(mutex_);
    return clients_;
  }

 private:
  void serve() {
    while (!over_) {
      pollfd news{listener_, POLLIN, 0};
      if (poll(&news, 1, 20) != 1) continue;
      const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client >= 0) welcome(client);
      close(client);
    }
  }
  void welcome(int socket) {
    Client client;
    socklen_t length = sizeof client.peer;
    getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &client.peer, &length);
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    mps_play::Message message;
    const bool speaks = mps_play::send(socket, "who is it?") && mps_play::receive(socket, message);
    client.sender = message.sender;
    client.said = message.text;
    {
      const std::lock_guard lock(mutex_);
      clients_.push_back(client);
    }
    if (speaks) pass_server(socket);
  }
  static void pass_server(int socket) {
    int talk[2], pipes[4];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk), 0);
    EXPECT_TRUE(pipe2(pipes, O_CLOEXEC) == 0 && pipe2(pipes + 2, O_CLOEXEC) == 0);
    EXPECT_TRUE(mps_play::send(socket, "your server", {talk[1], pipes[0], pipes[1], pipes[2], pipes[3]}));
    char bytes[mps_play::talk_bytes];
    close(talk[1]);
    if (read(talk[0], bytes, sizeof bytes) == sizeof bytes && bytes[0] == 'c') {
      memset(bytes, 's', sizeof bytes);
      EXPECT_EQ(write(talk[0], bytes, sizeof bytes), static_cast<ssize_t>(sizeof bytes));
    }
    for (const int fd : {talk[0], pipes[0], pipes[1], pipes[2], pipes[3]}) close(fd);
  }

  const std::string path_;
  int listener_ = -1;
  std::thread thread_;
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  std::vector<Client> clients_;
};

// A session with a fake worker.
class Session {
 public:
  explicit Session(const std::string& socket) : guest_(socket) {
    if (!guest_.greet(3)) return;
    if (const auto slot = guest_.claim()) slot_ = *slot;
  }
  // Makes the worker create a context that connects to `path`. Returns the step that the worker reached.
  std::string makes_context(const std::string& path, char how = 'C') const {
    begin_context(path, how);
    return came();
  }
  void begin_context(const std::string& path, char how = 'C') const {
    write(64, path);
    guest_.command(slot_)[1] = 0;
    guest_.command(slot_)[0] = how;
    guest_.ring_peer(ring::peer_of_slot(slot_));
  }
  std::string came() const {
    if (!eventually([&] { return guest_.command(slot_)[1] == 'k'; })) return "no answer";
    return std::string(const_cast<const char*>(guest_.command(slot_) + 512));
  }
  // Makes the worker connect `times` times, one connection after another. Returns the number of successful connections.
  std::uint64_t knocks(const std::string& path, std::uint64_t times) const {
    prepare_knocks(path, times);
    return guest_.tell(slot_, 'K') ? number(16) : 0;
  }
  void begin_knocks(const std::string& path, std::uint64_t times) const {
    prepare_knocks(path, times);
    guest_.command(slot_)[0] = 'K';
    guest_.ring_peer(ring::peer_of_slot(slot_));
  }
  const Client& guest() const { return guest_; }
  std::uint32_t slot() const { return slot_; }
  bool ends() const {
    return guest_.step(slot_, SlotState::Claimed, SlotState::Released) && guest_.becomes(slot_, SlotState::Empty);
  }

 private:
  void prepare_knocks(const std::string& path, std::uint64_t times) const {
    write(64, path);
    number(8) = times;
  }
  void write(std::size_t at, const std::string& text) const {
    memcpy(const_cast<char*>(guest_.command(slot_) + at), text.c_str(), text.size() + 1);
  }
  volatile std::uint64_t& number(std::size_t at) const {
    return *reinterpret_cast<volatile std::uint64_t*>(guest_.command(slot_) + at);
  }

  Client guest_;
  std::uint32_t slot_ = 0;
};

uid_t user_of_workers() { return geteuid() == 0 ? workers_user : geteuid(); }

TEST(MpsConnectProxy, AProgramsOwnContextsReachTheDaemon) {
  const Control control;
  MpsBroker broker(control);
  PlayedDaemon daemon(broker.folder_of(0));
  const pid_t worker = workers_of(broker).front();
  const Session session(broker.socket_path());
  EXPECT_EQ(session.makes_context(daemon.path()), "talks");
  EXPECT_EQ(session.makes_context(daemon.path()), "talks") << "and the next one";
  const auto clients = daemon.clients();
  ASSERT_EQ(clients.size(), 2U);
  for (const auto& client : clients) {
    EXPECT_EQ(client.said, "a client");
    EXPECT_EQ(client.sender.pid, worker);
    EXPECT_EQ(client.sender.uid, user_of_workers());
    EXPECT_EQ(client.peer.uid, user_of_workers()) << "a daemon obeys root";
    EXPECT_EQ(client.peer.gid, geteuid() == 0 ? workers_user : getegid());
  }
  EXPECT_TRUE(broker.logged("t: the workers' jail is complete")) << broker.log();
}

TEST(MpsConnectProxy, LeadsNowhereElse) {
  const Control control;
  MpsBroker broker(control, "[vm.w]\ngpus = [2]\n");
  PlayedDaemon daemon(broker.folder_of(0)), of_others(broker.folder_of(2));
  const std::string path = broker.folder / "other.sock";
  const int other = listen_at(path, 8);
  const Session session(broker.socket_path());
  std::size_t times = 0;
  for (const std::string& wish : {path, of_others.path(), std::string("/nowhere"), std::string()}) {
    EXPECT_EQ(session.makes_context(wish), "talks") << wish;
    EXPECT_EQ(daemon.clients().size(), ++times) << wish;
  }
  EXPECT_EQ(session.makes_context("", 'Q'), "talks, refused, refused");
  EXPECT_TRUE(accept(other, nullptr, nullptr) < 0 && errno == EAGAIN);
  EXPECT_TRUE(of_others.clients().empty());
  const Session elsewhere(broker.folder / "w.sock");
  EXPECT_EQ(elsewhere.makes_context(daemon.path()), "talks");
  EXPECT_EQ(of_others.clients().size(), 1U);
  close(other);
}

TEST(MpsConnectProxy, AFloodWaitsAndOthersDoNot) {
  const Control control;
  MpsBroker broker(control, "[vm.u]\ngpus = [0]\n");
  PlayedDaemon daemon(broker.folder_of(0));
  const Session flood(broker.socket_path());
  constexpr auto pace = host::broker::MpsConnectProxy::pace;
  constexpr std::uint64_t times = 80;
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(flood.knocks(daemon.path(), times), times);
  EXPECT_GE(seconds_since(before), 0.9 * (times - pace.burst) / pace.per_second);
  flood.begin_knocks(daemon.path(), 1'000'000);
  const Session other(broker.folder / "u.sock");
  EXPECT_EQ(other.makes_context(daemon.path()), "talks");
  EXPECT_TRUE(flood.ends()) << "a worker that waits in its connect() is ended all the same";
  EXPECT_EQ(other.makes_context(daemon.path()), "talks");
}

TEST(MpsConnectProxy, ADeafDaemonKeepsNobodyWaiting) {
  const Control control;
  MpsBroker broker(control);
  const Session session(broker.socket_path());
  {
    const PlayedDaemon deaf(broker.folder_of(0), true, 3);
    EXPECT_EQ(session.knocks(deaf.path(), 6), 4U) << "what its queue holds";
    EXPECT_TRUE(broker.eventually_logged("t/0: the MPS daemon at " + deaf.path() +
                                         " cannot be reached for it: Resource temporarily unavailable"));
  }
  PlayedDaemon daemon(broker.folder_of(0));
  EXPECT_EQ(session.makes_context(daemon.path()), "talks");
}

// Under load the daemon may start after the broker has given up. The test then tries again.
TEST(MpsConnectProxy, ADaemonThatIsBusyForAMomentIsWaitedFor) {
  const Control control;
  MpsBroker broker(control);
  const Session session(broker.socket_path());
  std::string came;
  EXPECT_TRUE(eventually([&] {
    PlayedDaemon daemon(broker.folder_of(0), true, 0);
    EXPECT_EQ(session.knocks(daemon.path(), 1), 1U);
    std::thread later([&] {
      std::this_thread::sleep_for(host::broker::MpsConnectProxy::patience / 4);
      daemon.wake();
    });
    came = session.makes_context(daemon.path());
    later.join();
    return came == "talks";
  })) << came;
}

// A worker's waiting calls end when the worker ends.
TEST(MpsConnectProxy, AWorkerThatEndsWhileItsCallWaitsIsForgotten) {
  const Control control;
  MpsBroker broker(control);
  PlayedDaemon deaf(broker.folder_of(0), true, 0);
  const pid_t worker = workers_of(broker).front();
  const Session session(broker.socket_path());
  session.begin_knocks(deaf.path(), 1000);
  std::this_thread::sleep_for(host::broker::MpsConnectProxy::patience / 4);
  kill(worker, SIGKILL);
  EXPECT_TRUE(broker.eventually_logged("all clients of MPS on"));
  deaf.wake();
  EXPECT_TRUE(eventually([&] { return !lives(worker); }));
  const Session next(broker.socket_path());
  EXPECT_EQ(next.makes_context(deaf.path()), "talks");
}

TEST(MpsConnectProxy, ADaemonThatHasGoneIsReported) {
  const Control control;
  MpsBroker broker(control);
  const Session session(broker.socket_path());
  {
    const auto begin = std::chrono::steady_clock::now();
    PlayedDaemon daemon(broker.folder_of(0));
    daemon.go();
    EXPECT_EQ(session.makes_context(daemon.path()), "connect: ECONNREFUSED");
    EXPECT_TRUE(broker.eventually_logged("cannot be reached for it: No such file or directory"));
    EXPECT_EQ(session.knocks(daemon.path(), 15), 0U);
    const std::size_t lines = broker.times_logged("cannot be reached for it");
    EXPECT_LE(static_cast<double>(lines), 1 + seconds_since(begin)) << "once a second";
  }
  PlayedDaemon daemon(broker.folder_of(0));
  EXPECT_EQ(session.makes_context(daemon.path()), "talks");
}

// ---- a broker after another -----------------------------------------------------------------------------------------

// A broker whose workers outlive it, and the next broker.
class KeptBroker : public MpsBroker {
 public:
  KeptBroker(const Control& control, FakeFdStore& fd_store)
      : MpsBroker(control, "", "", "", fd_store.environment()), fd_store_(fd_store) {}
  ~KeptBroker() {
    if (!ended()) terminate(SIGINT);
  }
  KeptBroker(const KeptBroker&) = delete;
  KeptBroker& operator=(const KeptBroker&) = delete;

  bool holds_proxy_of(const Session& session) const {
    return eventually([&] { return fd_store_.holds(proxy_of(session)); });
  }
  static std::string proxy_of(const Session& session) { return "t/" + std::to_string(session.slot()) + "/door"; }
  void next() {
    again([of_store = fd_store_.environment()] {
      setenv("IVGPU_SIM_DEVICES", "3", 1);
      of_store();
    });
  }

 private:
  FakeFdStore& fd_store_;
};

TEST(MpsConnectProxy, IsThereWithTheNextBroker) {
  const Control control;
  FakeFdStore fd_store;
  KeptBroker broker(control, fd_store);
  PlayedDaemon daemon(broker.folder_of(0));
  const Session session(broker.socket_path());
  EXPECT_EQ(session.makes_context(daemon.path()), "talks");
  ASSERT_TRUE(broker.holds_proxy_of(session));
  for (const int signal : {SIGTERM, SIGKILL}) {
    const std::size_t before = daemon.clients().size();
    broker.terminate(signal);
    session.begin_context(daemon.path());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(daemon.clients().size(), before) << "it waits";
    broker.next();
    EXPECT_EQ(session.came(), "talks");
    EXPECT_EQ(session.makes_context(daemon.path()), "talks") << "and the next one";
    EXPECT_EQ(daemon.clients().size(), before + 2);
    EXPECT_EQ(daemon.clients().back().peer.uid, user_of_workers());
  }
}

TEST(MpsConnectProxy, ACallThatWaitsForABusyDaemonIsTheNextBrokers) {
  const Control control;
  FakeFdStore fd_store;
  KeptBroker broker(control, fd_store);
  const Session session(broker.socket_path());
  ASSERT_TRUE(broker.holds_proxy_of(session));
  std::string came;
  EXPECT_TRUE(eventually([&] {  // repeated, since under load the broker may give up too early
    PlayedDaemon daemon(broker.folder_of(0), true, 0);
    EXPECT_EQ(session.knocks(daemon.path(), 1), 1U);
    session.begin_context(daemon.path());
    std::this_thread::sleep_for(host::broker::MpsConnectProxy::patience / 4);
    broker.terminate(SIGKILL);
    daemon.wake();
    broker.next();
    came = session.came();
    return came == "talks";
  })) << came;
}

TEST(MpsConnectProxy, AWorkerWhoseProxyWasNotKeptIsLostAlone) {
  const Control control;
  FakeFdStore fd_store;
  KeptBroker broker(control, fd_store);
  const Session session(broker.socket_path()), other(broker.socket_path());
  ASSERT_TRUE(broker.holds_proxy_of(session) && broker.holds_proxy_of(other));
  broker.terminate(SIGKILL);
  fd_store.lose(KeptBroker::proxy_of(session));
  broker.next();
  EXPECT_TRUE(session.guest().becomes(session.slot(), SlotState::Dead));
  EXPECT_TRUE(broker.logged("its worker was lost when ivgpud was restarted")) << broker.log();
  EXPECT_EQ(other.guest().word(other.slot()).state, SlotState::Claimed);
  EXPECT_FALSE(broker.logged("all clients of MPS")) << broker.log();
}

// ---- without it -----------------------------------------------------------------------------------------------------

TEST(MpsConnectProxy, OtherWorkersHaveNone) {
  const Broker broker(
      "gpus = [0]\n", "", [] {}, "sim");
  const Session session(broker.socket_path());
  EXPECT_EQ(session.makes_context(broker.socket_path()), "socket: EPERM");
}

// Makes a system call fail with EINVAL if an argument has these bits, as on a kernel that refuses them.
void take_away_where(unsigned call, unsigned argument, unsigned bits, bool all) {
  const auto at = static_cast<unsigned>(offsetof(seccomp_data, args) + 8 * argument);
  const auto test = static_cast<unsigned short>(BPF_JMP | BPF_K | (all ? BPF_JEQ : BPF_JSET));
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
                        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
                        BPF_JUMP(test, bits, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) _exit(125);
}

constexpr const char* no_proxy =
    "t: a program's own context (cuCtxCreate) fails with CUDA_ERROR_MPS_CONNECTION_FAILED: this kernel does not let "
    "ivgpud answer the connect() of a jailed worker, as Linux 5.9 and later do";

TEST(MpsConnectProxy, AKernelWithoutListenersIsReported) {
  const Control control;
  MpsBroker broker(control, "", "", "",
                   [] { take_away_where(SYS_seccomp, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER, false); });
  PlayedDaemon daemon(broker.folder_of(0));
  const Session session(broker.socket_path());
  EXPECT_EQ(session.makes_context(daemon.path()), "socket: EPERM");
  EXPECT_TRUE(broker.eventually_logged(no_proxy));
  EXPECT_TRUE(broker.logged("t: the workers' jail is complete")) << "it is closed, only more so";
}

TEST(MpsConnectProxy, AKernelThatPutsNoDescriptorInPlaceIsReported) {
  const Control control;
  MpsBroker broker(control, "", "", "",
                   [] { take_away_where(SYS_ioctl, 1, static_cast<unsigned>(SECCOMP_IOCTL_NOTIF_ADDFD), true); });
  PlayedDaemon daemon(broker.folder_of(0));
  const Session session(broker.socket_path());
  EXPECT_EQ(session.makes_context(daemon.path()), "connect: ENOSYS");
  EXPECT_TRUE(broker.eventually_logged(no_proxy));
  EXPECT_TRUE(daemon.clients().empty());
}

TEST(MpsConnectProxy, ADescriptorThatIsNoListenerIsClosed) {
  host::broker::EventLoop loop;
  for (const int fd :
       {eventfd(0, EFD_CLOEXEC), open("/dev/null", O_RDWR | O_CLOEXEC), socket(AF_UNIX, SOCK_STREAM, 0)}) {
    EXPECT_EQ(host::broker::MpsConnectProxy::open(loop, host::broker::Fd(fd), {}), nullptr);
    EXPECT_TRUE(fcntl(fd, F_GETFD) < 0 && errno == EBADF);
  }
}

TEST(MpsConnectProxy, AWorkerThatPassesMoreIsKilled) {
  const Control control;
  {
    const MpsBroker broker(control, "", "pass");
    EXPECT_TRUE(broker.eventually_logged("killed: it said something that no worker says"));
  }
  const Broker broker("", "pass");
  EXPECT_TRUE(broker.eventually_logged("killed: it said something that no worker says"));
}

}  // namespace
