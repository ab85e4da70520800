// Finding and refusing regions: a region in anonymous memory, sockets of servers that are no brokers, and a sysfs tree
// of plain files. This file also tests two checks at the start: whether a mapping is cached, and whether a slot's owner
// is dead.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <vector>

#include "guest/region/cache_probe.h"
#include "guest/region/region.h"
#include "guest/region/slot_owner.h"
#include "guest/session/session.h"
#include "tests/child.h"
#include "tests/deadline.h"
#include "tests/other_side.h"
#include "tests/unit/guest/places.h"

namespace {

using guest_places::fill, guest_places::Folder;

constexpr std::uint64_t mib = 1 << 20;

// ---- the header ----------------------------------------------------------------------------------------------------

class MemoryRegion final : public guest::Region {
 public:
  explicit MemoryRegion(std::uint64_t bytes) : fd_(memfd_create("region", MFD_CLOEXEC)), bytes_(bytes) {
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(bytes)), 0);
  }
  ~MemoryRegion() override { close(fd_); }
  std::byte* map(std::uint64_t offset, std::size_t bytes, void* address) override {
    void* at = mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(offset));
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  }
  void ring(std::uint32_t) override {}
  std::uint64_t size() const override { return bytes_; }
  std::uint32_t peer() const override { return ring::first_guest_peer; }
  bool same_kernel() const override { return true; }
  void forget() override {}

 private:
  int fd_;
  std::uint64_t bytes_;
};

bool accepted(std::uint64_t bytes, const std::function<void(ring::RegionHeader&)>& change) {
  MemoryRegion region(bytes);
  auto* h = reinterpret_cast<ring::RegionHeader*>(region.map(0, 4096, nullptr));
  fill(*h, bytes, 2);
  change(*h);
  munmap(h, 4096);
  const auto found = guest::check_region(region);
  if (found) found->unmap();
  return found.has_value();
}

TEST(CheckRegion, AcceptsWhatTheBrokerMakes) {
  EXPECT_TRUE(accepted(64 * mib, [](auto&) {}));
  EXPECT_TRUE(accepted(32 * mib, [](auto& h) { fill(h, 32 * mib, 1); }));
}

TEST(CheckRegion, RefusesEveryFieldThatIsWrong) {
  const std::pair<const char*, std::function<void(ring::RegionHeader&)>> changes[] = {
      {"no magic", [](auto& h) { h.magic = 0; }},
      {"another magic", [](auto& h) { h.magic = ring::slot_magic; }},
      {"older version", [](auto& h) { h.version = ring::layout_version - 1; }},
      {"newer version", [](auto& h) { h.version = ring::layout_version + 1; }},
      {"half the size", [](auto& h) { h.region_bytes /= 2; }},
      {"twice the size", [](auto& h) { h.region_bytes *= 2; }},
      {"no slots", [](auto& h) { h.slot_count = 0; }},
      {"too many slots", [](auto& h) { h.slot_count = ring::max_slots + 1; }},
      {"all slots", [](auto& h) { h.slot_count = ~0u; }},
      {"slots of nothing", [](auto& h) { h.slot_bytes = 0; }},
      {"slots without an arena", [](auto& h) { h.slot_bytes = ring::arena_offset; }},
      {"slots larger than the region", [](auto& h) { h.slot_bytes = 128 * mib; }},
      {"slots past the end", [](auto& h) { h.slot_bytes = 40 * mib; }},
      {"slots whose sum overflows", [](auto& h) { h.slot_bytes = 1ULL << 63; }},
      {"first slot past the end", [](auto& h) { h.first_slot = 64 * mib; }},
      {"first slot before 0", [](auto& h) { h.first_slot = ~0ULL - 16 * mib; }},
      {"first slot over the directory", [](auto& h) { h.first_slot = 0; }},
  };
  for (const auto& [name, change] : changes) EXPECT_FALSE(accepted(64 * mib, change)) << name;
}

TEST(CheckRegion, ReportsThatTheBrokerIsOfAnotherVersion) {
  const auto end_in_words = [](std::uint32_t version) {
    testing::internal::CaptureStderr();
    EXPECT_FALSE(accepted(64 * mib, [&](auto& h) { h.version = version; }));
    return testing::internal::GetCapturedStderr();
  };
  const std::string ours = std::to_string(ring::layout_version);
  EXPECT_EQ(end_in_words(77),
            "ivgpu: the broker is of another version: its region has layout 77, this library layout " + ours +
                "; upgrade ivgpu-guest in this VM\n");
  EXPECT_EQ(end_in_words(1), "ivgpu: the broker is of another version: its region has layout 1, this library layout " +
                                 ours + "; upgrade ivgpu-host on the host\n");
}

