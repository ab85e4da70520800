// ivgpud's messages to its service manager, and the format of its log in the journal. The tests use a real ivgpud, fake
// workers, and a stand-in for systemd.
#include <sys/resource.h>

#include <algorithm>
#include <regex>

#include "host/base/log.h"
#include "host/base/process/service_manager.h"
#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;

// The manager, with the socket that NOTIFY_SOCKET names.
class Manager {
 public:
  explicit Manager(bool abstract = false) {
    name_ = abstract ? "@ivgpu-test-" + std::to_string(getpid()) : folder_ / "notify";
    socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path, sizeof address.sun_path - 1);
    if (abstract) address.sun_path[0] = '\0';
    const std::size_t bytes = offsetof(sockaddr_un, sun_path) + name_.size() + (abstract ? 0 : 1);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), static_cast<socklen_t>(bytes)), 0);
  }
  ~Manager() { close(socket_); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  const std::string& name() const { return name_; }
  // Returns "" if no message comes in time. Skips messages about descriptors, which restart_test.cc covers.
  std::string next(int milliseconds = deadline_ms) const {
    for (;;) {
      pollfd news{socket_, POLLIN, 0};
      if (poll(&news, 1, milliseconds) != 1) return "";
      char bytes[512];
      const ssize_t length = recv(socket_, bytes, sizeof bytes, 0);
      const std::string text(bytes, length > 0 ? static_cast<std::size_t>(length) : 0);
      if (!text.starts_with("FDSTORE")) return text;
    }
  }
  // Same as next(), without watchdog messages, which overtake all queued messages.
  std::string next_but_watchdog() const {
    std::string text = next();
    while (text == "WATCHDOG=1") text = next();
    return text;
  }
  // All messages so far, including the names of descriptors.
  std::vector<std::string> all() const {
    std::vector<std::string> texts;
    char bytes[512];
    for (ssize_t length; (length = recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
      texts.emplace_back(bytes, static_cast<std::size_t>(length));
    return texts;
  }
  // Fills the socket's queue, as if the manager hung.
  int fill() const {
    const int other = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path, sizeof address.sun_path - 1);
    int count = 0;
    while (sendto(other, "x", 1, 0, reinterpret_cast<sockaddr*>(&address), sizeof address) == 1) ++count;
    close(other);
    return count;
  }

 private:
  Folder folder_;
  std::string name_;
  int socket_ = -1;
};

std::function<void()> environment(const std::string& socket, const std::string& watchdog_us = "",
                                  const std::string& watchdog_pid = "") {
  return [=] {
    setenv("NOTIFY_SOCKET", socket.c_str(), 1);
    if (!watchdog_us.empty()) setenv("WATCHDOG_USEC", watchdog_us.c_str(), 1);
    if (!watchdog_pid.empty())
      setenv("WATCHDOG_PID", watchdog_pid == "own" ? std::to_string(getpid()).c_str() : watchdog_pid.c_str(), 1);
  };
}

std::int64_t monotonic_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

TEST(Service, ReportsThatItServesReadsAgainAndEnds) {
  for (const bool abstract : {false, true}) {
    const Manager manager(abstract);
    Broker broker("", "", environment(manager.name()));
    const std::string first = manager.next();
    EXPECT_TRUE(first.starts_with("READY=1\nSTATUS=serving 1 VM(s) with /")) << first;
    Client guest(broker.socket_path());
    EXPECT_TRUE(guest.greet(3)) << "who is told that it serves is served";

    const std::int64_t before = monotonic_us();
    kill(broker.pid, SIGHUP);
    const std::string reloading = manager.next();
    std::smatch time;
    ASSERT_TRUE(std::regex_match(reloading, time, std::regex("RELOADING=1\nMONOTONIC_USEC=([0-9]+)"))) << reloading;
    EXPECT_GE(std::stoll(time[1]), before);
    EXPECT_LE(std::stoll(time[1]), monotonic_us());
    EXPECT_TRUE(manager.next().starts_with("READY=1\nSTATUS=serving 1 VM(s)"));

    EXPECT_EQ(broker.terminate(), 0);
    EXPECT_EQ(manager.next(), "STOPPING=1");
    EXPECT_EQ(manager.next(0), "") << "nothing else was said, and no watchdog was asked for";
  }
}

// `systemctl reload` must return only when a removed VM has ended and a new VM is served.
TEST(Service, IsReadyAgainWhenTheReloadIsThrough) {
  const Manager manager;
  Broker broker("", "", environment(manager.name()));
  EXPECT_TRUE(manager.next().starts_with("READY=1"));
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.claim());
  std::string file = broker.folder.read("c.toml");
  file.replace(file.find("[vm.t]"), 6, "[vm.u]");
  broker.folder.write("c.toml", file);
  kill(broker.pid, SIGHUP);
  EXPECT_TRUE(manager.next().starts_with("RELOADING=1"));
  EXPECT_TRUE(manager.next().starts_with("READY=1"));
  EXPECT_TRUE(broker.logged("VM u: added")) << broker.log();
  EXPECT_FALSE(std::filesystem::exists(broker.socket_path()));

  broker.folder.write("c.toml", "a mistake");
  kill(broker.pid, SIGHUP);
  EXPECT_TRUE(manager.next().starts_with("RELOADING=1"));
  EXPECT_TRUE(manager.next().starts_with("READY=1\nSTATUS=serving 1 VM(s)")) << "it goes on as before";
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Service, TheWatchdogHearsEachIteration) {
  const Manager manager;
  Broker broker("", "", environment(manager.name(), "400000", "own"));
  EXPECT_TRUE(manager.next_but_watchdog().starts_with("READY=1"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(manager.next(), "WATCHDOG=1");
  kill(broker.pid, SIGSTOP);
  while (!manager.next(100).empty()) {
  }
  EXPECT_EQ(manager.next(800), "") << "a broker that stands still says nothing";
  kill(broker.pid, SIGCONT);
  EXPECT_EQ(manager.next(), "WATCHDOG=1");
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Service, AnotherProcessIsWatched) {
  const Manager manager;
  Broker broker("", "", environment(manager.name(), "100000", "1"));
  EXPECT_TRUE(manager.next().starts_with("READY=1"));
  EXPECT_EQ(manager.next(500), "");
}

TEST(Service, AManagerThatDoesNotReadStopsNobody) {
  const Manager manager;
  const int filled = manager.fill();
  ASSERT_GT(filled, 0);
  Broker broker("", "", environment(manager.name(), "100000"));
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  EXPECT_TRUE(guest.claim());
  for (int i = 0; i < filled; ++i) EXPECT_EQ(manager.next(), "x");
  EXPECT_TRUE(manager.next_but_watchdog().starts_with("READY=1")) << "what had no room has waited";
  EXPECT_EQ(manager.next(), "WATCHDOG=1");
}

std::size_t open_descriptors(pid_t process) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(process) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Clients connect and hang up while the manager does not read. The broker must never send both messages of a pair,
// store and remove.
TEST(Service, ConnectionsThatHaveGoneDoNotWaitForTheManager) {
  const Manager manager;
  Broker broker("", "", environment(manager.name()));
  // Waits until the manager has stored all descriptors that exist without a connection.
  ASSERT_TRUE(eventually([&] {
    const std::vector<std::string> texts = manager.all();
    return std::any_of(texts.begin(), texts.end(), [](const auto& t) { return t.find("t/0/use\n") != t.npos; });
  }));
  ASSERT_GT(manager.fill(), 0);
  const std::size_t before = open_descriptors(broker.pid);
  for (int i = 0; i < 300; ++i) {
    Client client(broker.socket_path());
    ASSERT_TRUE(client.greet(3)) << "connection " << i;
  }
  EXPECT_TRUE(eventually([&] { return open_descriptors(broker.pid) <= before + 1; }))
      << open_descriptors(broker.pid) - before << " descriptors wait";
  Client last(broker.socket_path());
  ASSERT_TRUE(last.greet(3));
  std::vector<std::string> peers;
  EXPECT_TRUE(eventually([&] {
    for (const std::string& text : manager.all())
      if (text.find("t/peer/") != std::string::npos) peers.push_back(text);
    return !peers.empty();
  }));
  EXPECT_EQ(peers, (std::vector<std::string>{"FDSTORE=1\nFDNAME=t/peer/" + std::to_string(last.peer) + "\nFDPOLL=0"}));
}

// ---- messages to a manager that does not read -----------------------------------------------------------------------

// The messages that a manager reads after its socket was full.
std::vector<std::string> heard_by(const Manager& manager, host::broker::ServiceManager& said) {
  std::vector<std::string> texts;
  manager.all();
  for (;;) {
    said.finish();
    const std::vector<std::string> more = manager.all();
    if (more.empty()) return texts;
    texts.insert(texts.end(), more.begin(), more.end());
  }
}

// A manager whose socket is full, and ivgpud's queue of messages for this manager.
class Queue : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GT(manager_.fill(), 0);
    setenv("NOTIFY_SOCKET", manager_.name().c_str(), 1);
    said_ = std::make_unique<host::broker::ServiceManager>(loop_);
    ASSERT_TRUE(said_->is_there());
  }
  // The queued messages. The manager reads them now.
  std::vector<std::string> heard() { return heard_by(manager_, *said_); }
  static std::string keeps(const std::string& name) { return "FDSTORE=1\nFDNAME=" + name + "\nFDPOLL=0"; }
  static std::string forgets(const std::string& name) { return "FDSTOREREMOVE=1\nFDNAME=" + name; }

  const Manager manager_;
  host::broker::EventLoop loop_;
  std::unique_ptr<host::broker::ServiceManager> said_;
};

