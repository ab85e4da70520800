// What VMs have had of GPUs' time by samples of these (host/broker/sampled_time.h): the sums, with samples that the test
// makes up; who asks for samples, and when; and a broker on the simulated GPU whose workers' use is made up.
#include "host/broker/sampled_time.h"

#include <nlohmann/json.hpp>
#include <regex>

#include "broker_harness.h"
#include "host/broker/work_samples.h"
#include "usage_file.h"

namespace {

using namespace broker_test;
using namespace host::broker;
using namespace std::chrono_literals;
using host::turns::Scheduler;

constexpr const char* gpu = "GPU-1";
constexpr SampledTime::Vm a = 1, b = 2;
constexpr pid_t of_a = 101, also_of_a = 102, of_b = 201;

class Sums : public testing::Test {
 protected:
  // An answer after so long, with these samples of the time since the last.
  void answer(std::chrono::milliseconds after, const std::vector<std::pair<pid_t, unsigned>>& named) {
    const std::int64_t from = us();
    at_.now += after;
    std::vector<GpuWork> work;
    for (const auto& [process, percent] : named) work.push_back({process, percent, from, us()});
    take(work);
  }
  void take(const std::vector<GpuWork>& work) {
    sums_.take({{gpu, {.total = 0, .missing = "", .processes = {}, .work = work}}}, at_);
  }
  double had(SampledTime::Vm vm) const {
    const auto time = sums_.of(vm, {gpu}).had;
    return time ? std::chrono::duration<double>(*time).count() : -1;
  }
  std::int64_t us() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(at_.now + at_.offset).count();
  }

