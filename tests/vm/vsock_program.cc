// A program of a machine that takes a doorbell channel through its kernel's vsock, for vsock.sh. With vsock_loopback it
// connects from CID 1, and the machine is its host as well.
//
// usage: vsock_program FILE [SECONDS]  claims a slot of the region in FILE, a file behind a label (ring::devdax_start),
// gets 1000
//                                      answers, or answers for that time, and prints how fast they came. Then a child
//                                      that
//                                      has another slot is killed; the child's slot must become free while this program
//                                      keeps its own slot
//        vsock_program --refused PORT  expects that the port refuses the connection
//        vsock_program --absent PORT   expects that no process listens on the port
// Exit codes: 0 passed, 1 failed, 2 usage.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "guest/region/doorbell.h"
#include "guest/region/doorbell_channel.h"
#include "guest/region/slot_owner.h"
#include "guest/session/slot/slot_step.h"
#include "ring/layout/doorbell_channel.h"
#include "ring/layout/region_view.h"

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
using Heard = guest::DoorbellChannel::Heard;

constexpr std::uint64_t second_ns = 1'000'000'000;

[[noreturn]] void fail(const std::string& what) {
  std::printf("vsock_program: %s\n", what.c_str());
  std::exit(1);
}

ring::RegionView region_of(const char* file) {
  const int fd = open(file, O_RDWR | O_CLOEXEC);
  void* at = mmap(nullptr, ring::region_header_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, ring::devdax_start);
  if (at == MAP_FAILED) fail(std::string(file) + " cannot be mapped");
  return ring::RegionView(static_cast<std::byte*>(at));
}

// A process with a slot and a channel.
class Program {
 public:
  explicit Program(ring::RegionView region) : region_(region) {
    std::string why;
    const std::uint32_t port = region.header()[&ring::RegionHeader::doorbell_port].load(std::memory_order_acquire);
    if (!doorbells_.connect(port, guest::dial_host, why)) fail(why);
    const auto until = Clock::now() + 20s;
    while (!claim())
      if (Clock::now() > until) fail("no slot is Ready");
    guest::ring_by_header(region.header(), ring::peer_broker);
    doorbells_.ring();
    doorbells_.serve(slot_);
    if (doorbells_.listen(20 * second_ns) != Heard::Signalled) fail("the slot's name is not answered");
  }
  std::uint32_t slot() const { return slot_; }
  std::uint32_t word() const { return entry()[&ring::SlotEntry::state].load(std::memory_order_acquire); }
  // The median time in us from naming a slot to the answer: of 1000 attempts, or of as many as fit into `time`.
  double answered(std::chrono::seconds time = 0s) {
    std::vector<double> all;
    for (const auto until = Clock::now() + time; all.size() < 1000 || Clock::now() < until;) {
      const auto start = Clock::now();
      doorbells_.serve(slot_);
      if (doorbells_.listen(20 * second_ns) != Heard::Signalled) fail("a name is not answered");
      all.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    return *middle;
  }
  void forget() { doorbells_.forget(); }

 private:
  ring::Shared<ring::SlotEntry> entry() const { return region_.entry(slot_); }
  bool claim() {
    const auto slots = region_.header()[&ring::RegionHeader::slot_count].load(std::memory_order_relaxed);
    for (slot_ = 0; slot_ < slots; ++slot_)
      if (guest::claim(entry(), guest::this_process(0))) return true;
    std::this_thread::sleep_for(10ms);
    return false;
  }

  ring::RegionView region_;
  guest::DoorbellChannel doorbells_;
  std::uint32_t slot_ = 0;
};

int taken(const char* file, std::chrono::seconds time) {
  const ring::RegionView region = region_of(file);
  int said[2];
  if (pipe(said) != 0) fail("pipe");
  const pid_t child = fork();
  if (child == 0) {
    const Program held(region);
    const std::uint32_t slot = held.slot();
    if (write(said[1], &slot, sizeof slot) != sizeof slot) _exit(1);
    pause();
  }
  std::uint32_t slot = 0;
  if (read(said[0], &slot, sizeof slot) != sizeof slot) fail("the child has no slot");
  Program own(region);
  std::printf("  a name is answered in %.0f us\n", own.answered(time));
  // A fork closes its copy of the connection, which must have no effect.
  if (const pid_t fork_of_it = fork(); fork_of_it == 0) {
    own.forget();
    _exit(0);
  } else {
    waitpid(fork_of_it, nullptr, 0);
  }
  const auto state = region.entry(slot)[&ring::SlotEntry::state];
  const ring::SlotWord before = ring::SlotWord::of(state.load(std::memory_order_acquire));
  const std::uint32_t kept = own.word();
  const auto start = Clock::now();
  kill(child, SIGKILL);
  while (ring::SlotWord::of(state.load(std::memory_order_acquire)).epoch == before.epoch) {
    if (Clock::now() - start > 5s) fail("the killed child's slot is not free after 5 s");
    std::this_thread::sleep_for(500us);
  }
  std::printf("  a killed program's slot is free after %.0f ms\n",
              std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  if (own.word() != kept) fail("this program's slot has changed, too");
  own.answered();
  return 0;
}

int not_taken(std::uint32_t port, const char* words) {
  std::string why;
  guest::DoorbellChannel doorbells;
  if (doorbells.connect(port, guest::dial_host, why)) fail("it is taken");
  if (why.find(words) == std::string::npos) fail(why);
  std::printf("  %s\n", why.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (argc > 1 && first != "--refused" && first != "--absent")
    return taken(argv[1], std::chrono::seconds(argc > 2 ? std::atoi(argv[2]) : 0));
  if (argc != 3)
    return std::fprintf(stderr, "usage: vsock_program FILE [SECONDS] | --refused PORT | --absent PORT\n"), 2;
  const auto port = static_cast<std::uint32_t>(std::atoi(argv[2]));
  return not_taken(port, first == "--refused" ? "refuses this VM" : "no ivgpud listens there");
}
