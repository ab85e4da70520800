// How the broker looks for workers that use a GPU without a turn (host/broker/turn_watch.h): by samples, a scheduler and
// workers that the test plays; and the simulated GPU's samples.
#include "host/broker/turn_watch.h"

#include <sys/eventfd.h>

#include <nlohmann/json.hpp>

#include "broker_harness.h"
#include "host/broker/worker_turns.h"
#include "usage_file.h"

namespace {

using namespace broker_test;
using namespace host::broker;
using namespace std::chrono_literals;
using host::turns::Scheduler;
using host::turns::Time;

constexpr const char* gpu = "GPU-1";

std::int64_t us_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}
Time now() { return std::chrono::steady_clock::now().time_since_epoch(); }

// Samples as the test wants them: `next` makes those of a look, of the time since the look before.
class Samples : public GpuUsage {
 public:
  explicit Samples(EventLoop& loop) : loop_(loop) {}
  ~Samples() override { loop_.forget(timer_); }
  bool ask(const std::vector<std::string>&, std::function<void(const GpuUses&)>) override { return false; }
  bool ask_for_facts(const std::vector<std::string>&, std::function<void(const GpuUses&)>) override { return false; }
  GpuUses ask_now(const std::vector<std::string>&) override { return {}; }
  bool ask_for_work(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) override {
    ++*asked;
    timer_ = loop_.after(1ms, [this, gpus, answer] {
      timer_ = 0;
      GpuUses uses;
      const std::int64_t to = us_since_1970();
      for (const std::string& name : gpus) {
        uses[name].missing = missing;
        if (from_ != 0) uses[name].work = next(from_, to);
      }
      from_ = to;
      answer(uses);
      if (*asked == enough) loop_.stop();
    });
    return true;
  }

  std::function<std::vector<GpuWork>(std::int64_t from, std::int64_t to)> next = [](auto, auto) {
    return std::vector<GpuWork>();
  };
  std::string missing;
  int enough = 0;                                               // questions: then the loop stops
  const std::shared_ptr<int> asked = std::make_shared<int>(0);  // outlives this

 private:
  EventLoop& loop_;
  EventLoop::Id timer_ = 0;
  std::int64_t from_ = 0;
};

// A GPU that takes turns, and workers 1 and 2, whose processes are 101 and 102.
class Watched : public testing::Test {
 protected:
  Watched() {
    report_.takes_turns[gpu] = true;
    workers_ = {{1, 101, {gpu}}, {2, 102, {gpu}}};
    for (const auto& worker : workers_) report_.rights[gpu][worker.client].until = now() - 10s;
  }
  // So many times, each 50 ms; then whom it has ended.
  std::map<TurnWatch::Client, std::string> look(int times) {
    samples_.enough = times;
    const auto asked = samples_.asked;
    look_for(test_deadline);
    EXPECT_EQ(*asked, times);
    return ended_;
  }
  void look_for(std::chrono::milliseconds time) {
    const Fd news(eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC));
    const TurnWatch::Acts acts{
        .report = [this]() -> const Scheduler::Report& {
          if (before_report) before_report();
          if (fresh) report_.made = now();
          return report_;
        },
        .workers = [this] { return workers_; },
        .suspect =
            [this](TurnWatch::Client client, const std::string& on) {
              suspected_.insert(client);
              if (answers) report_.rights[on][client].no_copies_since = now();
            },
        .end = [this](TurnWatch::Client client, const std::string& why) { ended_.try_emplace(client, why); },
        .watches = [this](bool on) { watches_ = on; },
        .offset = offset_};
    const TurnWatch watch(loop_, std::move(usage_), news.get(), acts);
    EventLoop::Id end = loop_.after(time, [this] { loop_.stop(); });
    loop_.run();
    loop_.forget(end);
  }
  static GpuWork worked(pid_t process, unsigned percent, std::int64_t from, std::int64_t to) {
    return {process, percent, from, to};
  }

  EventLoop loop_{make_epoll_waiter()};
  std::unique_ptr<Samples> usage_ = std::make_unique<Samples>(loop_);
  Samples& samples_ = *usage_;
  Scheduler::Report report_;
  std::vector<TurnWatch::Worker> workers_;
  std::function<void()> before_report;
  bool fresh = true, answers = true;
  std::map<TurnWatch::Client, std::string> ended_;
  std::set<TurnWatch::Client> suspected_;
  bool watches_ = false;
  std::function<std::chrono::nanoseconds()> offset_ = offset_of_clocks;
};