// The library refuses a region smaller than its directory before it reads the directory, since the page may not exist.
TEST(CheckRegion, RefusesARegionThatIsTooSmallToHoldASlot) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{4096}, 1 * mib, 2 * mib, 7 * mib,
                                    ring::first_slot_offset + ring::min_slot_bytes - 1}) {
    MemoryRegion region(bytes);
    EXPECT_FALSE(guest::check_region(region)) << bytes;
  }
}

// Simulates a program of the VM that changes the header after the library has checked it. The change happens when the
// library asks for its own id, on the way to a slot. The class also records all mappings.
class ChangedLater final : public guest::Region {
 public:
  explicit ChangedLater(std::vector<std::pair<std::uint64_t, std::uint64_t>>& mapped) : mapped_(mapped) {
    at_ = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    fill(header(), bytes, 2);
    for (std::uint32_t slot : {0u, 1u})
      other_side::entry(at_, slot).state = ring::SlotWord{1, ring::SlotState::Ready}.word();
  }
  ~ChangedLater() override { munmap(at_, bytes); }
  std::byte* map(std::uint64_t offset, std::size_t n, void* address) override {
    mapped_.emplace_back(offset, n);
    return address == nullptr && offset <= bytes && n <= bytes - offset ? at_ + offset : nullptr;
  }
  void ring(std::uint32_t) override {}
  std::uint64_t size() const override { return bytes; }
  std::uint32_t peer() const override {
    header().slot_count = ~0u;  // the directory would end far beyond the mapping
    header().first_slot = ring::first_slot_offset + 1 * mib;
    header().slot_bytes = 1 * mib;  // smaller than an arena's offset
    return ring::first_guest_peer;
  }
  bool same_kernel() const override { return true; }
  bool same_address_space() const override { return true; }
  void forget() override {}

  static constexpr std::uint64_t bytes = 64 * mib;

 private:
  ring::RegionHeader& header() const { return other_side::region(at_); }
  std::vector<std::pair<std::uint64_t, std::uint64_t>>& mapped_;
  std::byte* at_;
};

TEST(CheckRegion, WhatIsCheckedIsWhatIsUsed) {
  const std::uint64_t slot = ring::slot_bytes_for(ChangedLater::bytes, 2);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> mapped;
  EXPECT_EQ(guest::Session::open(std::make_unique<ChangedLater>(mapped)), nullptr);  // no worker has filled the slots
  ASSERT_EQ(mapped.size(), 3u);
  EXPECT_EQ(mapped[1].first, ring::first_slot_offset);
  EXPECT_EQ(mapped[2].first, ring::first_slot_offset + slot);
}

TEST(CheckRegion, WhatWasReadStaysAsItWas) {
  MemoryRegion region(64 * mib);
  auto* h = reinterpret_cast<ring::RegionHeader*>(region.map(0, 4096, nullptr));
  fill(*h, 64 * mib, 2);
  const auto layout = guest::check_region(region);
  ASSERT_TRUE(layout);
  std::memset(static_cast<void*>(h), 0xff, sizeof *h);
  EXPECT_EQ(layout->slot_count, 2u);
  EXPECT_EQ(layout->first_slot, ring::first_slot_offset);
  EXPECT_EQ(layout->slot_bytes, ring::slot_bytes_for(64 * mib, 2));
  EXPECT_FALSE(layout->no_doorbell);
  munmap(h, 4096);
  layout->unmap();
}

// ---- loopback ------------------------------------------------------------------------------------------------------

// Listens at a path, and passes the first connection to `talk`.
class Server {
 public:
  Server(const std::string& path, std::function<void(int)> talk) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    thread_ = std::thread([this, talk = std::move(talk)] {
      const int peer = accept(fd_, nullptr, nullptr);
      if (peer < 0) return;
      talk(peer);
      close(peer);
    });
  }
  ~Server() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }

 private:
  int fd_;
  std::thread thread_;
};

