// Messages that a user sees by default, without IVGPU_LOG. Without a device, permission or free slot the program waits
// or fails, and the log names the missing part and the remedy. The log also reports a session that an operator ends.
// The tests use a real ivgpud, the simulated GPU, and programs with the real guest library.
#include <sys/stat.h>

#include "tests/unit/broker/harness.h"

namespace {

using broker_test::Broker, broker_test::Client, broker_test::eventually;
using ring::SlotState;

// A program whose output goes to a file. An empty `region` leaves IVGPU_REGION unset.
class Program {
 public:
  Program(const broker_test::Folder& folder, const std::string& mode, const std::string& region,
          const char* level = nullptr, bool as_nobody = false)
      : folder_(folder), name_("output-of-" + mode) {
    pid_ = fork();
    if (pid_ != 0) return;
    const int out = open((folder / name_).c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(out, 1);
    dup2(out, 2);
    for (const char* variable : {"IVGPU_REGION", "IVGPU_LOG", "IVGPU_LOG_FILE"}) unsetenv(variable);
    if (!region.empty()) setenv("IVGPU_REGION", region.c_str(), 1);
    if (level != nullptr) setenv("IVGPU_LOG", level, 1);
    if (as_nobody && geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(125);
    execl(PROGRAM, PROGRAM, GUEST_CUDA, mode.c_str(), nullptr);
    _exit(126);
  }
  ~Program() {
    if (!ended_) end();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void end() {
    kill(pid_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string said() const { return folder_.read(name_); }
  pid_t pid() const { return pid_; }

 private:
  const broker_test::Folder& folder_;
  const std::string name_;
  pid_t pid_ = -1;
  bool ended_ = false;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Warnings, NoDevice) {
  const broker_test::Folder folder;
  Program program(folder, "work", "");
  EXPECT_NE(program.wait(), 0);
  const std::string line = "ivgpu: this machine has no ivshmem device (PCI 1af4:1110), and IVGPU_REGION names no ";
  EXPECT_TRUE(has(program.said(), line)) << program.said();
  EXPECT_EQ(program.said().find(line), program.said().rfind(line)) << "once";
}

TEST(Warnings, AreNotForWhoWantsErrorsOnly) {
  const broker_test::Folder folder;
  Program program(folder, "work", "", "error");
  EXPECT_NE(program.wait(), 0);
  EXPECT_FALSE(has(program.said(), "ivgpu: ")) << program.said();
}

TEST(Warnings, NoPermissionAndNoBroker) {
  Broker broker(
      "", "", [] {}, SIMULATED_GPU);
  ASSERT_EQ(chmod(broker.socket_path().c_str(), 0), 0);
  Program refused(broker.folder, "work", broker.socket_path(), nullptr, true);
  EXPECT_NE(refused.wait(), 0);
  EXPECT_TRUE(has(refused.said(), "ivgpu: cannot connect to the broker at " + broker.socket_path() +
                                      ": Permission denied (mode 0000, user "))
      << refused.said();
  EXPECT_TRUE(has(refused.said(), "; join that group, or set socket_group in ivgpud's configuration\n"));
  Program nobody_there(broker.folder, "fork-before", broker.folder / "none.sock");
  EXPECT_NE(nobody_there.wait(), 0);
  EXPECT_TRUE(has(nobody_there.said(), "/none.sock: No such file or directory; start ivgpud, or correct IVGPU_REGION"))
      << nobody_there.said();
}

TEST(Warnings, AllSlotsTaken) {
  Broker broker(
      "slots = 1\nregion_size = \"256MiB\"", "", [] {}, SIMULATED_GPU);
  Client host(broker.socket_path());
  ASSERT_TRUE(host.greet(1));
  Program holder(broker.folder, "wait", broker.socket_path());
  ASSERT_TRUE(host.becomes(0, SlotState::Claimed));
  EXPECT_TRUE(broker.eventually_logged("t: session 0 of loopback_program (process " + std::to_string(holder.pid()) +
                                       ") starts\n"))
      << "the library says who it is";
  Program waiting(broker.folder, "work", broker.socket_path());
  const std::string line = "ivgpu: all 1 session slots of this VM are taken, by loopback_program (" +
                           std::to_string(holder.pid()) + "); waiting for one, up to 20 s (the key slots of ivgpud's ";
  EXPECT_TRUE(eventually([&] { return has(waiting.said(), line); })) << waiting.said();
  EXPECT_TRUE(broker.eventually_logged("t: all 1 slots are taken, and a program waits for one"));
  holder.end();
  EXPECT_EQ(waiting.wait(), 0) << waiting.said();
  EXPECT_EQ(waiting.said().find("ivgpu: all "), waiting.said().rfind("ivgpu: all ")) << "once";
}

// Another program of the VM wrote terminal control sequences into these names.
TEST(Warnings, NamesOfHoldersMoveNoCursor) {
  Broker broker(
      "slots = 1\nregion_size = \"256MiB\"", "", [] {}, SIMULATED_GPU);
  Client host(broker.socket_path());
  ASSERT_TRUE(host.greet(1));
  ASSERT_TRUE(host.claim());
  std::memset(host.entry(0).program, '\x1b', sizeof host.entry(0).program);
  Program waiting(broker.folder, "work", broker.socket_path());
  EXPECT_TRUE(eventually([&] { return has(waiting.said(), "are taken, by " + std::string(23, '?') + " ("); }))
      << waiting.said();
  EXPECT_FALSE(has(waiting.said(), "\x1b"));
}

// ---- sessions that an operator ends --------------------------------------------------------------------------------

void expect_a_lost_session(Program& program) {
  EXPECT_EQ(program.wait(), 1);
  EXPECT_TRUE(has(program.said(), "cuCtxSynchronize 46\n")) << "CUDA_ERROR_DEVICE_UNAVAILABLE: " << program.said();
  EXPECT_TRUE(has(program.said(), "ivgpu: the session with the host is lost: its worker has ended\n"))
      << program.said();
}

TEST(Ends, OfARemovedVm) {
  Broker broker(
      "region_size = \"256MiB\"", "", [] {}, SIMULATED_GPU);
  const std::string before = broker.folder.read("c.toml");
  const auto reload = [&](const std::string& text) {
    broker.folder.write("c.toml", text);
    kill(broker.pid, SIGHUP);
  };
  reload(before + "[vm.u]\nregion_size = \"256MiB\"\n");
  ASSERT_TRUE(broker.eventually_logged("VM u: added"));
  Program program(broker.folder, "wait", broker.folder / "u.sock");
  ASSERT_TRUE(eventually([&] { return has(program.said(), "waiting\n"); }));
  reload(before);
  expect_a_lost_session(program);
  EXPECT_TRUE(broker.eventually_logged("VM u: removed, its 1 session(s) end"));
  Program other(broker.folder, "work", broker.socket_path());
  EXPECT_EQ(other.wait(), 0) << "the other VM is served: " << other.said();
}

TEST(Ends, ByIvgpuEnd) {
  Broker broker(
      "region_size = \"256MiB\"", "", [] {}, SIMULATED_GPU);
  Program program(broker.folder, "wait", broker.socket_path());
  ASSERT_TRUE(eventually([&] { return has(program.said(), "waiting\n"); }));
  const auto ended = broker_test::run_program(IVGPU, {"end", "--runtime-dir", broker.folder.path(), "t"});
  EXPECT_EQ(ended.text, "VM t: 1 session ends\n");
  expect_a_lost_session(program);
  EXPECT_TRUE(broker.eventually_logged("`ivgpu end` asked for it"));
  Program other(broker.folder, "work", broker.socket_path());
  EXPECT_EQ(other.wait(), 0) << other.said();
}

}  // namespace
