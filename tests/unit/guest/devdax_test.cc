// The region as persistent memory: which devdax device the library uses, what it refuses, and how threads sleep on a
// doorbell channel. Folders simulate devices, a file simulates memory, a terminal simulates the port, and a socket
// simulates the host's side of vsock. The test has the far ends of port and socket.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "guest/region/devdax.h"
#include "guest/region/doorbell_channel.h"
#include "guest/region/region.h"
#include "guest/session/slot/listeners.h"
#include "ring/layout/doorbell_channel.h"
#include "ring/queue/parking.h"
#include "tests/child.h"
#include "tests/deadline.h"
#include "tests/other_side.h"
#include "tests/unit/guest/places.h"

namespace {

using namespace std::chrono_literals;
using guest::DoorbellChannel;
using guest_places::fill, guest_places::Folder;
using Heard = DoorbellChannel::Heard;

constexpr std::uint64_t mib = 1 << 20;

// The broker's end of a virtio-serial port.
class Port {
 public:
  Port() : fd_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    termios mode{};
    tcgetattr(fd_, &mode);
    cfmakeraw(&mode);
    EXPECT_EQ(tcsetattr(fd_, TCSANOW, &mode) | grantpt(fd_) | unlockpt(fd_), 0);
  }
  ~Port() { end(); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  std::string node() const { return ptsname(fd_); }
  void wake() const { EXPECT_EQ(write(fd_, &ring::doorbell_woken, 1), 1); }
  int next() const {
    unsigned char byte = 0;
    return read(fd_, &byte, 1) == 1 ? byte : -1;
  }
  void end() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

class Places {
 public:
  Places() {
    for (const char* name : {"devices", "ports", "nodes"}) std::filesystem::create_directory(folder_ / name);
  }
  void device(const std::string& name, std::uint64_t bytes, const std::string& align = "4096\n") {
    const std::string at = folder_ / "devices/" + name;
    std::filesystem::create_directory(at);
    std::ofstream(at + "/size") << bytes << "\n";
    std::ofstream(at + "/align") << align;
    std::ofstream(folder_ / "nodes/" + name);
    std::filesystem::resize_file(folder_ / "nodes/" + name, bytes);
  }
  // Maps the memory's header, so that the caller can change it.
  ring::RegionHeader& header(const std::string& name) {
    const int fd = open((folder_ / "nodes/" + name).c_str(), O_RDWR | O_CLOEXEC);
    void* at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return *static_cast<ring::RegionHeader*>(at);
  }
  void ours(const std::string& name) { device(name, 64 * mib), fill(header(name), 64 * mib, 2); }
  void port(const std::string& name, const std::string& called, const std::string& target) {
    std::filesystem::create_directory(folder_ / "ports/" + name);
    std::ofstream(folder_ / "ports/" + name + "/name") << called << "\n";
    std::filesystem::create_symlink(target, folder_ / "nodes/" + name);
  }
  guest::DevdaxPlaces paths() const { return {folder_ / "devices", folder_ / "ports", folder_ / "nodes", dial}; }
  std::unique_ptr<guest::Region> find() { return guest::open_devdax(paths(), why, guest::Doorbells::Own); }
  bool says(const char* words) const { return why.find(words) != std::string::npos; }

  std::string why;
  guest::Dial dial = [](std::uint32_t) { return ADD_FAILURE() << "there is no port of vsock", -1; };

 private:
  Folder folder_;
};

TEST(Devdax, NoDevice) {
  Places places;
  places.why = "something";
  EXPECT_EQ(places.find(), nullptr);
  EXPECT_EQ(places.why, "");
}

TEST(Devdax, FoundAmongOthers) {
  Places places;
  places.device("dax0.0", 16 * mib);  // memory that is no region
  places.ours("dax1.0");
  places.device("dax2.0", 64 * mib, "2097152\n");
  const auto region = places.find();
  ASSERT_NE(region, nullptr) << places.why;
  EXPECT_EQ(region->size(), 64 * mib);
  EXPECT_FALSE(region->same_kernel());
  EXPECT_EQ(region->module(), nullptr);
  EXPECT_EQ(region->doorbells(), nullptr) << "the VM has no port";
  region->ring(3);
  EXPECT_EQ(places.header("dax1.0").doorbell_bits[0], 1u << 3);
}

TEST(Devdax, WhatIsNotOursIsRefusedWithAReason) {
  const auto refused = [](auto change) {
    Places places;
    places.ours("dax0.0");
    change(places);
    EXPECT_EQ(places.find(), nullptr);
    return places.why;
  };
  const auto holds_none = [&](auto change) {
    return refused(change).find("holds no region that") != std::string::npos;
  };
  EXPECT_TRUE(holds_none([](Places& p) { p.header("dax0.0").magic = 0; })) << "magic";
  EXPECT_TRUE(holds_none([](Places& p) { ++p.header("dax0.0").version; })) << "version";
  EXPECT_TRUE(holds_none([](Places& p) { p.header("dax0.0").region_bytes *= 2; })) << "size";
  EXPECT_TRUE(holds_none([](Places& p) { p.device("dax0.0", 4 * mib); })) << "too small";
  EXPECT_TRUE(holds_none([](Places& p) { p.device("dax0.0", 0); })) << "empty";
  EXPECT_NE(refused([](Places& p) { p.device("dax0.0", 64 * mib, "2097152\n"); }).find("-a 4k"), std::string::npos);
  EXPECT_NE(refused([](Places& p) { std::filesystem::remove(p.paths().nodes + "/dax0.0"); }).find("cannot open"),
            std::string::npos);
}

TEST(DoorbellChannel, APortOfOursIsTakenAndNoOther) {
  Places places;
  const Port other, ours;
  places.ours("dax0.0");
  places.port("vport1p1", "org.qemu.guest_agent.0", other.node());
  places.port("vport1p2", "org.ivgpu.bell.0", "/nowhere");
  places.port("vport1p3", "org.ivgpu.bell.1", ours.node());
  const auto region = places.find();
  ASSERT_NE(region, nullptr);
  ASSERT_NE(region->doorbells(), nullptr);
  region->ring(ring::peer_of_slot(1));
  EXPECT_EQ(ours.next(), ring::doorbell_look);
  EXPECT_EQ(places.header("dax0.0").doorbell_bits[0], 1u << ring::peer_of_slot(1));
  region->doorbells()->serve(1);
  EXPECT_EQ(ours.next(), 1);
  region->forget();
  EXPECT_EQ(region->doorbells(), nullptr) << "a forked child has none";
}

TEST(DoorbellChannel, ListensUntilTheOtherEndHasGone) {
  Places places;
  Port port;
  std::string why;
  places.port("vport1p1", "org.ivgpu.bell.0", port.node());
  DoorbellChannel doorbells;
  ASSERT_TRUE(doorbells.open(places.paths().ports, places.paths().nodes, why)) << why;
  EXPECT_EQ(doorbells.listen(1'000'000), Heard::TimedOut);
  for (int k = 0; k < 100; ++k) port.wake();  // the doorbells stay unread for a while; one poll consumes all of them
  while (doorbells.listen(1'000'000) == Heard::Signalled) continue;
  port.wake();
  EXPECT_EQ(doorbells.listen(1'000'000'000), Heard::Signalled);
  EXPECT_TRUE(doorbells.works());
  port.end();
  EXPECT_EQ(doorbells.listen(1'000'000'000), Heard::Ended);
  EXPECT_FALSE(doorbells.works());
  doorbells.ring();  // has no effect
}

// The host's vsock port 5000, simulated by a socket whose far end is the broker.
class Host {
 public:
  enum class Answer : std::uint8_t { Takes, Refuses, SaysNothing, IsNotThere };

  Host(Places& places, Answer answer) {
    places.ours("dax0.0");
    places.header("dax0.0").doorbell_port = 5000;
    places.dial = dial;
    answer_ = answer;
    end();
  }
  ~Host() { end(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  // Returns the next byte; -1 if the peer has closed the socket, -2 if the peer sends nothing.
  int next(std::chrono::milliseconds within = test_deadline) const {
    unsigned char byte = 0;
    pollfd there{fd_, POLLIN, 0};
    if (poll(&there, 1, static_cast<int>(within.count())) != 1) return -2;
    return recv(fd_, &byte, 1, 0) == 1 ? byte : -1;
  }
  void wake() const { EXPECT_EQ(send(fd_, &ring::doorbell_woken, 1, MSG_NOSIGNAL), 1); }
  void end() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  static int dial(std::uint32_t port) {
    EXPECT_EQ(port, 5000u);
    if (answer_ == Answer::IsNotThere) return errno = ECONNRESET, -1;
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    fd_ = ends[1];
    if (answer_ == Answer::Takes) {
      EXPECT_EQ(send(fd_, &ring::doorbell_woken, 1, 0), 1);
    }
    if (answer_ == Answer::Refuses) close(std::exchange(fd_, -1));
    return ends[0];
  }

  static inline Answer answer_ = Answer::Takes;
  static inline int fd_ = -1;
};

TEST(DoorbellChannel, VsockIsTakenBeforeAPort) {
  Places places;
  Host host(places, Host::Answer::Takes);
  places.port("vport1p1", "org.ivgpu.bell.0", "/nowhere");
  const auto region = places.find();
  ASSERT_NE(region, nullptr) << places.why;
  ASSERT_NE(region->doorbells(), nullptr);
  EXPECT_EQ(region->doorbells()->listen(1'000'000), Heard::TimedOut) << "that it was taken is no wake-up";
  region->ring(ring::peer_of_slot(1));
  EXPECT_EQ(host.next(), ring::doorbell_look);
  EXPECT_EQ(places.header("dax0.0").doorbell_bits[0], 1u << ring::peer_of_slot(1));
  region->doorbells()->serve(1);
  EXPECT_EQ(host.next(), 1);
  host.wake();
  EXPECT_EQ(region->doorbells()->listen(1'000'000'000), Heard::Signalled);
}

TEST(DoorbellChannel, WithoutVsockAPortIsTaken) {
  for (const auto answer : {Host::Answer::IsNotThere, Host::Answer::Refuses, Host::Answer::SaysNothing}) {
    Places places;
    const Port port;
    Host host(places, answer);
    places.port("vport1p1", "org.ivgpu.bell.0", port.node());
    const auto region = places.find();
    ASSERT_NE(region, nullptr) << places.why;
    ASSERT_NE(region->doorbells(), nullptr);
    region->ring(0);
    EXPECT_EQ(port.next(), ring::doorbell_look);
    if (answer == Host::Answer::SaysNothing) {
      EXPECT_EQ(host.next(), -1) << "the connection was left open";
    }
  }
}

TEST(DoorbellChannel, WithoutVsockAndPortAProgramUsesTimedSleeps) {
  Places places;
  Host host(places, Host::Answer::Refuses);
  const auto region = places.find();
  ASSERT_NE(region, nullptr) << places.why;
  EXPECT_EQ(region->doorbells(), nullptr);
  region->ring(3);
  EXPECT_EQ(places.header("dax0.0").doorbell_bits[0], 1u << 3);
}

TEST(DoorbellChannel, ABrokerThatHasEndedHurtsNobody) {
  Places places;
  Host host(places, Host::Answer::Takes);
  const auto region = places.find();
  ASSERT_NE(region->doorbells(), nullptr);
  host.end();
  region->ring(0);  // the call raises no SIGPIPE
  EXPECT_EQ(region->doorbells()->listen(1'000'000'000), Heard::Ended);
  EXPECT_EQ(region->doorbells(), nullptr);
  region->ring(0);
}

// The broker treats the end of the connection as the end of the process.
TEST(DoorbellChannel, AForkedChildNeitherSharesNorKeepsNorEndsTheConnection) {
  Places places;
  Host host(places, Host::Answer::Takes);
  auto region = places.find();
  ASSERT_NE(region->doorbells(), nullptr);
  int go[2];
  ASSERT_EQ(pipe2(go, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    host.end();
    region->forget();
    region->ring(0);
    char byte = 0;
    close(go[1]);
    _exit(read(go[0], &byte, 1) == 0 ? 0 : 1);  // the child outlives the parent's connection
  }
  close(go[0]);
  EXPECT_EQ(host.next(300ms), -2) << "the child has rung, or has ended the connection";
  region->ring(0);
  EXPECT_EQ(host.next(), ring::doorbell_look);
  region.reset();
  EXPECT_EQ(host.next(), -1) << "the child has it open";
  close(go[1]);
  EXPECT_EQ(wait_for_child(child), 0);
}

TEST(Vsock, ReportsMissingTools) {
  const auto said = [](guest::Dial dial) {
    std::string why;
    EXPECT_EQ(guest::open_vsock(5000, dial, why), -1);
    return why;
  };
  EXPECT_NE(said([](std::uint32_t) { return errno = EAFNOSUPPORT, -1; }).find("modprobe"), std::string::npos);
  EXPECT_NE(said([](std::uint32_t) { return errno = ENODEV, -1; }).find("no vhost-vsock device"), std::string::npos);
  EXPECT_NE(said([](std::uint32_t) { return errno = ECONNRESET, -1; }).find("port 5000 of the host: no ivgpud listens"),
            std::string::npos);
  EXPECT_NE(said([](std::uint32_t) { return errno = EPERM, -1; }).find("seccomp"), std::string::npos);
}

TEST(DoorbellChannel, NoneToBeHad) {
  Places places;
  std::string why;
  DoorbellChannel doorbells;
  EXPECT_FALSE(doorbells.open(places.paths().ports, places.paths().nodes, why));
  EXPECT_NE(why.find("no virtio-serial port whose name begins with org.ivgpu.bell"), std::string::npos) << why;
  places.port("vport1p1", "org.ivgpu.bell.0", "/nowhere");
  EXPECT_FALSE(doorbells.open(places.paths().ports, places.paths().nodes, why));
  EXPECT_NE(why.find("cannot open"), std::string::npos) << why;
  EXPECT_FALSE(doorbells.works());
}

// Each thread sleeps until it gets its own number, and a worker wakes all threads through one channel. If a wake-up
// were lost, its thread would sleep for the whole time limit.
TEST(Listeners, NobodysWakeUpIsLost) {
  constexpr int sleepers = 4, rounds = 3000;
  struct alignas(64) Line {
    std::uint32_t asleep = 0;
    std::atomic<int> done{0}, wanted{0};
  };
  Places places;
  const Port port;
  std::string why;
  places.port("vport1p1", "org.ivgpu.bell.0", port.node());
  DoorbellChannel doorbells;
  ASSERT_TRUE(doorbells.open(places.paths().ports, places.paths().nodes, why));
  guest::Listeners listeners;
  std::vector<Line> lines(sleepers);
  std::vector<std::thread> threads;
  for (Line& line : lines)
    threads.emplace_back([&] {
      ring::Parking parking(other_side::shared(line.asleep));
      for (int round = 1; round <= rounds; ++round) {
        line.wanted.store(round);
        while (line.done.load() < round) {
          if (!parking.may_sleep([&] { return line.done.load() >= round; }, ring::Asleep::ByDoorbell)) break;
          const auto start = std::chrono::steady_clock::now();
          EXPECT_TRUE(listeners.sleep(doorbells, parking.word(), 2, std::chrono::nanoseconds(test_deadline).count()));
          EXPECT_LT(std::chrono::steady_clock::now() - start, test_deadline);
          parking.woke();
        }
      }
    });
  std::thread worker([&] {
    for (bool more = true; more;) {
      more = false;
      for (Line& line : lines) {
        const int wanted = line.wanted.load();
        more = more || line.done.load() < rounds;
        if (line.done.load() == wanted) continue;
        line.done.store(wanted);
        if (ring::Parking(other_side::shared(line.asleep)).must_wake() != ring::Asleep::No) port.wake();
      }
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  worker.join();
}

TEST(Listeners, AWordThatHasChangedAndAnEndAndATimeLimit) {
  Places places;
  Port port;
  std::string why;
  places.port("vport1p1", "org.ivgpu.bell.0", port.node());
  DoorbellChannel doorbells;
  ASSERT_TRUE(doorbells.open(places.paths().ports, places.paths().nodes, why));
  guest::Listeners listeners;
  std::uint32_t word = 1;
  const auto shared = other_side::shared(word);
  EXPECT_TRUE(listeners.sleep(doorbells, shared, 2, 1'000'000'000'000));
  EXPECT_TRUE(listeners.sleep(doorbells, shared, 1, 1'000'000));
  port.end();
  EXPECT_FALSE(listeners.sleep(doorbells, shared, 1, 1'000'000'000'000));
}

}  // namespace
