// ivgpud reads its configuration file again at SIGHUP: the keys that change under running sessions, the keys that do
// not, and the report. The tests use a real ivgpud and fake workers; one test compares all keys without a broker.
#include <iterator>

#include "host/broker/config/config_changes.h"
#include "host/broker/config/config_value.h"
#include "host/broker/config/worker_users.h"
#include "tests/error_of.h"
#include "tests/unit/broker/harness.h"
#include "tests/unit/terminal.h"

namespace {

using namespace broker_test;
using ring::SlotState;

std::string file_of(const Broker& broker, const std::string& vms, const std::string& keys = "") {
  return "[broker]\nruntime_dir = \"" + broker.folder.path() +
         "\"\nlog_level = \"debug\"\nworker = \"" FAKE_WORKER "\"\noutlive_s = 60\n" + keys + "[gpu]\nlibrary = \"" +
         (broker.folder / "libcuda.so.1") + "\"\n[defaults]\nregion_size = \"128MiB\"\nslots = 3\n" + vms;
}

// Makes the broker read this configuration, and waits until the broker has read it.
void reload(const Broker& broker, const std::string& text) {
  const std::size_t before = broker.times_logged("SIGHUP: reading ");
  broker.folder.write("c.toml", text);
  kill(broker.pid, SIGHUP);
  ASSERT_TRUE(eventually([&] { return broker.times_logged("SIGHUP: reading ") > before; }));
}

std::string command_line(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline");
  std::stringstream read;
  read << file.rdbuf();  // empty for a process that has just exited, where an iterator would throw
  std::string text = read.str();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

std::uint64_t bytes_taken(int memfd) {
  struct stat status {};
  return fstat(memfd, &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : ~0ULL;
}

TEST(Reload, AVmThatIsNewIsServed) {
  Broker broker;
  Client before(broker.socket_path());
  ASSERT_TRUE(before.greet(3));
  ASSERT_EQ(before.claim(), 0U);
  reload(broker, file_of(broker, "[vm.t]\n[vm.u]\nslots = 2\n"));
  EXPECT_TRUE(broker.eventually_logged("VM u: added"));
  Client guest(broker.folder / "u.sock");
  ASSERT_TRUE(guest.greet(2));
  EXPECT_TRUE(guest.claim());
  EXPECT_EQ(before.word(0).state, SlotState::Claimed) << "a session that ran is not touched";
  EXPECT_TRUE(before.tell(0, 'c'));
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Reload, ARemovedVmsSessionsEndAndItsMemoryIsGivenBack) {
  Broker broker;
  reload(broker, file_of(broker, "[vm.t]\n[vm.u]\n"));
  ASSERT_TRUE(broker.eventually_logged("VM u: added"));
  Client guest(broker.folder / "u.sock"), other(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(other.greet(3));
  const auto slot = guest.claim(), others = other.claim();
  ASSERT_TRUE(slot && others);
  const std::size_t arena = guest.header().slot_bytes - ring::arena_offset;
  std::memset(guest.slot(*slot) + ring::arena_offset, 0x5a, arena);
  EXPECT_GT(bytes_taken(guest.memfd), arena);
  reload(broker, file_of(broker, "[vm.t]\n"));
  EXPECT_TRUE(broker.eventually_logged("VM u: removed, its 1 session(s) end"));
  EXPECT_TRUE(broker.eventually_logged("VM u: its workers and its memory have gone")) << broker.log();
  EXPECT_EQ(bytes_taken(guest.memfd), 0U);
  EXPECT_NE(guest.word(*slot).state, SlotState::Claimed) << "its program learns that the worker has gone";
  EXPECT_FALSE(std::filesystem::exists(broker.folder / "u.sock"));
  EXPECT_TRUE(guest.is_ended());
  EXPECT_EQ(other.word(*others).state, SlotState::Claimed);
  EXPECT_TRUE(other.tell(*others, 'c')) << "the other VM's session goes on";
  reload(broker, file_of(broker, "[vm.t]\n[vm.u]\n"));
  ASSERT_TRUE(eventually([&] { return broker.times_logged("VM u: added") == 2; }));
  Client again(broker.folder / "u.sock");
  ASSERT_TRUE(again.greet(3));
  EXPECT_TRUE(again.claim());
}

TEST(Reload, AVmThatComesBackAtOnceWaitsForItself) {
  Broker broker;
  reload(broker, file_of(broker, "[vm.t]\n[vm.u]\n"));
  ASSERT_TRUE(broker.eventually_logged("VM u: added"));
  Client guest(broker.folder / "u.sock");
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.claim());
  kill(broker.pid, SIGSTOP);  // the broker gets both requests before either VM has ended
  broker.folder.write("c.toml", file_of(broker, "[vm.t]\n"));
  kill(broker.pid, SIGHUP);
  kill(broker.pid, SIGCONT);
  ASSERT_TRUE(broker.eventually_logged("VM u: removed"));
  reload(broker, file_of(broker, "[vm.t]\n[vm.u]\n"));
  EXPECT_TRUE(eventually([&] { return broker.times_logged("VM u: added") == 2; })) << broker.log();
  EXPECT_FALSE(broker.logged("is not served"));
}

TEST(Reload, ABrokenFileChangesNothing) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  for (const std::string bad : {"[vm", "", "[vm.u]\nslots = 0\n", "[vm.u]\nno_such_key = 1\n", "[broker]\n"}) {
    const std::size_t before = broker.times_logged("; nothing is changed");
    reload(broker, bad);
    ASSERT_TRUE(eventually([&] { return broker.times_logged("; nothing is changed") == before + 1; })) << bad;
  }
  const std::size_t before = broker.times_logged("; nothing is changed");
  std::filesystem::remove(broker.folder / "c.toml");
  kill(broker.pid, SIGHUP);
  ASSERT_TRUE(eventually([&] { return broker.times_logged("; nothing is changed") == before + 1; }));
  EXPECT_TRUE(guest.tell(0, 'c'));
  EXPECT_EQ(guest.word(0).state, SlotState::Claimed);
  EXPECT_FALSE(broker.logged("VM t: "));
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Reload, LimitsHoldForSessionsThatStartFromNowOn) {
  Broker broker("session_objects = 100");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_TRUE(guest.becomes(1, SlotState::Ready));
  const auto with = [&](const std::string& objects) {
    std::size_t n = 0;
    for (const pid_t worker : broker.workers())
      n += command_line(worker).find("--objects " + objects + " ") != std::string::npos;
    return n;
  };
  ASSERT_EQ(with("100"), 2U);
  reload(broker, file_of(broker, "[vm.t]\nsession_objects = 200\n"));
  EXPECT_TRUE(broker.eventually_logged("VM t: session_objects 100 -> 200 for sessions that start from now on"));
  EXPECT_TRUE(eventually([&] { return with("100") == 1 && with("200") == 1; })) << "the spare worker is another one";
  EXPECT_TRUE(guest.tell(0, 'c')) << "the session that ran goes on";
  EXPECT_TRUE(guest.claim());
  EXPECT_TRUE(eventually([&] { return with("200") == 2; }));
  EXPECT_FALSE(broker.logged("needs a restart"));
}

TEST(Reload, SomeKeysCountAtOnce) {
  Broker broker("spare = 1");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  EXPECT_EQ(broker.workers().size(), 1U);
  reload(broker, file_of(broker, "[vm.t]\nspare = 3\nconnections = 1\n"));
  EXPECT_TRUE(broker.eventually_logged("VM t: spare 1 -> 3"));
  EXPECT_TRUE(broker.eventually_logged("VM t: connections 128 -> 1"));
  EXPECT_TRUE(eventually([&] { return broker.workers().size() == 3; }));
  Client one_too_many(broker.socket_path());
  EXPECT_TRUE(one_too_many.is_ended());
  reload(broker, file_of(broker, "[vm.t]\n"));
  EXPECT_TRUE(eventually([&] { return broker.workers().size() == 1; }));
  EXPECT_TRUE(Client(broker.socket_path()).greet(3));
}

TEST(Reload, ReportsAndLeavesKeysThatNeedARestart) {
  Broker broker;
  reload(broker, file_of(broker, "[vm.t]\nregion_size = \"256MiB\"\nslots = 2\nvectors = 2\nworker_uid = 3000\n",
                         "socket_mode = \"0600\"\n"));
  for (const char* key : {"VM t: region_size", "VM t: slots", "VM t: vectors", "VM t: memory_max", "VM t: worker_uid",
                          "[broker] socket_mode"})
    EXPECT_TRUE(broker.eventually_logged(std::string(key) + " needs a restart of ivgpud")) << key;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  EXPECT_EQ(guest.bytes, 128U << 20);
  EXPECT_TRUE(guest.claim());
}

TEST(Reload, TheLogsLevelCountsAtOnce) {
  Broker broker;
  reload(broker, file_of(broker, "[vm.t]\n", "trace_mode = \"0644\"\n"));
  std::string quiet = file_of(broker, "[vm.t]\n");
  quiet.replace(quiet.find("\"debug\""), 7, "\"warning\"");
  reload(broker, quiet);
  EXPECT_TRUE(broker.eventually_logged("[broker] log_level \"debug\" -> \"warning\""));
  kill(broker.pid, SIGHUP);
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  EXPECT_TRUE(guest.claim());
  EXPECT_EQ(broker.times_logged("SIGHUP: "), 2U) << "the third is not told at this level";
}

TEST(Reload, OfManyAtOnceNothingBreaks) {
  Broker broker;
  for (int i = 0; i < 40; ++i) {
    broker.folder.write("c.toml", file_of(broker, i % 2 == 0 ? "[vm.t]\n[vm.u]\n" : "[vm.t]\n[vm.v]\nspare = 2\n"));
    kill(broker.pid, SIGHUP);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  reload(broker, file_of(broker, "[vm.t]\n[vm.w]\n"));
  EXPECT_TRUE(broker.eventually_logged("VM w: added"));
  Client guest(broker.socket_path()), last(broker.folder / "w.sock");
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(last.greet(3));
  EXPECT_TRUE(guest.claim());
  EXPECT_TRUE(last.claim());
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(broker.folder / "v.sock"); }));
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Reload, AnEndMeanwhileIsInOrder) {
  Broker broker;
  reload(broker, file_of(broker, "[vm.t]\n[vm.u]\nregion_size = \"256MiB\"\n"));
  ASSERT_TRUE(broker.eventually_logged("VM u: added"));
  kill(broker.pid, SIGSTOP);
  broker.folder.write("c.toml", file_of(broker, "[vm.t]\n"));
  kill(broker.pid, SIGHUP);
  kill(broker.pid, SIGTERM);
  kill(broker.pid, SIGCONT);
  EXPECT_EQ(broker.wait(), 0);
  EXPECT_TRUE(broker.workers().empty());
}

