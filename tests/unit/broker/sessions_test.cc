// Sessions in the log and in `ivgpu status`, and `ivgpu end`. The tests use a real ivgpud and fake workers. The test
// process is the guest, and its names are hostile text.
#include <array>
#include <regex>

#include "host/broker/ops/control_protocol.h"
#include "tests/child.h"
#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using ring::SlotState;

Outcome ivgpu(const Broker& broker, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin() + 1, {"--runtime-dir", broker.folder.path()});
  return run_program(IVGPU, arguments);
}

// Claims a slot under this program name.
std::optional<std::uint32_t> claim_as(const Client& guest, const std::string& name) {
  for (std::uint32_t k = 0; k < guest.header().slot_count; ++k) name.copy(guest.entry(k).program, 24);
  return guest.claim();
}

std::string me() { return " (process " + std::to_string(getpid()) + ")"; }

TEST(Sessions, TheLogReportsStartAndEndWithProgramAndDuration) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(claim_as(guest, "vector_add"), 0U);
  EXPECT_TRUE(broker.eventually_logged(" info t: session 0 of vector_add" + me() + " starts\n"));
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  ASSERT_TRUE(guest.step(0, SlotState::Claimed, SlotState::Released));
  ASSERT_TRUE(broker.eventually_logged(" info t: session 0 of vector_add" + me() + " ends after "));
  EXPECT_FALSE(broker.logged("ends after 0.0 s"));
  ASSERT_TRUE(eventually([&] { return guest.word(0).epoch == 1; }));
  EXPECT_EQ(guest.entry(0).program[0], '\0') << "the next has a name of its own";
}

TEST(Sessions, ALostOneIsReportedOnce) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(claim_as(guest, "train"), 0U);
  guest.command(0)[0] = 'x';
  guest.ring_peer(ring::peer_of_slot(0));
  ASSERT_TRUE(guest.becomes(0, SlotState::Dead));
  EXPECT_TRUE(
      broker.eventually_logged(": the worker exited with code 3 (its guest broke the protocol) while its guest"));
  ASSERT_TRUE(guest.step(0, SlotState::Dead, SlotState::Released));
  ASSERT_TRUE(eventually([&] { return guest.word(0).epoch == 1; }));
  EXPECT_EQ(broker.times_logged("session 0 of train" + me() + " ends after "), 1U);
}

TEST(Sessions, OneWithoutANameIsReportedAMomentLater) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  EXPECT_TRUE(broker.eventually_logged("t: session 0 of a program without a name" + me() + " starts\n"));
  const Outcome shown = ivgpu(broker, {"status"});
  EXPECT_NE(shown.text.find("  process " + std::to_string(getpid()) + " of peer "), std::string::npos) << shown.text;
}

TEST(Sessions, NamesAreHostile) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(claim_as(guest, "\x1b[2J\n2026 error lie\xff\xff\xff\xff\xff"), 0U);  // 24 bytes without a NUL
  const std::string shown_name = "\\x1b[2J\\x0a2026 error lie\\xff\\xff\\xff\\xff\\xff";
  EXPECT_TRUE(broker.eventually_logged("t: session 0 of " + shown_name + me() + " starts\n")) << broker.log();
  EXPECT_EQ(broker.log().find('\x1b'), std::string::npos);
  const std::string text = ivgpu(broker, {"status"}).text, json = ivgpu(broker, {"status", "--json"}).text;
  EXPECT_NE(text.find("  " + shown_name + ", process "), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(json.find("\\\\x1b[2J\\\\x0a2026"), std::string::npos) << json;
}

// A guest can begin and end sessions at any rate.
TEST(Sessions, LinesOfAFloodAreLeftOut) {
  Broker broker("starts_per_second = 1000\nstart_burst = 1000\nspare = 3");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  const auto begin = std::chrono::steady_clock::now();
  const auto one_session = [&] {
    const auto slot = claim_as(guest, "flood");
    return slot && guest.step(*slot, SlotState::Claimed, SlotState::Released);
  };
  constexpr std::size_t sessions = 200;
  for (std::size_t i = 0; i < sessions; ++i) ASSERT_TRUE(one_session());
  const std::size_t lines = broker.times_logged(" t: session ");
  EXPECT_LE(static_cast<double>(lines), 40 * (1 + seconds_since(begin))) << "20 starts and 20 ends a second";
  if (lines >= sessions) return;  // if each session has a line for its end, the machine is too slow for a flood
  // The next line of the log counts the omitted lines.
  EXPECT_TRUE(eventually([&] { return one_session() && broker.logged(" more such lines were left out before)"); }));
}

