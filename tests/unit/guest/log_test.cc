// The guest library's log when a write fails. The failed write must not raise a signal in the program.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "guest/base/log.h"
#include "guest/base/write_quietly.h"

namespace {

// Each test needs a new process, since the log opens its file only once.
class Log : public testing::Test {
 protected:
  Log() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

[[noreturn]] void log_to_a_pipe_without_a_reader() {
  int ends[2];
  if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) _exit(2);
  for (const int end : ends) close(end);
  unsetenv("IVGPU_LOG_FILE");
  guest::log(guest::Level::Error, "nobody reads this");
  _exit(0);
}

[[noreturn]] void log_to_a_file_without_room() {
  char name[] = "/tmp/ivgpu-log-XXXXXX";
  const int file = mkstemp(name);
  const rlimit none{0, RLIM_INFINITY};
  if (file < 0 || setenv("IVGPU_LOG_FILE", name, 1) != 0 || setrlimit(RLIMIT_FSIZE, &none) != 0) _exit(2);
  guest::log(guest::Level::Error, "there is no room for this");
  unlink(name);
  _exit(0);
}

TEST_F(Log, KeepsTheProgramAliveWhenItsReaderIsGone) {
  EXPECT_EXIT(log_to_a_pipe_without_a_reader(), testing::ExitedWithCode(0), "");
}

TEST_F(Log, KeepsTheProgramAliveWhenFilesMayNotGrow) {
  EXPECT_EXIT(log_to_a_file_without_room(), testing::ExitedWithCode(0), "");
}

TEST(WriteQuietly, LeavesAPendingSignalOfTheProgram) {
  sigset_t pipe_alone, before, pending;
  sigemptyset(&pipe_alone);
  sigaddset(&pipe_alone, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_alone, &before);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);

  guest::write_quietly(ends[1], "x", 1);
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0) << "of the library's own write nothing is left";

  pthread_kill(pthread_self(), SIGPIPE);
  guest::write_quietly(ends[1], "x", 1);
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 1) << "the program's own stays";

  int number = 0;
  sigwait(&pipe_alone, &number);
  close(ends[1]);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
