// A broker's report about itself: the socket, and `ivgpu status`. A real ivgpud and fake workers.
#include <algorithm>
#include <array>
#include <regex>
#include <set>

#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using ring::SlotState;

Outcome status(const Broker& broker, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"status", "--runtime-dir", broker.folder.path()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(IVGPU, arguments);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

int connect_to(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? fd : -1;
}

TEST(Status, ShowsSlotsWorkersAndTheirJail) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_TRUE(guest.becomes(1, SlotState::Ready));
  const Outcome shown = status(broker);
  EXPECT_EQ(shown.code, 0) << shown.text;
  EXPECT_TRUE(has(shown.text, "process " + std::to_string(broker.pid) + ", up ")) << shown.text;
  EXPECT_TRUE(has(shown.text, "VM t: " + broker.socket_path() + ", region 128 MiB, slots of 42 MiB, connections 1"));
  EXPECT_TRUE(has(shown.text, "process " + std::to_string(getpid()) + " of peer " + std::to_string(guest.peer)));
  for (const pid_t worker : broker.workers()) EXPECT_TRUE(has(shown.text, "worker " + std::to_string(worker)));
  EXPECT_TRUE(has(shown.text, "\n  empty: 1 of 3 slots\n")) << shown.text;
  EXPECT_TRUE(has(shown.text, "no_new_privs")) << shown.text;
}

TEST(Status, AsJson) {
  Broker broker;
  const Outcome shown = status(broker, {"--json"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_EQ(shown.text.rfind("{\"format\":1,", 0), 0U) << shown.text;
  EXPECT_EQ(shown.text.find('\n'), shown.text.size() - 1);
  EXPECT_TRUE(has(shown.text, "\"state\":\"ready\"")) << shown.text;
  EXPECT_TRUE(has(shown.text, "\"spin_threads\":")) << shown.text;
  EXPECT_TRUE(has(shown.text, "\"spin_us\":50")) << shown.text;
  EXPECT_TRUE(has(shown.text, "\"wait_spin_ms\":20")) << shown.text;
  EXPECT_TRUE(has(shown.text, "\"session_image_bytes\":2147483648,\"session_objects\":262144")) << shown.text;
}

TEST(Status, CountersOfAWorkerAndOfItsVm) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  EXPECT_FALSE(has(status(broker).text, "calls")) << "who has served nobody has no line";
  ASSERT_TRUE(guest.tell(0, 'c'));
  const std::string done =
      "       50       30       20        25    2.0 KiB        0 B    3.0 MiB        0 B     5.0 MiB        7        8 "
      "       "
      "9\n";
  const std::string shown = status(broker).text;
  EXPECT_TRUE(
      has(shown,
          "\n              calls   posted   waited submitted    ring in   ring out     to GPU   from GPU  GPU memory "
          "    spun   parked    woken\n  slot 0  " +
              done + "  all     " + done))
      << shown;
  EXPECT_TRUE(has(status(broker, {"--json"}).text, "\"posted\":30,")) << shown;
  ASSERT_TRUE(guest.step(0, SlotState::Claimed, SlotState::Released));
  ASSERT_TRUE(eventually([&] { return guest.word(0).epoch == 1; }));
  const std::string after = status(broker).text;
  EXPECT_FALSE(has(after, "slot 0         50")) << after;
  EXPECT_TRUE(has(after, "\n  all            50       30       20 ")) << after;
  EXPECT_TRUE(has(after, "    3.0 MiB        0 B         0 B  ")) << "of what has ended, nothing is held: " << after;
}

TEST(Status, CountersThatAGuestHasWritten) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_TRUE(guest.tell(0, 'h'));
  const Outcome shown = status(broker);
  EXPECT_EQ(shown.code, 0) << shown.text;
  EXPECT_TRUE(has(shown.text, "  slot 0     18.4 E        0   18.4 E    18.4 E   16.0 EiB ")) << shown.text;
  EXPECT_EQ(status(broker, {"--json"}).code, 0);
  EXPECT_TRUE(guest.step(0, SlotState::Claimed, SlotState::Released));
  EXPECT_TRUE(eventually([&] { return guest.word(0).epoch == 1; }));
}

