// How the broker allots device memory: the accounts alone, and a real ivgpud with fake workers. The test sets the
// workers' memory in the simulated GPU's file. No test needs a GPU.
#include <fcntl.h>
#include <sys/mman.h>

#include <nlohmann/json.hpp>

#include "host/base/fd.h"
#include "host/broker/alloc/memory_reservations.h"
#include "host/simgpu/api/device/usage_file.h"
#include "tests/unit/broker/harness.h"

namespace {

using namespace broker_test;
using host::worker::MemoryMessage, host::worker::MemoryWord;
using ring::SlotState;

constexpr std::uint64_t mebi = 1 << 20;

// ---- the accounts --------------------------------------------------------------------------------------------------

namespace broker = host::broker;

host::worker::ReadyMessage ready_message(std::uint64_t memory = 4096 * mebi, std::uint32_t gpus = 1) {
  host::worker::ReadyMessage message{};
  message.gpus = gpus;
  for (std::uint32_t d = 0; d < gpus; ++d) {
    message.gpu[d].memory = memory;
    std::memcpy(message.gpu[d].uuid, simgpu::device_uuid_bytes(static_cast<int>(d)).data(), 16);
  }
  return message;
}

// The memory leases of a VM. Its workers are only entries of a list.
struct Played {
  struct Worker {
    std::uint64_t taken = 0, reserved = 0;
    std::vector<MemoryMessage> heard;
    std::string ended;
    bool spare = false, reads = true;
  };
  explicit Played(broker::GpuAccounts& accounts, std::uint64_t quota, std::size_t slots = 3)
      : workers(slots),
        leases(accounts, slots,
               {.send = [this](std::uint32_t k, const MemoryMessage& m) { return hear(k, m); },
                .end = [this](std::uint32_t k, const std::string& why) { workers[k].ended = why; },
                .taken = [this](std::uint32_t k, unsigned) { return workers[k].taken; },
                .is_spare = [this](std::uint32_t k) { return workers[k].spare; },
                .wake = [this](broker::Clock::duration) { ++rounds; },
                .more_headroom = [this] { ++more_headroom; }}) {
    gpus.list = broker::simulated_gpus(nullptr);
    leases.bound(quota, gpus);
  }
  bool hear(std::uint32_t k, const MemoryMessage& m) {
    if (!workers[k].reads) return false;
    workers[k].heard.push_back(m);
    if (m.word == MemoryWord::Reserved) workers[k].reserved += m.bytes;
    return true;
  }
  void start(std::uint32_t k) {
    leases.started(k, 100 + static_cast<pid_t>(k));
    leases.ready(k, ready_message());
  }
  bool say(std::uint32_t k, MemoryWord word, std::uint64_t bytes, std::uint32_t sequence = 7) {
    return leases.heard(k, {host::worker::memory_kind, word, 0, sequence, bytes, 0});
  }
  // The number of bytes that are reserved at once; nullopt if the answer has to wait.
  std::optional<std::uint64_t> reserve(std::uint32_t k, std::uint64_t bytes) {
    const std::size_t before = workers[k].heard.size();
    EXPECT_TRUE(say(k, MemoryWord::Reserve, bytes));
    return workers[k].heard.size() == before ? std::nullopt : std::optional(workers[k].heard.back().bytes);
  }
  MemoryMessage last(std::uint32_t k) const { return workers[k].heard.back(); }
  std::uint64_t used() { return leases.status().at(0).used; }

