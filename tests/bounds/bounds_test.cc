// A program that floods its session, through guest library, ring, worker and simulated GPU. The program must get the
// driver's error, its worker's memory must stay bounded, and the VM must serve the next program.
#include "tests/unit/broker/watched_broker.h"

namespace {

using namespace broker_test;

constexpr long mib = 1 << 20;

// The flooding program, which runs until the destructor ends it.
class Flood {
 public:
  Flood(const Broker& broker, const std::vector<std::string>& what) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      setenv("IVGPU_REGION", broker.socket_path().c_str(), 1);
      dup2(in[0], 0);
      dup2(out[1], 1);
      std::vector<const char*> argv = {FLOOD, GUEST_CUDA};
      for (const std::string& word : what) argv.push_back(word.c_str());
      argv.push_back(nullptr);
      execv(FLOOD, const_cast<char* const*>(argv.data()));
      _exit(126);
    }
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
    char c;
    while (read(from_, &c, 1) == 1 && c != '\n') said += c;
  }
  ~Flood() {
    close(to_);
    close(from_);
    waitpid(pid_, nullptr, 0);
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  // The number of objects that the program made, and the error that ended the flood.
  long made() const { return std::atol(said.substr(said.find(' ') + 1).c_str()); }
  std::string error() const { return said.substr(said.rfind(' ') + 1); }

  std::string said;

 private:
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

// A line of /proc/PID/status as a number.
long status_of(pid_t pid, const std::string& key) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key + ":", 0) == 0) return std::atol(line.c_str() + key.size() + 1);
  return 0;
}

// The highest memory use of any worker so far, in bytes.
long peak_memory(const Broker& broker) {
  long most = 0;
  for (const pid_t worker : broker.workers()) most = std::max(most, status_of(worker, "VmHWM") << 10);
  return most;
}

void expect_that_the_next_works(const Broker& broker) { EXPECT_EQ(Flood(broker, {"works"}).said, "works"); }

constexpr const char* small = "session_image_bytes = \"64MiB\"\nsession_objects = 1000\n";

TEST(Bounds, ImagesAreRefusedAndTheWorkerStaysSmall) {
  WatchedBroker broker(
      small, "", [] {}, LIBRARY);
  {
    const Flood flood(broker, {"images", "150", "4"});
    EXPECT_EQ(flood.error(), "CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_GE(flood.made(), 10);
    EXPECT_LE(flood.made(), 16);
    // The bound is twice the budget, which leaves room for the slot's pages, the driver and the parser.
    EXPECT_LT(peak_memory(broker), 192 * mib);
  }
  expect_that_the_next_works(broker);
}

TEST(Bounds, ObjectsAreRefused) {
  WatchedBroker broker(
      small, "", [] {}, LIBRARY);
  {
    const Flood flood(broker, {"objects", "100000"});
    EXPECT_EQ(flood.error(), "CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_GE(flood.made(), 900);
    EXPECT_LE(flood.made(), 8192) << "a posted call tells its error with a later one";
    EXPECT_LT(peak_memory(broker), 128 * mib);
  }
  expect_that_the_next_works(broker);
}

// Each waiting stream occupies a thread of the simulated GPU. If the VM has its own user, the number of threads has a
// bound.
TEST(Bounds, ThreadsHaveABoundByTheVmsUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives workers another user";
  WatchedBroker broker(
      "worker_uid = 7003\npids_max = 60\nspare = 0", "", [] {}, LIBRARY);
  {
    const Flood flood(broker, {"waits", "300"});
    EXPECT_EQ(flood.said, "waits 300 CUDA_SUCCESS");
    const auto threads = [&] {
      long all = 0;
      for (const pid_t worker : broker.workers()) all += status_of(worker, "Threads");
      return all;
    };
    EXPECT_TRUE(eventually([&] { return threads() >= 50; })) << "the flood was none";
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_LE(threads(), 60);
  }
}

}  // namespace
