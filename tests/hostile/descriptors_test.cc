// A subverted worker abuses the descriptors that it shares with its broker. It changes the descriptors' flags, and
// empties or fills the descriptors, while the broker starts workers. The broker must still serve all VMs, and so must
// the next broker, which gets the same open files. The tests use a real ivgpud, a stand-in for systemd, and workers of
// the simulated GPU; where hundreds of workers start, they are fake ones.
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <atomic>

#include "tests/unit/broker/restart.h"

namespace {

using namespace broker_test;

// Copies of all descriptors of a worker. The copies share the worker's open files, so a copy has the same effects as
// the worker's own descriptor. The worker has no jail; tests/jail/ tests which system calls a jail refuses.
class Subverted {
 public:
  explicit Subverted(pid_t worker) {
    const int process = static_cast<int>(syscall(SYS_pidfd_open, worker, 0));
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(worker) + "/fd")) {
      const int number = std::stoi(entry.path().filename());
      const int copy = static_cast<int>(syscall(SYS_pidfd_getfd, process, number, 0));
      EXPECT_GE(copy, 0) << "descriptor " << number << ": " << std::strerror(errno);
      const std::string kind = std::filesystem::read_symlink(entry.path());
      if (copy >= 0) (kind == "anon_inode:[eventfd]" ? counters_ : others_).push_back(copy);
    }
    close(process);
  }
  ~Subverted() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    for (const auto* all : {&counters_, &others_})
      for (const int fd : *all) close(fd);
  }
  Subverted(const Subverted&) = delete;
  Subverted& operator=(const Subverted&) = delete;

  std::size_t counters() const { return counters_.size(); }
  void clear_flags() {
    for (const auto* all : {&counters_, &others_})
      for (const int fd : *all) fcntl(fd, F_SETFL, 0);
  }
  // Starts a thread that reads each doorbell before the broker does, or that keeps the doorbell full.
  void flood(bool fills) {
    thread_ = std::thread([this, fills] {
      while (!over_)
        for (const int fd : counters_) fills ? fill(fd) : empty(fd);
    });
  }

 private:
  static void empty(int fd) {
    std::uint64_t count = 0;
    const iovec into{&count, sizeof count};
    [[maybe_unused]] const auto n = preadv2(fd, &into, 1, -1, RWF_NOWAIT);
  }
  static void fill(int fd) {
    const std::uint64_t one = 1, many = UINT64_MAX / 2;
    pollfd room{fd, POLLOUT, 0};
    for (const std::uint64_t& count : {many, many, one})
      if (poll(&room, 1, 0) == 1) add(fd, count);
  }
  // Clears the flag for non-blocking writes first, so that a write to a full counter waits.
  static void add(int fd, const std::uint64_t& count) {
    const int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    [[maybe_unused]] const auto n = write(fd, &count, sizeof count);
    fcntl(fd, F_SETFL, flags);
  }

  std::vector<int> counters_, others_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

constexpr const char* two_vms =
    "slots = 16\nregion_size = \"512MiB\"\nspare = 4\nstarts_per_second = 1000\nstart_burst = 1000\njail = \"off\"\n"
    "[vm.b]\nslots = 3\njail = \"off\"";

// A way to abuse doorbells whose O_NONBLOCK the worker has cleared.
struct Way {
  const char* name;
  bool fills;  // false: the worker empties the doorbells
};

class Descriptors : public ::testing::TestWithParam<Way> {
 protected:
  void begin(const std::string& worker, const std::string& library) {
    broker_ = std::make_unique<Broker>(two_vms, "", fd_store_.environment(), library, "", "", worker);
    ASSERT_EQ(broker_->ready, "ready\n");
    guest_ = std::make_unique<Client>(broker_->socket_path());
    ASSERT_TRUE(guest_->greet(16));
    const auto taken = guest_->claim();
    ASSERT_TRUE(taken);
    pid_t worker_pid = 0;
    ASSERT_TRUE(eventually([&] { return (worker_pid = worker_of(*broker_, *taken)) > 1; }));
    ASSERT_TRUE(fd_store_.comes_to_hold("t/" + std::to_string(*taken) + "/control"));
    subverted_ = std::make_unique<Subverted>(worker_pid);
    ASSERT_GE(subverted_->counters(), 3U) << "doorbell, interrupt, doorbell of the scheduler";
    subverted_->clear_flags();
    subverted_->flood(GetParam().fills);
  }
  void expect_everybody_is_served() {
    const Outcome told = run_program(IVGPU, {"status", "--runtime-dir", broker_->folder.path()});
    EXPECT_EQ(told.code, 0) << told.text;
    Client other(broker_->folder / "b.sock");
    ASSERT_TRUE(other.greet(3));
    const auto taken = other.claim();
    ASSERT_TRUE(taken) << "another VM's program gets no session";
    ASSERT_TRUE(other.step(*taken, SlotState::Claimed, SlotState::Released));
    EXPECT_TRUE(eventually([&] { return other.word(*taken).state != SlotState::Released; }));
  }
  // Starts workers. Each start and each end of a worker sends a message to the scheduler.
  void start_workers(int count) {
    for (int i = 0; i < count; ++i) {
      const auto taken = guest_->claim();
      ASSERT_TRUE(taken) << "claim " << i << " of " << count << ": no worker starts any more";
      ASSERT_TRUE(guest_->step(*taken, SlotState::Claimed, SlotState::Released));
    }
  }

  FakeFdStore fd_store_;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<Client> guest_;
  std::unique_ptr<Subverted> subverted_;
};

// 560 starts and ends send more messages than the scheduler's queue holds (1,024).
TEST_P(Descriptors, ASubvertedWorkerStopsNoBroker) {
  ASSERT_NO_FATAL_FAILURE(begin(FAKE_ONE, ""));
  ASSERT_NO_FATAL_FAILURE(start_workers(GetParam().fills ? 40 : 560));
  expect_everybody_is_served();
  guest_.reset();
  broker_->terminate();
  broker_->again(fd_store_.environment());
  ASSERT_EQ(broker_->ready, "ready\n");
  expect_everybody_is_served();
}

TEST_P(Descriptors, NorDoesARealOne) {
  ASSERT_NO_FATAL_FAILURE(begin(FAKE_WORKER, SIMULATED_GPU));
  ASSERT_NO_FATAL_FAILURE(start_workers(8));
  expect_everybody_is_served();
}

INSTANTIATE_TEST_SUITE_P(Ways, Descriptors, ::testing::Values(Way{"Empties", false}, Way{"Fills", true}),
                         [](const auto& way) { return way.param.name; });

}  // namespace