// ---- ivgpu reload --------------------------------------------------------------------------------------------------

Outcome ask_for_reload(const Broker& broker, const std::string& text) {
  broker.folder.write("c.toml", text);
  return run_program(IVGPU, {"reload", "--runtime-dir", broker.folder.path()});
}

TEST(AskedReload, PrintsWhatChanges) {
  Broker broker;
  const Outcome changed = ask_for_reload(broker, file_of(broker, "[vm.t]\nspare = 2\nslots = 2\n[vm.u]\n"));
  EXPECT_EQ(changed.code, 0);
  EXPECT_EQ(changed.text,
            "VM t: slots needs a restart of ivgpud\nVM t: spare 1 -> 2\nVM t: memory_max needs a restart of ivgpud\n"
            "VM u: added\n");
  EXPECT_TRUE(broker.logged("`ivgpu reload`: reading " + (broker.folder / "c.toml") + " again"));
  EXPECT_TRUE(broker.logged("VM t: spare 1 -> 2"));
  Client guest(broker.folder / "u.sock");
  EXPECT_TRUE(guest.greet(3)) << "it is served when the command has ended";
  const Outcome same = ask_for_reload(broker, file_of(broker, "[vm.t]\nspare = 2\n[vm.u]\n"));
  EXPECT_EQ(same.code, 0);
  EXPECT_EQ(same.text, "the file says nothing new\n");
}