TEST_F(Queue, WhatIsForgottenBeforeItWasSentIsNotSent) {
  const std::size_t before = open_descriptors(getpid());
  for (int i = 0; i < 5000; ++i) {
    said_->keep("t/peer/" + std::to_string(i), 0);
    said_->forget("t/peer/" + std::to_string(i));
  }
  EXPECT_EQ(open_descriptors(getpid()), before);
  said_->keep("t/region", 0);
  EXPECT_EQ(heard(), std::vector<std::string>{keeps("t/region")});
}

// The manager stores one descriptor per name, so it must remove the old descriptor first.
TEST_F(Queue, AnotherOfTheSameNameComesAfterTheEndOfTheFirst) {
  said_->keep("a", 0);
  EXPECT_EQ(heard(), std::vector<std::string>{keeps("a")});
  ASSERT_GT(manager_.fill(), 0);
  said_->forget("a");
  said_->keep("a", 0);
  said_->forget("a");
  said_->keep("a", 0);
  EXPECT_EQ(heard(), (std::vector<std::string>{forgets("a"), keeps("a")}));
}

TEST_F(Queue, WhatWaitsIsBounded) {
  const std::size_t before = open_descriptors(getpid());
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t most = host::broker::ServiceManager::most_waiting, more = most + 100;
  ASSERT_GT(limit.rlim_cur, more + 100) << "this test needs a higher limit on descriptors";
  std::size_t kept = 0;
  for (std::size_t i = 0; i < more; ++i) kept += said_->keep("t/" + std::to_string(i), 0) ? 1 : 0;
  EXPECT_EQ(kept, most);
  EXPECT_EQ(open_descriptors(getpid()), before + most);
  said_->forget("t/0");
  EXPECT_TRUE(said_->keep("t/again", 0)) << "there is room again";
  EXPECT_FALSE(said_->keep("t/more", 0));
}

