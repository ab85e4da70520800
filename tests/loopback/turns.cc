// Turns with everything in place: a real ivgpud, whose policy changes under running programs, real workers, and a simulated
// GPU whose processes share its time as those of a real one do (host/simgpu/api/time_slices.h).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "host/simgpu/api/usage_file.h"
#include "tests/loopback/turner.h"

// What the broker starts as a worker.
#undef FAKE_WORKER
#define FAKE_WORKER WORKER_SCRIPT
#include "tests/unit/watched_broker.h"

namespace {

using namespace broker_test;
using namespace std::chrono_literals;

class Program {
 public:
  Program(const Folder& folder, const std::string& vm, const char* kind) {
    static int number = 0;
    const std::string file = folder / ("progress-" + std::to_string(++number)), region = folder / (vm + ".sock");
    progress_ = turner::map(file.c_str());
    pid_ = fork();
    if (pid_ != 0) return;
    setenv("IVGPU_REGION", region.c_str(), 1);
    execl(TURNER, TURNER, GUEST_CUDA, file.c_str(), kind, nullptr);
    _exit(126);
  }
  ~Program() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    munmap(progress_, sizeof *progress_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  turner::Progress& progress() { return *progress_; }
  bool works() {
    const std::uint64_t before = progress_->done;
    return eventually([&] { return progress_->done > before; });
  }

 private:
  turner::Progress* progress_ = nullptr;
  pid_t pid_ = -1;
};

// VMs t, u and v on one GPU. A change of context takes a millisecond, so that turns show beside whatever else the
// machine does, and quanta are as much longer.
class Turns : public testing::Test {
 protected:
  // Has the broker read this file, and waits until it has.
  void reload(const std::string& policy, const std::string& keys_of_u = "", int quantum_us = 5000) {
    broker_.folder.write("c.toml", "[broker]\nruntime_dir = \"" + broker_.folder.path() +
                                       "\"\nlog_level = \"debug\"\nworker = \"" FAKE_WORKER
                                       "\"\n[gpu]\nlibrary = \"sim\"\npolicy = \"" +
                                       policy + "\"\nquantum_us = " + std::to_string(quantum_us) +
                                       "\n[defaults]\nregion_size = \"128MiB\"\nslots = 3\nspare = 0\n" +
                                       "[vm.t]\n[vm.v]\n[vm.u]\n" + keys_of_u);
    const auto told = run_program(IVGPU, {"reload", "--runtime-dir", broker_.folder.path()});
    ASSERT_EQ(told.code, 0) << told.text;
  }
  nlohmann::json status() const {
    return nlohmann::json::parse(run_program(IVGPU, {"status", "--json", "--runtime-dir", broker_.folder.path()}).text);
  }
  bool takes_turns() const {
    const auto gpus = status().at("gpus");
    return !gpus.empty() && gpus.at(0).at("takes_turns").get<bool>();
  }
  pid_t worker_of(std::size_t vm) const {
    const auto now = status();
    for (const auto& slot : now.at("vms").at(vm).at("slots"))
      if (slot.contains("worker")) return slot["worker"].get<pid_t>();
    return -1;
  }
  // What each does in this time.
  std::vector<double> work_of(const std::vector<Program*>& programs, std::chrono::milliseconds time) {
    std::vector<double> before, did;
    for (Program* one : programs) before.push_back(static_cast<double>(one->progress().done));
    std::this_thread::sleep_for(time);
    for (std::size_t i = 0; i < programs.size(); ++i)
      did.push_back(static_cast<double>(programs[i]->progress().done) - before[i]);
    return did;
  }
  // By default the broker takes turns as soon as they pay, which is in the middle of what a test measures first.
  void SetUp() override { reload("time-slice"); }
  void take_turns(const std::string& keys_of_u = "", int quantum_us = 5000) {
    reload("turns", keys_of_u, quantum_us);
    ASSERT_TRUE(eventually([&] { return takes_turns(); }));
  }
  // Those that start from now on (worker.sh).
  void make_workers_cheat() const { folder_.write("cheats", ""); }
  // It answers nothing either, so nobody knows whether what it does are large copies.
  void expect_that_a_silent_cheat_ends_turns() {
    make_workers_cheat();
    Program c(broker_.folder, "v", "long");
    ASSERT_TRUE(c.works());
    EXPECT_TRUE(eventually([&] { return !takes_turns(); }));
    EXPECT_TRUE(c.works());
    EXPECT_EQ(broker_.times_logged(": killed: "), 0U);
  }
  std::uint32_t changes() const { return map_->time[0].changes; }

 private:
  struct UsageFile {
    explicit UsageFile(const std::string& path) {
      const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
      EXPECT_EQ(ftruncate(file, sizeof(simgpu::UsageFile)), 0);
      close(file);
      std::filesystem::permissions(path, std::filesystem::perms(0666));
    }
  };
  Folder folder_;
  const std::string path_ = folder_ / "usage";
  UsageFile made_{path_};
  simgpu::UsageFile* const map_ = simgpu::map_usage_file(path_.c_str());