TEST(AskedReload, AFileWithAMistakeChangesNothingAndFails) {
  Broker broker;
  const std::string file = broker.folder / "c.toml";
  const Outcome bad = ask_for_reload(broker, file_of(broker, "[vm.t]\nspare = 100\n"));
  EXPECT_EQ(bad.code, 1);
  EXPECT_EQ(bad.text,
            "ivgpu: " + file + ": [vm.t] spare = 100: spare takes an integer from 0 to 64; nothing is changed\n");
  std::filesystem::remove(file);
  const Outcome gone = run_program(IVGPU, {"reload", "--runtime-dir", broker.folder.path()});
  EXPECT_EQ(gone.code, 1);
  EXPECT_EQ(gone.text, "ivgpu: " + file + ": cannot be read: there is no such file; nothing is changed\n");
  Client guest(broker.socket_path());
  EXPECT_TRUE(guest.greet(3));
  EXPECT_TRUE(guest.claim());
}

TEST(AskedReload, AVmThatCannotBeServedIsAFailure) {
  Broker broker;
  const std::string stale = broker.folder.write("stale", "no memory of ours");
  const Outcome outcome = ask_for_reload(
      broker,
      file_of(broker, "[vm.t]\nspare = 2\n[vm.u]\n[vm.a]\ntransport = \"plain\"\nplain_file = \"" + stale + "\"\n"));
  EXPECT_EQ(outcome.code, 1);
  for (const std::string part : {"VM t: spare 1 -> 2\n", "VM u: added\n", "ivgpu: VM a is not served: plain_file = \""})
    EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text;
}