  std::vector<Worker> workers;
  int rounds = 0, more_headroom = 0;
  broker::VmGpus gpus;
  broker::MemoryReservations leases;
};

class Leases : public testing::Test {
 protected:
  broker::GpuAccount& gpu() { return accounts.named(simgpu::device_uuid_text(0)); }
  broker::EventLoop loop{broker::make_epoll_waiter()};
  broker::GpuAccounts accounts{loop};
};

TEST_F(Leases, OfAnEarlierBrokerCountFromTheStart) {
  gpu().missing = "nobody";
  Played vm(accounts, 200 * mebi);
  const std::uint64_t reserved[ring::max_devices] = {128 * mebi, 7 * mebi};
  vm.leases.adopt(0, 100, ready_message(), reserved);
  EXPECT_EQ(vm.leases.reserved(0, 0), 128 * mebi);
  EXPECT_EQ(vm.leases.reserved(0, 1), 0U) << "it has one device";
  vm.workers[0].taken = 128 * mebi;
  vm.start(1);
  EXPECT_EQ(vm.reserve(1, 100 * mebi), 0U) << "there is no room for that beside it";
  EXPECT_FALSE(vm.say(0, MemoryWord::Return, 129 * mebi, 0)) << "more than it was lent";
  EXPECT_TRUE(vm.say(0, MemoryWord::Return, 128 * mebi, 0));
  vm.workers[0].taken = 0;
  EXPECT_EQ(vm.reserve(1, 100 * mebi), 128 * mebi);
}

TEST_F(Leases, OfAnEarlierBrokerMayBeMoreThanThereIsByNow) {
  gpu().missing = "nobody";
  Played vm(accounts, 100 * mebi);
  const std::uint64_t reserved[ring::max_devices] = {~std::uint64_t{0}};
  vm.leases.adopt(0, 100, ready_message(), reserved);
  vm.workers[0].taken = ~std::uint64_t{0};
  vm.start(1);
  EXPECT_EQ(vm.reserve(1, 1), 0U);
  vm.leases.gone(0);
  EXPECT_EQ(vm.reserve(1, mebi), 64 * mebi) << "all of it has come back";
}

TEST_F(Leases, AreGivenInChunksUpToTheQuota) {
  gpu().missing = "nobody";
  Played vm(accounts, 200 * mebi);
  vm.start(0);
  vm.start(1);
  EXPECT_EQ(vm.reserve(0, 1), 64 * mebi);
  EXPECT_EQ(vm.reserve(0, 65 * mebi), 128 * mebi);
  vm.workers[0].taken = 192 * mebi;
  EXPECT_EQ(vm.reserve(1, 9 * mebi), 0u) << "8 MiB are left";
  EXPECT_EQ(vm.reserve(1, 8 * mebi), 8 * mebi);
  vm.workers[1].taken = 8 * mebi;
  EXPECT_EQ(vm.reserve(0, 1), 0u);
  EXPECT_EQ(vm.rounds, 0) << "nobody has what he does not use";
}

TEST_F(Leases, WhatOthersDoNotUseIsCollectedFirst) {
  gpu().missing = "nobody";
  Played vm(accounts, 128 * mebi);
  vm.start(0);
  vm.start(1);
  vm.start(2);
  ASSERT_EQ(vm.reserve(0, 1), 64 * mebi);
  ASSERT_EQ(vm.reserve(1, 1), 64 * mebi);
  vm.workers[1].taken = 64 * mebi;
  EXPECT_EQ(vm.reserve(2, 20 * mebi), std::nullopt) << "it waits";
  ASSERT_EQ(vm.last(0).word, MemoryWord::Collect);
  EXPECT_EQ(vm.last(1).word, MemoryWord::Reserved) << "who uses all is not asked";
  EXPECT_TRUE(vm.say(0, MemoryWord::Return, 60 * mebi, vm.last(0).sequence));
  EXPECT_EQ(vm.last(2).word, MemoryWord::Reserved);
  EXPECT_EQ(vm.last(2).sequence, 7u);
  EXPECT_EQ(vm.workers[2].reserved, 60 * mebi) << "a chunk is more than there is";
}

TEST_F(Leases, WhoDoesNotAnswerUsesWhatItHas) {
  gpu().missing = "nobody";
  Played vm(accounts, 128 * mebi);
  vm.start(0);
  vm.start(1);
  ASSERT_EQ(vm.reserve(0, 100 * mebi), 128 * mebi);
  EXPECT_EQ(vm.reserve(1, mebi), std::nullopt);
  EXPECT_EQ(vm.rounds, 1);
  vm.leases.round_over();
  EXPECT_EQ(vm.last(1).bytes, 0u);
  EXPECT_EQ(vm.reserve(1, mebi), std::nullopt) << "it is asked again for the next question";
  vm.leases.gone(0);
  EXPECT_EQ(vm.last(1).bytes, 64 * mebi) << "who has gone uses nothing";
}

TEST_F(Leases, AQuestionThatIsAskedAgainTakesThePlaceOfTheFirst) {
  gpu().missing = "nobody";
  Played vm(accounts, 128 * mebi);
  vm.start(0);
  vm.start(1);
  ASSERT_EQ(vm.reserve(0, 100 * mebi), 128 * mebi);
  EXPECT_TRUE(vm.say(1, MemoryWord::Reserve, mebi, 8));
  EXPECT_TRUE(vm.say(1, MemoryWord::Reserve, 2 * mebi, 9));
  vm.leases.gone(0);
  ASSERT_EQ(vm.workers[1].heard.size(), 1u);
  EXPECT_EQ(vm.last(1).sequence, 9u);
}

TEST_F(Leases, NumbersOfAHostileWorkerAreRefused) {
  Played vm(accounts, 256 * mebi);
  vm.leases.started(1, 101);
  EXPECT_FALSE(vm.say(1, MemoryWord::Reserve, mebi)) << "it is not ready";
  vm.start(0);
  ASSERT_EQ(vm.reserve(0, mebi), 64 * mebi);
  EXPECT_FALSE(vm.say(0, MemoryWord::Return, 64 * mebi + 1)) << "more than it has";
  EXPECT_FALSE(vm.say(0, MemoryWord::Reserve, 0));
  EXPECT_FALSE(vm.say(0, MemoryWord::Reserve, ~std::uint64_t{0}));
  EXPECT_FALSE(vm.say(0, MemoryWord::Headroom, 1));
  for (const auto word :
       {MemoryWord::Reserved, MemoryWord::HasHeadroom, MemoryWord::Collect, MemoryWord{0}, MemoryWord{77}})
    EXPECT_FALSE(vm.say(0, word, 0));
  EXPECT_FALSE(vm.leases.heard(0, {host::worker::memory_kind, MemoryWord::Reserve, 1, 1, mebi, 0})) << "no such device";
  EXPECT_FALSE(vm.leases.heard(0, {host::worker::memory_kind, MemoryWord::Reserve, ~0U, 1, mebi, 0}));
  EXPECT_FALSE(vm.leases.heard(0, {host::worker::memory_kind, MemoryWord::Reserve, 0, 1, mebi, 1}));
  EXPECT_FALSE(vm.leases.heard(2, {host::worker::memory_kind, MemoryWord::Reserve, 0, 1, mebi, 0})) << "there is none";
  vm.workers[0].taken = ~std::uint64_t{0};
  EXPECT_EQ(vm.used(), 64 * mebi + broker::MemoryReservations::overhead_allowance * 2)
      << "a claim counts up to the lease, and each worker has its overhead";
}

TEST_F(Leases, RoomIsWhatCouldBeHad) {
  gpu().missing = "nobody";
  Played vm(accounts, 256 * mebi);
  vm.start(0);
  vm.start(1);
  ASSERT_EQ(vm.reserve(1, mebi), 64 * mebi);
  vm.workers[1].taken = 10 * mebi;
  EXPECT_TRUE(vm.say(0, MemoryWord::Headroom, 0));
  EXPECT_EQ(vm.last(0).bytes, 246 * mebi);
  EXPECT_EQ(vm.last(0).total, 256 * mebi);
}

// ---- several VMs on one GPU ----------------------------------------------------------------------------------------

TEST_F(Leases, WithoutAnyQuotaNothingIsBounded) {
  Played vm(accounts, 0);
  vm.start(0);
  EXPECT_EQ(vm.reserve(0, 1), 1024 * mebi);
  EXPECT_EQ(vm.reserve(0, 8192 * mebi), 8192 * mebi) << "more than the GPU has: the driver refuses it";
  EXPECT_TRUE(vm.say(0, MemoryWord::Headroom, 0));
  EXPECT_EQ(vm.last(0).total, host::worker::unbounded);
}

TEST_F(Leases, WhoHasNoQuotaGetsWhatNobodyIsPromised) {
  gpu().missing = "nobody";
  Played promised(accounts, 3000 * mebi), other(accounts, 0), third(accounts, 0);
  other.start(0);
  third.start(0);
  EXPECT_EQ(other.reserve(0, 1000 * mebi), 1024 * mebi) << "of 4 GiB";
  EXPECT_EQ(third.reserve(0, 100 * mebi), 0u);
  EXPECT_EQ(third.reserve(0, 72 * mebi), 72 * mebi);
  promised.start(0);
  EXPECT_EQ(promised.reserve(0, 3000 * mebi), 3000 * mebi) << "what it was promised is there";
}

TEST_F(Leases, OvercommittedTheyArePromisedMoreThanThereIs) {
  gpu().missing = "nobody";
  accounts.allow_overcommit(true);
  Played a(accounts, 3000 * mebi), b(accounts, 3000 * mebi), other(accounts, 0);
  for (Played* vm : {&a, &b, &other}) vm->start(0);
  EXPECT_EQ(a.reserve(0, 3000 * mebi), 3000 * mebi);
  EXPECT_EQ(b.reserve(0, 3000 * mebi), 3000 * mebi);
  EXPECT_EQ(other.reserve(0, 2000 * mebi), 2048 * mebi);
}

TEST_F(Leases, AQuotaIsRaisedLoweredTakenAwayAndGiven) {
  gpu().missing = "nobody";
  Played vm(accounts, 128 * mebi), other(accounts, 0);
  vm.start(0);
  other.start(0);
  ASSERT_EQ(vm.reserve(0, 128 * mebi), 128 * mebi);
  vm.workers[0].taken = 128 * mebi;
  vm.leases.bound(256 * mebi, vm.gpus);
  EXPECT_EQ(vm.reserve(0, 1), 64 * mebi);
  vm.workers[0].taken = 192 * mebi;
  vm.leases.bound(100 * mebi, vm.gpus);
  EXPECT_EQ(vm.reserve(0, 1), 0u) << "it keeps what it has, and gets no more";
  EXPECT_TRUE(vm.say(0, MemoryWord::Return, 100 * mebi));
  vm.workers[0].taken = 92 * mebi;
  EXPECT_EQ(vm.reserve(0, 1), 8 * mebi);
  vm.leases.bound(0, vm.gpus);
  EXPECT_EQ(vm.reserve(0, 2000 * mebi), 2048 * mebi) << "nobody is promised anything now";
  EXPECT_EQ(other.reserve(0, 8000 * mebi), 8192 * mebi);
  vm.leases.bound(3000 * mebi, vm.gpus);
  EXPECT_EQ(other.reserve(0, 1), 0u) << "of what is not promised it has too much already";
  EXPECT_EQ(vm.reserve(0, 800 * mebi), 832 * mebi);
}

// ---- overhead ------------------------------------------------------------------------------------------------------

broker::GpuUses uses(std::initializer_list<std::pair<pid_t, std::uint64_t>> processes) {
  broker::GpuUse use{.total = 4096 * mebi, .missing = {}, .processes = {}};
  for (const auto& [pid, bytes] : processes) use.processes[pid] = bytes;
  return {{simgpu::device_uuid_text(0), use}};
}

class Measured : public Leases {
 protected:
  // Measures once. Returns true if the broker should soon measure again.
  bool look(Played& vm, std::initializer_list<std::pair<pid_t, std::uint64_t>> processes) {
    std::set<std::string> wanted;
    vm.leases.before_measuring(wanted);
    EXPECT_EQ(wanted.count(simgpu::device_uuid_text(0)), 1u);
    return vm.leases.measured(uses(processes));
  }
  static constexpr std::uint64_t overhead_allowance = broker::MemoryReservations::overhead_allowance;
};

TEST_F(Measured, WhatTheDriverTakesBesideCounts) {
  Played vm(accounts, 1024 * mebi);
  vm.start(0);
  ASSERT_EQ(vm.reserve(0, 100 * mebi), 128 * mebi);
  vm.workers[0].taken = 100 * mebi;
  EXPECT_FALSE(look(vm, {{100, 350 * mebi}}));
  EXPECT_EQ(vm.used(), 350 * mebi + overhead_allowance);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(look(vm, {{100, 320 * mebi}}));
  EXPECT_EQ(vm.used(), 350 * mebi + overhead_allowance) << "the most of the last looks";
  EXPECT_FALSE(look(vm, {{100, 320 * mebi}}));
  EXPECT_EQ(vm.used(), 320 * mebi + overhead_allowance);
  EXPECT_GT(vm.more_headroom, 0);
}

TEST_F(Measured, ASpareWorkerReportsTheMemoryOfAContext) {
  Played vm(accounts, 512 * mebi);
  gpu().context = 300 * mebi;  // estimated
  vm.workers[0].spare = true;
  vm.start(0);
  look(vm, {{100, 200 * mebi}});
  EXPECT_EQ(gpu().context, 200 * mebi);
  EXPECT_TRUE(gpu().context_measured);
}

TEST_F(Measured, AFullVmStartsNoOther) {
  Played vm(accounts, 512 * mebi);
  gpu().context = 300 * mebi;
  EXPECT_TRUE(vm.leases.may_start(false));
  vm.start(0);
  EXPECT_FALSE(vm.leases.may_start(false));
  EXPECT_FALSE(vm.leases.may_start(true));
  EXPECT_NE(vm.leases.why_not().find("364 MiB of GPU-69766770-752d-7369-6d00-000000000001 are given out, 148 MiB are "
                                     "left, and a worker takes 300 MiB"),
            std::string::npos)
      << vm.leases.why_not();
  ASSERT_EQ(vm.reserve(0, mebi), 64 * mebi);
  vm.leases.bound(720 * mebi, vm.gpus);
  EXPECT_FALSE(vm.leases.may_start(true)) << "292 MiB are left, and 64 are not used: it is asked for them";
  ASSERT_EQ(vm.last(0).word, MemoryWord::Collect);
  vm.more_headroom = 0;
  EXPECT_TRUE(vm.say(0, MemoryWord::Return, 64 * mebi, vm.last(0).sequence));
  EXPECT_GT(vm.more_headroom, 0);
  EXPECT_TRUE(vm.leases.may_start(true));
}

TEST_F(Measured, WhoHoldsMoreThanItMayIsEndedAtTheSecondLook) {
  Played vm(accounts, 512 * mebi);
  vm.start(0);
  vm.start(1);
  ASSERT_EQ(vm.reserve(0, 100 * mebi), 128 * mebi);
  ASSERT_EQ(vm.reserve(1, 200 * mebi), 256 * mebi);
  vm.workers[1].taken = 256 * mebi;
  EXPECT_TRUE(look(vm, {{100, 1500 * mebi}, {101, 256 * mebi}}));
  EXPECT_EQ(vm.workers[0].ended, "");
  EXPECT_FALSE(look(vm, {{100, 1500 * mebi}, {101, 256 * mebi}}));
  EXPECT_EQ(vm.workers[0].ended,
            "it holds 1500 MiB of GPU-69766770-752d-7369-6d00-000000000001, and may hold 192 MiB: the VM's gpu_memory "
            "is 512 MiB");
  EXPECT_EQ(vm.workers[1].ended, "");
}

TEST_F(Measured, OnceIsNoHarm) {
  Played vm(accounts, 512 * mebi);
  vm.start(0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(look(vm, {{100, 600 * mebi}}));
    EXPECT_FALSE(look(vm, {{100, 100 * mebi}}));
  }
  EXPECT_EQ(vm.workers[0].ended, "");
}

// A worker that allocates without a request, within the VM's quota, is charged as if it had requested the memory.
TEST_F(Measured, WhatItTakesWithoutAskingIsTheVmsLoss) {
  Played vm(accounts, 512 * mebi);
  vm.start(0);
  vm.start(1);
  EXPECT_FALSE(look(vm, {{100, 300 * mebi}}));
  EXPECT_FALSE(look(vm, {{100, 300 * mebi}}));
  EXPECT_EQ(vm.workers[0].ended, "");
  EXPECT_EQ(vm.used(), 300 * mebi + 2 * overhead_allowance);
  EXPECT_EQ(vm.reserve(1, 100 * mebi), 0u);
}

TEST_F(Measured, ALeaseThatIsNotUsedIsCollectedForOverhead) {
  Played vm(accounts, 512 * mebi);
  vm.start(0);
  vm.start(1);
  ASSERT_EQ(vm.reserve(1, 300 * mebi), 320 * mebi);
  EXPECT_TRUE(look(vm, {{100, 200 * mebi}, {101, 0}})) << "128 MiB are there for it";
  ASSERT_EQ(vm.last(1).word, MemoryWord::Collect);
  EXPECT_TRUE(vm.say(1, MemoryWord::Return, 320 * mebi, vm.last(1).sequence));
  EXPECT_FALSE(look(vm, {{100, 200 * mebi}, {101, 0}}));
  EXPECT_EQ(vm.workers[0].ended, "");
}

// The broker is in another pid namespace than NVML.
TEST_F(Measured, WorkersThatAreNotNamedCountByTheirOwnAccount) {
  Played vm(accounts, 512 * mebi);
  vm.start(0);
  look(vm, {{4711, 2000 * mebi}});
  EXPECT_EQ(gpu().missing, "it does not name the broker's workers");
  EXPECT_EQ(vm.leases.status().at(0).missing, gpu().missing);
}

// ---- the output of ivgpu-nvml --------------------------------------------------------------------------------------

TEST(Usage, ItsLines) {
  broker::GpuUses uses;
  uses["GPU-1"], uses["0000:01:00.0"];
  for (const char* line : {"total GPU-1 100", "use GPU-1 12 34", "use GPU-1 12 6", "use GPU-1 13 5",
                           "missing 0000:01:00.0 not \x1b today", "unread GPU-1 /proc/1/maps: Permission denied"})
    EXPECT_TRUE(broker::take_usage_line(line, uses)) << line;
  EXPECT_EQ(uses["GPU-1"].total, 100u);
  EXPECT_EQ(uses["GPU-1"].processes, (std::map<pid_t, std::uint64_t>{{12, 40}, {13, 5}}));
  EXPECT_EQ(uses["0000:01:00.0"].missing, "not \\x1b today");
  EXPECT_EQ(uses["GPU-1"].unread, "/proc/1/maps: Permission denied");
  for (const char* line :
       {"", "end", "total", "total GPU-2 1", "total GPU-1 x", "total GPU-1 1 2", "use GPU-1 -1 5",
        "use GPU-1 99999999999 5", "use GPU-1 5", "use GPU-1 5 6 7", "use GPU-1 5 18446744073709551616"})
    EXPECT_FALSE(broker::take_usage_line(line, uses)) << line;
}

// A shell script replaces the process that queries NVIDIA's library.
class NvmlUsage : public testing::Test {
 protected:
  broker::GpuUses ask(const std::string& script) { return answer_to(&broker::GpuUsage::ask, script); }
  Folder folder;