  SampledTime sums_;
  SampledTime::Moment at_{
      .now = 1000s, .offset = 1'700'000'000s, .in_turns = {}, .vm_of = {{of_a, a}, {also_of_a, a}, {of_b, b}}};
};

TEST_F(Sums, OfAVmsProcesses) {
  answer(200ms, {{of_a, 99}});
  EXPECT_EQ(had(a), 0) << "from when on the first is nobody knows";
  for (int i = 0; i < 10; ++i) answer(200ms, {{of_a, 10}, {also_of_a, 15}, {of_b, 60}, {4711, 15}});
  EXPECT_NEAR(had(a), .5, 1e-6);
  EXPECT_NEAR(had(b), 1.2, 1e-6);
}

TEST_F(Sums, OfTwoThatAreNamedByTurns) {
  answer(200ms, {});
  for (int i = 0; i < 20; ++i) answer(i % 3 == 0 ? 400ms : 200ms, {{i % 2 == 0 ? of_a : of_b, 99}});
  EXPECT_NEAR(had(a) + had(b), .99 * 5.4, 1e-6);
  EXPECT_NEAR(had(a), had(b), .5);
}

TEST_F(Sums, ASampleCountsOnce) {
  answer(200ms, {});
  answer(200ms, {{of_a, 50}});
  const GpuWork same{of_a, 50, us() - 200'000, us()};
  for (int i = 0; i < 5; ++i) {
    at_.now += 50ms;
    take({same});
  }
  EXPECT_NEAR(had(a), .1, 1e-6);
  at_.now += 50ms;
  take({{of_a, 50, same.from_us, us()}});
  EXPECT_NEAR(had(a), .25, 1e-6) << "of what overlaps, what is new";
}

TEST_F(Sums, WhatComesAfterAnIdleTimeIsOfTheNewestSample) {
  answer(200ms, {{of_a, 50}});
  const std::int64_t last = us();
  for (int i = 0; i < 50; ++i) answer(200ms, {});
  at_.now += 200ms;
  take({{of_a, 50, last, us()}});
  EXPECT_NEAR(had(a), .1, 1e-6) << "and not of the ten seconds before";
}

TEST_F(Sums, AfterAPauseOfTheQuestionsNothingCounts) {
  answer(200ms, {});
  answer(200ms, {{of_a, 50}});
  answer(60s, {{of_a, 99}});
  EXPECT_NEAR(had(a), .1, 1e-6);
  answer(200ms, {{of_a, 50}});
  EXPECT_NEAR(had(a), .2, 1e-6);
}

TEST_F(Sums, AStepOfTheClockCountsNothing) {
  for (const auto step :
       {std::chrono::nanoseconds(1h), std::chrono::nanoseconds(-2h), std::chrono::nanoseconds(10ms)}) {
    sums_ = {};
    answer(200ms, {});
    answer(200ms, {{of_a, 50}});
    const std::int64_t from = us();
    at_.now += 200ms, at_.offset += step;
    take({{of_a, 50, std::min(from, us() - 1), us()}});
    EXPECT_NEAR(had(a), .1, 1e-6);
    answer(200ms, {{of_a, 50}});
    EXPECT_NEAR(had(a), .2, 1e-6) << "and it goes on";
  }
}

// What a helper says that is none.
TEST_F(Sums, NobodyHasMoreThanTheTimeThatPasses) {
  answer(200ms, {});
  const double before = std::chrono::duration<double>(at_.now).count();
  const std::int64_t far = std::int64_t{1} << 53;
  for (int i = 0; i < 100; ++i) {
    at_.now += 50ms;
    take({{of_a, 4'000'000'000, us() - 50'000, us()},
          {of_a, 100, 0, us()},
          {of_b, 100, us(), us() - 1000},
          {of_b, 100, 0, far},
          {of_b, 100, us() + 1'000'000, us() + 1'500'000},
          {of_b, 100, 0, us() + i * 10'000}});
  }
  EXPECT_LE(had(a) + had(b), std::chrono::duration<double>(at_.now).count() - before + 1e-6);
  EXPECT_GT(had(a), 0);
  answer(60s, {});
  const double then = had(a);
  answer(200ms, {{of_a, 50}});
  EXPECT_NEAR(had(a), then + .1, 1e-6) << "a lie of what is to come has no end";
}

TEST_F(Sums, OfTwoNamedWithAllEachHasHalf) {
  answer(200ms, {});
  answer(200ms, {{of_a, 100}, {of_b, 100}});
  EXPECT_NEAR(had(a), .1, 1e-6);
  EXPECT_NEAR(had(b), .1, 1e-6);
}

TEST_F(Sums, WhatTurnsMeasureIsLeftOut) {
  answer(200ms, {});
  answer(200ms, {{of_a, 50}});
  at_.in_turns[gpu] = 200ms;
  answer(200ms, {{of_a, 50}});
  EXPECT_NEAR(had(a), .1, 1e-6);
  at_.in_turns[gpu] += 50ms;
  answer(200ms, {{of_a, 40}});
  EXPECT_NEAR(had(a), .16, 1e-6);
  at_.in_turns.clear();  // the policy is another
  answer(200ms, {{of_a, 50}});
  EXPECT_NEAR(had(a), .26, 1e-6);
}

TEST_F(Sums, AProcessThatHasEndedIsNobodys) {
  answer(200ms, {});
  answer(200ms, {{of_a, 50}});
  at_.vm_of.erase(of_a);
  answer(200ms, {{of_a, 50}});
  EXPECT_NEAR(had(a), .1, 1e-6) << "and what it had stays";
  sums_.forget(a);
  EXPECT_EQ(had(a), 0);
}

TEST_F(Sums, WhereNobodyTellsThereIsNoNumber) {
  EXPECT_EQ(had(a), -1);
  EXPECT_EQ(sums_.of(a, {gpu}).missing, "no session has lasted for a second yet");
  EXPECT_TRUE(sums_.of(a, {gpu}).is_early);
  EXPECT_EQ(sums_.of(a, {}).missing, "its GPUs are not known");
  EXPECT_FALSE(sums_.of(a, {}).is_early);
  const GpuUses none = {{gpu, {.total = 0, .missing = "NVML cannot be asked: x", .processes = {}, .work = {}}}};
  sums_.take(none, at_);
  EXPECT_EQ(had(a), -1);
  EXPECT_EQ(sums_.of(a, {"GPU-2", gpu}).missing, "NVML cannot be asked: x");
  EXPECT_FALSE(sums_.of(a, {gpu}).is_early);
  answer(200ms, {});
  EXPECT_EQ(had(a), 0);
  EXPECT_EQ(sums_.of(a, {gpu}).missing, "");
  sums_.take(none, at_);
  EXPECT_EQ(had(a), 0) << "a counter does not vanish";
  EXPECT_EQ(sums_.of(a, {gpu}).missing, "NVML cannot be asked: x");
}

TEST_F(Sums, EachGpuIsToldApart) {
  const std::string other = "GPU-2";
  const auto both = [&](unsigned percent, unsigned percent_of_other) {
    const std::int64_t from = us();
    at_.now += 200ms;
    GpuUses uses;
    uses[gpu].work = {{of_a, percent, from, us()}}, uses[other].work = {{of_a, percent_of_other, from, us()}};
    sums_.take(uses, at_);
  };
  for (int i = 0; i < 6; ++i) both(50, 0);
  for (int i = 0; i < 5; ++i) both(0, 100);
  const auto had_of = [&](const std::string& one) {
    return std::chrono::duration<double>(sums_.of_gpu(a, one).had.value()).count();
  };
  EXPECT_NEAR(had_of(gpu), .5, 1e-6) << "nobody knows from when on the first was";
  EXPECT_NEAR(had_of(other), 1, 1e-6);
  EXPECT_NEAR(had(a), 1.5, 1e-6);
  EXPECT_FALSE(sums_.of_gpu(a, "GPU-3").had);
}

// ---- who asks ------------------------------------------------------------------------------------------------------

struct Asked {
  int times = 0, enough = 0;  // questions: then the loop stops
  std::vector<std::string> gpus;
  std::string missing;
};

class Usage : public GpuUsage {
 public:
  Usage(EventLoop& loop, Asked& asked) : loop_(loop), asked_(asked) {}
  ~Usage() override { loop_.forget(timer_); }
  bool ask(const std::vector<std::string>&, std::function<void(const GpuUses&)>) override { return false; }
  bool ask_for_facts(const std::vector<std::string>&, std::function<void(const GpuUses&)>) override { return false; }
  GpuUses ask_now(const std::vector<std::string>&) override { return {}; }
  bool ask_for_work(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) override {
    if (timer_ != 0) return false;
    ++asked_.times;
    asked_.gpus = gpus;
    timer_ = loop_.after(1ms, [this, gpus, answer] {
      timer_ = 0;
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      const std::int64_t to = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
      GpuUses uses;
      for (const std::string& name : gpus) {
        uses[name].missing = asked_.missing;
        uses[name].work = {{of_a, 50, from_ != 0 ? from_ : to - 1, to}};
      }
      from_ = to;
      answer(uses);
      if (asked_.times == asked_.enough) loop_.stop();
    });
    return true;
  }

 private:
  EventLoop& loop_;
  Asked& asked_;
  EventLoop::Id timer_ = 0;
  std::int64_t from_ = 0;
};

class Asking : public testing::Test {
 protected:
  void run_for(std::chrono::milliseconds time) {
    loop_.after(time, [this] { loop_.stop(); });
    loop_.run();
  }
  EventLoop loop_{make_epoll_waiter()};
  Asked asked_;
  Scheduler::Report report_;
  WorkSamples::Workers workers_{.vm_of = {{of_a, a}}, .gpus = {gpu}};
  WorkSamples samples_{
      loop_,
      std::make_unique<Usage>(loop_, asked_),
      {.report = [this]() -> const Scheduler::Report& { return report_; }, .workers = [this] { return workers_; }}};
};

TEST_F(Asking, NobodyIsAskedWithoutASession) {
  run_for(1300ms);
  EXPECT_EQ(asked_.times, 0);
  samples_.watch();
  workers_.gpus.clear();
  run_for(1300ms);
  EXPECT_EQ(asked_.times, 0) << "it has ended";
}

TEST_F(Asking, AFewTimesASecondWhileThereIsOne) {
  const auto begin = std::chrono::steady_clock::now();
  samples_.watch();
  samples_.watch();
  asked_.enough = 4;
  run_for(test_deadline);
  EXPECT_EQ(asked_.times, 4);
  EXPECT_GE(seconds_since(begin), 1.59) << "a second before the first, and a fifth between two";
  EXPECT_GT(samples_.of(a, {gpu}).had.value_or(0s), 0s);
}

TEST_F(Asking, WhereTurnsAreTakenTheOthersAnswersCount) {
  report_.takes_turns[gpu] = true;
  const auto shared = samples_.for_others();
  samples_.watch();
  int answers = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(shared->ask_for_work({gpu}, [&](const GpuUses& uses) { answers += uses.at(gpu).missing.empty(); }));
    EXPECT_FALSE(shared->ask_for_work({gpu}, [](const GpuUses&) {})) << "one question at a time";
    run_for(250ms);
  }
  EXPECT_EQ(answers, 3);
  EXPECT_EQ(asked_.times, 3) << "the other alone asks";
  EXPECT_GT(samples_.of(a, {gpu}).had.value_or(0s), 100ms) << "turns were tried in none of that time";
}

TEST_F(Asking, WhoDoesNotTellIsLeftAlone) {
  asked_.missing = "NVML cannot be asked: x";
  samples_.watch();
  run_for(2000ms);
  EXPECT_EQ(asked_.times, 1);
  EXPECT_FALSE(samples_.of(a, {gpu}).had);
}

// ---- a broker ------------------------------------------------------------------------------------------------------

class WithABroker : public testing::TestWithParam<const char*> {
 protected:
  explicit WithABroker(bool told = true)
      : broker_{"[vm.u]\n",
                "",
                [this, told] {
                  if (told) setenv("IVGPU_SIM_USAGE", usage_.path.c_str(), 1);
                },
                "sim",
                "",
                "policy = \"" + std::string(GetParam()) + "\"\n"} {
    for (const char* vm : {"t", "u"}) {
      guests_.push_back(std::make_unique<Client>(broker_.folder / (std::string(vm) + ".sock")));
      EXPECT_TRUE(guests_.back()->greet(3));
      EXPECT_EQ(guests_.back()->claim(), 0U);
    }
  }
  std::string status(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"status", "--runtime-dir", broker_.folder.path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(IVGPU, arguments).text;
  }
  nlohmann::json vm(std::size_t k) const { return nlohmann::json::parse(status({"--json"})).at("vms").at(k); }
  // The first has a fifth of the GPU, and the second three of these, until samples tell of 0.3 s of the first. Returns the
  // seconds of both. A step that comes late counts for 40 ms at most, or a sample would have more of it than its length.
  double work() {
    const std::uint32_t workers[] = {vm(0).at("slots").at(0).at("worker"), vm(1).at("slots").at(0).at("worker")};
    const auto samples_tell = [&] {
      const auto of_t = vm(0).at("gpu_time").at("samples_s");
      return of_t.is_number() && of_t.get<double>() > .3;
    };
    std::chrono::nanoseconds worked{};
    auto last = std::chrono::steady_clock::now();
    const auto step = [&] {
      std::this_thread::sleep_for(10ms);
      const auto now = std::chrono::steady_clock::now();
      const auto fifth = std::min<std::chrono::nanoseconds>(now - std::exchange(last, now), 40ms) / 5;
      for (const std::size_t k : {0, 1})
        simgpu::entry_of(*usage_.map, workers[k])->busy_ns[0] +=
            static_cast<std::uint64_t>(fifth.count()) * (k == 0 ? 1 : 3);
      worked += 4 * fifth;
    };
    EXPECT_TRUE(eventually([&] {
      for (int i = 0; i < 20; ++i) step();
      return samples_tell();
    }));
    return std::chrono::duration<double>(worked).count();
  }

  UsageFile usage_;
  Broker broker_;
  std::vector<std::unique_ptr<Client>> guests_;
};

TEST_P(WithABroker, TellsEachVmsShareUnderSlices) {
  const double worked = work();
  const auto t = vm(0).at("gpu_time"), u = vm(1).at("gpu_time");
  EXPECT_EQ(t.at("missing"), "");
  EXPECT_EQ(t.at("turns_s").is_null(), std::string(GetParam()) != "turns") << "nobody takes turns: " << t;
  const double of_t = t.at("samples_s"), of_u = u.at("samples_s");
  EXPECT_LE(of_t + of_u, worked + 1e-3);
  EXPECT_NEAR(of_t / (of_t + of_u), .25, .03);
  const std::string text = status();
  // Of the samples so far, whose times are the machine's: a quarter, and a part of a sample more or less.
  EXPECT_TRUE(std::regex_search(text, std::regex("\n  GPU time: 2[2-8] % of all VMs', "))) << text;
  EXPECT_NE(text.find(" s by samples\n"), std::string::npos) << text;
}

struct WithoutSamples : WithABroker {
  WithoutSamples() : WithABroker(false) {}
};

TEST_P(WithoutSamples, SaysWhyAndServes) {
  EXPECT_TRUE(eventually([&] {
    return vm(0).at("gpu_time").at("missing").get<std::string>().starts_with("the simulated GPU has no file");
  }));
  EXPECT_TRUE(vm(0).at("gpu_time").at("samples_s").is_null());
  EXPECT_NE(status().find("\n  GPU time: not told while the driver slices: the simulated GPU has no file"),
            std::string::npos)
      << status();
  EXPECT_EQ(broker_.terminate(), 0);
}

INSTANTIATE_TEST_SUITE_P(Policies, WithABroker, testing::Values("time-slice", "turns"),
                         [](const auto& one) { return std::string(one.param) == "turns" ? "turns" : "slices"; });
INSTANTIATE_TEST_SUITE_P(Policies, WithoutSamples, testing::Values("time-slice"), [](const auto&) { return "slices"; });

}  // namespace
