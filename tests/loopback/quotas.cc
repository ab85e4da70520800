// Quotas of device memory with a real ivgpud, real workers and real programs. The simulated GPU reports each process's
// memory. The programs allocate as much memory as they get, in every way.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "host/simgpu/api/device/usage_file.h"
#include "tests/unit/broker/watched_broker.h"

namespace {

using namespace broker_test;

constexpr std::uint64_t context = 32, headroom = 64;  // MiB

class UsageFile {
 public:
  UsageFile() {
    const int file = open(path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    EXPECT_EQ(ftruncate(file, sizeof(simgpu::UsageFile)), 0);
    close(file);
    std::filesystem::permissions(path(), std::filesystem::perms(0666));
    map_ = simgpu::map_usage_file(path().c_str());
  }
  std::string path() const { return folder_ / "usage"; }
  // The total memory of these workers, from the simulated GPU's file.
  std::uint64_t held_by(const std::vector<pid_t>& workers, std::size_t gpu = 0) const {
    std::uint64_t sum = 0;
    for (const simgpu::UsageEntry& entry : map_->entry)
      if (std::count(workers.begin(), workers.end(), static_cast<pid_t>(entry.process.load())) != 0)
        sum += entry.bytes[gpu];
    return sum;
  }

 private:
  Folder folder_;
  simgpu::UsageFile* map_ = nullptr;
};

// A program that allocates memory and frees it on request.
class Taker {
 public:
  Taker(const std::string& region, const std::string& way) {
    int out[2], in[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(in, O_CLOEXEC) != 0) return;
    pid = fork();
    if (pid == 0) {
      dup2(out[1], 1);
      dup2(in[0], 0);
      setenv("IVGPU_REGION", region.c_str(), 1);
      execl(TAKER, TAKER, GUEST_CUDA, way.c_str(), "hold", nullptr);
      _exit(126);
    }
    close(out[1]);
    close(in[0]);
    output_ = fdopen(out[0], "r");
    input_ = in[1];
    read_line("before");
    const std::string took = line();
    std::smatch found;
    EXPECT_TRUE(std::regex_match(took, found, std::regex("took ([0-9]+) MiB, then ([0-9]+)"))) << took;
    if (found.size() == 3) mib = std::stoull(found[1]), result = std::stoi(found[2]);
    read_line("after");
  }
  ~Taker() {
    if (pid > 0) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
    close(input_);
    std::fclose(output_);
  }
  Taker(const Taker&) = delete;
  Taker& operator=(const Taker&) = delete;

  // Lets the program free its memory, and reads the program's last lines.
  void let_go() {
    EXPECT_EQ(write(input_, "\n", 1), 1);
    read_line("at the end");
    waitpid(std::exchange(pid, -1), nullptr, 0);
  }

  pid_t pid = -1;
  std::uint64_t mib = 0;
  int result = -1;
  struct Told {
    int result = -1;
    std::uint64_t free = 0, total = 0, device = 0;
  };
  std::map<std::string, Told> told;

 private:
  std::string line() {
    char text[256] = "";
    if (std::fgets(text, sizeof text, output_) == nullptr) return "nothing";
    return std::string(text, std::strcspn(text, "\n"));
  }
  void read_line(const std::string& when) {
    const std::string said = line();
    std::smatch found;
    const std::regex form(when + " ([0-9]+): free ([0-9]+), total ([0-9]+), device ([0-9]+)");
    EXPECT_TRUE(std::regex_match(said, found, form)) << said;
    if (found.size() != 5) return;
    told[when] = {std::stoi(found[1]), std::stoull(found[2]), std::stoull(found[3]), std::stoull(found[4])};
  }

  FILE* output_ = nullptr;
  int input_ = -1;
};

nlohmann::json status_of(const Broker& broker, std::size_t vm = 0) {
  const auto told = run_program(IVGPU, {"status", "--json", "--runtime-dir", broker.folder.path()});
  return nlohmann::json::parse(told.text).at("vms").at(vm);
}

// VMs t (512 MiB) and u (1 GiB) on a GPU of 4 GiB, without spare workers.
class Quotas : public testing::Test {
 protected:
  static constexpr std::uint64_t quota = 512;
  std::string region(const std::string& vm = "t") const { return broker_.folder / (vm + ".sock"); }
  std::vector<pid_t> workers() const { return broker_.workers(); }
  nlohmann::json status(std::size_t vm = 0) const { return status_of(broker_, vm); }
  std::uint64_t used(std::size_t vm = 0) const {
    return status(vm).at("gpu_quotas").at(0).at("used_bytes").get<std::uint64_t>() >> 20;
  }