// Precondition: all workers are ready. A worker that is stopped while it starts would block the broker forever.
void stop_workers(const Broker& broker) {
  for (const pid_t worker : broker.workers()) kill(worker, SIGSTOP);
}

TEST(AskedReload, WaitsForThoseThatLeaveAndReportsSo) {
  Broker broker;
  ASSERT_EQ(ask_for_reload(broker, file_of(broker, "[vm.t]\n[vm.u]\n")).code, 0);
  Client guest(broker.folder / "u.sock");
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_TRUE(guest.becomes(1, SlotState::Ready));
  stop_workers(broker);  // forces the broker to kill the workers, after two seconds
  broker.folder.write("c.toml", file_of(broker, "[vm.t]\n"));
  Outcome first{}, second{};
  std::thread waits([&] { first = run_program(IVGPU, {"reload", "--runtime-dir", broker.folder.path()}); });
  ASSERT_TRUE(broker.eventually_logged("VM u: removed, its 1 session(s) end"));
  second = ask_for_reload(broker, file_of(broker, "[vm.t]\n[vm.v]\n"));
  waits.join();
  EXPECT_EQ(first.code, 0);
  EXPECT_EQ(first.text, "VM u: removed, its 1 session(s) end\nVM u: its workers and its memory have gone\n");
  EXPECT_EQ(second.code, 0);
  EXPECT_EQ(second.text, "the file is read once these VMs have gone: u\nVM v: added\n");
  EXPECT_TRUE(std::filesystem::exists(broker.folder / "v.sock"));
}