TEST(Status, WatchedUntilTheBrokerEnds) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  const auto shown = [&] { return broker.folder.read("shown"); };
  int code = -1;
  std::thread watches([&] {
    const std::string command = "\"" IVGPU "\" status --watch 0.3 --runtime-dir '" + broker.folder.path() + "' >'" +
                                (broker.folder / "shown") + "' 2>&1";
    code = run_program("/bin/sh", {"-c", command}).code;
  });
  EXPECT_TRUE(eventually([&] { return has(shown(), "  slot 0 "); })) << "the first view";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(guest.tell(0, 'c'));
  // 150 calls in 0.3 s, or in a longer time on a busy machine.
  const std::regex busy("  slot 0 +150 .*\n +per s +([1-9]|[1-9][0-9]|[1-4][0-9][0-9]|500) .* [KM]iB ");
  const std::regex idle("  slot 0 +150 .*\n +per s +0 +0 +0 ");
  EXPECT_TRUE(eventually([&] { return std::regex_search(shown(), busy); })) << shown();
  EXPECT_TRUE(eventually([&] { return std::regex_search(shown(), idle); })) << shown();
  broker.terminate();
  watches.join();
  EXPECT_EQ(code, 3);
  EXPECT_TRUE(has(shown(), "\nivgpu: the broker has ended\n")) << shown();
}

TEST(Status, TheCostOfTheEventLoop) {
  Broker broker;
  const std::regex iterations(
      "\"loop\":\\{\"iterations\":([0-9]+),\"iterations_over_50_ms\":[0-9]+,\"longest_iteration_ms\":[0-9.e-]+\\}");
  std::smatch first, second;
  const std::string before = status(broker, {"--json"}).text, after = status(broker, {"--json"}).text;
  ASSERT_TRUE(std::regex_search(before, first, iterations)) << before;
  ASSERT_TRUE(std::regex_search(after, second, iterations)) << after;
  EXPECT_GT(std::stoi(second[1]), std::stoi(first[1])) << "reading it does not set it back";
  const std::regex words("\nevent loop: [0-9]+ iterations, [0-9.]+ ms of the processor in the longest\n");
  EXPECT_TRUE(std::regex_search(status(broker).text, words));
}

// Tests of a broker use this part of the status to find workers that ended unexpectedly.
TEST(Status, HowWorkersHaveEnded) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  EXPECT_FALSE(has(status(broker).text, "ended workers"));
  const auto ends = [&](const char* kind, int count) {
    return eventually(
        [&] { return has(status(broker, {"--json"}).text, "\"" + std::string(kind) + "\":" + std::to_string(count)); });
  };
  const auto end_by = [&](char command) {
    const auto slot = guest.claim();
    ASSERT_TRUE(slot);
    if (command == 'a') {
      ASSERT_TRUE(guest.tell(*slot, 'p'));  // the worker prints hostile text
    }
    guest.command(*slot)[0] = command;
    guest.ring_peer(ring::peer_of_slot(*slot));
    if (command != 0) {
      ASSERT_TRUE(guest.becomes(*slot, SlotState::Dead));
    }
    guest.step(*slot, command == 0 ? SlotState::Claimed : SlotState::Dead, SlotState::Released);
  };
  end_by(0);
  EXPECT_TRUE(ends("orderly", 1));
  EXPECT_TRUE(has(status(broker, {"--json"}).text, "\"last_reason\":\"\",\"last_signal\":\"\"")) << "all is well";
  end_by('a');
  EXPECT_TRUE(ends("signal", 1));
  end_by('x');
  EXPECT_TRUE(ends("protocol_broken", 1));
  const std::string json = status(broker, {"--json"}).text, text = status(broker).text;
  EXPECT_TRUE(has(json, "the worker exited with code 3 (its guest broke the protocol)\",\"last_signal\":\"slot "))
      << json;
  EXPECT_TRUE(has(json, ": the worker was killed by signal 6 (ABRT): line ")) << json;
  EXPECT_TRUE(has(json, "\\\\x1b[2J")) << json;
  EXPECT_EQ(json.find('\x1b'), std::string::npos);
  EXPECT_TRUE(has(text, "\n  ended workers: 1 in order, 1 protocol broken, 1 by another signal; the last: slot "))
      << text;
  EXPECT_TRUE(has(json, "\"killed_by_broker\":0,")) << json;
}