TEST_F(Queue, ADescriptorThatCannotBeCopiedIsNotKept) {
  EXPECT_FALSE(said_->keep("none", -1));
  EXPECT_EQ(heard(), std::vector<std::string>());
}

// systemd ends a service whose watchdog messages are late, whatever else systemd receives.
TEST(Service, TheWatchdogGoesBeforeEverythingThatWaits) {
  const Manager manager;
  ASSERT_GT(manager.fill(), 0);
  setenv("NOTIFY_SOCKET", manager.name().c_str(), 1);
  setenv("WATCHDOG_USEC", "1000", 1);
  host::broker::EventLoop loop;
  host::broker::ServiceManager said(loop);
  for (int i = 0; i < 10; ++i) said.keep("t/" + std::to_string(i), 0);
  said.ready("serving");
  auto end = loop.after(std::chrono::milliseconds(20), [&] { loop.stop(); });  // lasts for several watchdog periods
  loop.run();
  loop.forget(end);
  const std::vector<std::string> heard = heard_by(manager, said);
  ASSERT_EQ(heard.size(), 12U) << "one watchdog message, ten descriptors, and READY";
  EXPECT_EQ(heard[0], "WATCHDOG=1");
  EXPECT_EQ(std::count(heard.begin(), heard.end(), "WATCHDOG=1"), 1);
}