TEST(AskedReload, ABrokerThatEndsMeanwhileIsNoSuccess) {
  Broker broker;
  ASSERT_EQ(ask_for_reload(broker, file_of(broker, "[vm.t]\n[vm.u]\n")).code, 0);
  Client guest(broker.folder / "u.sock");
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.becomes(0, SlotState::Ready));
  stop_workers(broker);
  broker.folder.write("c.toml", file_of(broker, "[vm.t]\n"));
  Outcome outcome{};
  std::thread waits([&] { outcome = run_program(IVGPU, {"reload", "--runtime-dir", broker.folder.path()}); });
  ASSERT_TRUE(broker.eventually_logged("VM u: removed"));
  EXPECT_EQ(broker.terminate(), 0);
  waits.join();
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.text, "VM u: removed\nivgpu: the broker has ended before it was done\n");
  const Outcome none = run_program(IVGPU, {"reload", "--runtime-dir", broker.folder.path()});
  EXPECT_EQ(none.code, 3);
  EXPECT_EQ(none.text,
            "ivgpu: no ivgpud answers at " + broker.folder.path() + "/ivgpud.control: No such file or directory\n");
}

// Clients that hang up early, or ask many times, must not disturb other clients.
TEST(AskedReload, ManyAtOnceAndSomeThatHangUp) {
  Broker broker;
  broker.folder.write("c.toml", file_of(broker, "[vm.t]\n[vm.u]\n"));
  std::vector<std::thread> all;
  for (int i = 0; i < 10; ++i) {
    all.emplace_back([&, i] {
      const std::string ask = "\"" IVGPU "\" reload --runtime-dir \"" + broker.folder.path() + "\"";
      const std::string command = i % 2 == 0 ? ask : "timeout -s KILL 0.02 " + ask;
      [[maybe_unused]] const int code = std::system((command + " >/dev/null 2>&1").c_str());
    });
    if (i % 3 == 0) broker.folder.write("c.toml", file_of(broker, i % 2 == 0 ? "[vm.t]\n" : "[vm.t]\n[vm.u]\n"));
  }
  for (std::thread& one : all) one.join();
  const Outcome last = ask_for_reload(broker, file_of(broker, "[vm.t]\n[vm.w]\n"));
  EXPECT_EQ(last.code, 0) << last.text;
  EXPECT_TRUE(std::filesystem::exists(broker.folder / "w.sock"));
  EXPECT_EQ(broker.terminate(), 0);
}

// ---- a terminal ----------------------------------------------------------------------------------------------------

