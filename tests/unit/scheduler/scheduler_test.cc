// The scheduler's thread (scheduler.h). The test simulates the workers' pages and the switcher.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/scheduler/rm_api.h"
#include "host/scheduler/scheduler.h"
#include "tests/deadline.h"

namespace {

using namespace host::scheduler;
using namespace std::chrono_literals;

constexpr const char* gpu = "GPU-1";

// The orders to the switcher. The switcher answers at once unless the test delays the answer.
struct Board {
  std::mutex mutex;
  std::multiset<std::pair<std::uint32_t, std::uint32_t>> off;  // pairs of client and channel
  std::atomic<int> orders{0}, forced{0}, kept{0}, doubled{0};
  bool answers = true, gone = false, tells_all_on = false;
  std::int64_t refuses = 0;
  std::deque<Switcher::Answer> pending;
  const int doorbell = eventfd(0, EFD_NONBLOCK);

  ~Board() { close(doorbell); }
  bool is_off(std::uint32_t client) {
    std::lock_guard lock(mutex);
    return std::ranges::any_of(off, [&](const auto& one) { return one.first == client; });
  }
  std::size_t count_off() {
    std::lock_guard lock(mutex);
    return off.size();
  }
  template <class Change>
  void change(const Change& change) {
    {
      std::lock_guard lock(mutex);
      change();
    }
    const std::uint64_t one = 1;
    EXPECT_EQ(write(doorbell, &one, 8), 8);
  }
};

class TestSwitcher : public Switcher {
 public:
  explicit TestSwitcher(std::shared_ptr<Board> board) : board_(std::move(board)) {}
  std::optional<std::size_t> place_of(const std::string& name) const override {
    return name == gpu ? std::optional<std::size_t>(0) : std::nullopt;
  }
  std::uint32_t instance_of(std::size_t) const override { return 2; }
  int fd() const override { return board_->doorbell; }
  bool begin(std::size_t, const std::vector<Worker>& on, const std::vector<Worker>& off, bool forced) override {
    std::lock_guard lock(board_->mutex);
    if (board_->gone) return false;
    ++board_->orders, board_->forced += forced;
    for (const Worker& worker : on)
      for (const SwitchedChannel& c : worker.channels) board_->off.erase({c.client, c.channel});
    for (const Worker& worker : off)
      for (const SwitchedChannel& c : worker.channels)
        if (board_->off.contains({c.client, c.channel}))
          ++board_->doubled;
        else
          board_->off.insert({c.client, c.channel});
    board_->pending.push_back({.gpu = 0, .failed = board_->refuses != 0, .refused = board_->refuses, .took = 1ms});
    return true;
  }
  std::optional<Answer> answer(bool& lost) override {
    std::lock_guard lock(board_->mutex);
    lost = board_->gone;
    if (std::exchange(board_->tells_all_on, false)) return board_->off.clear(), Answer{.gpu = 0, .everything_on = true};
    if (!board_->answers || board_->pending.empty()) return std::nullopt;
    const Answer answer = board_->pending.front();
    board_->pending.pop_front();
    return answer;
  }
  void keep(std::chrono::milliseconds) override {
    std::lock_guard lock(board_->mutex);
    ++board_->kept;
  }