TEST_F(Watched, WhoWorksWithoutATurnIsEndedWithinTwentyLooks) {
  samples_.next = [](auto from, auto to) {
    return std::vector{worked(101, 48, from, to), worked(102, 3, from, to), worked(4711, 99, from, to)};
  };
  const auto ended = look(20);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_TRUE(ended.at(1).starts_with("its process 101 gave GPU-1 work without a turn: it has had none for 1"))
      << ended.at(1);
  EXPECT_NE(ended.at(1).find(" ms, and had 48 % of "), std::string::npos) << ended.at(1);
  EXPECT_TRUE(watches_);
}

TEST_F(Watched, WhoseCopiesMayStillBeUnderWayIsNot) {
  answers = false;
  samples_.next = [](auto from, auto to) { return std::vector{worked(101, 99, from, to)}; };
  EXPECT_TRUE(look(20).empty());
}

TEST_F(Watched, WhoNeverAnswersIsEndedWithTheNextSample) {
  answers = false;
  report_.rights[gpu][1].unanswered = host::turns::most_unanswered;
  samples_.next = [](auto from, auto to) { return std::vector{worked(101, 99, from, to)}; };
  EXPECT_EQ(look(20).count(1), 1U);
}

TEST_F(Watched, WhoGoesFirstAndUsesMoreThanItIsChargedWithIsToTakeTurns) {
  answers = false;
  report_.rights[gpu][1] = {.until = now(), .no_copies_since = {}, .unanswered = 0, .charged = 0.1};
  report_.rights[gpu][2] = {.until = now(), .no_copies_since = {}, .unanswered = 0, .charged = 0.1};
  samples_.next = [](auto from, auto to) { return std::vector{worked(101, 90, from, to), worked(102, 20, from, to)}; };
  EXPECT_TRUE(look(40).empty());
  EXPECT_EQ(suspected_, std::set<TurnWatch::Client>{1});
}

TEST_F(Watched, OneSampleEndsNobody) {
  int looks = 0;
  samples_.next = [&](auto from, auto to) {
    return ++looks == 2 ? std::vector{worked(101, 99, from, to)} : std::vector<GpuWork>();
  };
  EXPECT_TRUE(look(20).empty());
}

TEST_F(Watched, WhoHasTurnsIsNot) {
  before_report = [&] { report_.rights[gpu][1].until = now() - 50ms; };
  samples_.next = [](auto from, auto to) { return std::vector{worked(101, 99, from, to)}; };
  EXPECT_TRUE(look(20).empty());
}

TEST_F(Watched, AnOldAnswerOfTheSchedulerEndsNobody) {
  fresh = false;
  report_.made = now() - 1ms;
  samples_.next = [](auto from, auto to) { return std::vector{worked(101, 99, from, to)}; };
  EXPECT_TRUE(look(20).empty());
}

TEST_F(Watched, SamplesFromBeforeItsTurnEndNobody) {
  constexpr std::int64_t hour = 3'600'000'000;
  samples_.next = [](auto from, auto to) { return std::vector{worked(101, 99, from - hour, to - hour)}; };
  EXPECT_TRUE(look(20).empty());
}

TEST_F(Watched, SamplesAroundAStepOfTheClockEndNobody) {
  std::chrono::nanoseconds ahead{};
  offset_ = [&ahead] { return offset_of_clocks() + (ahead += 10ms); };
  samples_.next = [](auto from, auto to) { return std::vector{worked(101, 99, from, to)}; };
  EXPECT_TRUE(look(20).empty());
}

