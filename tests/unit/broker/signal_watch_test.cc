// The broker's signals and its starter's pipe, in an event loop of the test.
#include "host/base/process/signal_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/deadline.h"

namespace {

using namespace host::broker;
using namespace std::chrono_literals;

class Signals : public testing::Test {
 protected:
  Signals() { pthread_sigmask(SIG_SETMASK, nullptr, &mask_); }
  ~Signals() override { pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }
  void run() {
    EventLoop::Id deadline = loop.after(test_deadline, [this] { loop.stop(); });
    loop.run();
    loop.forget(deadline);
  }

  EventLoop loop;
  SignalWatch watch{loop};

 private:
  sigset_t mask_;
};

TEST_F(Signals, AreReportedByNumberInTheLoop) {
  std::vector<int> received;
  const auto watched = watch.watch({SIGUSR1, SIGUSR2}, [&](int number) {
    received.push_back(number);
    if (received.size() == 1) kill(getpid(), SIGUSR2);
    if (received.size() == 2) loop.stop();
  });
  ASSERT_TRUE(watched) << watched.error().message;
  kill(getpid(), SIGUSR1);
  EXPECT_TRUE(received.empty()) << "none is handled outside the loop";
  run();
  EXPECT_EQ(received, (std::vector<int>{SIGUSR1, SIGUSR2}));
}

TEST_F(Signals, APipeIsReportedOnceWhenItsLastHolderClosesIt) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Fd mine(ends[0]);
  Fd theirs(ends[1]);
  ASSERT_EQ(write(theirs.get(), "text", 4), 4);
  int closed = 0;
  watch.watch_pipe(mine.get(), [&] { ++closed; });
  EventLoop::Id later = loop.after(10ms, [&] {
    EXPECT_EQ(closed, 0) << "bytes are no end";
    theirs.reset();
    later = loop.after(50ms, [&] { loop.stop(); });
  });
  run();
  EXPECT_EQ(closed, 1);
}

}  // namespace