 private:
  const std::shared_ptr<Board> board_;
};

// A worker with eight channels.
class Worker {
 public:
  Worker(Scheduler& scheduler, Scheduler::Vm vm, std::uint32_t rm_client) : scheduler_(scheduler) {
    pages_ = WorkerPages::create("test", false).value();
    use_ = static_cast<ring::UsePage*>(
        mmap(nullptr, sizeof(ring::UsePage), PROT_READ | PROT_WRITE, MAP_SHARED, pages_->use_fd(), 0));
    for (std::uint32_t c = 0; c < 8; ++c) add_channel(100 + c);
    client_ = scheduler.add(vm, pages_);
    scheduler.ready(client_, 1000, rm_client, {gpu});
  }
  ~Worker() {
    scheduler_.remove(client_);
    munmap(use_, sizeof *use_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void add_channel(std::uint32_t handle) {
    ring::ChannelTable& table = use_->channels[2];
    table.version += 1;
    const std::uint32_t at = table.count++;
    if (at < table.most) table.channel[at].handle = handle, table.channel[at].serial = ++serial_;
    table.version += 1;
  }
  // Submits once more, and rings the scheduler if the orders page requests it, as a session does.
  void submit() {
    ++use_->device[0].submitted;
    const std::uint32_t wake = pages_->orders(0).wake;
    if (wake != 0 && wake != rung_) ring();
    rung_ = wake;
  }
  void ring() {
    const std::uint64_t one = 1;
    EXPECT_EQ(write(pages_->scheduler_doorbell_fd(), &one, 8), 8);
  }
  // Completes all submissions, and counts a wait.
  void wait() {
    use_->device[0].settled = use_->device[0].submitted.load();
    ++use_->device[0].waits;
  }
  void launch_and_wait() { submit(), wait(); }
  ring::UsePage& use() { return *use_; }
  const WorkerPages& pages() const { return *pages_; }

 private:
  Scheduler& scheduler_;
  std::shared_ptr<WorkerPages> pages_;
  ring::UsePage* use_ = nullptr;
  Scheduler::Client client_ = 0;
  std::uint32_t rung_ = 0, serial_ = 0;
};

class SchedulerThread : public testing::Test {
 protected:
  explicit SchedulerThread(Scheduler::Options options = {}) {
    scheduler_ = Scheduler::start(options).value();
    scheduler_->set_switcher(std::make_unique<TestSwitcher>(board_));
    vm_a_ = scheduler_->add_vm({}), vm_b_ = scheduler_->add_vm({});
    a_ = std::make_unique<Worker>(*scheduler_, vm_a_, 0xa), b_ = std::make_unique<Worker>(*scheduler_, vm_b_, 0xb);
  }
  // Both workers always want the GPU, and wait for it.
  void act() {
    for (Worker* one : {a_.get(), b_.get()})
      if (one != nullptr) one->wait(), one->submit();
  }
  template <class What>
  bool comes_true(const What& what) {
    return before_deadline([&] { return act(), what(); }, test_deadline, 50us);
  }
  bool leases_begin() {
    return comes_true([&] { return board_->is_off(0xa) != board_->is_off(0xb); });
  }
  // Returns a report made after this call, however long the thread takes.
  const Scheduler::Report& report() {
    const Time asked = std::chrono::steady_clock::now().time_since_epoch();
    EXPECT_TRUE(before_deadline([&] { return scheduler_->report().made >= asked; }));
    return scheduler_->report_of(Time::max());
  }
  Scheduler::Sharing sharing() { return report().sharing.at(gpu); }

  const std::shared_ptr<Board> board_ = std::make_shared<Board>();
  std::unique_ptr<Scheduler> scheduler_;
  Scheduler::Vm vm_a_ = 0, vm_b_ = 0;
  std::unique_ptr<Worker> a_, b_;
};

TEST_F(SchedulerThread, TwoThatWantTheGpuAlternate) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(comes_true([&] { return board_->is_off(0xa) && !board_->is_off(0xb); }));
    EXPECT_TRUE(comes_true([&] { return board_->is_off(0xb) && !board_->is_off(0xa); }));
  }
  EXPECT_EQ(sharing(), Scheduler::Sharing::Leases);
  EXPECT_EQ(board_->doubled, 0) << "a channel is switched off twice";
  const auto& told = report();
  EXPECT_GT(told.vms.at(vm_a_).leases, 1U);
  EXPECT_GT(told.vms.at(vm_b_).had.count(), 0);
  EXPECT_GT(told.vms.at(vm_b_).waited.count(), 0);
}

TEST_F(SchedulerThread, NotifiesAWorkerWhetherItsChannelsAreOff) {
  const auto is_told = [](const Worker& one, std::uint32_t off) { return one.pages().orders(0).off == off; };
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(comes_true([&] { return is_told(*a_, 1) && is_told(*b_, 0); }));
    EXPECT_TRUE(comes_true([&] { return is_told(*b_, 1) && is_told(*a_, 0); }));
  }
  scheduler_->change({.on = false});
  EXPECT_TRUE(comes_true([&] { return is_told(*a_, 0) && is_told(*b_, 0); }));
}

TEST_F(SchedulerThread, OneAloneIsNotSwitchedAndHasAnAccount) {
  EXPECT_TRUE(before_deadline([&] {
    a_->wait(), a_->submit();
    return report().vms.at(vm_a_).had > 5ms;
  }));
  EXPECT_EQ(sharing(), Scheduler::Sharing::Alone);
  EXPECT_EQ(board_->count_off(), 0U);
  EXPECT_EQ(board_->orders, board_->forced) << "but for the first, which lets all on";
}

TEST_F(SchedulerThread, AllAreOnOnceOneHasStopped) {
  ASSERT_TRUE(leases_begin());
  b_->wait();
  EXPECT_TRUE(before_deadline([&] {
    a_->wait(), a_->submit();
    b_->wait();
    return board_->count_off() == 0 && sharing() == Scheduler::Sharing::Alone;
  }));
}

