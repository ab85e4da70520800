// The broker's reports to guests about their GPUs: the helper's lines, the age limit of an answer, utilisation, and the
// pages that a guest reads.
#include <algorithm>
#include <memory>

#include "host/broker/gpu/gpu_fact_cache.h"
#include "host/broker/gpu/gpu_facts.h"
#include "host/broker/gpu/utilization.h"
#include "host/simgpu/image/device_names.h"
#include "ring/layout/region_view.h"
#include "ring/nvml/facts.h"
#include "tests/unit/broker/harness.h"
#include "tests/unit/usage_file.h"

namespace {

using namespace broker_test;
using namespace std::chrono_literals;
using host::broker::Clock, host::broker::EventLoop, host::broker::GpuFacts, host::broker::GpuUses;
using ring::Fact;

// ---- lines ---------------------------------------------------------------------------------------------------------

GpuFacts some_facts() {
  GpuFacts facts;
  facts.name = "NVIDIA H200", facts.bus_id = "00000000:81:00.0", facts.vbios = "96.00", facts.driver = "580.159.04";
  facts.cuda = 13000;
  facts.total = 1000, facts.reserved = 100;
  facts[Fact::power_usage] = 79'000;
  facts[Fact::utilization] = 0;
  return facts;
}

TEST(Facts, LinesReportAllOfThem) {
  const GpuFacts said = some_facts();
  GpuUses uses;
  uses["GPU-1"];
  std::istringstream lines(fact_lines("GPU-1", said));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_TRUE(host::broker::take_usage_line(line, uses)) << line;
  EXPECT_EQ(count, 8);
  const GpuFacts& heard = uses["GPU-1"].facts;
  EXPECT_EQ(heard.name, said.name);
  EXPECT_EQ(heard.bus_id, said.bus_id);
  EXPECT_EQ(heard.vbios, said.vbios);
  EXPECT_EQ(heard.driver, said.driver);
  EXPECT_EQ(heard.cuda, said.cuda);
  EXPECT_EQ(heard.total, said.total);
  EXPECT_EQ(heard.reserved, said.reserved);
  EXPECT_EQ(heard.fact, said.fact);
}

TEST(Facts, OtherLinesChangeNothing) {
  GpuUses uses;
  uses["GPU-1"];
  for (const std::string& line :
       {std::string("text GPU-1 name two\nlines"), std::string("text GPU-1 serial 5"), std::string("text GPU-2 name x"),
        "text GPU-1 name " + std::string(96, 'x'), std::string("text GPU-1"), std::string("cuda GPU-1 x"),
        std::string("cuda GPU-1 -1"), std::string("memory GPU-1 5"), std::string("memory GPU-1 5 6"),
        std::string("memory GPU-1 5 1 5"), std::string("fact GPU-1 power_usage"),
        std::string("fact GPU-1 power_usage 4294967296"), std::string("fact GPU-1 no_such_fact 1"),
        std::string("fact GPU-1 power_usage 1 2"), std::string("fact GPU-1")})
    EXPECT_FALSE(host::broker::take_usage_line(line, uses)) << line;
  const GpuFacts& facts = uses["GPU-1"].facts;
  EXPECT_EQ(facts.name, "");
  EXPECT_EQ(facts.cuda, 0U);
  EXPECT_EQ(facts.total, 0U);
  EXPECT_TRUE(std::ranges::none_of(facts.fact, [](const auto& one) { return one.has_value(); }));
}

TEST(Facts, AreAskedOfTheLibrary) {
  const Outcome outcome = run_program("/bin/sh", {"-c", "echo facts GPU-1 GPU-shy GPU-odd | " NVML " " FAKE_NVML});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.text,
            "text GPU-1 name Fake GPU\n"
            "text GPU-1 bus_id 00000000:01:00.0\n"
            "text GPU-1 driver 580.1\n"
            "cuda GPU-1 13000\n"
            "memory GPU-1 1000 100\n"
            "fact GPU-1 mig_mode 0\n"
            "fact GPU-1 mig_mode_pending 1\n"
            "fact GPU-1 corrected_errors 7\n"
            "fact GPU-1 uncorrected_errors 7\n"
            "fact GPU-1 corrected_errors_ever 7\n"
            "fact GPU-1 uncorrected_errors_ever 4294967295\n"
            "fact GPU-1 power_usage 70000\n"
            "fact GPU-1 graphics_clock 1000\n"
            "fact GPU-1 sm_clock 1001\n"
            "fact GPU-1 memory_clock 1002\n"
            "fact GPU-1 pci_id 590680286\n"
            "fact GPU-1 pci_subsystem 5\n"
            "fact GPU-1 memory_temperature 41\n"
            "text GPU-shy driver 580.1\n"
            "cuda GPU-shy 13000\n"
            "memory GPU-shy 1000 100\n"
            "missing GPU-odd NVML does not know it: Not Found\n"
            "end\n");
}

