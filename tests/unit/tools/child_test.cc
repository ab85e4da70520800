// Child processes: exit codes, signals and descriptors. Nothing may be left behind.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/temp_dir.h"

namespace ivgpu {
namespace {

Command shell(const std::string& line) { return {.argv = {"/bin/sh", "-c", line}}; }

std::string output_of(Command command) {
  FdPair pipe = make_pipe_to_us();
  command.out = pipe.theirs.get();
  Child child(command);
  pipe.theirs.reset();
  std::string text;
  char buffer[256];
  for (ssize_t n = 0; (n = read(pipe.ours.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  child.wait();
  return text;
}

TEST(Child, PassesOnAnExitCode) { EXPECT_EQ(Child(shell("exit 7")).wait(), 7); }

TEST(Child, ReportsASignal) { EXPECT_EQ(Child(shell("kill -ABRT $$")).wait(), 128 + SIGABRT); }

TEST(Child, AMissingProgramIs127) {
  try {
    Child child({.argv = {"/nowhere/at/all"}});
    FAIL() << "it started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, exit_code::not_found);
    EXPECT_STREQ(error.what(), "cannot run /nowhere/at/all: No such file or directory");
  }
}

TEST(Child, AFolderIs126) {
  try {
    Child child({.argv = {"/tmp"}});
    FAIL() << "it started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, exit_code::not_executable);
  }
}

TEST(Child, GetsTheEnvironmentNamed) {
  Command command = shell("echo \"$WORD\"");
  command.environment = {{"WORD", "two words"}};
  EXPECT_EQ(output_of(command), "two words\n");
}

TEST(Child, GetsOnlyTheDescriptorsNamed) {
  const FdPair kept = make_pipe_to_us();
  const FdPair unnamed = make_pipe_to_us();
  const auto is_open = [](const Fd& fd) {
    return "[ -e /proc/self/fd/" + std::to_string(fd.get()) + " ] && echo open";
  };
  Command command = shell(is_open(kept.theirs));
  command.keep = {kept.theirs.get()};
  EXPECT_EQ(output_of(command), "open\n");
  command.argv.back() = is_open(unnamed.theirs);
  EXPECT_EQ(output_of(command), "");
}

TEST(Child, IsKilledWithItsObject) {
  pid_t pid = 0;
  {
    const Child child(shell("exec sleep 100"));
    pid = child.pid();
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST(Child, WaitForGivesUpAndStillReportsTheCodeLater) {
  Child child(shell("exec sleep 100"));
  EXPECT_EQ(child.wait_for(std::chrono::milliseconds(1)), std::nullopt);
  child.signal(SIGKILL);
  EXPECT_EQ(child.wait(), 128 + SIGKILL);
}

// The kernel keeps no exit code of a child if the parent ignores SIGCHLD.
TEST(Child, ReturnsLostWhenTheKernelKeepsNoExitCode) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  {
    FdPair pipe = make_pipe_from_us();
    Command command = shell("read line; exit 7");
    command.in = pipe.theirs.get();
    Child child(command);
    pipe.ours.reset();
    EXPECT_EQ(child.wait(), exit_code::lost);
    const Child left(shell("exec sleep 100"));  // the destructor waits for the child's end, too
  }
  std::signal(SIGCHLD, before);
}

TEST(SignalGate, PassesASignalThatAProcessSent) {
  const SignalGate gate;
  FdPair pipe = make_pipe_to_us();
  Command command = shell("trap 'exit 9' TERM; echo; while :; do sleep 0.01; done");
  command.out = pipe.theirs.get();
  Child child(command);
  char newline = 0;
  ASSERT_EQ(read(pipe.ours.get(), &newline, 1), 1);  // the shell has set its trap
  kill(getpid(), SIGTERM);
  EXPECT_EQ(wait_passing_signals(child, gate), 9);
}

// A shell starts background jobs with SIGINT ignored. The program may install a handler for the signal.
TEST(SignalGate, TakesIgnoredSignalsForTheProgramAlone) {
  const auto before = std::signal(SIGINT, SIG_IGN);
  {
    const SignalGate gate;
    kill(getpid(), SIGINT);
    EXPECT_FALSE(gate.take());
    kill(getpid(), SIGINT);
    const auto arrived = gate.take_for_program();
    ASSERT_TRUE(arrived);
    EXPECT_EQ(arrived->number, SIGINT);
  }
  std::signal(SIGINT, before);
}

TEST(TempDir, IsPrivateAndGoes) {
  std::filesystem::path path;
  {
    const TempDir folder;
    path = folder.path();
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
    std::filesystem::create_directories(path / "deep/er");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace ivgpu