TEST(Sessions, WhenAllSlotsAreTakenTheLogNamesTheKeyThatGivesMore) {
  Broker broker("slots = 1");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(1));
  ASSERT_EQ(claim_as(guest, "train"), 0U);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    other_side::shared(guest.header().wanted).fetch_add(1);
    guest.ring_peer(ring::peer_broker);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(broker.eventually_logged(" warning t: all 1 slots are taken, and a program waits for one: "));
  EXPECT_TRUE(broker.eventually_logged("slots in [vm.t] gives more after a restart"));
  const std::size_t lines = broker.times_logged("slots are taken");
  EXPECT_LE(static_cast<double>(lines), 1 + seconds_since(begin)) << "once a second";
}

TEST(Sessions, AFreeSlotIsNoReasonForThat) {
  Broker broker("slots = 2");
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(2));
  ASSERT_TRUE(claim_as(guest, "train"));
  other_side::shared(guest.header().wanted).fetch_add(1);
  guest.ring_peer(ring::peer_broker);
  ASSERT_TRUE(guest.becomes(1, SlotState::Ready));
  EXPECT_FALSE(broker.logged("slots are taken"));
}

TEST(Sessions, StatusReportsProgramsAndTheGpusMemory) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(claim_as(guest, "vector_add"), 0U);
  ASSERT_TRUE(guest.tell(0, 'c'));
  const std::string text = ivgpu(broker, {"status"}).text, json = ivgpu(broker, {"status", "--json"}).text;
  EXPECT_NE(text.find("\n  GPU memory: 5.0 MiB of 8.0 GiB\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  vector_add, process " + std::to_string(getpid()) + " of peer "), std::string::npos) << text;
  EXPECT_NE(json.find("\"gpu_memory\":{\"total_bytes\":8589934592,\"used_bytes\":5242880}"), std::string::npos) << json;
  EXPECT_NE(json.find("\"program\":\"vector_add\""), std::string::npos) << json;
}

// ---- ivgpu end -----------------------------------------------------------------------------------------------------

TEST(End, OneSessionOrAllOfAVm) {
  Broker broker;
  Client guest(broker.socket_path());
  ASSERT_TRUE(guest.greet(3));
  for (std::uint32_t k = 0; k < 3; ++k) ASSERT_TRUE(claim_as(guest, "train"));
  const Outcome one = ivgpu(broker, {"end", "t/1"});
  EXPECT_EQ(one.code, 0) << one.text;
  EXPECT_EQ(one.text, "VM t: 1 session ends\n");
  EXPECT_TRUE(guest.becomes(1, SlotState::Dead));
  EXPECT_EQ(guest.word(0).state, SlotState::Claimed);
  EXPECT_TRUE(broker.eventually_logged("t: session 1 of train" + me() + " ends after "));
  EXPECT_TRUE(broker.eventually_logged("`ivgpu end` asked for it"));
  const Outcome all = ivgpu(broker, {"end", "t"});
  EXPECT_EQ(all.text, "VM t: 2 sessions end\n");
  EXPECT_TRUE(guest.becomes(0, SlotState::Dead));
  EXPECT_TRUE(guest.becomes(2, SlotState::Dead));
  const Outcome none = ivgpu(broker, {"end", "t"});
  EXPECT_EQ(none.code, 0) << "there is nothing left to end";
  EXPECT_EQ(none.text, "VM t: 0 sessions end\n");
  ASSERT_TRUE(guest.step(1, SlotState::Dead, SlotState::Released));
  EXPECT_EQ(guest.claim(), 1U) << "the slot is another session's then";
}

TEST(End, OfWhatThereIsNot) {
  Broker broker;
  const auto says = [&](const std::string& target, int code, const std::string& sentence) {
    const Outcome outcome = ivgpu(broker, {"end", target});
    EXPECT_EQ(outcome.code, code) << target;
    EXPECT_EQ(outcome.text, "ivgpu: " + sentence + "\n");
  };
  says("u", 1, "there is no VM u; `ivgpu status` shows those that are served");
  says("t/2", 1, "VM t has no session 2; `ivgpu status` shows those that it has");
  says("t/63", 1, "VM t has no session 63; `ivgpu status` shows those that it has");
  for (const std::string bad : {"t/64", "t/", "t/-1", "t/1x", "t/1/2", "/1", "../t", "t/99999999999999999999"})
    says(bad, 1, "a VM's name is expected, or a name and a session as in VM/3");
  for (const std::string& bad : {std::string("t 1"), std::string("t\nend t"), std::string(101, 'x'), std::string()})
    says(bad, 2, "end needs a VM, or a VM and a session as in VM/3");
  EXPECT_EQ(broker.terminate(), 0);
  says("t", 3, "no ivgpud answers at " + broker.folder.path() + "/ivgpud.control: No such file or directory");
}