// ---- utilisation ---------------------------------------------------------------------------------------------------

TEST(Utilization, IsThePartOfTheLastSeconds) {
  host::broker::Utilization use;
  Clock::time_point now{};
  Clock::duration had{};
  EXPECT_FALSE(use.percent(now, had)) << "nobody has looked";
  const auto work = [&](Clock::duration time, double part) {
    for (const auto until = now + time; now < until;) {
      now += 50ms;
      had += std::chrono::duration_cast<Clock::duration>(part * 50ms);
      use.note(now, had);
    }
  };
  work(5s, 0);
  EXPECT_EQ(use.percent(now, had), 0U);
  work(5s, 0.25);
  EXPECT_EQ(use.percent(now, had), 25U);
  work(5s, 1);
  EXPECT_EQ(use.percent(now, had), 100U);
  work(2s, 0);
  EXPECT_EQ(use.percent(now, had), 0U) << "what was before does not count";
  had += 1min;
  EXPECT_EQ(use.percent(now + 1s, had), 100U) << "never more";
}

// ---- the age limit of an answer ------------------------------------------------------------------------------------

class Telling : public host::broker::GpuUsage {
 public:
  struct Asked {
    std::vector<std::vector<std::string>> questions;
    std::string missing;
    Clock::duration takes = 20ms;
  };
  Telling(EventLoop& loop, Asked& asked) : loop_(loop), asked_(asked) {}
  ~Telling() override { loop_.forget(timer_); }
  bool ask(const std::vector<std::string>&, std::function<void(const GpuUses&)>) override { return false; }
  GpuUses ask_now(const std::vector<std::string>&) override { return {}; }
  bool ask_for_facts(const std::vector<std::string>& gpus, std::function<void(const GpuUses&)> answer) override {
    EXPECT_EQ(timer_, 0U) << "one question at a time";
    asked_.questions.push_back(gpus);
    timer_ = loop_.after(asked_.takes, [this, gpus, answer] {
      timer_ = 0;
      GpuUses uses;
      for (const std::string& gpu : gpus) uses[gpu].facts = some_facts(), uses[gpu].missing = asked_.missing;
      answer(uses);
    });
    return true;
  }

 private:
  EventLoop& loop_;
  Asked& asked_;
  EventLoop::Id timer_ = 0;
};

class FactCache : public testing::Test {
 protected:
  void run_for(Clock::duration time) {
    EventLoop::Id timer = loop.after(time, [this] { loop.stop(); });
    loop.run();
    loop.forget(timer);
  }
  // Asks for the facts about these GPUs, and runs the loop until the answer comes.
  void ask(const std::vector<std::string>& gpus) {
    bool told = false;
    cache.ask(gpus, [&] { told = true, loop.stop(); });
    EXPECT_FALSE(told) << "never before the caller has the number";
    EventLoop::Id timer = loop.after(test_deadline, [this] { loop.stop(); });
    loop.run();
    loop.forget(timer);
    EXPECT_TRUE(told);
  }
  EventLoop loop{host::broker::make_epoll_waiter()};
  Telling::Asked asked;
  host::broker::GpuFactCache cache{loop, std::make_unique<Telling>(loop, asked)};
};

TEST_F(FactCache, AsksOnceForAllThatAskBeforeTheAnswer) {
  int told = 0;
  cache.ask({"GPU-1"}, [&] { ++told; });
  ask({"GPU-1", "GPU-2"});
  EXPECT_EQ(told, 1);
  EXPECT_EQ(asked.questions, (std::vector<std::vector<std::string>>{{"GPU-1", "GPU-2"}}));
  ASSERT_NE(cache.of("GPU-2"), nullptr);
  EXPECT_EQ(cache.of("GPU-2")->name, "NVIDIA H200");
  EXPECT_EQ(cache.of("GPU-3"), nullptr);
}

TEST_F(FactCache, AsksAgainWhenASecondHasPassed) {
  ask({"GPU-1"});
  for (int i = 0; i < 20; ++i) ask({"GPU-1"});
  EXPECT_LT(asked.questions.size(), 20U) << "what is fresh is not asked for";
  const std::size_t before = asked.questions.size();
  run_for(1s);
  ask({"GPU-1"});
  EXPECT_EQ(asked.questions.size(), before + 1);
}

