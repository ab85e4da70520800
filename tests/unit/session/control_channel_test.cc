// A worker's control channel to its broker: questions from channel threads, answers that the doorbell thread receives,
// and a broker that asks, answers late or exits.
#include "host/session/control_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "host/base/fd_message.h"

namespace {

using host::worker::MemoryMessage, host::worker::MemoryWord;

struct Sockets {
  Sockets() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_), 0); }
  int ends_[2] = {-1, -1};
};

// The test acts as the broker. The broker's socket exists before the control channel, which has the other end.
class Broker : private Sockets, public testing::Test {
 protected:
  Broker() {
    doorbell_ = std::thread([this] {
      while (line.hear(memory)) {
      }
      line.close();
    });
  }
  ~Broker() override {
    hang_up();
    doorbell_.join();
    close(ends_[1]);
  }
  // Returns the worker's next message.
  MemoryMessage said() const {
    MemoryMessage message{};
    EXPECT_EQ(recv(ends_[0], &message, sizeof message, 0), static_cast<ssize_t>(sizeof message));
    return message;
  }
  // Returns false if the worker sends nothing for a while.
  bool hears(MemoryMessage& message) const {
    pollfd news{ends_[0], POLLIN, 0};
    return poll(&news, 1, 10) == 1 &&
           recv(ends_[0], &message, sizeof message, 0) == static_cast<ssize_t>(sizeof message);
  }
  void say(MemoryWord word, std::uint32_t sequence, std::uint64_t bytes, std::uint64_t total = 0) const {
    const MemoryMessage message{host::worker::memory_kind, word, 0, sequence, bytes, total};
    EXPECT_EQ(send(ends_[0], &message, sizeof message, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof message));
  }
  void take_over() const {
    MemoryMessage words{};
    words.kind = host::worker::adopt_kind;
    EXPECT_EQ(send(ends_[0], &words, sizeof words, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof words));
  }
  // Expects that the worker has sent nothing in reply to earlier messages: the worker's next message must answer this
  // new question.
  void expect_silence() const {
    constexpr std::uint32_t number = 4711;
    say(MemoryWord::Collect, number, 0);
    EXPECT_EQ(said().sequence, number);
  }
  void hang_up() {
    if (ends_[0] >= 0) close(std::exchange(ends_[0], -1));
  }

  std::atomic<std::uint64_t> published[ring::max_devices] = {};
  host::ControlChannel line{ends_[1]};
  host::DeviceMemory memory{&line, published};

 private:
  std::thread doorbell_;
};

TEST_F(Broker, ReservesAndReportsTheHeadroom) {
  std::thread channel([&] {
    EXPECT_TRUE(memory.take(0, 10));
    EXPECT_TRUE(memory.take(0, 20));
    EXPECT_FALSE(memory.take(0, 100));
    const auto headroom = memory.headroom(0);
    ASSERT_TRUE(headroom);
    EXPECT_EQ(headroom->free, 34u + 7u);
    EXPECT_EQ(headroom->total, 71u);
    EXPECT_FALSE(memory.headroom(0)) << "nothing bounds it now";
  });
  const MemoryMessage first = said();
  EXPECT_EQ(first.word, MemoryWord::Reserve);
  EXPECT_EQ(first.bytes, 10u);
  say(MemoryWord::Reserved, first.sequence, 64);
  for (int i = 0; i < 2; ++i) {  // the thread frees memory and asks again
    const MemoryMessage more = said();
    EXPECT_EQ(more.bytes, 66u);
    say(MemoryWord::Reserved, more.sequence, 0);
  }
  const MemoryMessage headroom = said();
  EXPECT_EQ(headroom.word, MemoryWord::Headroom);
  say(MemoryWord::HasHeadroom, headroom.sequence, 7, 71);
  say(MemoryWord::HasHeadroom, said().sequence, host::worker::unbounded, host::worker::unbounded);
  channel.join();
}

TEST_F(Broker, IsGivenBackWhatIsNotUsed) {
  std::thread channel([&] {
    EXPECT_TRUE(memory.take(0, 10));
    memory.give_back(0, 4);
  });
  say(MemoryWord::Reserved, said().sequence, 64);
  channel.join();
  say(MemoryWord::Collect, 5, 0);
  const MemoryMessage back = said();
  EXPECT_EQ(back.word, MemoryWord::Return);
  EXPECT_EQ(back.sequence, 5u);
  EXPECT_EQ(back.bytes, 58u);
  say(MemoryWord::Collect, 6, 0);
  EXPECT_EQ(said().bytes, 0u);
}

TEST_F(Broker, GetsBackWhatNobodyWaitsFor) {
  say(MemoryWord::Reserved, 77, 64);
  const MemoryMessage back = said();
  EXPECT_EQ(back.word, MemoryWord::Return);
  EXPECT_EQ(back.bytes, 64u);
  std::thread channel([&] { EXPECT_TRUE(memory.take(0, 10)); });
  const MemoryMessage asked = said();
  say(MemoryWord::Reserved, asked.sequence + 1, 32);
  EXPECT_EQ(said().bytes, 32u);
  say(MemoryWord::Reserved, asked.sequence, 16);
  channel.join();
}

