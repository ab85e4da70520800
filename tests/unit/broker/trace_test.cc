// The broker's trace socket, and `ivgpu trace`: the messages that each client gets, when tracing is on, and bad input.
// The tests use a real ivgpud and fake workers, which write each entry on command.
#include <fcntl.h>

#include "ring/ops/trace_socket.h"
#include "tests/child.h"
#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using ring::SlotState, ring::TraceMessage, ring::TraceNews, ring::TraceRequest;

TraceRequest request(const std::string& vm = "", std::uint32_t slot = ring::any_slot, std::uint32_t process = 0) {
  TraceRequest r{ring::trace_magic, ring::telemetry_version, slot, process, {}};
  vm.copy(r.vm, sizeof r.vm - 1);
  return r;
}

// A client of the trace socket.
class Watcher {
 public:
  explicit Watcher(const Broker& broker) {
    socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (broker.folder / "ivgpud.trace").copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Watcher() {
    close(socket_);
    if (memory >= 0) close(memory);
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  bool try_ask(const TraceRequest& r, std::size_t bytes) const {
    return send(socket_, &r, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
  }
  void ask(const TraceRequest& r, std::size_t bytes = sizeof(TraceRequest)) const { EXPECT_TRUE(try_ask(r, bytes)); }
  // The next message; nullopt when the connection ends. The descriptor of a session is stored in `memory`.
  std::optional<TraceMessage> hear() {
    pollfd wait{socket_, POLLIN, 0};
    EXPECT_EQ(poll(&wait, 1, deadline_ms), 1) << "the broker says nothing";
    TraceMessage message{};
    iovec data{&message, sizeof message};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    if (recvmsg(socket_, &header, MSG_CMSG_CLOEXEC | MSG_WAITALL) != sizeof message) return std::nullopt;
    if (const cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr) {
      if (memory >= 0) close(memory);
      memcpy(&memory, CMSG_DATA(c), sizeof memory);
    }
    return message;
  }
  TraceNews news() {
    const auto message = hear();
    return message ? message->news : TraceNews{0};
  }
  int memory = -1;

 private:
  int socket_;
};

Outcome trace(const Broker& broker, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"trace", "--runtime-dir", broker.folder.path()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(IVGPU, arguments);
}

// A broker with a claimed slot and, soon after, a spare worker.
struct Traced {
  Broker broker;
  Client guest{broker.socket_path()};
  Traced() {
    EXPECT_TRUE(guest.greet(3));
    EXPECT_EQ(guest.claim(), 0U);
    EXPECT_TRUE(guest.becomes(1, SlotState::Ready));
  }
  char traces(std::uint32_t slot) const {
    EXPECT_TRUE(guest.tell(slot, 't'));
    return guest.command(slot)[2];
  }
};

TEST(Trace, IsOnWhileSomebodyWatches) {
  Traced t;
  EXPECT_EQ(t.traces(0), 'n');
  {
    Watcher first(t.broker), second(t.broker);
    first.ask(request("t", 0));
    EXPECT_EQ(first.news(), TraceNews::Begins);
    EXPECT_EQ(first.news(), TraceNews::Claimed);
    EXPECT_EQ(first.news(), TraceNews::Listed);
    EXPECT_EQ(t.traces(0), 'y');
    EXPECT_EQ(t.traces(1), 'n') << "another slot's is nobody's business";
    second.ask(request());
    EXPECT_TRUE(eventually([&] { return t.traces(1) == 'y'; }));
  }
  EXPECT_TRUE(eventually([&] { return t.traces(0) == 'n' && t.traces(1) == 'n'; }));
}

TEST(Trace, TheDescriptorOnlyReads) {
  Traced t;
  Watcher watcher(t.broker);
  watcher.ask(request("t", 0));
  ASSERT_EQ(watcher.news(), TraceNews::Begins);
  ASSERT_GE(watcher.memory, 0);
  EXPECT_EQ(mmap(nullptr, ring::page, PROT_READ | PROT_WRITE, MAP_SHARED, watcher.memory, 0), MAP_FAILED);
  EXPECT_LT(write(watcher.memory, "x", 1), 0);
  EXPECT_NE(ftruncate(watcher.memory, 0), 0);
  void* at = mmap(nullptr, ring::telemetry_bytes, PROT_READ, MAP_SHARED, watcher.memory, 0);
  ASSERT_NE(at, MAP_FAILED);
  const ring::TelemetryView view(static_cast<std::byte*>(at));
  ring::TraceReader reader(view.page().channel[1].written, view.cells(1));
  EXPECT_EQ(t.traces(0), 'y');
  ring::TraceEntry entry{};
  EXPECT_EQ(reader.take(entry), ring::Taken::Entry);
  EXPECT_EQ(entry.call, 2);
  munmap(at, ring::telemetry_bytes);
}

// The results of reopening a descriptor, as another user or as the same user.
struct Reopened {
  bool opened = false, mapped = false, written = false;
};
Reopened reopen(int memory, bool as_another) {
  const AnsweringChild<Reopened> child([&] {
    Reopened got;
    if (as_another && geteuid() == 0 && (setresgid(70001, 70001, 70001) != 0 || setresuid(70001, 70001, 70001) != 0))
      _exit(1);
    const int fd = open(("/proc/self/fd/" + std::to_string(memory)).c_str(), O_RDWR | O_CLOEXEC);
    got.opened = fd >= 0;
    got.mapped = mmap(nullptr, ring::page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
    got.written = write(fd, "x", 1) == 1;
    return got;
  });
  EXPECT_TRUE(child.answer);
  return child.answer.value_or(Reopened{});
}

TEST(Trace, TheDescriptorCannotBeMadeOneThatWrites) {
  Traced t;
  Watcher watcher(t.broker);
  watcher.ask(request("t", 0));
  ASSERT_EQ(watcher.news(), TraceNews::Begins);
  ASSERT_GE(watcher.memory, 0);
  for (const bool as_another : {true, false}) {
    const Reopened got = reopen(watcher.memory, as_another);
    EXPECT_FALSE(got.mapped) << as_another;
    EXPECT_FALSE(got.written) << as_another;
  }
  if (geteuid() == 0) {
    EXPECT_FALSE(reopen(watcher.memory, true).opened);
  }
  EXPECT_EQ(t.traces(0), 'y') << "who has it mapped goes on writing";
}

TEST(Trace, BeforeAWorkerIsReadyNoOtherUserCanWriteEither) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be others";
  Broker broker("", "hang");
  Watcher watcher(broker);
  watcher.ask(request("t", 0));
  ASSERT_EQ(watcher.news(), TraceNews::Begins);
  ASSERT_GE(watcher.memory, 0);
  const Reopened got = reopen(watcher.memory, true);
  EXPECT_FALSE(got.opened || got.mapped || got.written);
}

TEST(Trace, ReportsTheLifeOfASession) {
  Traced t;
  Watcher watcher(t.broker);
  watcher.ask(request("t", 1));
  EXPECT_EQ(watcher.news(), TraceNews::Begins);
  EXPECT_EQ(watcher.news(), TraceNews::Listed) << "nobody has claimed it";
  EXPECT_EQ(t.traces(1), 'y') << "on before its first call";
  ASSERT_EQ(t.guest.claim(), 1U);
  const auto claimed = watcher.hear();
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->news, TraceNews::Claimed);
  EXPECT_EQ(claimed->process, static_cast<std::uint32_t>(getpid()));
  EXPECT_STREQ(claimed->text, "t");
  ASSERT_TRUE(t.guest.step(1, SlotState::Claimed, SlotState::Released));
  const auto ended = watcher.hear();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->news, TraceNews::Ended);
  EXPECT_EQ(ended->session, claimed->session);
}

TEST(Trace, NarrowedToOneProcess) {
  Traced t;
  Watcher watcher(t.broker);
  watcher.ask(request("t"));
  while (watcher.news() != TraceNews::Listed) continue;
  EXPECT_EQ(t.traces(0), 'y');
  watcher.ask(request("t", ring::any_slot, static_cast<std::uint32_t>(getpid()) + 1));
  EXPECT_TRUE(eventually([&] { return t.traces(0) == 'n'; })) << "it is another process's";
  EXPECT_EQ(t.traces(1), 'y') << "it may become that process's";
  watcher.ask(request("t"));  // another client cannot end this client's trace
  EXPECT_EQ(watcher.hear(), std::nullopt);
}

TEST(Trace, RequestsThatMakeNoSense) {
  Traced t;
  TraceRequest bad = request();
  bad.magic = 0;
  TraceRequest other = request();
  other.version = 99;
  TraceRequest endless = request();
  memset(endless.vm, 'x', sizeof endless.vm);
  const auto answer_to = [&](const TraceRequest& r, std::size_t bytes = sizeof(TraceRequest)) {
    Watcher watcher(t.broker);
    watcher.ask(r, bytes);
    const auto message = watcher.hear();
    return message ? std::string(message->text) : "the end";
  };
  EXPECT_EQ(answer_to(bad), "the end");
  EXPECT_EQ(answer_to(other, 8), "its traces have version " + std::to_string(ring::telemetry_version));
  EXPECT_EQ(answer_to(endless), "it has no VM of that name");
  EXPECT_EQ(answer_to(request("u")), "it has no VM of that name");
  EXPECT_EQ(answer_to(request("t", 3)), "that VM has 3 slots, counted from 0");
  EXPECT_EQ(answer_to(request("", 63)), "no VM has a slot 63");
  EXPECT_EQ(answer_to(request(), 12), "the end") << "who does not finish is let go";
  EXPECT_EQ(t.traces(0), 'n');
}

TEST(Trace, ManyThatDoNotReadCostNothing) {
  Traced t;
  std::vector<std::unique_ptr<Watcher>> idle;
  for (int i = 0; i < 40; ++i) {
    idle.push_back(std::make_unique<Watcher>(t.broker));
    // The broker refuses most of these clients at once.
    idle.back()->try_ask(request(), i < 8 ? sizeof(TraceRequest) : 3);
  }
  ASSERT_TRUE(t.guest.step(0, SlotState::Claimed, SlotState::Released));
  EXPECT_TRUE(eventually([&] { return t.guest.word(0).epoch == 1; }));
  idle.clear();
  EXPECT_TRUE(eventually([&] { return trace(t.broker, {"--seconds", "0.01"}).code == 0; }));
}

TEST(Trace, TheCommandShowsACallAndEndsWithTheBroker) {
  Traced t;
  const auto shows = [&](const char* text) { return t.broker.folder.read("shown").find(text) != std::string::npos; };
  int code = -1;
  std::thread traces([&] {
    const std::string command = "\"" IVGPU "\" trace --vm t --slot 0 --runtime-dir '" + t.broker.folder.path() +
                                "' >'" + (t.broker.folder / "shown") + "' 2>&1";
    code = run_program("/bin/sh", {"-c", command}).code;
  });
  EXPECT_TRUE(eventually([&] { return t.traces(0) == 'y'; }));
  // The worker writes one entry at a time, since the command shows only entries made after the command has mapped the
  // worker's memory.
  EXPECT_TRUE(eventually([&] {
    return t.traces(0) == 'y' && shows("  t/0.1  cuCtxSynchronize() = CUDA_SUCCESS  posted  0.0 us\n");
  })) << t.broker.folder.read("shown");
  t.broker.terminate();
  traces.join();
  EXPECT_EQ(code, 3);
  EXPECT_TRUE(shows("\nivgpu: the broker has ended\n")) << t.broker.folder.read("shown");
}

TEST(Trace, ReportsToTheCommandWhatIsNotThere) {
  Broker broker;
  const auto refused = [&](const std::vector<std::string>& more, const std::string& why, int code = 3) {
    const Outcome outcome = trace(broker, more);
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.text, "ivgpu: " + why + "\n");
  };
  refused({"--vm", "u"}, "the broker refuses: it has no VM of that name");
  refused({"--vm", "t", "--slot", "3"}, "the broker refuses: that VM has 3 slots, counted from 0");
  refused({"--perfetto", "/nowhere/x.json"}, "/nowhere/x.json cannot be written: No such file or directory", 2);
  refused({"--perfetto", "/dev/full", "--seconds", "0.01"}, "/dev/full cannot be written: No space left on device", 2);
  EXPECT_EQ(trace(broker, {"--process", "99999", "--seconds", "0.05"}).text, "");
  broker.terminate();
  refused({}, "no ivgpud answers at " + broker.folder.path() + "/ivgpud.trace: No such file or directory");
}

TEST(Trace, OfWhatIsNoBroker) {
  const Folder folder;
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder / "ivgpud.trace").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  TraceMessage without_memory{};
  without_memory.magic = ring::trace_magic;
  without_memory.news = TraceNews::Begins;
  const std::string begins(reinterpret_cast<const char*>(&without_memory), sizeof without_memory);
  for (const std::string& said : {std::string(), std::string("{}"), std::string(1000, 'x'), begins}) {
    std::thread server([&] {
      const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      [[maybe_unused]] const auto n = write(client, said.data(), said.size());
      close(client);
    });
    const Outcome shown = run_program(IVGPU, {"trace", "--runtime-dir", folder.path()});
    server.join();
    EXPECT_EQ(shown.code, 3) << shown.text;
    EXPECT_EQ(shown.text, "ivgpu: the broker is of another version: it does not trace as this ivgpu does\n");
  }
  close(listener);
}

}  // namespace