TEST_F(SchedulerThread, ASleeperIsHeardByItsDoorbell) {
  EXPECT_TRUE(before_deadline([&] { return a_->pages().orders(0).wake != 0; }));
  a_->submit();
  EXPECT_TRUE(before_deadline([&] { return report().vms.at(vm_a_).had > 0ns; }));
}

TEST_F(SchedulerThread, TurnedOffByItsOptionsItLetsAllOn) {
  ASSERT_TRUE(leases_begin());
  scheduler_->change({.on = false});
  EXPECT_TRUE(comes_true([&] { return board_->count_off() == 0 && sharing() == Scheduler::Sharing::Unswitched; }));
  const int orders = board_->orders;
  for (int i = 0; i < 1000; ++i) act();
  EXPECT_EQ(board_->orders, orders);
  scheduler_->change({.on = true});
  EXPECT_TRUE(leases_begin());
}

TEST_F(SchedulerThread, AChannelThatIsMadeWhileItsVmIsOffGoesOff) {
  std::uint32_t handle = 500;
  EXPECT_TRUE(comes_true([&] {
    if (!board_->is_off(0xa)) return false;
    a_->add_channel(++handle);
    return before_deadline(
               [&] {
                 act();
                 std::lock_guard lock(board_->mutex);
                 return board_->off.contains({0xa, handle}) || board_->off.contains({0xb, 100});
               },
               test_deadline, 50us) &&
           board_->is_off(0xa);
  }));
}

TEST_F(SchedulerThread, AClientThatANewWorkerHasIsNoLongerAnOldOnes) {
  const auto vm = scheduler_->add_vm({});
  const auto c = std::make_unique<Worker>(*scheduler_, vm, 0xa);  // the driver has reused the number of the client
  c->use().channels[2].channel[0].handle = 900;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(comes_true([&] { return board_->is_off(0xb); }));
    ASSERT_TRUE(comes_true([&] { return !board_->is_off(0xb); }));
  }
  std::lock_guard lock(board_->mutex);
  EXPECT_FALSE(board_->off.contains({0xa, 100})) << "by the old worker's word";
}

// The guest has taken control of its worker.
TEST_F(SchedulerThread, AHostileTableCostsNobodyElse) {
  ring::ChannelTable& table = a_->use().channels[2];
  table.count = ~0U;
  for (auto& channel : table.channel) channel.handle = 7;
  EXPECT_TRUE(comes_true([&] { return board_->is_off(0xa); }));
  EXPECT_TRUE(comes_true([&] { return board_->is_off(0xb); }));
  EXPECT_LE(board_->count_off(), 9U) << "a handle that is told many times counts once";
  a_->use().device[0].submitted = 0, a_->use().device[0].settled = ~0ULL;
  table.version = 1;
  for (int i = 0; i < 100; ++i) a_->ring();
  EXPECT_TRUE(before_deadline([&] {
    b_->wait(), b_->submit();
    return report().vms.at(vm_b_).had > 1ms;
  }));
}

TEST_F(SchedulerThread, AVmOf64ProcessesIsOneVm) {
  std::vector<std::unique_ptr<Worker>> more;
  for (std::uint32_t i = 0; i < 63; ++i) more.push_back(std::make_unique<Worker>(*scheduler_, vm_a_, 0x100 + i));
  const auto all_act = [&] {
    for (const auto& one : more) one->wait(), one->submit();
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(comes_true([&] { return all_act(), board_->count_off() == 64 * 8U; })) << "all of them at once";
    EXPECT_FALSE(board_->is_off(0xb));
    EXPECT_TRUE(comes_true([&] { return all_act(), board_->is_off(0xb) && board_->count_off() == 8; }));
  }
  more.clear();
  EXPECT_TRUE(comes_true([&] { return board_->is_off(0xa); }));
}

TEST_F(SchedulerThread, AVmOf40ContextsGoesOffWhole) {
  for (std::uint32_t c = 8; c < 40 * 8; ++c) a_->add_channel(100 + c);
  EXPECT_TRUE(comes_true([&] { return board_->count_off() == 40 * 8U; }));
  EXPECT_TRUE(comes_true([&] { return board_->is_off(0xb) && board_->count_off() == 8; }));
}