void send_number(int socket, std::int64_t value, int fd = -1) {
  iovec part{&value, sizeof value};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control, message.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

TEST(Loopback, NobodyListens) {
  const Folder folder;
  EXPECT_EQ(guest::connect_region((folder / "no.sock").c_str()), nullptr);
  EXPECT_EQ(guest::connect_region(std::string(200, 'x').c_str()), nullptr);
  EXPECT_EQ(guest::connect_region(folder.path().c_str()), nullptr);
}

TEST(Loopback, WhatListensIsNoBroker) {
  const int memory = memfd_create("m", MFD_CLOEXEC);
  const std::function<void(int)> talks[] = {
      [](int) {},
      [](int s) { [[maybe_unused]] const auto n = write(s, "HTTP/1.1 400 Bad Request\r\n\r\n", 28); },
      [](int s) { send_number(s, 7); },
      [](int s) { send_number(s, 0), send_number(s, -5); },
      // The server sends no memory descriptor.
      [](int s) { send_number(s, 0), send_number(s, 65), send_number(s, -1); },
      [memory](int s) { send_number(s, 0), send_number(s, 65), send_number(s, 3, memory); },
      // The server sends no peers.
      [memory](int s) { send_number(s, 0), send_number(s, 65), send_number(s, -1, memory); },
      [memory](int s) { send_number(s, 0), send_number(s, 65), send_number(s, -1, memory), send_number(s, 1); },
      [](int s) { [[maybe_unused]] const auto n = write(s, "\0\0\0", 3); },
  };
  for (const auto& talk : talks) {
    const Folder folder;
    const Server server(folder / "s.sock", talk);
    EXPECT_EQ(guest::connect_region((folder / "s.sock").c_str()), nullptr);
  }
  close(memory);
}

TEST(Loopback, WhatListensIsSilent) {
  const Folder folder;
  std::atomic<bool> done{false};
  const Server server(folder / "s.sock", [&](int) {
    while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  });
  testing::internal::CaptureStderr();
  EXPECT_EQ(guest::connect_region((folder / "s.sock").c_str()), nullptr);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("has greeted within 5 s: see whether ivgpud is started again"), std::string::npos) << said;
  done = true;
}

TEST(Loopback, ABrokersGreeting) {
  const Folder folder;
  const int memory = memfd_create("m", MFD_CLOEXEC), doorbell = memfd_create("bell", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(memory, 8 * mib), 0);
  const Server server(folder / "s.sock", [&](int s) {
    send_number(s, 0), send_number(s, 70), send_number(s, -1, memory);
    send_number(s, 0, doorbell), send_number(s, 1, doorbell), send_number(s, 70, doorbell);
  });
  const auto region = guest::connect_region((folder / "s.sock").c_str());
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->size(), 8 * mib);
  EXPECT_EQ(region->peer(), 70u);
  EXPECT_TRUE(region->same_kernel());
  region->ring(1);
  region->ring(12345);  // there is no such peer
  std::uint64_t rung = 0;
  EXPECT_EQ(pread(doorbell, &rung, sizeof rung, 0), 8);  // a plain file in place of the eventfd keeps the value
  EXPECT_EQ(rung, 1u);
  std::byte* at = region->map(4096, 4096, nullptr);
  ASSERT_NE(at, nullptr);
  EXPECT_EQ(region->map(0, 4096, at), nullptr);  // never over an existing mapping
  munmap(at, 4096);
  EXPECT_EQ(region->map(0, 4096, at), at);
  munmap(at, 4096);
  close(memory), close(doorbell);
}

// ---- ivshmem -------------------------------------------------------------------------------------------------------

class Sysfs {
 public:
  std::string device(const std::string& name, const char* vendor, const char* id) {
    const std::string at = folder_ / name;
    std::filesystem::create_directory(at);
    write(at + "/vendor", vendor), write(at + "/device", id), write(at + "/enable", "0\n");
    return at;
  }
  std::string ivshmem(const std::string& name, std::uint64_t bytes, bool ours) {
    const std::string at = device(name, "0x1af4\n", "0x1110\n");
    write(at + "/resource0", std::string(4096, '\0'));
    write(at + "/resource2", "");
    std::filesystem::resize_file(at + "/resource2", bytes);
    if (!ours) return at;
    const int fd = open((at + "/resource2").c_str(), O_RDWR | O_CLOEXEC);
    void* header = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    fill(*static_cast<ring::RegionHeader*>(header), bytes, 1);
    munmap(header, 4096);
    return at;
  }
  static void write(const std::string& file, const std::string& text) { std::ofstream(file) << text; }
  static std::string read(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::unique_ptr<guest::Region> open_region() const { return guest::open_ivshmem(folder_.path().c_str(), why); }
  mutable std::string why;

 private:
  Folder folder_;
};

TEST(Ivshmem, NoDevices) {
  std::string why;
  EXPECT_EQ(Sysfs().open_region(), nullptr);
  EXPECT_EQ(guest::open_ivshmem("/no/such/folder", why), nullptr);
  EXPECT_EQ(why.rfind("this machine has no ivshmem device (PCI 1af4:1110), and IVGPU_REGION names no ", 0), 0u) << why;
}

TEST(Ivshmem, FoundAmongOthers) {
  Sysfs sysfs;
  sysfs.device("0000:00:01.0", "0x8086\n", "0x1110\n");
  sysfs.device("0000:00:02.0", "0x1af4\n", "0x1000\n");
  sysfs.ivshmem("0000:00:03.0", 16 * mib, false);  // shared memory that is no region
  const std::string ours = sysfs.ivshmem("0000:00:04.0", 32 * mib, true);
  const auto region = sysfs.open_region();
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->size(), 32 * mib);
  EXPECT_FALSE(region->same_kernel());
  EXPECT_EQ(Sysfs::read(ours + "/enable")[0], '1');  // the device's memory space was disabled
}