TEST(Service, ABadAddressIsReportedAndServedAllTheSame) {
  const Folder empty;
  for (const std::string& bad : {std::string("relative"), std::string("@"), empty / "nobody", std::string(300, '/')}) {
    Broker broker("", "", environment(bad, "nonsense"));
    EXPECT_EQ(broker.ready, "ready\n") << bad;
    EXPECT_TRUE(broker.logged("NOTIFY_SOCKET=" + bad)) << broker.log();
    EXPECT_EQ(broker.terminate(), 0);
  }
}

// ---- the log --------------------------------------------------------------------------------------------------------

// Makes JOURNAL_STREAM name the child's standard error, or another file.
std::function<void()> journal(bool own) {
  return [own] {
    struct stat status {};
    fstat(2, &status);
    setenv("JOURNAL_STREAM",
           (std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino + (own ? 0 : 1))).c_str(), 1);
  };
}

TEST(Log, TheJournalGetsPriorities) {
  Broker broker("", "", journal(true));
  ASSERT_TRUE(broker.eventually_logged("serving 1"));
  EXPECT_TRUE(broker.logged("\n<6>serving 1 VM(s)") || broker.log().starts_with("<6>serving")) << broker.log();
  broker.folder.write("c.toml", "a mistake");
  kill(broker.pid, SIGHUP);
  EXPECT_TRUE(broker.eventually_logged("\n<3>" + broker.folder.path())) << broker.log();
  EXPECT_TRUE(broker.logged("<7>waiting through ")) << broker.log();
  EXPECT_EQ(broker.terminate(), 0);
  std::istringstream lines(broker.log());
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(std::regex_search(line, std::regex("^<[3467]>[^<0-9]"))) << line;
}

TEST(Log, AnotherStreamIsForPeople) {
  Broker broker("", "", journal(false));
  ASSERT_TRUE(broker.eventually_logged("serving 1"));
  EXPECT_TRUE(std::regex_search(broker.log(), std::regex("20[0-9-]+ [0-9:.]+ info serving 1 VM"))) << broker.log();
  EXPECT_FALSE(broker.logged("<6>"));
}

TEST(Log, TheVariableNamesOneStream) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  struct stat status {};
  fstat(ends[1], &status);
  const std::string own = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  EXPECT_TRUE(host::broker::is_journal(own.c_str(), ends[1]));
  for (const std::string& other : {own + "0", own + " ", std::string(":"), std::string()})
    EXPECT_FALSE(host::broker::is_journal(other.c_str(), ends[1])) << other;
  EXPECT_FALSE(host::broker::is_journal(nullptr, ends[1]));
  EXPECT_FALSE(host::broker::is_journal(own.c_str(), -1));
  close(ends[0]);
  close(ends[1]);
}

// ivgpud refuses to start before its log exists, and prints the reason to standard error.
TEST(Log, ARefusalHasAPriorityToo) {
  const Folder folder;
  const std::string file = folder.write("c.toml", "a mistake");
  const std::string script = "export JOURNAL_STREAM=$(stat -L -c %d:%i /dev/stderr); exec " IVGPUD " --config " + file;
  const Outcome outcome = run_program("/bin/sh", {"-c", script});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.text.starts_with("<3>ivgpud: " + file)) << outcome.text;
}

}  // namespace