TEST(Status, DistinguishesAForeignKillFromTheBrokersOwn) {
  Broker broker("", "lie");  // the broker kills these workers
  EXPECT_TRUE(eventually([&] { return has(status(broker).text, " killed by the broker; the last: slot "); }));
  EXPECT_TRUE(has(status(broker, {"--json"}).text, "\"signal\":0}")) << status(broker, {"--json"}).text;
  Broker other;
  ASSERT_EQ(other.workers().size(), 1U);
  kill(other.workers()[0], SIGKILL);
  EXPECT_TRUE(eventually([&] {
    return has(status(other).text,
               "  ended workers: 1 by another signal; the last: slot 0: "
               "the worker was killed by signal 9 (KILL)\n");
  }));
  Broker third("", "fail");
  EXPECT_TRUE(eventually([&] { return has(status(third).text, " with another exit code; the last: slot "); }));
}

std::string of_signal(pid_t worker, const std::string& number_and_name, int number) {
  return "{\"how\":\"was killed by signal " + number_and_name + "\",\"signal_number\":" + std::to_string(number) +
         ",\"slot\":0,\"worker\":" + std::to_string(worker) + "}";
}

TEST(Status, NamesTheLastWorkersThatFailed) {
  Broker broker("spare = 1\nslots = 1\nstarts_per_second = 1000\nstart_burst = 1000");
  const auto told = [&] { return status(broker, {"--json"}).text; };
  EXPECT_TRUE(has(told(), "\"failures\":[],")) << told();
  pid_t first = 0, last = 0;
  for (int i = 1; i <= 17; ++i) {
    ASSERT_TRUE(eventually([&] { return has(told(), "\"state\":\"ready\",\"worker\"") && !broker.workers().empty(); }));
    last = broker.workers().at(0);
    if (i == 1) first = last;
    kill(last, SIGILL);  // no sanitizer turns SIGILL into an exit code
    ASSERT_TRUE(eventually([&] { return has(told(), "\"signal\":" + std::to_string(i) + "}"); })) << told();
  }
  EXPECT_TRUE(has(told(), of_signal(last, "4 (ILL)", 4) + "],")) << told();
  EXPECT_FALSE(has(told(), of_signal(first, "4 (ILL)", 4))) << "more than sixteen: " << told();
}

// The status socket no longer exists at that time.
TEST(Status, ReportsAtTheEndHowTheLastWorkersEnded) {
  Broker broker;
  const pid_t worker = broker.workers().at(0);
  kill(broker.pid, SIGSTOP);
  kill(worker, SIGILL);
  kill(broker.pid, SIGTERM);
  kill(broker.pid, SIGCONT);
  EXPECT_EQ(broker.wait(), 0);
  EXPECT_TRUE(has(broker.last_status(), of_signal(worker, "4 (ILL)", 4))) << broker.last_status();
  EXPECT_EQ(broker.last_status().back(), '\n');
}

TEST(Status, ReportsALayerThatIsMissing) {
  Broker broker("", "", [] { take_away(SYS_landlock_create_ruleset); });
  const std::string text = status(broker).text;
  EXPECT_TRUE(has(text, "; missing: landlock (the kernel has no Landlock: Function not implemented)")) << text;
  EXPECT_TRUE(broker.eventually_logged("what holds: no_new_privs, "));
}