TEST(Reload, AClosedTerminalEndsNothing) {
  Broker made;  // the test uses only the broker's folder
  made.terminate();
  const std::string config = made.folder.write("d.toml", file_of(made, "[vm.t]\n"));
  int terminal = -1;
  const pid_t ivgpud = in_a_terminal({IVGPUD, "--config", config}, terminal);
  ASSERT_TRUE(eventually([&] { return Client(made.socket_path()).connected; }));
  Client guest(made.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_TRUE(guest.becomes(1, SlotState::Ready));
  close(terminal);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(guest.tell(0, 'c')) << "its worker lives";
  EXPECT_EQ(guest.word(1).state, SlotState::Ready);
  EXPECT_EQ(kill(ivgpud, SIGTERM), 0);
  int status = 0;
  EXPECT_EQ(waitpid(ivgpud, &status, 0), ivgpud);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

std::vector<pid_t> children_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/task/" + std::to_string(process) + "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

// A broker that `ivgpu run` started for one program ends with the program.
TEST(Reload, AClosedTerminalEndsAProgramAndItsOwnBroker) {
  int terminal = -1;
  const pid_t ivgpu = in_a_terminal(
      {IVGPU, "run", "--private", "--gpu", "sim", "--region-size", "256MiB", "--", "/bin/sleep", "1000"}, terminal);
  ASSERT_TRUE(eventually([&] { return children_of(ivgpu).size() == 2; })) << "ivgpud and sleep";
  std::vector<pid_t> all = children_of(ivgpu);
  pid_t ivgpud = 0;
  for (const pid_t child : children_of(ivgpu))
    if (command_line(child).find("--stay-while-fd") != std::string::npos) ivgpud = child;
  ASSERT_NE(ivgpud, 0);
  for (const pid_t worker : children_of(ivgpud)) all.push_back(worker);
  ASSERT_GE(all.size(), 3U);
  kill(ivgpud, SIGHUP);  // reloads an unchanged file
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(kill(ivgpud, 0), 0);
  close(terminal);
  int status = 0;
  EXPECT_EQ(waitpid(ivgpu, &status, 0), ivgpu);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGHUP);
  for (const pid_t process : all) EXPECT_EQ(kill(process, 0), -1) << process << " has outlived the terminal";
}

// ---- one VM among others -------------------------------------------------------------------------------------------

struct Started {
  Folder folder;
  std::string config(const std::string& vms) const {
    folder.write("libcuda.so.1", "");
    return folder.write("c.toml", "[broker]\nruntime_dir = \"" + folder.path() +
                                      "\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"" +
                                      (folder / "libcuda.so.1") +
                                      "\"\n[defaults]\nregion_size = \"128MiB\"\nslots = 3\n" + vms);
  }
};

TEST(Serving, AVmThatCannotBeServedKeepsNoOtherFromIt) {
  Broker broker;
  // A file on disk, where the region should be.
  const std::string stale = broker.folder.write("stale", "no memory of ours");
  const std::string vms = "[vm.a]\ntransport = \"plain\"\nplain_file = \"" + stale + "\"\n[vm.t]\n";
  reload(broker, file_of(broker, vms));
  EXPECT_TRUE(broker.eventually_logged("VM a is not served: plain_file = \"" + stale + "\" cannot be made: "));
  EXPECT_EQ(broker.terminate(), 0);

  broker.again();
  EXPECT_TRUE(eventually([&] { return broker.times_logged("VM a is not served: ") == 2; }));
  EXPECT_TRUE(broker.eventually_logged("serving 1 of 2 VM(s)"));
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  EXPECT_TRUE(guest.claim());
  std::filesystem::remove(stale);
  kill(broker.pid, SIGHUP);
  EXPECT_TRUE(eventually([&] { return broker.times_logged("VM a is not served: ") == 3; })) << "it is tried again";
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Serving, WhereNoneCanBeServedItIsAFailure) {
  const Started started;
  const std::string stale = started.folder.write("stale", "x");
  const std::string plain = "transport = \"plain\"\nplain_file = \"" + stale;
  const Outcome one = run_ivgpud({"--config", started.config("[vm.a]\n" + plain + "\"\n")});
  EXPECT_EQ(one.code, 1);
  EXPECT_EQ(one.text.rfind("ivgpud: VM a: plain_file = \"", 0), 0U) << one.text;
  EXPECT_EQ(one.text.find('\n'), one.text.size() - 1) << one.text;
  const Outcome two = run_ivgpud({"--config", started.config("[vm.a]\n" + plain + "\"\n[vm.b]\n" + plain + "-2\"\n")});
  EXPECT_EQ(two.code, 1);
  EXPECT_NE(two.text.find("ivgpud: VM a is not served: plain_file"), std::string::npos) << two.text;
  EXPECT_NE(two.text.find("; VM b is not served: plain_file"), std::string::npos) << two.text;
}

// ---- the comparison ------------------------------------------------------------------------------------------------

using namespace host::broker;

Config parsed(const std::string& text) { return parse_config(text, "f", 8).value(); }

// For each key, a value that differs from the default.
const std::map<std::string, std::string> others = {{"runtime_dir", "\"/tmp/x\""},
                                                   {"socket_mode", "\"0600\""},
                                                   {"socket_owner", "\"1\""},
                                                   {"socket_group", "\"2\""},
                                                   {"trace_mode", "\"0640\""},
                                                   {"trace_owner", "\"3\""},
                                                   {"trace_group", "\"4\""},
                                                   {"worker_uids", "\"100-200\""},
                                                   {"outlive_s", "9"},
                                                   {"log_level", "\"debug\""},
                                                   {"worker", "\"/bin/true\""},
                                                   {"cgroups", "\"off\""},
                                                   {"metrics", "\"[::1]:9910\""},
                                                   {"library", "\"sim\""},
                                                   {"policy", "\"time-slice\""},
                                                   {"mps_control", "\"/bin/true\""},
                                                   {"active_threads", "50"},
                                                   {"placement", "\"packed\""},
                                                   {"longest_lease_ms", "2000"},
                                                   {"reserve", "20"},
                                                   {"weight", "3"},
                                                   {"latency", "true"},
                                                   {"region_size", "\"2GiB\""},
                                                   {"slots", "4"},
                                                   {"spare", "2"},
                                                   {"spin_threads", "1"},
                                                   {"spin_us", "60"},
                                                   {"wait_spin_ms", "0"},
                                                   {"starts_per_second", "5"},
                                                   {"start_burst", "5"},
                                                   {"connections", "5"},
                                                   {"gpus", "[0, \"GPU-1a2b3c4d\"]"},
                                                   {"jail", "\"off\""},
                                                   {"jail_ioctls", "\"any\""},
                                                   {"worker_uid", "7"},
                                                   {"worker_gid", "8"},
                                                   {"huge_pages", "true"},
                                                   {"transport", "\"plain\""},
                                                   {"vectors", "2"},
                                                   {"plain_file", "\"/dev/shm/x\""},
                                                   {"vsock_cid", "4"},
                                                   {"vsock_port", "4000"},
                                                   {"doorbell_poll_us", "100"},
                                                   {"doorbell_idle_poll_ms", "5"},
                                                   {"chaos_delay_us", "9"},
                                                   {"session_image_bytes", "\"1MiB\""},
                                                   {"session_objects", "64"},
                                                   {"memory_max", "\"12GiB\""},
                                                   {"gpu_memory", "\"1GiB\""},
                                                   {"overcommit", "true"},
                                                   {"pids_max", "5"},
                                                   {"cpu_max", "\"2.5\""}};

// Another key that the key `key` requires.
std::string with(const std::string& key) {
  if (key == "plain_file") return "transport = \"plain\"\n";
  if (key == "vsock_cid") return "transport = \"pmem\"\nvsock_port = 3000\n";
  if (key == "vsock_port") return "transport = \"pmem\"\nvsock_cid = 3\n";
  return "";
}

// A line with the key's earlier value, if the key needs an earlier value.
std::string before(const std::string& key) {
  if (key == "vsock_cid") return "vsock_cid = 3\n";
  return key == "vsock_port" ? "vsock_port = 3000\n" : "";
}

std::string behind(const std::string& key) { return key == "active_threads" ? "[gpu]\npolicy = \"mps\"\n" : ""; }

TEST(Changes, OfEveryKeyAreReported) {
  for (const Key& key : all_keys()) {
    const std::string name = key.name, table = key.table;
    ASSERT_TRUE(others.contains(name)) << "a new key: give it another value here";
    const std::string line = with(name) + name + " = " + others.at(name) + "\n";
    const std::string base = table == "vm" ? "[vm.a]\n" + with(name) + before(name) + behind(name) : "[vm.a]\n";
    Config running = parsed(base);
    const Config wanted = parsed(table == "vm" ? "[vm.a]\n" + line + behind(name) : "[" + table + "]\n" + line + base);
    Changes changes;
    if (table == "broker")
      changes = take_over(running.broker, wanted.broker);
    else if (table == "gpu")
      changes = take_over(running.gpu, wanted.gpu);
    else
      changes = take_over(running.vms[0], wanted.vms[0]);
    ASSERT_FALSE(changes.lines.empty()) << name;
    const auto of_key = std::find_if(changes.lines.begin(), changes.lines.end(),
                                     [&](const std::string& said) { return said.rfind(name + " ", 0) == 0; });
    ASSERT_NE(of_key, changes.lines.end()) << name;
    const bool restart = key.reload == Reload::Restart;
    EXPECT_EQ(of_key->find(" needs a restart of ivgpud") != std::string::npos, restart) << *of_key;
    EXPECT_EQ(of_key->find(" -> ") != std::string::npos, !restart) << *of_key;
    if (table != "vm") continue;
    const Config& expected = restart ? parsed(base) : wanted;
    EXPECT_EQ(value_in(key, running.vms[0]), value_in(key, expected.vms[0])) << name;
  }
}

TEST(Changes, OfNothingAreNone) {
  for (const std::string text : {"[vm.a]\n", "[vm.a]\ngpus = [0]\nmemory_max = \"none\"\n"}) {
    Config running = parsed(text);
    const Config wanted = parsed(text);
    EXPECT_TRUE(take_over(running.broker, wanted.broker).lines.empty());
    EXPECT_TRUE(take_over(running.gpu, wanted.gpu).lines.empty());
    EXPECT_TRUE(take_over(running.vms[0], wanted.vms[0]).lines.empty());
  }
}

TEST(Changes, AreWordedAsInTheFile) {
  Config running = parsed("[vm.a]\n");
  const Config wanted = parsed(
      "[vm.a]\nsession_image_bytes = \"512MiB\"\nmemory_max = \"none\"\ncpu_max = \"2.5\"\ngpus = [0, \"GPU-1a\"]\n");
  const auto lines = take_over(running.vms[0], wanted.vms[0]).lines;
  EXPECT_EQ(lines,
            (std::vector<std::string>{"gpus \"all\" -> [\"0\", \"GPU-1a\"] for sessions that start from now on",
                                      "session_image_bytes \"2GiB\" -> \"512MiB\" for sessions that start from now on",
                                      "memory_max \"25GiB\" -> \"none\"", "cpu_max \"none\" -> \"2.5\""}));
}

host::Result<std::vector<VmOptions>> after_reload(const std::string& running, const std::string& wanted) {
  auto vms = parsed(wanted).vms;
  if (const auto kept = keep_users(parsed(wanted).broker.worker_uids, parsed(running).vms, vms); !kept)
    return kept.error();
  return vms;
}

TEST(Changes, AVmKeepsItsUserWhereverItStandsInTheFile) {
  const std::string range = "[broker]\nworker_uids = \"100-102\"\n";
  auto vms = after_reload(range + "[vm.b]\n[vm.c]\n", range + "[vm.a]\n[vm.b]\n[vm.c]\n").value();
  ASSERT_EQ(vms.size(), 3U);
  EXPECT_EQ(vms[0].worker_uid, 102);
  EXPECT_EQ(vms[0].worker_gid, 102);
  EXPECT_EQ(vms[1].worker_uid, 100);
  EXPECT_EQ(vms[2].worker_uid, 101);
  EXPECT_EQ(vms[2].worker_gid, 101);
  vms = after_reload(range + "[vm.b]\n", range + "[vm.a]\n[vm.b]\nworker_uid = 7\n").value();
  EXPECT_EQ(vms[0].worker_uid, 101) << "the other still runs as 100";
  EXPECT_EQ(vms[1].worker_uid, 7);
  const std::string full = "[broker]\nworker_uids = \"100-100\"\n";
  EXPECT_EQ(error_of(after_reload(full + "[vm.b]\n", full + "[vm.a]\n[vm.b]\nworker_uid = 7\n")),
            "[broker] worker_uids = \"100-100\" has no user left for VM a");
}

}  // namespace