TEST_F(Broker, ThatGoesAnswersNobody) {
  std::thread channel([&] { EXPECT_FALSE(memory.take(0, 10)); });
  said();
  hang_up();
  channel.join();
  EXPECT_FALSE(memory.take(0, 10)) << "and at once from then on";
  EXPECT_EQ(memory.taken(0), 0u);
}

// A restarted broker may not know the open question.
TEST_F(Broker, ThatTakesOverIsAskedAgain) {
  take_over();
  expect_silence();  // the worker has asked nothing
  std::thread channel([&] { EXPECT_TRUE(memory.take(0, 10)); });
  const MemoryMessage first = said();
  take_over();
  const MemoryMessage again = said();
  EXPECT_EQ(again.word, MemoryWord::Reserve);
  EXPECT_EQ(again.sequence, first.sequence);
  EXPECT_EQ(again.bytes, first.bytes);
  say(MemoryWord::Reserved, first.sequence, 64);
  channel.join();
  say(MemoryWord::Reserved, first.sequence, 32);
  EXPECT_EQ(said().bytes, 32u) << "the second answer goes back";
  take_over();
  expect_silence();  // the question is already answered
}

TEST_F(Broker, ManyThreadsAskOneAfterTheOther) {
  std::vector<std::thread> channels;
  for (int t = 0; t < 4; ++t)
    channels.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        host::Charge charge;
        EXPECT_TRUE(charge.take(memory, 0, 100));
      }
    });
  std::atomic<bool> over{false};
  std::thread reserves([&] {
    MemoryMessage message{};
    for (int heard = 0; !over;) {
      if (!hears(message)) continue;
      if (message.word == MemoryWord::Reserve) say(MemoryWord::Reserved, message.sequence, message.bytes);
      if (message.word == MemoryWord::Reserve && ++heard % 3 == 0) say(MemoryWord::Collect, 1, 0);
    }
  });
  for (std::thread& channel : channels) channel.join();
  over = true;
  reserves.join();
  EXPECT_EQ(memory.taken(0), 0u);
}

// For this worker, the broker passes on the guest's doorbells. Without a broker, the worker gets no doorbell.
TEST(LivenessPipe, AWorkerWithoutABrokerLooksByItself) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  host::worker::LivenessPipe life(ends[0], std::chrono::minutes(10));
  EXPECT_EQ(life.timeout_ms(), -1);
  close(ends[1]);
  pollfd end = life.to_poll();
  ASSERT_EQ(poll(&end, 1, -1), 1);
  life.found(end.revents);
  EXPECT_FALSE(life.is_over());
  EXPECT_EQ(life.timeout_ms(), 5);
}

TEST(LivenessPipe, AWorkerThatItsBrokerSignalsLooksWhileTheBrokerStalls) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  host::worker::LivenessPipe life(ends[0], std::chrono::minutes(10), true);
  EXPECT_EQ(life.timeout_ms(), 200);
  EXPECT_EQ(life.timeout_ms(false), -1) << "it is a spare one";
  life.found(POLLHUP);
  EXPECT_EQ(life.timeout_ms(), 5);
  close(ends[1]);
}

// The worker waits anew for the next broker whenever a broker ends. With a patience of 0, a worker without a broker
// gives up at once.
TEST(LivenessPipe, EachBrokerThatEndsIsWaitedForAnew) {
  Sockets control;
  int pipe[2];
  ASSERT_EQ(pipe2(pipe, O_CLOEXEC), 0);
  host::worker::LivenessPipe life(pipe[0], std::chrono::milliseconds(0));
  for (int broker = 1; broker <= 3; ++broker) {
    EXPECT_FALSE(life.is_over());
    close(pipe[1]);
    pollfd end = life.to_poll();
    ASSERT_EQ(poll(&end, 1, -1), 1);
    life.found(end.revents);
    EXPECT_TRUE(life.is_over());
    EXPECT_EQ(life.to_poll().fd, -1);

    ASSERT_EQ(pipe2(pipe, O_CLOEXEC), 0);
    MemoryMessage adoption{};
    adoption.kind = host::worker::adopt_kind;
    ASSERT_EQ(host::broker::send_with_fd(control.ends_[0], &adoption, sizeof adoption, pipe[0]), sizeof adoption);
    close(pipe[0]);
    MemoryMessage received{};
    ASSERT_EQ(life.receive(control.ends_[1], received), sizeof received);
    EXPECT_EQ(received.kind, host::worker::adopt_kind);
    EXPECT_FALSE(life.is_alone());
    EXPECT_EQ(life.timeout_ms(), -1);
  }
  close(pipe[1]);
  for (const int socket : control.ends_) close(socket);
}

}  // namespace