TEST(Ivshmem, DoorbellAndId) {
  Sysfs sysfs;
  const std::string ours = sysfs.ivshmem("0000:00:04.0", 32 * mib, true);
  std::string registers(4096, '\0');
  registers[8] = 66;
  Sysfs::write(ours + "/resource0", registers);
  const auto region = sysfs.open_region();
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->peer(), 66u);
  region->ring(ring::peer_of_slot(2));
  const std::string after = Sysfs::read(ours + "/resource0");
  std::uint32_t doorbell = 0;
  std::memcpy(&doorbell, after.data() + 12, 4);
  EXPECT_EQ(doorbell, 3u << 16);
}

// An ivshmem-plain device has registers as well, but its doorbell register has no effect.
TEST(Ivshmem, WithoutADoorbellBitsInTheHeaderRing) {
  Sysfs sysfs;
  const std::string ours = sysfs.ivshmem("0000:00:04.0", 32 * mib, true);
  const int fd = open((ours + "/resource2").c_str(), O_RDWR | O_CLOEXEC);
  void* at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  auto& header = *static_cast<ring::RegionHeader*>(at);
  header.no_doorbell = 1;
  const auto region = sysfs.open_region();
  ASSERT_NE(region, nullptr);
  region->ring(ring::peer_broker);
  region->ring(ring::peer_of_slot(2));
  region->ring(ring::peer_of_slot(63));
  EXPECT_EQ(header.doorbell_bits[0], 1u | 1u << 3);
  EXPECT_EQ(header.doorbell_bits[1], 1u);
  const std::string registers = Sysfs::read(ours + "/resource0");
  EXPECT_EQ(registers.find_first_not_of('\0'), std::string::npos) << "a register was written";
  munmap(at, 4096);
}

TEST(Ivshmem, WrongMagicAndWrongSize) {
  Sysfs sysfs;
  sysfs.ivshmem("0000:00:03.0", 16 * mib, false);
  sysfs.ivshmem("0000:00:05.0", 0, false);
  sysfs.ivshmem("0000:00:06.0", 1 * mib, false);
  EXPECT_EQ(sysfs.open_region(), nullptr);
  EXPECT_NE(sysfs.why.find(" holds no region that this library can use: start ivgpud, of the same"), std::string::npos);
}

TEST(Ivshmem, FilesThatCannotBeOpened) {
  Sysfs sysfs;
  const std::string no_bar2 = sysfs.ivshmem("0000:00:03.0", 32 * mib, true);
  std::filesystem::remove(no_bar2 + "/resource2");
  const std::string no_bar0 = sysfs.ivshmem("0000:00:04.0", 32 * mib, true);
  std::filesystem::remove(no_bar0 + "/resource0");
  const std::string garbage = sysfs.device("0000:00:05.0", "none of your business", "");
  std::filesystem::create_directory(garbage + "/resource2");
  EXPECT_EQ(sysfs.open_region(), nullptr);
}

// The case of a container with the machine's sysfs and its own /dev.
TEST(Ivshmem, ADeviceOfTheKernelModuleWithoutItsNode) {
  Sysfs sysfs;
  const std::string ours = sysfs.ivshmem("0000:00:03.0", 32 * mib, true);
  std::filesystem::create_symlink("../../../bus/pci/drivers/ivgpu", ours + "/driver");
  EXPECT_EQ(sysfs.open_region(), nullptr);
  EXPECT_EQ(sysfs.why, "the kernel module has the ivshmem device " + ours +
                           ", and here is no node of it: give the program /dev/ivgpu0 (docs/guest-module.md)");
  std::filesystem::remove(ours + "/driver");
  std::filesystem::create_symlink("../../../bus/pci/drivers/uio_pci_generic", ours + "/driver");
  EXPECT_NE(sysfs.open_region(), nullptr) << sysfs.why;
}