// If the cache asked for outdated GPUs only, one answer would be too old whenever the next one arrived.
TEST_F(FactCache, AsksForAllOfAQuestionWhereOneIsTooOld) {
  ask({"GPU-1"});
  run_for(600ms);
  ask({"GPU-2"});
  run_for(600ms);
  ask({"GPU-1", "GPU-2"});
  EXPECT_EQ(asked.questions.back(), (std::vector<std::string>{"GPU-1", "GPU-2"}));
}

TEST_F(FactCache, AnAnswerThatTakesLongerThanItCountsIsOne) {
  asked.takes = 1200ms;
  ask({"GPU-1", "GPU-2"});
  EXPECT_EQ(asked.questions.size(), 1U);
}

TEST_F(FactCache, AnswersWithoutAskingWhereThereIsNoGpu) {
  ask({});
  EXPECT_TRUE(asked.questions.empty());
}

TEST_F(FactCache, DoesNotCallWhoHasGone) {
  bool told = false;
  auto id = cache.ask({"GPU-1"}, [&] { told = true; });
  cache.forget(id);
  EXPECT_EQ(id, 0U);
  cache.forget(id);
  run_for(100ms);
  EXPECT_FALSE(told);
  EXPECT_TRUE(asked.questions.empty());
}

TEST_F(FactCache, DoesNotAskAgainSoonForWhatIsUnknown) {
  asked.missing = "nobody knows";
  ask({"GPU-1"});
  EXPECT_EQ(cache.of("GPU-1"), nullptr);
  run_for(1s);
  ask({"GPU-1"});
  EXPECT_EQ(asked.questions.size(), 1U);
}

// ---- a broker ------------------------------------------------------------------------------------------------------

struct Answer {
  ring::VmPage page{};
  std::vector<ring::VmGpu> gpus;
};

// A guest that asks the broker about its GPUs.
class Asker : public Client {
 public:
  using Client::Client;
  std::uint32_t raise() const { return other_side::shared(header().gpu_questions).fetch_add(1) + 1; }
  ring::VmPage page() const { return ring::RegionView(base).vm_page().copy_out(); }
  bool has_answer(std::uint32_t question) const {
    const ring::VmPage seen = page();
    return static_cast<std::int32_t>(seen.answered - question) >= 0 && seen.sequence % 2 == 0;
  }
  bool answered(std::uint32_t question) const {
    return eventually([&] { return has_answer(question); });
  }
  Answer ask() const {
    const std::uint32_t question = raise();
    ring_peer(ring::peer_broker);
    EXPECT_TRUE(answered(question));
    Answer answer{page(), {}};
    for (std::uint32_t i = 0; i < std::min(answer.page.gpu_count, ring::max_devices); ++i)
      answer.gpus.push_back(ring::RegionView(base).vm_gpu(i).copy_out());
    return answer;
  }
};

std::uint32_t fact(const ring::VmGpu& gpu, Fact fact) {
  EXPECT_NE(gpu.known & ring::bit_of(fact), 0U) << ring::fact_names[ring::number_of(fact)];
  return gpu.fact[ring::number_of(fact)];
}

// Simulated GPUs, with a file in which the test sets the memory that workers hold.
class Told : public testing::Test {
 protected:
  std::unique_ptr<Broker> broker(const std::string& vm_keys = "", const char* devices = "1") {
    const std::string path = usage.path;
    return std::make_unique<Broker>(
        vm_keys, "",
        [path, devices] {
          setenv("IVGPU_SIM_USAGE", path.c_str(), 1);
          setenv("IVGPU_SIM_DEVICES", devices, 1);
          setenv("IVGPU_SIM_MEMORY", "4G", 1);
        },
        "sim");
  }
  void hold(std::size_t entry, pid_t process, std::uint64_t bytes, int device = 0) const {
    usage.map->entry[entry].process.store(static_cast<std::uint32_t>(process));
    usage.map->entry[entry].bytes[device].store(bytes);
  }
  UsageFile usage;
};

TEST_F(Told, AGuestThatAsks) {
  const auto served = broker();
  Asker guest(served->socket_path());
  ASSERT_TRUE(guest.greet(3));
  hold(0, 4711, std::uint64_t{1} << 30);
  const Answer answer = guest.ask();
  EXPECT_EQ(answer.page.version, ring::vm_page_version);
  EXPECT_EQ(answer.page.cuda_version, 13000U);
  EXPECT_STREQ(answer.page.driver, "simulated");
  ASSERT_EQ(answer.gpus.size(), 1U);
  const ring::VmGpu& gpu = answer.gpus[0];
  EXPECT_EQ(gpu.state, static_cast<std::uint32_t>(IVGPU_GPU_THERE));
  EXPECT_STREQ(gpu.name, simgpu::device_name);
  EXPECT_EQ(gpu.uuid, simgpu::device_uuid_text(0));
  EXPECT_STREQ(gpu.bus_id, "00000000:01:00.0");
  EXPECT_EQ(fact(gpu, Fact::compute_major), simgpu::device_sm / 10);
  EXPECT_EQ(gpu.known & ring::bit_of(Fact::fan_speed), 0U);
  EXPECT_EQ(gpu.memory_total, std::uint64_t{4} << 30) << "without a quota, the GPU's own";
  EXPECT_GT(gpu.memory_free, std::uint64_t{3} << 30) << "another VM's GiB is no business of this one";
  EXPECT_LE(gpu.memory_free, std::uint64_t{4} << 30);
  EXPECT_EQ(gpu.used_by[0], 0U) << "an unclaimed worker is nobody's";
}