TEST(Status, OfNoBroker) {
  Broker broker;
  broker.terminate();
  const Outcome shown = status(broker);
  EXPECT_EQ(shown.code, 3);
  EXPECT_EQ(shown.text,
            "ivgpu: no ivgpud answers at " + broker.folder.path() + "/ivgpud.status: No such file or directory\n");
}

TEST(Status, OfWhatIsNoBroker) {
  const Folder folder;
  const std::string path = folder / "ivgpud.status";
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  for (const std::string said : {"", "no json", "[]", "{\"format\":2}", "{\"format\":1,\"version\":7}"}) {
    std::thread server([&] {
      const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      EXPECT_EQ(write(client, said.data(), said.size()), static_cast<ssize_t>(said.size()));
      close(client);
    });
    const Outcome shown = run_program(IVGPU, {"status", "--runtime-dir", folder.path()});
    server.join();
    EXPECT_EQ(shown.code, 3) << said;
    EXPECT_EQ(shown.text.rfind("ivgpu: the broker", 0), 0U) << shown.text;
  }
  close(listener);
}

// The complete answer of the socket; "" if the socket refuses. Many clients that neither read nor write must cost the
// broker nothing, and cannot block others for long.
std::string answer_at(const std::string& path) {
  const int fd = connect_to(path);
  std::string text;
  char bytes[4096];
  for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<std::size_t>(n));
  close(fd);
  return text;
}

// A report costs the event loop and another thread more than a connection costs the client.
TEST(Status, OneReportServesTheConnectionsOfAnInterval) {
  Broker broker;
  const std::string path = broker.folder / "ivgpud.status";
  constexpr int clients = 8, each = 40;
  std::vector<std::vector<std::string>> answers(clients);
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (auto& mine : answers)
    threads.emplace_back([&mine, &path] {
      for (int i = 0; i < each; ++i) mine.push_back(answer_at(path));
    });
  for (std::thread& thread : threads) thread.join();
  const double passed = seconds_since(began);
  std::set<std::string> reports;  // each report has the number of the loop iteration that made it
  for (const auto& mine : answers)
    for (const std::string& answer : mine) {
      EXPECT_TRUE(has(answer, "\"iterations\":")) << "a client is not answered";
      reports.insert(answer);
    }
  constexpr double burst = 20, per_second = 20;
  EXPECT_LE(static_cast<double>(reports.size()), burst + per_second * passed + 1)
      << clients * each << " connections in " << passed << " s";
}

TEST(Status, ClientsThatDoNotReadAreLetGo) {
  Broker broker;
  std::vector<int> idle;
  for (int i = 0; i < 40; ++i) {
    idle.push_back(connect_to(broker.folder / "ivgpud.status"));
    ASSERT_GE(idle.back(), 0);
    [[maybe_unused]] const auto n = send(idle.back(), "\0\xff{[", 4, MSG_NOSIGNAL);
  }
  EXPECT_TRUE(eventually([&] { return status(broker).code == 0; }));
  Client guest(broker.socket_path());
  EXPECT_TRUE(guest.greet(3));
  EXPECT_TRUE(guest.claim());
  for (const int fd : idle) close(fd);
}

TEST(Status, TwoBrokersInOneFolder) {
  Broker broker;
  const std::string config =
      broker.folder.write("other.toml", "[broker]\nruntime_dir = \"" + broker.folder.path() +
                                            "\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"" +
                                            (broker.folder / "libcuda.so.1") + "\"\n[vm.other]\n");
  const Outcome second = run_ivgpud({"--config", config});
  EXPECT_EQ(second.code, 1);
  EXPECT_TRUE(has(second.text, "ivgpud.status: another ivgpud serves this socket")) << second.text;
  EXPECT_FALSE(std::filesystem::exists(broker.folder / "other.sock"));
  EXPECT_EQ(status(broker).code, 0);
}

}  // namespace