TEST(Ivshmem, WithoutPermission) {
  Sysfs sysfs;
  const std::string closed = sysfs.ivshmem("0000:00:03.0", 32 * mib, true);
  std::filesystem::permissions(closed + "/resource0", std::filesystem::perms::none);
  std::filesystem::permissions(std::filesystem::path(closed).parent_path(), std::filesystem::perms::all);
  // Root may open any file, so the child changes to another user.
  const auto open_as_nobody = [&] {
    if (geteuid() == 0 && setuid(65534) != 0) return 3;
    const bool none = sysfs.open_region() == nullptr;
    const std::string file = closed + "/resource0";
    const bool said = sysfs.why.find("cannot open " + file + ": Permission denied (mode 0000, user ") == 0 &&
                      sysfs.why.find(", group ") != std::string::npos &&
                      sysfs.why.find("; run the program as root, or let a group have the device by 60-ivgpu.rules") !=
                          std::string::npos;
    if (!said) std::fprintf(stderr, "said: %s\n", sysfs.why.c_str());
    return none && said ? 0 : 1;
  };
  EXPECT_EQ(run_in_child(open_as_nobody), 0);
}

// ---- whether a mapping is cached -----------------------------------------------------------------------------------

std::uint64_t fake_now, fake_step;
std::uint64_t fake_clock() { return fake_now += fake_step; }

TEST(CacheProbe, ReportsTheTimeOfALoadByTheGivenClock) {
  alignas(64) static std::byte page[4096] = {};
  fake_step = 64 * 3;  // 64 lines between two readings of the clock
  EXPECT_DOUBLE_EQ(guest::nanoseconds_per_line(page, sizeof page, fake_clock), 3.0);
  EXPECT_FALSE(guest::uncached(3.0));
  fake_step = 64 * 250;
  EXPECT_DOUBLE_EQ(guest::nanoseconds_per_line(page, sizeof page, fake_clock), 250.0);
  EXPECT_TRUE(guest::uncached(250.0));
}

// The best of several passes counts, so one interruption does not change the result.
std::uint64_t interrupted_clock() {
  static int call = 0;
  return fake_now += ++call == 2 ? 1'000'000 : 64 * 4;
}

TEST(CacheProbe, TheBestPassCounts) {
  alignas(64) static std::byte page[4096] = {};
  EXPECT_DOUBLE_EQ(guest::nanoseconds_per_line(page, sizeof page, interrupted_clock), 4.0);
}

TEST(CacheProbe, EveryByteValueIsHarmless) {
  alignas(64) static std::byte page[4096];
  std::memset(page, 0xff, sizeof page);
  fake_step = 64;
  EXPECT_DOUBLE_EQ(guest::nanoseconds_per_line(page, sizeof page, fake_clock), 1.0);
}

// ---- owners --------------------------------------------------------------------------------------------------------