 private:
  using Question = bool (broker::GpuUsage::*)(const std::vector<std::string>&,
                                              std::function<void(const broker::GpuUses&)>);
  broker::GpuUses answer_to(Question question, const std::string& script) {
    const std::string path = folder.write("nvml", "#!/bin/sh\n" + script);
    std::filesystem::permissions(path, std::filesystem::perms::all);
    broker::EventLoop loop(broker::make_epoll_waiter());
    const auto usage = broker::make_nvml_usage(loop, path);
    broker::GpuUses answer;
    EXPECT_TRUE(((*usage).*question)({"GPU-1"}, [&](const broker::GpuUses& uses) {
      answer = uses;
      loop.stop();
    }));
    EXPECT_FALSE(((*usage).*question)({"GPU-1"}, {})) << "one question at a time";
    loop.run();
    return answer;
  }
};

TEST_F(NvmlUsage, IsAskedAndAnswers) {
  const auto uses =
      ask("while read gpus; do for g in $gpus; do echo total $g 7; echo use $g 1 2; done; echo end; done");
  EXPECT_EQ(uses.at("GPU-1").total, 7u);
  EXPECT_EQ(uses.at("GPU-1").processes.at(1), 2u);
  EXPECT_EQ(uses.at("GPU-1").missing, "");
}

TEST_F(NvmlUsage, ThatHasEndedBetweenTwoQuestionsIsStartedAgain) {
  const std::string path = folder.write("nvml", "#!/bin/sh\nread q; echo total GPU-1 7; echo end");
  std::filesystem::permissions(path, std::filesystem::perms::all);
  broker::EventLoop loop(broker::make_epoll_waiter());
  const auto usage = broker::make_nvml_usage(loop, path, std::chrono::milliseconds(300));
  const auto total = [&] {
    std::uint64_t told = 0;
    EXPECT_TRUE(usage->ask({"GPU-1"}, [&](const broker::GpuUses& uses) {
      told = uses.at("GPU-1").total;
      loop.stop();
    }));
    loop.run();
    return told;
  };
  EXPECT_EQ(total(), 7u);
  EXPECT_TRUE(eventually([&] { return total() == 7; })) << "the first questions after its end may go unanswered";
  EXPECT_TRUE(eventually([&] { return total() == 7; })) << "once more";
}

TEST_F(NvmlUsage, ThatEndsOrIsNotThereReportsNothing) {
  EXPECT_EQ(ask("exit 3").at("GPU-1").missing, "ivgpu-nvml has ended");
  EXPECT_EQ(ask("read gpus; echo total GPU-1 7; kill -9 $$").at("GPU-1").total, 0u);
  broker::EventLoop loop(broker::make_epoll_waiter());
  const auto usage = broker::make_nvml_usage(loop, "/no/such/program");
  EXPECT_EQ(usage->ask_now({"GPU-1"}).at("GPU-1").missing, "/no/such/program: No such file or directory");
}

TEST(Nvml, ReportsAMissingLibrary) {
  const Outcome outcome = run_program("/bin/sh", {"-c", "echo GPU-1 GPU-2 | " NVML " /no/such/libnvidia-ml.so.1"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.text.rfind("missing GPU-1 NVML cannot be asked: /no/such/libnvidia-ml.so.1: cannot open", 0), 0u)
      << outcome.text;
  EXPECT_NE(outcome.text.find("missing GPU-2 "), std::string::npos);
  EXPECT_NE(outcome.text.find("\nend\n"), std::string::npos);
  EXPECT_EQ(run_program(NVML, {"--help"}).code, 2);
}

TEST(Nvml, AsksTheLibrary) {
  const Outcome outcome =
      run_program("/bin/sh", {"-c", "printf 'GPU-1 0000:01:00.0 GPU-odd GPU-shy GPU-many\\n' | " NVML " " FAKE_NVML});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.text.rfind("total GPU-1 900\nuse GPU-1 5000011 22\nuse GPU-1 5000033 44\n"
                               "total 0000:01:00.0 900\nuse 0000:01:00.0 5000011 22\nuse 0000:01:00.0 5000033 44\n"
                               "missing GPU-odd NVML does not know it: Not Found\n"
                               "total GPU-shy 900\nuse GPU-shy 5000011 22\n"
                               "missing GPU-shy NVML does not tell how much memory a process holds\n"
                               "total GPU-many 900\nuse GPU-many 5000000 1\n",
                               0),
            0u)
      << outcome.text;
  EXPECT_NE(outcome.text.find("use GPU-many 5000999 1\nend\n"), std::string::npos) << "a list that is asked for again";
}

// The test process maps two ranges of a file named like the kernel module's file, and one range of another file.
TEST(Nvml, ManagedMemoryCountsForItsProcess) {
  const Folder folder;
  const auto map = [&](const std::string& name, std::size_t bytes) {
    const broker::Fd file(open((folder / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    void* at = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
    EXPECT_NE(at, MAP_FAILED);
    return at;
  };
  void* const first = map("nvidia-uvm", 2 * mebi);
  void* const second = map("nvidia-uvm", 6 * mebi);
  void* const other = map("nvidia0", 64 * mebi);
  const std::string ask = "echo GPU-managed | FAKE_NVML_PROCESS=" + std::to_string(getpid()) + " " NVML " " FAKE_NVML;
  const std::string use = "use GPU-managed " + std::to_string(getpid()) + " ";
  EXPECT_EQ(run_program("/bin/sh", {"-c", ask}).text,
            "total GPU-managed 900\n" + use + "1000\n" + use + "1000\n" + use + std::to_string(8 * mebi) + "\nend\n");
  munmap(first, 2 * mebi);
  munmap(second, 6 * mebi);
  EXPECT_EQ(run_program("/bin/sh", {"-c", ask}).text, "total GPU-managed 900\n" + use + "1000\n" + use + "1000\nend\n");
  munmap(other, 64 * mebi);
}

// The querying user may not inspect the test's process.
TEST(Nvml, ReportsManagedMemoryThatMayNotBeLookedAt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  const std::string process = std::to_string(getpid());
  const Folder folder;  // the other user cannot reach the build folder
  const auto copy_of = [&](const std::filesystem::path& file) {
    std::filesystem::copy(file, folder / file.filename());
    return folder / file.filename();
  };
  const std::string script = "echo GPU-managed | FAKE_NVML_PROCESS=" + process +
                             " setpriv --reuid=65534 --regid=65534 --clear-groups " + copy_of(NVML) + " " +
                             copy_of(FAKE_NVML);
  const std::string use = "use GPU-managed " + process + " 1000\n";
  EXPECT_EQ(run_program("/bin/sh", {"-c", script}).text,
            "total GPU-managed 900\n" + use + use + "unread GPU-managed /proc/" + process +
                "/maps: Permission denied; ivgpud needs CAP_SYS_PTRACE for it\nend\n");
}

// ---- a broker ------------------------------------------------------------------------------------------------------

// The simulated GPU's file, in which the test sets the memory that workers hold.
class UsageFile {
 public:
  UsageFile() {
    const int file = open(path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    EXPECT_EQ(ftruncate(file, sizeof(simgpu::UsageFile)), 0);
    close(file);
    map_ = simgpu::map_usage_file(path().c_str());
  }
  std::string path() const { return folder_ / "usage"; }
  void hold(pid_t worker, std::uint64_t bytes) const {
    simgpu::entry_of(*map_, static_cast<std::uint32_t>(worker))->bytes[0] = bytes;
  }

 private:
  Folder folder_;
  simgpu::UsageFile* map_ = nullptr;
};

std::string file_of(const Broker& broker, const std::string& vms, const std::string& gpu = "") {
  return "[broker]\nruntime_dir = \"" + broker.folder.path() +
         "\"\nlog_level = \"debug\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"sim\"\n" + gpu +
         "[defaults]\nregion_size = \"128MiB\"\nslots = 3\n" + vms;
}

// An ivgpud on a simulated GPU of 4 GiB, with fake workers.
class Memory : public testing::Test {
 protected:
  std::unique_ptr<Broker> broker_with(const std::string& keys) {
    return std::make_unique<Broker>(
        keys, "",
        [this] {
          setenv("IVGPU_SIM_USAGE", usage.path().c_str(), 1);
          setenv("IVGPU_SIM_CONTEXT_MEMORY", context_memory, 1);
        },
        "sim");
  }
  static volatile std::uint64_t* numbers(const Client& guest, std::uint32_t k) {
    return reinterpret_cast<volatile std::uint64_t*>(guest.command(k) + 8);
  }
  static std::uint64_t tell(const Client& guest, std::uint32_t k, char what, std::uint64_t number = 0) {
    numbers(guest, k)[0] = number;
    numbers(guest, k)[1] = 0;
    EXPECT_TRUE(guest.tell(k, what)) << what;
    return numbers(guest, k)[1];
  }
  static nlohmann::json quota(const Broker& broker, std::size_t vm = 0) {
    const auto told = run_program(IVGPU, {"status", "--json", "--runtime-dir", broker.folder.path()});
    return nlohmann::json::parse(told.text).at("vms").at(vm).at("gpu_quotas").at(0);
  }
  static void reload(const Broker& broker, const std::string& text) {
    const std::size_t before = broker.times_logged("SIGHUP: reading ");
    broker.folder.write("c.toml", text);
    kill(broker.pid, SIGHUP);
    ASSERT_TRUE(eventually([&] { return broker.times_logged("SIGHUP: reading ") > before; }));
  }
  static bool claim_two(Client& guest) {
    return guest.greet(3) && guest.becomes(0, SlotState::Ready) && guest.becomes(1, SlotState::Ready) &&
           guest.claim() == 0U && guest.claim() == 1U;
  }
  UsageFile usage;
  const char* context_memory = "1M";
};

// Fake workers hold no memory, so only the numbers in the file count.
TEST_F(Memory, IsReservedWithinTheQuota) {
  const auto broker = broker_with("gpu_memory = \"512MiB\"");
  Client guest(broker->socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  EXPECT_EQ(tell(guest, 0, 'B', mebi), 64 * mebi);
  EXPECT_EQ(tell(guest, 0, 'B', 600 * mebi), 0U);
  tell(guest, 0, 'R');
  EXPECT_EQ(numbers(guest, 0)[2], 512 * mebi);
  const auto told = quota(*broker);
  EXPECT_EQ(told.at("quota_bytes"), 512 * mebi);
  EXPECT_EQ(told.at("gpu"), simgpu::device_uuid_text(0));
}

TEST_F(Memory, OfAWorkerThatIsKilledComesBack) {
  const auto broker = broker_with("gpu_memory = \"512MiB\"\nspare = 2");
  Client guest(broker->socket_path());
  ASSERT_TRUE(claim_two(guest));
  const pid_t first = static_cast<pid_t>(
      nlohmann::json::parse(run_program(IVGPU, {"status", "--json", "--runtime-dir", broker->folder.path()}).text)
          .at("vms")
          .at(0)
          .at("slots")
          .at(0)
          .at("worker"));
  const std::uint64_t reserved = tell(guest, 0, 'B', 200 * mebi);
  EXPECT_EQ(reserved, 256 * mebi);
  tell(guest, 0, 'T', 256 * mebi);
  tell(guest, 0, 'S');
  EXPECT_EQ(tell(guest, 1, 'B', 200 * mebi), 0U);
  kill(first, SIGKILL);
  ASSERT_TRUE(guest.becomes(0, SlotState::Dead));
  EXPECT_EQ(tell(guest, 1, 'B', 200 * mebi), 256 * mebi);
}

TEST_F(Memory, AWorkerThatDoesNotAnswerHoldsUpNobody) {
  const auto broker = broker_with("gpu_memory = \"512MiB\"\nspare = 2");
  Client guest(broker->socket_path());
  ASSERT_TRUE(claim_two(guest));
  ASSERT_EQ(tell(guest, 0, 'B', 200 * mebi), 256 * mebi);
  // Under load, the answer of the first worker may come too late. The test then asks again.
  const auto borrows_128 = [&](std::uint32_t k) {
    return eventually([&] { return tell(guest, k, 'B', 100 * mebi) == 128 * mebi; });
  };
  EXPECT_TRUE(borrows_128(1)) << "the first gives back what it does not use";
  ASSERT_TRUE(borrows_128(0));
  tell(guest, 0, 'S');
  EXPECT_EQ(tell(guest, 1, 'B', 300 * mebi), 0U) << "it is answered, though the first never answers";
}

TEST_F(Memory, AWorkerThatTakesWhatItMayNotIsEnded) {
  const auto broker = broker_with("gpu_memory = \"512MiB\"\nspare = 2\n[vm.u]\ngpu_memory = \"1GiB\"");
  Client guest(broker->socket_path()), other(broker->folder / "u.sock");
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(other.greet(3));
  ASSERT_EQ(other.claim(), 0U);
  for (const pid_t worker : broker->workers()) usage.hold(worker, 10 * mebi);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  ASSERT_EQ(guest.claim(), 0U);
  const auto told = run_program(IVGPU, {"status", "--json", "--runtime-dir", broker->folder.path()});
  const auto slots = nlohmann::json::parse(told.text).at("vms").at(0).at("slots");
  usage.hold(static_cast<pid_t>(slots.at(0).at("worker")), 2000 * mebi);
  ASSERT_TRUE(guest.becomes(0, SlotState::Dead));
  EXPECT_EQ(
      broker->times_logged("t/0: killed: it holds 2000 MiB of GPU-69766770-752d-7369-6d00-000000000001, and may hold "),
      1U);
  EXPECT_EQ(other.word(0).state, SlotState::Claimed) << "others notice nothing";
}

TEST_F(Memory, AFullVmStartsNoSpareWorker) {
  context_memory = "90M";
  const auto broker = broker_with("gpu_memory = \"256MiB\"\nspare = 2");
  Client guest(broker->socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(eventually([&] { return guest.count(SlotState::Ready) == 2; }));
  for (const pid_t worker : broker->workers()) usage.hold(worker, 90 * mebi);
  ASSERT_TRUE(guest.claim());
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_EQ(broker->workers().size(), 2U) << "no other is started, and none is ended";
  ASSERT_TRUE(guest.claim());
  other_side::shared(guest.header().wanted).fetch_add(1);
  guest.ring_peer(ring::peer_broker);
  EXPECT_TRUE(broker->eventually_logged("t: a program waits for a worker, and gpu_memory has no room for one: "));
}

TEST_F(Memory, AFloodCostsOnlyTheWorkerItself) {
  const auto broker = broker_with("gpu_memory = \"512MiB\"\n[vm.u]\ngpu_memory = \"512MiB\"");
  Client guest(broker->socket_path()), other(broker->folder / "u.sock");
  ASSERT_TRUE(guest.greet(3));
  ASSERT_TRUE(other.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  ASSERT_EQ(other.claim(), 0U);
  numbers(guest, 0)[0] = UINT64_MAX;
  guest.command(0)[0] = 'F';
  guest.ring_peer(ring::peer_of_slot(0));
  for (int i = 0; i < 50; ++i) tell(other, 0, 'R');
  EXPECT_NE(guest.command(0)[1], 'k') << "the flood goes on";
  EXPECT_EQ(guest.word(0).state, SlotState::Claimed);
}

TEST_F(Memory, AReloadRaisesAndLowersAndEndsNobody) {
  const auto broker = broker_with("gpu_memory = \"320MiB\"");
  Client guest(broker->socket_path());
  ASSERT_TRUE(guest.greet(3));
  ASSERT_EQ(guest.claim(), 0U);
  const auto reserve = [&](std::uint64_t bytes) { return tell(guest, 0, 'B', bytes); };
  std::uint64_t all = reserve(100 * mebi);
  EXPECT_EQ(all, 128 * mebi);
  EXPECT_EQ(reserve(200 * mebi), 0U);
  tell(guest, 0, 'T', all);
  reload(*broker, file_of(*broker, "[vm.t]\ngpu_memory = \"1GiB\"\n"));
  EXPECT_TRUE(broker->eventually_logged("VM t: gpu_memory \"320MiB\" -> \"1GiB\""));
  EXPECT_EQ(reserve(200 * mebi), 256 * mebi);
  tell(guest, 0, 'T', all + 256 * mebi);
  reload(*broker, file_of(*broker, "[vm.t]\ngpu_memory = \"128MiB\"\n"));
  EXPECT_TRUE(broker->eventually_logged("VM t: gpu_memory \"1GiB\" -> \"128MiB\""));
  EXPECT_EQ(reserve(1), 0U);
  EXPECT_EQ(guest.word(0).state, SlotState::Claimed);
  EXPECT_EQ(quota(*broker).at("quota_bytes"), 128 * mebi);
  EXPECT_GE(quota(*broker).at("used_bytes"), 384 * mebi);
  reload(*broker, file_of(*broker, "[vm.t]\n"));
  EXPECT_EQ(reserve(200 * mebi), 1024 * mebi) << "nothing bounds it now";
}

// ---- bad input -----------------------------------------------------------------------------------------------------

std::string checked(const Folder& folder, const std::string& gpu, const std::string& vms) {
  const std::string file =
      folder.write("c.toml", "[broker]\nruntime_dir = \"" + folder.path() +
                                 "\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"sim\"\n" + gpu + "\n" + vms);
  const Outcome outcome = run_ivgpud({"--check", "--config", file});
  EXPECT_EQ(outcome.code == 0, outcome.text.find(": good: ") != std::string::npos);
  return outcome.text;
}

TEST(QuotasInTheFile, ThatMakeNoSenseAreOneSentence) {
  const Folder folder;
  const auto said = [&](const std::string& value) { return checked(folder, "", "[vm.t]\ngpu_memory = " + value); };
  for (const char* bad : {"\"63MiB\"", "\"0\"", "\"-1GiB\"", "\"17TiB\"", "\"99999999999999999999GiB\"", "\"auto\"",
                          "\"much\"", "7", "true", "\"1GB\""})
    EXPECT_NE(said(bad).find("c.toml: [vm.t] gpu_memory = " + std::string(bad) +
                             ": gpu_memory takes a size of \"64MiB\" to \"16TiB\", or \"none\"\n"),
              std::string::npos)
        << said(bad);
  for (const char* good : {"\"64MiB\"", "\"1GiB\"", "\"none\""})
    EXPECT_NE(said(good).find(": good: "), std::string::npos) << said(good);
  EXPECT_NE(checked(folder, "overcommit = \"yes\"", "[vm.t]")
                .find("c.toml: [gpu] overcommit = \"yes\": overcommit takes true or false\n"),
            std::string::npos);
}

TEST(QuotasInTheFile, AboveTheGpusMemoryAreRefusedUnlessThatIsWanted) {
  const Folder folder;
  const std::string vms = "[vm.a]\ngpu_memory = \"3GiB\"\n[vm.b]\ngpu_memory = \"1025MiB\"\n[vm.c]\n";
  EXPECT_EQ(
      checked(folder, "", vms),
      "ivgpud: " + (folder / "c.toml") +
          ": [vm.a], [vm.b] gpu_memory: 4097 MiB together promised of GPU-69766770-752d-7369-6d00-000000000001, which "
          "has 4096 MiB: that must be no more than it has, or [gpu] overcommit = true\n");
  EXPECT_NE(checked(folder, "overcommit = true", vms).find(": good: "), std::string::npos);
  EXPECT_NE(checked(folder, "", "[vm.a]\ngpu_memory = \"3GiB\"\n[vm.b]\ngpu_memory = \"1GiB\"\n").find(": good: "),
            std::string::npos);
}

TEST_F(Memory, AReloadWithTooMuchOrTooLittleChangesNothing) {
  const auto broker = broker_with("gpu_memory = \"512MiB\"");
  ASSERT_EQ(broker->workers().size(), 1U);
  usage.hold(broker->workers()[0], 200 * mebi);
  ASSERT_TRUE(eventually([&] { return quota(*broker).at("used_bytes") >= 200 * mebi; }));
  reload(*broker, file_of(*broker, "[vm.t]\ngpu_memory = \"5GiB\"\n"));
  EXPECT_TRUE(broker->eventually_logged("c.toml: [vm.t] gpu_memory: 5120 MiB together promised of GPU-"));
  reload(*broker, file_of(*broker, "[vm.t]\ngpu_memory = \"100MiB\"\n"));
  EXPECT_TRUE(
      broker->eventually_logged("c.toml: [vm.t] gpu_memory = 100 MiB is less than a context takes of "
                                "GPU-69766770-752d-7369-6d00-000000000001: it "
                                "takes 200 MiB at least, or \"none\"; nothing is changed"));
  EXPECT_EQ(quota(*broker).at("quota_bytes"), 512 * mebi);
  reload(*broker, file_of(*broker, "[vm.t]\ngpu_memory = \"5GiB\"\n", "overcommit = true\n"));
  EXPECT_TRUE(broker->eventually_logged("[gpu] overcommit false -> true"));
  EXPECT_EQ(quota(*broker).at("quota_bytes"), 5120 * mebi);
}

}  // namespace
