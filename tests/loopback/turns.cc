// Turns with everything in place: a real ivgpud, whose policy changes under running programs, real workers, and a simulated
// GPU whose processes share its time as those of a real one do (host/simgpu/api/time_slices.h).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "host/simgpu/api/usage_file.h"
#include "tests/loopback/turner.h"
#include "tests/stolen_time.h"

// What the broker starts as a worker.
#undef FAKE_WORKER
#define FAKE_WORKER WORKER_SCRIPT
#include "tests/unit/fd_keeper.h"
#include "tests/unit/watched_broker.h"

namespace {

using namespace broker_test;
using namespace std::chrono_literals;

class Program {
 public:
  Program(const Folder& folder, const std::string& vm, const char* kind, const Program* other = nullptr)
      : file_(folder / ("progress-" + std::to_string(++number))), progress_(turner::map(file_.c_str())) {
    const std::string region = folder / (vm + ".sock");
    pid_ = fork();
    if (pid_ != 0) return;
    setenv("IVGPU_REGION", region.c_str(), 1);
    execl(TURNER, TURNER, GUEST_CUDA, file_.c_str(), kind, other != nullptr ? other->file_.c_str() : nullptr, nullptr);
    _exit(126);
  }
  ~Program() {
    if (!has_ended_) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    munmap(progress_, sizeof *progress_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  turner::Progress& progress() { return *progress_; }
  bool works() {
    const std::uint64_t before = progress_->done;
    return eventually([&] { return progress_->done > before; });
  }
  // By itself.
  bool ends() {
    return eventually([&] { return has_ended_ || (has_ended_ = waitpid(pid_, nullptr, WNOHANG) == pid_); });
  }

 private:
  static inline int number = 0;
  const std::string file_;
  turner::Progress* const progress_;
  pid_t pid_ = -1;
  bool has_ended_ = false;
};

// Programs that stand still, and when the first of them has gone on: by their own clock, so that a test that comes late
// sees the same.
class Standstill {
 public:
  explicit Standstill(std::vector<Program*> programs) : programs_(std::move(programs)) {
    for (Program* one : programs_) one->progress().longest_gap = 0, last_.push_back(one->progress().last);
  }
  // Whether they still do after this time.
  bool lasts(std::chrono::milliseconds time) const {
    std::this_thread::sleep_for(time);
    return went_on() == never;
  }
  bool ends() const {
    return eventually([this] { return went_on() != never; });
  }
  // In milliseconds after this time.
  double ended_after(std::int64_t since) const { return static_cast<double>(went_on() - since) / 1e6; }

 private:
  static constexpr std::int64_t never = INT64_MAX;
  // The gap that ended then is the longest, since they had stood still for some time.
  std::int64_t went_on() const {
    std::int64_t first = never;
    for (std::size_t i = 0; i < programs_.size(); ++i)
      if (const std::int64_t gap = programs_[i]->progress().longest_gap; gap != 0)
        first = std::min(first, last_[i] + gap);
    return first;
  }
  std::vector<Program*> programs_;
  std::vector<std::int64_t> last_;
};

// VMs t, u and v on one GPU. A change of context takes a millisecond, so that turns show beside whatever else the
// machine does, and quanta are as much longer.
class Turns : public testing::Test {
 protected:
  // `service`: what the broker finds as a service (tests/unit/fd_keeper.h). `vms`: what stands behind [vm.t].
  explicit Turns(
      std::function<void()> service = [] {}, std::string vms = "spare = 0\n[vm.v]\nspare = 0\n[vm.u]\nspare = 0\n")
      : vms_(std::move(vms)), broker_{vms_, "", environment(std::move(service)), "sim"} {}
  std::function<void()> environment(std::function<void()> service) {
    return [this, service = std::move(service)] {
      for (auto& time : map_->time) time.change_us = 1000, time.slice_us = 2000;
      setenv("IVGPU_SIM_USAGE", path_.c_str(), 1);
      setenv("IVGPU_SIM_WORKER", WORKER, 1);
      setenv("IVGPU_SIM_CHEATS", (folder_ / "cheats").c_str(), 1);
      service();
    };
  }
  // Has the broker read this file, and waits until it has.
  void reload(const std::string& policy, const std::string& keys_of_u = "", int longest_turn_ms = 20) {
    broker_.folder.write(
        "c.toml", "[broker]\nruntime_dir = \"" + broker_.folder.path() +
                      "\"\nlog_level = \"debug\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"sim\"\npolicy = \"" +
                      policy + "\"\nquantum_us = 5000\nlongest_turn_ms = " + std::to_string(longest_turn_ms) +
                      "\n[defaults]\nregion_size = \"128MiB\"\nslots = 3\nspare = 0\n" + defaults_ + "[vm.t]\n" + vms_ +
                      keys_of_u);
    const auto told = run_program(IVGPU, {"reload", "--runtime-dir", broker_.folder.path()});
    ASSERT_EQ(told.code, 0) << told.text;
  }
  nlohmann::json status() const {
    return nlohmann::json::parse(run_program(IVGPU, {"status", "--json", "--runtime-dir", broker_.folder.path()}).text);
  }
  // All GPUs that several use.
  bool takes_turns() const {
    const auto gpus = status().at("gpus");
    return !gpus.empty() &&
           std::ranges::all_of(gpus, [](const auto& gpu) { return gpu.at("takes_turns").template get<bool>(); });
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
  void take_turns(const std::string& keys_of_u = "", int longest_turn_ms = 20) {
    reload("turns", keys_of_u, longest_turn_ms);
    ASSERT_TRUE(eventually([&] { return takes_turns(); }));
  }
  // Stops a worker while it has the turn: then the others stand still for much longer than a quantum. True: it is stopped.
  static bool stop_in_its_turn(pid_t worker, Program& its, const std::vector<Program*>& others) {
    for (int tries = 0; tries < 50; ++tries) {
      const std::uint64_t before = its.progress().done;
      if (!eventually([&] { return its.progress().done > before; })) return false;
      kill(worker, SIGSTOP);
      std::this_thread::sleep_for(20ms);
      if (Standstill(others).lasts(100ms)) return true;
      kill(worker, SIGCONT);
    }
    return false;
  }
  // Those that start from now on (worker.sh).
  void make_workers_cheat() const { folder_.write("cheats", ""); }
  std::uint32_t changes() const { return map_->time[0].changes; }
  // It disappears, or is back.
  void lose(std::size_t gpu, bool lost = true) { map_->time[gpu].lost = lost ? 1 : 0; }

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
  const std::string vms_;

 protected:
  std::string defaults_;
  WatchedBroker broker_;
};

class TurnsTiming : public Turns {};

// While a program is off its processor, the other one has the GPU, and no context changes between its pieces of work. So
// where this machine's host takes much of the processors' time, slices give more and turns less. Such a try is made again.
TEST_F(TurnsTiming, ProgramsThatLaunchAndWaitDoMoreByThem) {
  constexpr double most_stolen = 0.1;
  Program a(broker_.folder, "t", "nothing"), b(broker_.folder, "u", "nothing");
  ASSERT_TRUE(a.works() && b.works());
  double stolen = 0;
  for (int tries = 0; tries < 5; ++tries) {
    const StolenTime since;
    const std::uint32_t begin = changes();
    const auto slices = work_of({&a, &b}, 500ms);
    const std::uint32_t made = changes() - begin;
    reload("turns");
    const bool begun = eventually([&] { return takes_turns(); });
    const auto turns = work_of({&a, &b}, 1000ms);
    reload("time-slice");
    const auto again = work_of({&a, &b}, 500ms);
    if ((stolen = since.part()) > most_stolen) continue;
    ASSERT_TRUE(begun);
    EXPECT_GE(made, 50U) << "the simulated GPU's slices cost nothing";
    for (std::size_t i = 0; i < 2; ++i) EXPECT_GE(turns[i] / 2, 1.5 * slices[i]);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_LE(again[i], 0.75 * turns[i] / 2);
    return;
  }
  EXPECT_TRUE(a.works() && b.works());
  GTEST_SKIP() << "this machine's host takes " << stolen << " of the time that its processors are wanted";
}

// Virtual time has the exact parts (tests/unit/turns_world.cc). Here a program whose threads wait for a processor wants no
// turn, and the other goes on: so one VM has the larger weight and then the smaller one, and its times are compared. How
// much the programs do in these times depends on the processors still more.
TEST_F(TurnsTiming, WeightsAreParts) {
  Program a(broker_.folder, "t", "nothing"), b(broker_.folder, "u", "nothing");
  ASSERT_TRUE(a.works() && b.works());
  defaults_ = "weight = 3\n";
  const auto held = [this](std::size_t vm) { return status().at("vms").at(vm).at("turns").at("held_s").get<double>(); };
  const auto part_of_u = [&](int weight) {  // what u has, t being the measure
    take_turns("weight = " + std::to_string(weight) + "\n");
    EXPECT_EQ(status().at("vms").at(1).at("turns").at("weight"), weight);
    work_of({&a, &b}, 200ms);
    const double t = held(0), u = held(1);
    work_of({&a, &b}, 2000ms);
    EXPECT_GT(held(0), t);
    return (held(1) - u) / (held(0) - t);
  };
  const double large = part_of_u(9), small = part_of_u(1);
  EXPECT_GE(large, 1.5 * small);
}

// Its turn would end by time only after ten seconds. Again where the machine is busy.
TEST_F(TurnsTiming, AHolderThatIsKilledPassesItsTurnOn) {
  Program b(broker_.folder, "u", "nothing"), c(broker_.folder, "v", "nothing");
  ASSERT_TRUE(b.works() && c.works());
  double after_ms = 1e9;
  for (int tries = 0; tries < 5 && after_ms > 50; ++tries) {
    Program a(broker_.folder, "t", "nothing");
    ASSERT_TRUE(a.works());
    take_turns("", 10000);
    const pid_t worker = worker_of(0);
    ASSERT_GT(worker, 0);
    ASSERT_TRUE(stop_in_its_turn(worker, a, {&b, &c}));
    const Standstill others({&b, &c});
    const std::int64_t killed = turner::now_ns();
    broker_.kill_worker(worker);
    ASSERT_TRUE(others.ends());
    EXPECT_TRUE(a.ends());
    if (others.ended_after(killed) >= 0) after_ms = others.ended_after(killed);
  }
  EXPECT_LE(after_ms, 50);
  EXPECT_TRUE(b.works() && c.works());
  EXPECT_TRUE(eventually([this] { return takes_turns(); })) << "a busy machine may have ended them for a moment";
}

// As one that cpu.max throttles, though for longer. Again where the scheduler has let all go on for another reason first,
// or the machine is busy.
TEST_F(TurnsTiming, AHolderThatIsStoppedLosesItsTurnByTimeAndGoesOnLater) {
  constexpr int longest_turn_ms = 200, slack_ms = 100;
  Program a(broker_.folder, "t", "count"), b(broker_.folder, "u", "count"), c(broker_.folder, "v", "count");
  ASSERT_TRUE(a.works() && b.works() && c.works());
  const pid_t worker = worker_of(0);
  ASSERT_GT(worker, 0);
  const auto overlong = [this] { return status().at("vms").at(0).at("turns").at("overlong").get<int>(); };
  bool lost_it = false;
  for (int tries = 0; tries < 5 && !lost_it; ++tries) {
    take_turns("", longest_turn_ms);
    const int before = overlong();
    ASSERT_TRUE(stop_in_its_turn(worker, a, {&b, &c}));
    const Standstill others({&b, &c});
    const std::int64_t stopped = turner::now_ns();
    ASSERT_TRUE(others.ends());
    const std::uint64_t done = a.progress().done;
    EXPECT_TRUE(b.works() && c.works());
    EXPECT_EQ(a.progress().done, done);
    lost_it = overlong() > before && others.ended_after(stopped) <= longest_turn_ms + slack_ms;
    kill(worker, SIGCONT);
    ASSERT_TRUE(a.works() && b.works() && c.works()) << "with right results";
  }
  EXPECT_TRUE(lost_it);
  EXPECT_EQ(worker_of(0), worker);
  EXPECT_EQ(broker_.times_logged(": killed: "), 0U);
}

// Its turn ends by time, and then it is left to the slices.
TEST_F(Turns, AKernelThatSpinsUntilAnotherVmHasLaunchedDoesNotStopIt) {
  Program b(broker_.folder, "u", "nothing"), c(broker_.folder, "v", "nothing");
  ASSERT_TRUE(b.works() && c.works());
  take_turns();
  Program a(broker_.folder, "t", "spin", &b);
  EXPECT_TRUE(eventually([&] { return a.progress().done > 10; })) << "spins: " << a.progress().spins;
  EXPECT_TRUE(b.works() && c.works());
}

// Not even for the time after which a turn is passed on.
TEST_F(Turns, AStreamThatWaitsForAnotherVmHoldsNobody) {
  Program b(broker_.folder, "u", "nothing"), c(broker_.folder, "v", "nothing");
  ASSERT_TRUE(b.works() && c.works());
  take_turns("", 10000);
  Program a(broker_.folder, "t", "await", &b);
  EXPECT_TRUE(eventually([&] { return a.progress().done >= 20; }));
  EXPECT_TRUE(b.works() && c.works());
  const nlohmann::json turns = status().at("vms").at(0).at("turns");
  EXPECT_GE(turns.at("held_up").get<int>(), 5) << "its turns end by themselves";
  EXPECT_EQ(turns.at("overlong"), 0);
  EXPECT_EQ(turns.at("sliced"), 0);
  EXPECT_TRUE(eventually([this] { return takes_turns(); }));
  EXPECT_EQ(broker_.times_logged(": killed: "), 0U);
}

// Nor hears that it is suspected, as the keeper of one with long copies does.
TEST_F(TurnsTiming, AWorkerThatPassesNoGateAndAnswersNothingIsEnded) {
  Program a(broker_.folder, "t", "nothing"), b(broker_.folder, "u", "nothing");
  ASSERT_TRUE(a.works() && b.works());
  take_turns();
  std::this_thread::sleep_for(1500ms);  // honest workers are not suspected
  ASSERT_EQ(broker_.times_logged(": killed: "), 0U);
  make_workers_cheat();
  Program c(broker_.folder, "v", "long");
  ASSERT_TRUE(c.works());
  EXPECT_TRUE(eventually([this] { return broker_.times_logged(": killed: ") == 1; }));
  EXPECT_TRUE(c.ends());
  EXPECT_TRUE(a.works() && b.works());
  EXPECT_TRUE(eventually([this] { return takes_turns(); }));
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
  EXPECT_TRUE(a.ends() && b.ends()) << "they wait for turns that nobody gives";
}

// VM t has two GPUs, u the first of them, v the second.
class TurnsOfTwoGpus : public Turns {
 protected:
  TurnsOfTwoGpus() : Turns([] { setenv("IVGPU_SIM_DEVICES", "2", 1); }, vms) {}
  static constexpr const char* vms =
      "gpus = [0, 1]\nspare = 0\n[vm.v]\ngpus = [1]\nspare = 1\n[vm.u]\ngpus = [0]\nspare = 0\n";
};

class TurnsOfTwoGpusTiming : public TurnsOfTwoGpus {};

// It waits for the turns of one after the other, and holds nobody up meanwhile.
TEST_F(TurnsOfTwoGpusTiming, AProgramOnBothAndOneOnEachGoOn) {
  Program a(broker_.folder, "t", "both"), b(broker_.folder, "u", "nothing"), c(broker_.folder, "v", "nothing");
  ASSERT_TRUE(a.works() && b.works() && c.works());
  const auto slices = work_of({&a, &b, &c}, 1000ms);
  take_turns();
  for (Program* one : {&a, &b, &c}) one->progress().longest_gap = 0;
  const auto turns = work_of({&a, &b, &c}, 2000ms);
  for (const std::size_t one : {1U, 2U}) EXPECT_GE(turns[one] / 2, 1.2 * slices[one]);
  EXPECT_GE(turns[0] / 2, 0.2 * slices[0]);
  for (Program* one : {&a, &b, &c}) EXPECT_LE(one->progress().longest_gap, 1'000'000'000) << "in nanoseconds";
  EXPECT_EQ(broker_.times_logged(": killed: "), 0U);
}

// A worker that gave a GPU work without a turn would be ended within a second or two.
TEST_F(TurnsOfTwoGpus, WorkInAnotherContextsStreamTakesTheTurnsOfItsGpu) {
  Program a(broker_.folder, "t", "other"), c(broker_.folder, "v", "nothing");
  ASSERT_TRUE(a.works() && c.works());
  reload("turns");
  const auto gpu = [this](std::size_t number) { return status().at("gpus").at(number).at("takes_turns").get<bool>(); };
  ASSERT_TRUE(eventually([&] { return gpu(1); }));
  std::this_thread::sleep_for(2500ms);
  EXPECT_TRUE(a.works() && c.works());
  EXPECT_EQ(broker_.times_logged(": killed: "), 0U);
  EXPECT_TRUE(eventually([this] { return status().at("vms").at(0).at("turns").at("taken").get<int>() >= 50; }));
}

// What is on the other GPU notices nothing. A worker that was started ahead does not keep a GPU that is back from programs.
TEST_F(TurnsOfTwoGpus, AGpuThatDisappearsIsToldAndFoundAgain) {
  Program a(broker_.folder, "t", "both"), b(broker_.folder, "u", "count"), c(broker_.folder, "v", "count");
  ASSERT_TRUE(a.works() && b.works() && c.works());
  take_turns();
  lose(1);
  EXPECT_TRUE(a.ends() && c.ends());
  EXPECT_TRUE(b.works());
  const std::string gpu = "GPU 1 (GPU-69766770-752d-7369-6d00-000000000002, 0000:02:00.0)";
  Program without(broker_.folder, "v", "count");
  EXPECT_TRUE(without.ends());
  EXPECT_TRUE(broker_.eventually_logged("v: its workers do not find " + gpu));
  EXPECT_TRUE(eventually([&] { return status().at("vms").at(2).at("gpus_missing") == 1; }));
  lose(1, false);
  EXPECT_TRUE(broker_.eventually_logged("v: its workers find all its GPUs again"));
  Program again(broker_.folder, "v", "count");
  EXPECT_TRUE(again.works() && b.works());
  EXPECT_EQ(broker_.times_logged("v: its workers do not find " + gpu), 1U);
  EXPECT_EQ(status().at("vms").at(2).at("gpus_missing"), 0);
  EXPECT_EQ(broker_.times_logged(": killed: "), 0U);
}

struct Service {
  FdKeeper keeper_;
};
class TurnsOfARestartTiming : protected Service, public Turns {
 protected:
  TurnsOfARestartTiming() : Turns(keeper_.environment()) {}
};

TEST_F(TurnsOfARestartTiming, ProgramsGoOnAndTurnsBeginAgain) {
  Program a(broker_.folder, "t", "count"), b(broker_.folder, "u", "count");
  ASSERT_TRUE(a.works() && b.works());
  for (const int signal : {SIGKILL, SIGTERM, SIGKILL}) {
    take_turns();
    a.progress().longest_gap = 0, b.progress().longest_gap = 0;
    broker_.terminate(signal);
    std::this_thread::sleep_for(signal == SIGKILL ? 1500ms : 0ms);
    EXPECT_TRUE(a.works() && b.works()) << "without a broker";
    broker_.again(environment(keeper_.environment()));
    ASSERT_EQ(broker_.ready, "ready\n");
    EXPECT_TRUE(eventually([this] { return takes_turns(); })) << "nobody takes turns after a restart";
    EXPECT_TRUE(a.works() && b.works());
    for (Program* one : {&a, &b}) EXPECT_LE(one->progress().longest_gap, 1'000'000'000) << "in nanoseconds";
  }
  EXPECT_EQ(broker_.times_logged("1 session(s) and 1 connection(s) of before the restart go on"), 6U);
}

}  // namespace
