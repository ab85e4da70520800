// GPU time with a real ivgpud, real workers and real programs. The simulated GPU shares its time among processes by
// slices (host/simgpu/api/device/time_slices.h), and the broker enables and disables processes. The policy's own tests
// check the shares.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "host/simgpu/api/device/usage_file.h"
#include "tests/loopback/load_progress.h"

#include "tests/unit/broker/fake_fd_store.h"
#include "tests/unit/broker/watched_broker.h"

namespace {

using namespace broker_test;
using namespace std::chrono_literals;

class Program {
 public:
  Program(const Folder& folder, const std::string& vm, const char* kind, const Program* other = nullptr)
      : file_(folder / ("progress-" + std::to_string(++number))), progress_(load::map(file_.c_str())) {
    const std::string region = folder / (vm + ".sock");
    pid_ = fork();
    if (pid_ != 0) return;
    setenv("IVGPU_REGION", region.c_str(), 1);
    execl(LOAD_PROGRAM, LOAD_PROGRAM, GUEST_CUDA, file_.c_str(), kind,
          other != nullptr ? other->file_.c_str() : nullptr, nullptr);
    _exit(126);
  }
  ~Program() {
    if (!has_ended_) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    munmap(progress_, sizeof *progress_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  bool works() {
    const std::uint64_t before = progress_->done;
    return eventually([&] { return progress_->done > before; });
  }
  // Returns true if the program exits before the deadline.
  bool ends() {
    return eventually([&] { return has_ended_ || (has_ended_ = waitpid(pid_, &status_, WNOHANG) == pid_); });
  }
  bool is_wrong() const { return has_ended_ && WIFEXITED(status_) && WEXITSTATUS(status_) == 3; }
  void stop() {
    kill(pid_, SIGKILL);
    EXPECT_TRUE(ends());
  }

 private:
  static inline int number = 0;
  const std::string file_;
  load::Progress* const progress_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool has_ended_ = false;
};

// VMs t, u and v on one GPU.
class Shares : public testing::Test {
 protected:
  explicit Shares(std::function<void()> service = [] {})
      : broker_{"spare = 0\n[vm.v]\nspare = 0\n[vm.u]\nspare = 0\n", "", environment(std::move(service)), "sim"} {}
  std::function<void()> environment(std::function<void()> service) {
    return [this, service = std::move(service)] {
      for (auto& time : map_->time) time.change_us = 100, time.slice_us = 2000;
      setenv("IVGPU_SIM_USAGE", path_.c_str(), 1);
      service();
    };
  }
  void reload(const std::string& policy) {
    broker_.folder.write(
        "c.toml", "[broker]\nruntime_dir = \"" + broker_.folder.path() +
                      "\"\nlog_level = \"debug\"\nworker = \"" FAKE_WORKER "\"\n[gpu]\nlibrary = \"sim\"\npolicy = \"" +
                      policy +
                      "\"\n[defaults]\nregion_size = \"128MiB\"\nslots = 3\nspare = 0\n[vm.t]\nspare = "
                      "0\n[vm.v]\nspare = 0\n[vm.u]\nspare = 0\n");
    const auto told = run_program(IVGPU, {"reload", "--runtime-dir", broker_.folder.path()});
    ASSERT_EQ(told.code, 0) << told.text;
  }
  nlohmann::json status() const {
    return nlohmann::json::parse(run_program(IVGPU, {"status", "--json", "--runtime-dir", broker_.folder.path()}).text);
  }
  nlohmann::json gpu_time_of(const std::string& vm) const {
    const auto now = status();
    for (const auto& one : now.at("vms"))
      if (one.at("name") == vm) return one.at("gpu_time");
    return {};
  }
  std::string sharing() const {
    const auto now = status();
    return now.at("gpus").empty() ? "" : now.at("gpus").at(0).at("sharing").get<std::string>();
  }
  bool leases_begin() const {
    return eventually([&] { return sharing() == "leases"; });
  }
  // Returns true if the lease count of the VM still grows.
  bool leases_go_on(const std::string& vm) const {
    const auto before = gpu_time_of(vm).at("leases").get<std::uint64_t>();
    return eventually([&] { return gpu_time_of(vm).at("leases").get<std::uint64_t>() > before; });
  }
  // The number of live processes that the broker has disabled on this GPU.
  std::size_t off(std::size_t gpu = 0) const {
    std::size_t count = 0;
    for (const auto& entry : map_->entry)
      count += entry.off[gpu] != 0 && kill(static_cast<pid_t>(entry.process.load()), 0) == 0;
    return count;
  }
  pid_t worker_of(const std::string& vm) const {
    const auto now = status();
    for (const auto& one : now.at("vms"))
      for (const auto& slot : one.at("slots"))
        if (one.at("name") == vm && slot.contains("worker")) return slot["worker"].get<pid_t>();
    return -1;
  }

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
  WatchedBroker broker_;
};

TEST_F(Shares, OneAloneIsNeverSwitchedOffAndItsTimeIsReported) {
  Program a(broker_.folder, "t", "count");
  ASSERT_TRUE(a.works());
  EXPECT_TRUE(eventually([&] { return gpu_time_of("t").at("had_s").get<double>() > 0.02; }));
  EXPECT_EQ(sharing(), "alone");
  EXPECT_EQ(off(), 0U);
  EXPECT_EQ(gpu_time_of("u").at("had_s").get<double>(), 0);
}

TEST_F(Shares, TwoHaveLeasesAndTheirResultsAreRight) {
  Program a(broker_.folder, "t", "count"), b(broker_.folder, "u", "count");
  ASSERT_TRUE(leases_begin());
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(leases_go_on("t") && leases_go_on("u"));
    EXPECT_TRUE(a.works() && b.works());
  }
  EXPECT_GT(gpu_time_of("t").at("waited_s").get<double>(), 0);
  a.stop();
  EXPECT_TRUE(eventually([&] { return sharing() == "alone" && off() == 0; }));
  EXPECT_TRUE(b.works());
}

// The environment shows workers only the second GPU. The workers number this GPU 0.
class SharesOfTheSecondGpu : public Shares {
 protected:
  SharesOfTheSecondGpu()
      : Shares([] { setenv("IVGPU_SIM_DEVICES", "2", 1), setenv("CUDA_VISIBLE_DEVICES", "1", 1); }) {}
};

TEST_F(SharesOfTheSecondGpu, AreSwitchedThere) {
  Program a(broker_.folder, "t", "count"), b(broker_.folder, "u", "count");
  ASSERT_TRUE(a.works() && b.works());
  EXPECT_TRUE(eventually([&] { return off(1) == 1; }));
  EXPECT_EQ(off(0), 0U);
  EXPECT_TRUE(leases_go_on("t") && leases_go_on("u"));
  EXPECT_TRUE(a.works() && b.works());
}

TEST_F(Shares, AProgramThatQueuesLongKernelsDoesNotKeepOthersOff) {
  Program a(broker_.folder, "t", "count"), b(broker_.folder, "u", "long"), c(broker_.folder, "v", "count");
  ASSERT_TRUE(leases_begin());
  for (Program* one : {&a, &b, &c, &a, &b, &c}) EXPECT_TRUE(one->works());
  for (const char* vm : {"t", "u", "v"}) EXPECT_TRUE(leases_go_on(vm)) << vm;
}

TEST_F(Shares, TimeSlicesLetEverybodyOnAndLeasesComeBack) {
  Program a(broker_.folder, "t", "count"), b(broker_.folder, "u", "count");
  ASSERT_TRUE(leases_begin());
  reload("time-slice");
  EXPECT_TRUE(eventually([&] { return off() == 0 && sharing() == "time slices"; }));
  EXPECT_TRUE(a.works() && b.works());
  const double had = gpu_time_of("t").at("had_s").get<double>();
  EXPECT_TRUE(eventually([&] { return gpu_time_of("t").at("had_s").get<double>() > had; }))
      << "it is told all the same";
  reload("shared");
  EXPECT_TRUE(leases_begin());
  EXPECT_TRUE(a.works() && b.works());
}

// The kernel ends a killed process even while the broker has disabled it on the GPU.
TEST_F(Shares, AWorkerThatIsKilledWhileItIsOffLeavesTheOthers) {
  Program a(broker_.folder, "t", "count"), b(broker_.folder, "u", "count");
  ASSERT_TRUE(leases_begin());
  const pid_t worker = worker_of("t");
  ASSERT_GT(worker, 0);
  ASSERT_TRUE(eventually([&] { return off() != 0; }));
  broker_.kill_worker(worker);
  EXPECT_TRUE(a.ends());
  EXPECT_FALSE(a.is_wrong());
  EXPECT_TRUE(eventually([&] { return sharing() == "alone" && off() == 0; }));
  EXPECT_TRUE(b.works());
  Program again(broker_.folder, "t", "count");
  EXPECT_TRUE(again.works());
  EXPECT_TRUE(leases_begin());
}

// A kernel of one VM ends once another VM has launched; streams of one VM wait for values that another VM's work
// writes.
TEST_F(Shares, WorkThatWaitsForAnotherVmsWorkEnds) {
  Program a(broker_.folder, "t", "count");
  Program spins(broker_.folder, "u", "spin", &a), awaits(broker_.folder, "v", "await", &a);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(a.works() && awaits.works());
  EXPECT_TRUE(spins.works());
}

// A stopped worker delays only its own leases; other workers run during theirs.
TEST_F(Shares, AWorkerThatIsStoppedDoesNotStopTheOthers) {
  Program a(broker_.folder, "t", "count"), b(broker_.folder, "u", "count");
  ASSERT_TRUE(leases_begin());
  const pid_t worker = worker_of("t");
  ASSERT_GT(worker, 0);
  kill(worker, SIGSTOP);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(b.works());
  kill(worker, SIGCONT);
  EXPECT_TRUE(a.works());
}

TEST_F(Shares, ProgramsThatComeAndGoLeaveNobodyOff) {
  Program stays(broker_.folder, "t", "count");
  for (int i = 0; i < 4; ++i) {
    Program a(broker_.folder, "u", "count"), b(broker_.folder, "v", "nothing");
    EXPECT_TRUE(a.works() && b.works() && stays.works());
  }
  EXPECT_TRUE(eventually([&] { return sharing() == "alone" && off() == 0; }));
  EXPECT_TRUE(stays.works());
}

TEST_F(Shares, StatusReportsHowGpusAreShared) {
  Program a(broker_.folder, "t", "count"), b(broker_.folder, "u", "count");
  ASSERT_TRUE(leases_begin());
  const std::string text = run_program(IVGPU, {"status", "--runtime-dir", broker_.folder.path()}).text;
  EXPECT_NE(text.find(": leases\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  GPU time: "), std::string::npos) << text;
  EXPECT_NE(text.find(" of all VMs', "), std::string::npos) << text;
}

}  // namespace