  UsageFile usage_;
  WatchedBroker broker_{
      "spare = 0\nslots = 4\nregion_size = \"256MiB\"\ngpu_memory = \"512MiB\"\n[vm.u]\n"
      "spare = 0\nslots = 4\nregion_size = \"256MiB\"\ngpu_memory = \"1GiB\"\n",
      "",
      [this] {
        setenv("IVGPU_SIM_USAGE", usage_.path().c_str(), 1);
        setenv("IVGPU_SIM_CONTEXT_MEMORY", "32M", 1);
      },
      "sim"};
};

class EachWay : public Quotas, public testing::WithParamInterface<const char*> {};

TEST_P(EachWay, EndsAtTheQuotaWithCudasError) {
  Taker taker(region(), GetParam());
  EXPECT_EQ(taker.result, 2) << "CUDA_ERROR_OUT_OF_MEMORY";
  EXPECT_GE(taker.mib, (quota - context - headroom) / 2) << "a good part of it can be had";
  EXPECT_LE(taker.mib + context, quota);
  EXPECT_LE(usage_.held_by(workers()) >> 20, quota);
  EXPECT_EQ(taker.told["before"].total, quota);
  EXPECT_EQ(taker.told["before"].device, quota);
  EXPECT_EQ(taker.told["before"].free, quota - context - headroom) << "its context has its part";
  EXPECT_EQ(taker.told["after"].total, quota);
  EXPECT_LE(taker.told["after"].free, 32u);
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // time for the broker's measurement, which must match
  EXPECT_LE(used(), quota);
  taker.let_go();
  EXPECT_EQ(taker.told["at the end"].result, 0) << "its session goes on";
  EXPECT_TRUE(eventually([&] { return used() == 0; })) << "and gives all back with its end";
}

INSTANTIATE_TEST_SUITE_P(Quotas, EachWay,
                         testing::Values("allocate", "allocate-rows", "allocate-in-order", "from-pool", "memory-object",
                                         "array", "layered-array", "mipmapped-array"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The broker charges contexts and limits in advance, at the size that it has measured earlier.
TEST_F(Quotas, ContextsAndLimitsEndThereToo) {
  Taker contexts(region(), "context");
  EXPECT_EQ(contexts.result, 2);
  EXPECT_EQ(contexts.mib / 16, (quota - context - headroom) / context);
  EXPECT_LE(usage_.held_by(workers()) >> 20, quota);
  contexts.let_go();
  ASSERT_TRUE(eventually([&] { return used() == 0; }));
  Taker heap(region(), "heap");
  EXPECT_EQ(heap.result, 2);
  EXPECT_LE(heap.mib, quota - context);
}

// The size of code and its variables is unknown in advance. The broker measures it, and ends a session that exceeds the
// quota; other sessions notice nothing.
TEST_F(Quotas, VariablesOfModulesAreMeasured) {
  Taker other(region("u"), "allocate");
  Taker taker(region(), "module");
  EXPECT_TRUE(broker_.eventually_logged(": killed: it holds "));
  EXPECT_TRUE(eventually([&] { return used() == 0; }));
  Taker next(region(), "allocate");
  EXPECT_GE(next.mib, quota - context - headroom - 16);
  other.let_go();
  EXPECT_EQ(other.told["at the end"].result, 0);
}

TEST_F(Quotas, NoVmTakesWhatAnotherWasPromised) {
  Taker first(region(), "allocate");
  Taker second(region("u"), "allocate");
  EXPECT_EQ(first.result, 2);
  EXPECT_EQ(second.result, 2);
  EXPECT_GE(second.mib, 1024 - context - headroom - 16);
  EXPECT_LE(second.mib, 1024 - context);
  EXPECT_LE(used(0), quota);
  EXPECT_LE(used(1), 1024u);
}

TEST_F(Quotas, AProgramThatIsKilledGivesItsPartBack) {
  std::uint64_t first = 0;
  {
    Taker taker(region(), "from-pool");
    first = taker.mib;
  }
  ASSERT_TRUE(eventually([&] { return used() == 0; }));
  Taker taker(region(), "from-pool");
  EXPECT_EQ(taker.mib, first);
}

TEST_F(Quotas, AWorkerThatIsKilledGivesItsPartBack) {
  Taker taker(region(), "allocate");
  const auto before = workers();
  ASSERT_EQ(before.size(), 1u);
  broker_.kill_worker(before[0]);
  ASSERT_TRUE(eventually([&] { return used() == 0; }));
  Taker next(region(), "allocate");
  EXPECT_EQ(next.mib, taker.mib);
}

TEST_F(Quotas, TheStatusReportsThem) {
  Taker taker(region(), "allocate");
  const std::string text = run_program(IVGPU, {"status", "--runtime-dir", broker_.folder.path()}).text;
  const std::regex line(
      "\n  GPU memory quota: [0-9.]+ MiB of 512.0 MiB of GPU-69766770-752d-7369-6d00-000000000001, at "
      "most [0-9.]+ MiB so far\n");
  EXPECT_TRUE(std::regex_search(text, line)) << text;
  const std::uint64_t while_held = used();
  EXPECT_GE(while_held, taker.mib + context);
  taker.let_go();
  ASSERT_TRUE(eventually([&] { return used() == 0; }));
  const auto told = status().at("gpu_quotas").at(0);
  EXPECT_GE(told.at("peak_bytes").get<std::uint64_t>() >> 20, while_held);
  EXPECT_EQ(told.at("quota_bytes").get<std::uint64_t>() >> 20, quota);
  EXPECT_EQ(told.at("measured"), true);
}

// The programs of a VM share its quota: a program can use what another program leaves unused.
TEST(QuotasOfOneVm, AreSharedByItsPrograms) {
  UsageFile usage;
  const WatchedBroker broker(
      "spare = 2\nslots = 2\nregion_size = \"256MiB\"\ngpu_memory = \"1GiB\"", "",
      [&] { setenv("IVGPU_SIM_USAGE", usage.path().c_str(), 1); }, "sim");
  const auto ready = [&] {
    const auto vm = status_of(broker);
    return std::ranges::count_if(vm.at("slots"), [](const auto& slot) { return slot.at("state") == "ready"; });
  };
  ASSERT_TRUE(eventually([&] { return ready() == 2; }));
  std::optional<Taker> a, b;
  std::thread beside([&] { a.emplace(broker.folder / "t.sock", "allocate"); });
  b.emplace(broker.folder / "t.sock", "memory-object");
  beside.join();
  EXPECT_EQ(a->result, 2);
  EXPECT_EQ(b->result, 2);
  EXPECT_LE(usage.held_by(broker.workers()), std::uint64_t{1} << 30);
  EXPECT_GE(a->mib + b->mib, 1024 - 2 * headroom - 2 * 32);
  a->let_go();
  ASSERT_TRUE(eventually([&] { return usage.held_by(broker.workers()) >> 20 == b->mib; }));
  ASSERT_TRUE(eventually([&] { return ready() == 1; })) << "a worker is ready where the other's has ended";
  const std::uint64_t left = b->mib;
  b->let_go();
  EXPECT_GE(b->told["at the end"].free + left + 3 * headroom + 64, 1024u) << "what the other had can be had";
}

// Memory counts on its own device, whichever context is current. An allocation on the second device ends at that
// device's quota and uses none of the first device's quota.
class QuotasOfTwoGpus : public testing::TestWithParam<const char*> {};
TEST_P(QuotasOfTwoGpus, MemoryOfAnotherDeviceCountsThere) {
  UsageFile usage;
  const WatchedBroker broker(
      "gpus = [0, 1]\nspare = 0\nslots = 2\nregion_size = \"256MiB\"\ngpu_memory = \"512MiB\"", "",
      [&] {
        setenv("IVGPU_SIM_USAGE", usage.path().c_str(), 1);
        setenv("IVGPU_SIM_DEVICES", "2", 1);
      },
      "sim");
  Taker taker(broker.folder / "t.sock", GetParam());
  EXPECT_EQ(taker.result, 2);
  EXPECT_GE(taker.mib, 512 / 2);
  // A pool that grew for the refused allocation keeps its block of 32 MiB until the next wait.
  EXPECT_LE(usage.held_by(broker.workers(), 1), std::uint64_t{512 + 32} << 20);
  EXPECT_EQ(usage.held_by(broker.workers(), 0), 0U);
  EXPECT_GE(taker.told["after"].free, 512 / 2U) << "of the first, whose context is current";
}
INSTANTIATE_TEST_SUITE_P(Ways, QuotasOfTwoGpus, testing::Values("in-order-of-the-second", "from-pool-of-the-second"));

// ---- without quotas ------------------------------------------------------------------------------------------------

TEST(WithoutQuotas, ReportsAndGivesAllOfTheGpu) {
  const WatchedBroker broker(
      "spare = 0\nslots = 2\nregion_size = \"256MiB\"", "", [] {}, "sim");
  Taker taker(broker.folder / "t.sock", "allocate");
  EXPECT_EQ(taker.told["before"].total, 4096u);
  EXPECT_EQ(taker.told["before"].device, 4096u);
  EXPECT_EQ(taker.mib, 4096u);
  EXPECT_EQ(taker.result, 2);
}

}  // namespace