TEST_F(SchedulerThread, ProcessesThatComeAndGoLeaveLeasesAsTheyAre) {
  ASSERT_TRUE(leases_begin());
  std::uint32_t rm_client = 0x1000;
  for (int i = 0; i < 500; ++i) {  // half a minute of 1,000 processes a minute, without pauses
    b_ = std::make_unique<Worker>(*scheduler_, vm_b_, ++rm_client);
    act();
  }
  ASSERT_TRUE(comes_true([&] { return board_->is_off(0xa); }));
  ASSERT_TRUE(comes_true([&] { return board_->is_off(rm_client); })) << "its turn ends as that of any other";
}

TEST_F(SchedulerThread, AGpuThatIsLostIsSwitchedNoMore) {
  ASSERT_TRUE(leases_begin());
  board_->change([&] { board_->refuses = 0x21; });  // the driver's status for a dead channel
  const int orders = board_->orders;
  ASSERT_TRUE(comes_true([&] { return board_->orders > orders + 2; }));
  EXPECT_EQ(sharing(), Scheduler::Sharing::Leases);
  board_->change([&] { board_->refuses = host::rm::gpu_is_lost; });
  EXPECT_TRUE(comes_true([&] { return sharing() == Scheduler::Sharing::Unswitched; }));
  const int last = board_->orders;
  for (int i = 0; i < 1000; ++i) act();
  EXPECT_EQ(board_->orders, last);
  EXPECT_FALSE(scheduler_->take_lost()) << "the helper has other GPUs";
}

TEST_F(SchedulerThread, AWorkerThatEndsWhileItHoldsLetsTheOtherOn) {
  ASSERT_TRUE(comes_true([&] { return board_->is_off(0xa); }));
  b_.reset();
  EXPECT_TRUE(comes_true([&] { return !board_->is_off(0xa); }));
}

TEST_F(SchedulerThread, ReportsALostSwitcherAndTheNextLetsAllOn) {
  ASSERT_TRUE(leases_begin());
  board_->change([&] { board_->gone = true; });
  EXPECT_TRUE(comes_true([&] { return scheduler_->take_lost(); }));
  EXPECT_EQ(sharing(), Scheduler::Sharing::Unswitched);
  EXPECT_NE(board_->count_off(), 0U);
  const int forced = board_->forced;
  board_->change([&] { board_->gone = false, board_->pending.clear(); });
  scheduler_->set_switcher(std::make_unique<TestSwitcher>(board_));
  EXPECT_TRUE(comes_true([&] { return board_->forced > forced; }));
  EXPECT_TRUE(leases_begin());
}

TEST_F(SchedulerThread, NotifiesASwitcherAgainThatHasSwitchedEverythingOn) {
  ASSERT_TRUE(leases_begin());
  board_->change([&] { board_->tells_all_on = true; });
  EXPECT_TRUE(leases_begin());
  EXPECT_EQ(board_->doubled, 0);
}

class SilentSwitcher : public SchedulerThread {
 protected:
  SilentSwitcher() : SchedulerThread({.on = true, .longest_off = 100ms}) {}
};

TEST_F(SilentSwitcher, IsKeptAwakeWhileSomethingIsOff) {
  ASSERT_TRUE(leases_begin());
  EXPECT_TRUE(comes_true([&] {
    std::lock_guard lock(board_->mutex);
    return board_->kept > 0 || board_->orders > 20;
  }));
}

TEST_F(SilentSwitcher, IsGivenUpWhereItAnswersNoMore) {
  ASSERT_TRUE(leases_begin());
  board_->change([&] { board_->answers = false; });
  EXPECT_TRUE(comes_true([&] { return scheduler_->take_lost(); }));
}

TEST(WorkerPages, AreTheWorkersToWriteAndTheOrdersAreNot) {
  const std::shared_ptr<WorkerPages> pages = WorkerPages::create("test", true).value();
  EXPECT_EQ(mmap(nullptr, ring::page, PROT_READ | PROT_WRITE, MAP_SHARED, pages->orders_fd(), 0), MAP_FAILED);
  EXPECT_NE(ftruncate(pages->use_fd(), 0), 0);
  const auto adopted =
      WorkerPages::adopt(host::broker::Fd(dup(pages->orders_to_keep())), host::broker::Fd(dup(pages->use_fd())),
                         host::broker::Fd(dup(pages->scheduler_doorbell_fd())));
  ASSERT_TRUE(adopted);
  adopted->orders(0).wake = 9;
  EXPECT_EQ(pages->orders(0).wake, 9U);
  EXPECT_FALSE(WorkerPages::adopt({}, host::broker::Fd(dup(pages->use_fd())), {}));
}

}  // namespace