TEST_F(Watched, AWorkerWhoseGpusAreNotKnownIsLeftAlone) {
  workers_[0].gpus.clear();
  report_.rights["GPU-2"][1].until = now() - 10s;
  samples_.next = [](auto from, auto to) { return std::vector{worked(101, 99, from, to)}; };
  EXPECT_TRUE(look(20).empty());
}

TEST_F(Watched, NobodyIsAskedWhileNobodyTakesTurns) {
  report_.takes_turns[gpu] = false;
  const auto asked = samples_.asked;
  look_for(500ms);
  EXPECT_EQ(*asked, 0);
}

TEST_F(Watched, WhereNobodyTellsTurnsAreNotWatched) {
  samples_.missing = "NVML tells nothing of its use: Not Supported";
  samples_.next = [](auto from, auto to) { return std::vector{worked(101, 99, from, to)}; };
  look(3);
  EXPECT_FALSE(watches_);
}

// ---- the simulated GPU's samples -------------------------------------------------------------------------------------

TEST(SimulatedSamples, NameWhoHasWorked) {
  const UsageFile file;
  simgpu::UsageFile* const words = file.map;
  setenv("IVGPU_SIM_USAGE", file.path.c_str(), 1);
  EventLoop loop(make_epoll_waiter());
  const auto usage = make_simulated_usage(loop);
  unsetenv("IVGPU_SIM_USAGE");
  const std::string name = simgpu::device_uuid_text(0);
  const auto ask = [&] {
    GpuUses answer;
    EXPECT_TRUE(usage->ask_for_work({name}, [&](const GpuUses& uses) {
      answer = uses;
      loop.stop();
    }));
    loop.run();
    return answer.at(name);
  };
  simgpu::entry_of(*words, 7)->busy_ns[0] = 5'000'000'000;
  EXPECT_TRUE(ask().work.empty()) << "since when is not known";
  EXPECT_TRUE(ask().work.empty()) << "a sample takes its time";
  std::this_thread::sleep_for(200ms);
  const std::int64_t before = us_since_1970();
  simgpu::entry_of(*words, 7)->busy_ns[0] += 50'000'000;
  simgpu::entry_of(*words, 8)->busy_ns[0] = 3'600'000'000'000;
  const GpuUse use = ask();
  ASSERT_EQ(use.work.size(), 2U);
  EXPECT_EQ(use.work[0].process, 7);
  EXPECT_LE(use.work[0].percent, 25U);
  EXPECT_GE(use.work[0].to_us, before);
  EXPECT_LE(use.work[0].from_us, use.work[0].to_us - 200'000);
  EXPECT_EQ(use.work[1].percent, 100U);
}

// ---- on which GPUs a worker is known to take turns -------------------------------------------------------------------

TEST(WorkerTurns, AWorkerWhoseGpusAreInAnotherOrderIsSureOfNone) {
  std::string error;
  const auto scheduler = Scheduler::start({.on = true, .limits = {}}, true, error);
  ASSERT_TRUE(scheduler) << error;
  const auto place = WorkerTurns::create(*scheduler, scheduler->add_vm({}),
                                         VmGpus{.list = simulated_gpus("3"), .devices = {}}, "test", false, error);
  ASSERT_TRUE(place) << error;
  EXPECT_TRUE(place->sure().empty()) << "it has said nothing yet";
  host::worker::ReadyMessage said{};
  said.gpus = 3;
  for (const auto& [ordinal, device] : {std::pair{0, 1}, {1, 0}, {2, 2}})
    std::memcpy(said.gpu[ordinal].uuid, simgpu::device_uuid_bytes(device).data(), 16);
  place->saw(said);
  EXPECT_EQ(place->sure(), std::vector{simgpu::device_uuid_text(2)});
  said.gpus = ~0U;
  place->saw(said);
  EXPECT_EQ(place->sure().size(), 1U);
}

// ---- a broker ------------------------------------------------------------------------------------------------------

// An ivgpud on the simulated GPU, whose workers the test has take turns, or not, and whose work it makes up.
class WithABroker : public testing::Test {
 protected:
  static constexpr const char* vms[] = {"t", "u", "v"};

  WithABroker() {
    for (const char* vm : vms) {
      guests_.push_back(std::make_unique<Client>(broker_.folder / (std::string(vm) + ".sock")));
      EXPECT_TRUE(guests_.back()->greet(3));
      EXPECT_EQ(guests_.back()->claim(), 0U);
    }
  }
  nlohmann::json status() const {
    return nlohmann::json::parse(run_program(IVGPU, {"status", "--json", "--runtime-dir", broker_.folder.path()}).text);
  }
  pid_t worker_of(std::size_t vm) const { return status().at("vms").at(vm).at("slots").at(0).at("worker"); }
  void two_take_turns() {
    for (const std::size_t vm : {0, 1}) {
      workers_[vm] = worker_of(vm);
      ASSERT_TRUE(guests_[vm]->tell(0, 'L'));
    }
    workers_[2] = worker_of(2);
    ASSERT_TRUE(guests_[2]->tell(0, 'E'));
    ASSERT_TRUE(eventually([&] {
      const auto gpus = status().at("gpus");
      return !gpus.empty() && gpus.at(0).at("takes_turns").get<bool>();
    }));
  }
  // The third has so much of the GPU, for so long or until it is ended, and the others a fifth each. On a machine under
  // load only one that is to be found makes up for a late step: the others never have more of a sample than that.
  void work(unsigned percent, std::chrono::milliseconds time) {
    const auto has = [&](std::size_t vm, unsigned part, std::chrono::nanoseconds of) {
      simgpu::entry_of(*usage_.map, static_cast<std::uint32_t>(workers_[vm]))->busy_ns[0] +=
          static_cast<std::uint64_t>(of.count()) * part / 100;
    };
    auto last = std::chrono::steady_clock::now();
    for (const auto end = last + time; last < end && guests_[2]->word(0).state == ring::SlotState::Claimed;) {
      std::this_thread::sleep_for(10ms);
      const auto now = std::chrono::steady_clock::now();
      const std::chrono::nanoseconds passed = now - std::exchange(last, now), step = 10ms;
      for (const std::size_t vm : {0, 1}) has(vm, 20, step);
      has(2, percent, percent >= 50 ? passed : step);
    }
  }
  bool is_claimed(std::size_t vm) const { return guests_[vm]->word(0).state == ring::SlotState::Claimed; }

  UsageFile usage_;
  Broker broker_{"[vm.u]\n[vm.v]\n",    "", [this] { setenv("IVGPU_SIM_USAGE", usage_.path.c_str(), 1); }, "sim", "",
                 "policy = \"turns\"\n"};
  std::vector<std::unique_ptr<Client>> guests_;
  std::map<std::size_t, pid_t> workers_;
};

TEST_F(WithABroker, AWorkerThatWorksWithoutATurnIsEnded) {
  two_take_turns();
  work(50, test_deadline);
  EXPECT_TRUE(is_claimed(0) && is_claimed(1)) << "the others notice nothing";
  EXPECT_FALSE(is_claimed(2));
  const std::string said = "v/0: killed: its process " + std::to_string(workers_[2]) + " gave " +
                           simgpu::device_uuid_text(0) + " work without a turn: it has had none for ";
  EXPECT_EQ(broker_.times_logged(said), 1U);
  EXPECT_EQ(status().at("vms").at(2).at("turns").at("ended"), 1);
  EXPECT_EQ(status().at("vms").at(0).at("turns").at("ended"), 0);
}

TEST_F(WithABroker, AWorkerThatDoesNextToNothingIsNot) {
  two_take_turns();
  work(5, 2s);
  EXPECT_TRUE(is_claimed(0) && is_claimed(1) && is_claimed(2));
  EXPECT_FALSE(broker_.logged(" without a turn"));
}

TEST_F(WithABroker, UnderSlicesEverybodyMayWork) {
  for (const std::size_t vm : {0, 1, 2}) workers_[vm] = worker_of(vm);
  work(99, 1500ms);
  EXPECT_TRUE(is_claimed(2));
}

}  // namespace
