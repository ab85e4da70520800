// The scheduler's thread, by the pages of two workers that the test plays.
#include "host/turns/scheduler.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/deadline.h"

namespace {

using namespace std::chrono_literals;
using host::turns::Line;
using host::turns::Scheduler;
using ring::Grant;
using ring::GrantMode;

constexpr const char* gpu = "GPU-1";

bool comes_true(const std::function<bool()>& what) {
  for (const auto end = std::chrono::steady_clock::now() + test_deadline; std::chrono::steady_clock::now() < end;) {
    if (what()) return true;
    std::this_thread::sleep_for(100us);
  }
  return what();
}

// A worker that launches and waits all the time, as far as its pages tell: 10 us for a wait, and 500 under slices.
class Played {
 public:
  Played(Scheduler& scheduler, Scheduler::Vm vm) : scheduler_(scheduler) {
    std::string error;
    line_ = Line::create("test", false, error);
    requests_ = static_cast<ring::RequestPage*>(
        mmap(nullptr, sizeof(ring::RequestPage), PROT_READ | PROT_WRITE, MAP_SHARED, line_->requests_fd(), 0));
    client_ = scheduler.add(vm, line_, {gpu});
  }
  ~Played() {
    leave();
    munmap(requests_, sizeof(ring::RequestPage));
  }
  void leave() {
    if (client_ != 0) scheduler_.remove(client_);
    client_ = 0;
  }
  Grant grant() const { return Grant::of(line_->grant(0).word.load()); }
  ring::DeviceRequest& words() { return requests_->device[0]; }
  // Some calls, if it may make them; an answer to the end of a turn, if it may not.
  void act() {
    const Grant now = grant();
    words().waiting = now.mode == GrantMode::Closed;
    if (now.mode == GrantMode::Closed) {
      acted_ = std::chrono::steady_clock::now();
      words().given_back = now.number;
      return;
    }
    const std::chrono::nanoseconds each = now.mode == GrantMode::Turn ? 10us : 500us;
    const auto calls = static_cast<std::uint64_t>((std::chrono::steady_clock::now() - acted_) / each);
    words().submitted += calls;
    words().waits += calls;
    words().waited_ns += calls * static_cast<std::uint64_t>(each.count());
    acted_ += calls * each;
    const std::uint64_t one = 1;
    if (now.mode == GrantMode::Told && write(bell_fd(), &one, sizeof one) < 0) FAIL() << "no bell";
  }
  int grants_fd() const { return line_->grants_fd(); }
  int bell_fd() const { return line_->bell_fd(); }

 private:
  Scheduler& scheduler_;
  std::shared_ptr<Line> line_;
  ring::RequestPage* requests_;
  Scheduler::Client client_;
  std::chrono::steady_clock::time_point acted_ = std::chrono::steady_clock::now();
};

// The value: whether the scheduler naps.
class TurnsScheduler : public testing::TestWithParam<bool> {
 protected:
  TurnsScheduler() {
    scheduler_ = Scheduler::start({.on = true, .limits = {}}, GetParam(), error_);
    a_ = std::make_unique<Played>(*scheduler_, scheduler_->add_vm({}));
    b_ = std::make_unique<Played>(*scheduler_, scheduler_->add_vm({}));
  }
  // Both act until this holds.
  bool act_until(const std::function<bool()>& what) {
    return comes_true([&] {
      a_->act(), b_->act();
      return what();
    });
  }
  bool turns_begin() {
    return act_until([&] { return a_->grant().mode == GrantMode::Turn || b_->grant().mode == GrantMode::Turn; });
  }