TEST(End, TheSocketIsTheBrokersUsersAlone) {
  Broker broker(
      "", "", [] {}, "", "socket_mode = \"0666\"\n");
  struct stat status {};
  ASSERT_EQ(stat((broker.folder / "ivgpud.control").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  if (geteuid() != 0) return;  // only root can become another user
  const auto end_as_nobody = [&] {
    if (setuid(65534) != 0) return 100;
    const Outcome outcome = ivgpu(broker, {"end", "t"});
    return outcome.text.rfind("ivgpu: this user may not talk to ivgpud at ", 0) == 0 ? outcome.code : 101;
  };
  EXPECT_EQ(run_in_child(end_as_nobody), 3);
}

int connect_to(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? fd : -1;
}

// Sends `said` to the control socket, and returns all bytes until the connection ends.
std::string answer_to(const Broker& broker, const std::string& said) {
  const int fd = connect_to(broker.folder / "ivgpud.control");
  [[maybe_unused]] const auto sent = send(fd, said.data(), said.size(), MSG_NOSIGNAL);
  std::string heard;
  pollfd wait{fd, POLLIN, 0};
  char bytes[256];
  for (ssize_t n; poll(&wait, 1, deadline_ms) == 1 && (n = read(fd, bytes, sizeof bytes)) > 0;)
    heard.append(bytes, static_cast<std::size_t>(n));
  close(fd);
  return heard;
}

TEST(End, ClientsThatSpeakNonsenseAreLetGo) {
  Broker broker;
  EXPECT_EQ(answer_to(broker, "end t\n"), "ok 0\n");
  EXPECT_EQ(answer_to(broker, "end t\nend t\n"), "ok 0\n") << "one line, one answer";
  const std::string refusal = "error a VM's name is expected, or a name and a session as in VM/3\n";
  EXPECT_EQ(answer_to(broker, "\n"), refusal);
  EXPECT_EQ(answer_to(broker, "end \x1b[2J\n"), refusal) << "nothing of it comes back";
  EXPECT_EQ(answer_to(broker, "END t\n"), refusal);
  EXPECT_EQ(answer_to(broker, std::string(5000, 'x')), "") << "no request is that long";
  EXPECT_EQ(answer_to(broker, "end t"), "") << "no end of the line within five seconds";
  std::vector<int> idle;
  for (int i = 0; i < 40; ++i) idle.push_back(connect_to(broker.folder / "ivgpud.control"));
  EXPECT_TRUE(eventually([&] { return answer_to(broker, "end t\n") == "ok 0\n"; }));
  for (const int fd : idle) close(fd);
  Client guest(broker.socket_path());
  EXPECT_TRUE(guest.greet(3));
  EXPECT_TRUE(guest.claim());
}

TEST(End, ALineIsARequestOrNothing) {
  using host::broker::parse_end;
  const auto all = parse_end("end vm-1"), one = parse_end("end vm.2/63");
  ASSERT_TRUE(all && one);
  EXPECT_EQ(all->vm, "vm-1");
  EXPECT_FALSE(all->slot);
  EXPECT_EQ(one->vm, "vm.2");
  EXPECT_EQ(one->slot, 63U);
  for (const char* line : {"", "end", "end ", "end  t", "end t ", "end t/", "end t/ 1", "end t/+1", "end t/0x1",
                           "end t/64", "end t/4294967296", "end .t", "end t/1/", "End t", "end t\r"})
    EXPECT_FALSE(parse_end(line)) << line;
  EXPECT_FALSE(parse_end("end " + std::string(64, 'x')));
  EXPECT_TRUE(parse_end("end " + std::string(63, 'x')));
}

// ---- sockets that cannot be made -----------------------------------------------------------------------------------

TEST(Sockets, AFolderWithoutPermissionIsReportedWithTheRemedy) {
  const Folder folder;
  const std::string closed = folder / "closed", below = closed + "/below";
  std::filesystem::create_directory(closed);
  std::filesystem::permissions(closed, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec |
                                           std::filesystem::perms::others_read | std::filesystem::perms::others_exec);
  folder.write("libcuda.so.1", "");
  const auto said = [&](const std::string& runtime_dir) {
    const std::string config = folder.write("c.toml", "[broker]\nruntime_dir = \"" + runtime_dir +
                                                          "\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"" +
                                                          (folder / "libcuda.so.1") + "\"\n[vm.t]\n");
    if (geteuid() != 0) return run_ivgpud({"--config", config});
    return run_program("/usr/bin/setpriv", {"--reuid=65534", "--clear-groups", IVGPUD, "--config", config});
  };
  const std::string user = std::to_string(geteuid() != 0 ? geteuid() : 65534);
  const std::string remedy = "; user " + user + " may not make files in " + closed +
                             ": set [broker] runtime_dir to a folder of its own, give it that one, or start ivgpud as "
                             "root\n";
  const Outcome socket = said(closed);
  EXPECT_EQ(socket.code, 1);
  EXPECT_EQ(socket.text, "ivgpud: " + closed + "/t.sock.lock: Permission denied" + remedy);
  const Outcome made = said(below);
  EXPECT_EQ(made.code, 2);
  EXPECT_EQ(made.text, "ivgpud: [broker] runtime_dir = \"" + below + "\" cannot be made: Permission denied" + remedy);
}

}  // namespace