// A child process that runs until the test ends it.
class Child {
 public:
  Child() {
    if (pipe2(pipe_, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      close(pipe_[1]);
      char byte;
      while (read(pipe_[0], &byte, 1) > 0) {
      }
      _exit(0);
    }
    close(pipe_[0]);
  }
  ~Child() { end(); }
  void end() {
    if (pid_ <= 0) return;
    end_unseen();
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // The child exits and stays a zombie.
  void end_unseen() {
    if (pipe_[1] < 0) return;
    close(pipe_[1]);
    pipe_[1] = -1;
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  ring::SlotOwner owner() const {
    ring::SlotOwner owner = guest::this_process(1);
    owner.pid = static_cast<std::uint32_t>(pid_);
    std::ifstream in("/proc/" + std::to_string(pid_) + "/stat");
    std::string text{std::istreambuf_iterator<char>(in), {}};
    std::istringstream rest(text.substr(text.rfind(')') + 1));
    std::string field;
    for (int i = 3; i <= 22; ++i) rest >> field;
    owner.start_time = std::stoull(field);
    return owner;
  }

 private:
  int pipe_[2] = {-1, -1};
  pid_t pid_ = -1;
};

TEST(Owner, OfThisProcess) {
  const ring::SlotOwner self = guest::this_process(77);
  EXPECT_EQ(self.pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(self.peer, 77u);
  EXPECT_NE(self.boot, 0u);
  EXPECT_NE(self.pid_space, 0u);
  EXPECT_NE(self.start_time, 0u);
  EXPECT_FALSE(guest::certainly_dead(self, self));
}

TEST(Owner, AChildLivesThenIsDead) {
  Child child;
  const ring::SlotOwner owner = child.owner(), self = guest::this_process(1);
  EXPECT_FALSE(guest::certainly_dead(owner, self));
  child.end();
  EXPECT_TRUE(guest::certainly_dead(owner, self));
}

TEST(Owner, AChildThatNobodyWaitedForIsDead) {
  Child child;
  const ring::SlotOwner owner = child.owner(), self = guest::this_process(1);
  child.end_unseen();
  EXPECT_EQ(kill(static_cast<pid_t>(owner.pid), 0), 0);  // the pid is still in use
  EXPECT_TRUE(guest::certainly_dead(owner, self));
}

TEST(Owner, AProcessWhoseFirstThreadHasEndedLives) {
  int tells[2], stays[2];
  ASSERT_TRUE(pipe(tells) == 0 && pipe(stays) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    close(stays[1]);
    const ring::SlotOwner itself = guest::this_process(1);
    if (write(tells[1], &itself, sizeof itself) != sizeof itself) _exit(1);
    std::thread([&] {
      char byte;
      _exit(read(stays[0], &byte, 1) == 0 ? 0 : 1);
    }).detach();
    syscall(SYS_exit, 0);
  }
  ring::SlotOwner owner{};
  EXPECT_EQ(read(tells[0], &owner, sizeof owner), static_cast<ssize_t>(sizeof owner));
  const auto first_has_ended = [&] {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return text.find(") Z ") != std::string::npos;
  };
  EXPECT_TRUE(before_deadline(first_has_ended));
  const ring::SlotOwner self = guest::this_process(1);
  EXPECT_EQ(owner.pid_space, self.pid_space);
  EXPECT_FALSE(guest::certainly_dead(owner, self));
  for (const int fd : {tells[0], tells[1], stays[0], stays[1]}) close(fd);
  waitpid(pid, nullptr, 0);
}

TEST(Owner, AnotherProcessOfTheSameNumberIsNotTheOwner) {
  const Child child;
  ring::SlotOwner owner = child.owner();
  --owner.start_time;
  EXPECT_TRUE(guest::certainly_dead(owner, guest::this_process(1)));
}

TEST(Owner, OfAnotherStartOrNamespaceIsNotJudged) {
  Child child;
  const ring::SlotOwner owner = child.owner(), self = guest::this_process(1);
  child.end();
  ring::SlotOwner other = owner;
  ++other.boot, ++other.peer;
  EXPECT_FALSE(guest::certainly_dead(other, self));
  other = owner;
  ++other.pid_space;
  EXPECT_FALSE(guest::certainly_dead(other, self));
  EXPECT_FALSE(guest::certainly_dead({}, self));
  other = owner;
  other.pid = 0;
  EXPECT_FALSE(guest::certainly_dead(other, self));
}

TEST(Owner, OfAnEarlierStartOfTheSameMachineIsDead) {
  ring::SlotOwner self = guest::this_process(66);
  self.pid_space = 0xeffffffc;
  ring::SlotOwner owner = self;
  EXPECT_FALSE(guest::certainly_dead(owner, self));
  ++owner.boot;
  EXPECT_TRUE(guest::certainly_dead(owner, self));
  ring::SlotOwner other = owner;
  ++other.peer;  // another connection means another machine, or another process of this machine
  EXPECT_FALSE(guest::certainly_dead(other, self));
  other = owner;
  other.boot = 0;  // the owner's boot id is unknown
  EXPECT_FALSE(guest::certainly_dead(other, self));
  --self.pid_space;  // a process in a container, whose start time may differ
  other = owner;
  --other.pid_space;
  EXPECT_FALSE(guest::certainly_dead(other, self));
}

TEST(Owner, PidsThatAreNoPidsAreNotSignalled) {
  const ring::SlotOwner self = guest::this_process(1);
  ring::SlotOwner owner = self;
  for (const std::uint32_t pid : {0x80000000u, ~0u, ~0u - 5}) {  // negative pids are process groups to kill(2)
    owner.pid = pid;
    static_cast<void>(guest::certainly_dead(owner, self));  // the check sends no signal, so this process continues
  }
}

}  // namespace