  std::string error_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Played> a_, b_;
};

TEST_P(TurnsScheduler, TwoThatWaitAllTheTimeTakeTurns) {
  ASSERT_TRUE(turns_begin()) << error_;
  // The other's grant is looked at between two looks at the holder's, which are of one turn.
  const auto has_turn_alone = [](Played& holder, Played& other) {
    const Grant before = holder.grant();
    const GrantMode others = other.grant().mode;
    if (before.mode != GrantMode::Turn || holder.grant().word() != before.word()) return false;
    EXPECT_NE(others, GrantMode::Turn);
    return true;
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(act_until([&] { return has_turn_alone(*a_, *b_); }));
    ASSERT_TRUE(act_until([&] { return has_turn_alone(*b_, *a_); }));
  }
  EXPECT_TRUE(act_until([&] { return scheduler_->report().takes_turns.contains(gpu); }));
}

// Its workers hear of another scheduler by its grants alone.
TEST_P(TurnsScheduler, TheNextOneOpensTheGatesOfAnEarlierOne) {
  const std::uint64_t one = 1;
  std::string error;
  for (const GrantMode mode : {GrantMode::Closed, GrantMode::Turn}) {
    const auto line = Line::create("test", true, error);
    ASSERT_TRUE(line) << error;
    const Grant before{.mode = mode, .number = 4711};
    line->grant(0).word = before.word();
    const auto copy = [](int fd) { return host::broker::Fd(dup(fd)); };
    const auto adopted = Line::adopt(copy(line->grants_to_keep()), copy(line->requests_fd()), copy(line->bell_fd()));
    ASSERT_TRUE(adopted);
    const auto next = Scheduler::start({.on = true, .limits = {}}, GetParam(), error);
    ASSERT_TRUE(next) << error;
    next->add(next->add_vm({}), adopted, {gpu});
    const auto seen = [&] { return Grant::of(line->grant(0).word.load()); };
    EXPECT_TRUE(comes_true([&] { return seen().mode == GrantMode::Open || seen().mode == GrantMode::Told; }));
    EXPECT_GT(seen().number, 4711U) << "no answer to a grant of before is one to this";
    EXPECT_EQ(write(line->bell_fd(), &one, sizeof one), 8);
    const auto is_taken = [&] {
      pollfd bell{line->bell_fd(), POLLIN, 0};
      return poll(&bell, 1, 0) == 0;
    };
    EXPECT_TRUE(comes_true(is_taken)) << "a ring of its worker is not heard";
  }
}

TEST_P(TurnsScheduler, TheFlagsOfABellDoNotStopTheScheduler) {
  ASSERT_EQ(fcntl(a_->bell_fd(), F_SETFL, 0), 0);
  bool answers = true;
  for (int i = 0; i < 3; ++i) {
    const auto asked = std::chrono::steady_clock::now().time_since_epoch();
    answers = answers && comes_true([&] { return scheduler_->report().made >= asked; });
  }
  EXPECT_TRUE(answers) << "it reads the bell, and waits";
  const std::uint64_t one = 1;  // so that a failure does not hang
  ASSERT_EQ(fcntl(a_->bell_fd(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(write(a_->bell_fd(), &one, sizeof one), 8);
}

// Each end of a bell can fill its counter, so that a write waits.
TEST_P(TurnsScheduler, AFullBellStopsNoOtherWorker) {
  b_->leave();  // the scheduler does not look: nobody empties a bell
  const std::uint64_t all = UINT64_MAX - 1, one = 1;
  ASSERT_EQ(fcntl(a_->bell_fd(), F_SETFL, O_NONBLOCK), 0);
  std::atomic<bool> filled{false}, over{false};
  std::thread filler([&] {
    while (!over) filled = write(a_->bell_fd(), &all, sizeof all) == sizeof all || filled;
  });
  EXPECT_TRUE(comes_true([&] { return filled.load(); }));
  int rings = 0;
  for (int i = 0; i < 1000; ++i) {
    pollfd bell{b_->bell_fd(), POLLOUT, 0};
    rings += poll(&bell, 1, 0) == 1 && write(b_->bell_fd(), &one, sizeof one) == 8 ? 1 : 0;
  }
  over = true;
  filler.join();
  EXPECT_EQ(rings, 1000) << "a's rings fill b's bell";
}

TEST_P(TurnsScheduler, PagesThatWereNotKeptAreNotTakenOver) {
  std::string error;
  const auto line = Line::create("test", false, error);
  ASSERT_TRUE(line) << error;
  EXPECT_EQ(line->grants_to_keep(), -1);
  const auto copy = [](int fd) { return host::broker::Fd(fcntl(fd, F_DUPFD_CLOEXEC, 0)); };
  EXPECT_FALSE(Line::adopt(copy(line->grants_fd()), copy(line->requests_fd()), copy(line->bell_fd())))
      << "sealed against it";
  EXPECT_FALSE(Line::adopt({}, copy(line->requests_fd()), {}));
  const host::broker::Fd small(memfd_create("small", MFD_CLOEXEC));
  EXPECT_FALSE(Line::adopt(copy(small.get()), copy(small.get()), {}));
}

TEST_P(TurnsScheduler, OneAloneIsNeverStopped) {
  b_->leave();
  for (int i = 0; i < 300; ++i) {
    a_->act();
    // A thread that waits for a processor is quiet for so long that its worker is told to ring before it submits.
    const GrantMode mode = a_->grant().mode;
    EXPECT_TRUE(mode == GrantMode::Open || mode == GrantMode::Told) << static_cast<int>(mode);
    std::this_thread::sleep_for(500us);
  }
}

TEST_P(TurnsScheduler, WhereNobodySubmitsWorkersAreToldToRing) {
  EXPECT_TRUE(comes_true([&] { return a_->grant().mode == GrantMode::Told && b_->grant().mode == GrantMode::Told; }));
  std::this_thread::sleep_for(1ms);
  a_->act();
  EXPECT_TRUE(comes_true([&] { return a_->grant().mode == GrantMode::Open; }));
}

TEST_P(TurnsScheduler, AHolderThatIsGonePassesItsTurnOn) {
  scheduler_->change({.on = true, .limits = {.longest = 1h}});  // no turn is lost by time
  ASSERT_TRUE(turns_begin());
  ASSERT_TRUE(act_until([&] { return a_->grant().mode == GrantMode::Turn; }));
  a_->leave();
  EXPECT_TRUE(comes_true([&] {
    b_->act();
    return b_->grant().mode == GrantMode::Turn || b_->grant().mode == GrantMode::Open;
  }));
}

TEST_P(TurnsScheduler, AHolderThatDoesNotAnswerLosesItsTurnByTime) {
  ASSERT_TRUE(turns_begin());
  ASSERT_TRUE(act_until([&] { return a_->grant().mode == GrantMode::Turn; }));
  b_->words().waiting = 1;
  EXPECT_TRUE(comes_true([&] { return b_->grant().mode == GrantMode::Turn; })) << "and a answers nothing";
}

TEST_P(TurnsScheduler, SwitchedOffEverybodyIsOpenAndOnAgainTheyTakeTurns) {
  ASSERT_TRUE(turns_begin());
  scheduler_->change({.on = false, .limits = {}});
  const auto both_open = [&] { return a_->grant().mode == GrantMode::Open && b_->grant().mode == GrantMode::Open; };
  ASSERT_TRUE(act_until(both_open));
  for (int i = 0; i < 200; ++i) {
    a_->act(), b_->act();
    EXPECT_TRUE(both_open());
    std::this_thread::sleep_for(500us);
  }
  scheduler_->change({.on = true, .limits = {}});
  EXPECT_TRUE(turns_begin());
}

TEST_P(TurnsScheduler, ItTellsThatTurnsBeginAndWhoMayUseTheGpu) {
  const auto rung = [&] {
    std::uint64_t times = 0;
    return read(scheduler_->news_fd(), &times, sizeof times) == sizeof times;
  };
  EXPECT_FALSE(rung());
  EXPECT_TRUE(scheduler_->report().rights.empty()) << "nobody takes turns";
  ASSERT_TRUE(turns_begin());
  ASSERT_TRUE(act_until(rung));
  const auto before = std::chrono::steady_clock::now().time_since_epoch();
  Scheduler::Report report;
  ASSERT_TRUE(act_until([&] {
    report = scheduler_->report();
    return report.rights.contains(gpu);
  }));
  EXPECT_GE(report.made, before);
  ASSERT_EQ(report.rights.at(gpu).size(), 2U);
  for (const auto& [client, right] : report.rights.at(gpu)) EXPECT_LE(right.until, report.made);
}

TEST_P(TurnsScheduler, ItTellsForHowLongTurnsWereTaken) {
  const auto in_turns = [this] { return scheduler_->report().in_turns.at(gpu); };
  ASSERT_TRUE(act_until([&] { return scheduler_->report().in_turns.contains(gpu); }));
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(turns_begin()) << error_;
  EXPECT_TRUE(act_until([&] { return in_turns() >= 50ms; }));
  const auto told = in_turns();
  EXPECT_LE(told, std::chrono::steady_clock::now() - begin);
  scheduler_->change({.on = false, .limits = {}});
  ASSERT_TRUE(act_until([&] { return !scheduler_->report().takes_turns.at(gpu); }));
  const auto last = in_turns();
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(in_turns(), last) << "nobody takes turns";
}

TEST_P(TurnsScheduler, AWorkerCannotWriteItsGrants) {
  EXPECT_EQ(mmap(nullptr, ring::page, PROT_READ | PROT_WRITE, MAP_SHARED, a_->grants_fd(), 0), MAP_FAILED);
  const std::string path = "/proc/self/fd/" + std::to_string(a_->grants_fd());
  const int again = open(path.c_str(), O_RDWR);
  EXPECT_EQ(mmap(nullptr, ring::page, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
  close(again);
  EXPECT_NE(ftruncate(a_->grants_fd(), 0), 0);
}

INSTANTIATE_TEST_SUITE_P(Each, TurnsScheduler, testing::Values(true, false),
                         [](const auto& one) { return one.param ? "naps" : "polls"; });

}  // namespace