TEST_F(Told, TheGpusOfItsVmAlone) {
  const auto served = broker("gpus = [2, 0]", "3");
  Asker guest(served->socket_path());
  ASSERT_TRUE(guest.greet(3));
  const Answer answer = guest.ask();
  ASSERT_EQ(answer.gpus.size(), 2U);
  EXPECT_EQ(answer.gpus[0].uuid, simgpu::device_uuid_text(2)) << "in the order of its ordinals";
  EXPECT_EQ(answer.gpus[1].uuid, simgpu::device_uuid_text(0));
}

TEST_F(Told, AQuotaInPlaceOfTheGpusMemory) {
  const auto served = broker("gpu_memory = \"1GiB\"");
  Asker guest(served->socket_path());
  ASSERT_TRUE(guest.greet(3));
  hold(0, 4711, std::uint64_t{3} << 30);  // a process outside ivgpu holds this memory
  const Answer answer = guest.ask();
  ASSERT_EQ(answer.gpus.size(), 1U);
  EXPECT_EQ(answer.gpus[0].memory_total, std::uint64_t{1} << 30);
  EXPECT_EQ(answer.gpus[0].memory_reserved, 0U);
  EXPECT_LE(answer.gpus[0].memory_free, std::uint64_t{1} << 30);
  EXPECT_GT(answer.gpus[0].memory_free, std::uint64_t{512} << 20) << "strangers do not count";
}

// The GPU has 1 GiB left. The broker must not reveal this to the VM.
TEST_F(Told, AQuotaThoughOthersHoldMostOfTheGpu) {
  const auto served = broker("gpu_memory = \"3GiB\"");
  Asker guest(served->socket_path());
  ASSERT_TRUE(guest.greet(3));
  hold(0, 4711, std::uint64_t{3} << 30);
  const Answer answer = guest.ask();
  ASSERT_EQ(answer.gpus.size(), 1U);
  EXPECT_EQ(answer.gpus[0].memory_total, std::uint64_t{3} << 30);
  EXPECT_GT(answer.gpus[0].memory_free, std::uint64_t{2} << 30);
}

TEST_F(Told, NobodyBeforeItIsAsked) {
  const auto served = broker();
  Asker guest(served->socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(guest.is_answered() && guest.is_answered()) << "the first look is over when the second begins";
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(guest.has_answer(1)) << "a ring alone is no question";
  EXPECT_EQ(guest.page().gpu_count, 0U);
}

TEST_F(Told, AGuestThatAsksAllTheTimeGetsAnAnswerNowAndThen) {
  const auto served = broker();
  Asker guest(served->socket_path());
  ASSERT_TRUE(guest.greet(3));
  const std::uint32_t before = guest.ask().page.sequence;
  const auto begin = Clock::now();
  std::uint32_t last = 0;
  const auto answers = [&] { return (guest.page().sequence - before) / 2; };
  EXPECT_TRUE(eventually([&] {
    for (int i = 0; i < 10; ++i) last = guest.raise(), guest.ring_peer(ring::peer_broker);
    return answers() >= 100;
  }));
  EXPECT_TRUE(guest.answered(last));
  const std::uint32_t counted = answers();
  EXPECT_LE(counted, 50 + 200 * seconds_since(begin) + 1) << "50 at once, then 200 a second";
}

TEST_F(Told, WhatAGuestScribblesIsWrittenOver) {
  const auto served = broker();
  Asker guest(served->socket_path());
  ASSERT_TRUE(guest.greet(3));
  guest.ask();
  std::memset(guest.base + ring::vm_page_offset, 0xff, ring::header_area_bytes - ring::vm_page_offset);
  const Answer answer = guest.ask();
  EXPECT_EQ(answer.page.version, ring::vm_page_version);
  EXPECT_EQ(answer.page.sequence % 2, 0U);
  ASSERT_EQ(answer.gpus.size(), 1U);
  EXPECT_STREQ(answer.gpus[0].name, simgpu::device_name);
}

}  // namespace