 protected:
  WatchedBroker broker_{"spare = 0\n[vm.v]\nspare = 0\n[vm.u]\nspare = 0\n", "",
                        [this] {
                          map_->time[0].change_us = 1000, map_->time[0].slice_us = 2000;
                          setenv("IVGPU_SIM_USAGE", path_.c_str(), 1);
                          setenv("IVGPU_SIM_WORKER", WORKER, 1);
                          setenv("IVGPU_SIM_CHEATS", (folder_ / "cheats").c_str(), 1);
                        },
                        "sim"};
};

TEST_F(Turns, ProgramsThatLaunchAndWaitDoMoreByThem) {
  Program a(broker_.folder, "t", "nothing"), b(broker_.folder, "u", "nothing");
  ASSERT_TRUE(a.works() && b.works());
  const std::uint32_t begin = changes();
  const auto slices = work_of({&a, &b}, 500ms);
  EXPECT_GE(changes() - begin, 50U) << "the simulated GPU's slices cost nothing";
  take_turns();
  const auto turns = work_of({&a, &b}, 1000ms);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_GE(turns[i] / 2, 1.5 * slices[i]);
  reload("time-slice");
  const auto again = work_of({&a, &b}, 500ms);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_LE(again[i], 0.75 * turns[i] / 2);
}

TEST_F(Turns, WeightsAreParts) {
  Program a(broker_.folder, "t", "nothing"), b(broker_.folder, "u", "nothing");
  ASSERT_TRUE(a.works() && b.works());
  take_turns("weight = 3\n");
  work_of({&a, &b}, 200ms);
  const auto did = work_of({&a, &b}, 2000ms);
  const auto vms = status().at("vms");
  const nlohmann::json t = vms.at(0).at("turns"), u = vms.at(1).at("turns");
  EXPECT_EQ(u.at("weight"), 3);
  // Virtual time has the exact parts (tests/unit/turns_world.cc). Here a program whose threads wait for a processor wants no
  // turn, and the other goes on.
  EXPECT_GE(u.at("held_s").get<double>(), 1.4 * t.at("held_s").get<double>());
  EXPECT_GE(did[1], 1.4 * did[0]);
}

TEST_F(Turns, AHolderThatIsKilledPassesItsTurnOn) {
  Program a(broker_.folder, "t", "nothing"), b(broker_.folder, "u", "nothing"), c(broker_.folder, "v", "nothing");
  ASSERT_TRUE(a.works() && b.works() && c.works());
  take_turns("", 2000);
  b.progress().longest_gap = 0, c.progress().longest_gap = 0;
  const pid_t worker = worker_of(0);
  ASSERT_GT(worker, 0);
  broker_.kill_worker(worker);
  std::this_thread::sleep_for(500ms);
  EXPECT_LE(b.progress().longest_gap, 50'000'000) << "in nanoseconds";
  EXPECT_LE(c.progress().longest_gap, 50'000'000);
  EXPECT_TRUE(b.works() && c.works());
  EXPECT_TRUE(eventually([this] { return takes_turns(); })) << "a busy machine may have ended them for a moment";
}

// Its turn ends by time, and then it is left to the slices.
TEST_F(Turns, AKernelThatSpinsUntilAnotherVmHasLaunchedDoesNotStopIt) {
  Program b(broker_.folder, "u", "nothing"), c(broker_.folder, "v", "nothing");
  ASSERT_TRUE(b.works() && c.works());
  take_turns();
  Program a(broker_.folder, "t", "spin");
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(a.progress().done, 0U);
  EXPECT_TRUE(b.works() && c.works());
  a.progress().release = 1;
  EXPECT_TRUE(eventually([&] { return a.progress().done > 10; }));
}

// Its kernels are long, so beside them the others' turns do not pay any more.
TEST_F(Turns, AWorkerThatPassesNoGateAndAnswersNothingHasWhatSlicesGiveIt) {
  Program a(broker_.folder, "t", "nothing"), b(broker_.folder, "u", "nothing");
  ASSERT_TRUE(a.works() && b.works());
  take_turns();
  std::this_thread::sleep_for(1500ms);
  ASSERT_TRUE(takes_turns());
  expect_that_a_silent_cheat_ends_turns();
  EXPECT_TRUE(a.works() && b.works());
}

TEST_F(Turns, NobodyIsEndedWhoseKernelsAreLong) {
  Program a(broker_.folder, "t", "long"), b(broker_.folder, "u", "nothing");
  ASSERT_TRUE(a.works() && b.works());
  take_turns("latency = true\n");
  std::this_thread::sleep_for(2000ms);
  EXPECT_EQ(broker_.times_logged(": killed: "), 0U);
  EXPECT_TRUE(a.works() && b.works());
}

TEST_F(Turns, ABrokerThatEndsLetsNobodyWaitForTurns) {
  Program a(broker_.folder, "t", "nothing"), b(broker_.folder, "u", "nothing");
  ASSERT_TRUE(a.works() && b.works());
  take_turns();
  EXPECT_EQ(broker_.terminate(), 0);
}

}  // namespace
