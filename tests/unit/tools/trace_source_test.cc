// `ivgpu trace` with sessions whose workers write as many calls as their telemetry holds. It must read all calls, but
// never so many at once that the operator's machine suffers. A thread stands in for the broker.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ring/ops/trace_socket.h"
#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/temp_dir.h"
#include "tools/ivgpu/trace/source.h"

namespace ivgpu::trace {
namespace {

using ring::TraceMessage, ring::TraceNews;

constexpr std::size_t whole = std::size_t{ring::max_channels} * ring::trace_cells;

// A worker's telemetry, in the form in which the broker creates it.
class Worker {
 public:
  Worker() : memory_(memfd_create("ivgpu-test", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    EXPECT_EQ(ftruncate(memory_.get(), ring::telemetry_bytes), 0);
    EXPECT_EQ(fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    void* at = mmap(nullptr, ring::telemetry_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    EXPECT_NE(at, MAP_FAILED);
    base_ = static_cast<std::byte*>(at);
  }
  ~Worker() { munmap(base_, ring::telemetry_bytes); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  int memory() const { return memory_.get(); }

  void fill() {
    const ring::TelemetryView view(base_);
    ring::TraceEntry entry{};
    entry.call = 4711;
    for (std::uint32_t c = 0; c < ring::max_channels; ++c) {
      ring::TraceWriter writer(view.page().channel[c].written, view.cells(c));
      for (std::uint32_t i = 0; i < ring::trace_cells; ++i) writer.put(entry);
    }
  }

 private:
  Fd memory_;
  std::byte* base_ = nullptr;
};

class PlayedBroker {
 public:
  PlayedBroker() : listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (folder.path() / ring::trace_socket_name).string().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
  }
  // A client that the broker has informed of these workers' claimed sessions.
  std::unique_ptr<Source> watch(const std::vector<Worker>& workers) {
    std::thread broker([&] {
      client_ = Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      for (std::size_t k = 0; k < workers.size(); ++k) {
        tell(TraceNews::Begins, k, workers[k].memory());
        tell(TraceNews::Claimed, k);
      }
      tell(TraceNews::Listed, 0);
    });
    auto source = std::make_unique<Source>(folder.path(), Filter{});
    broker.join();
    return source;
  }
  void tell(TraceNews news, std::size_t session, int memory = -1) {
    TraceMessage message{};
    message.magic = ring::trace_magic;
    message.version = ring::telemetry_version;
    message.news = news;
    message.session = session;
    message.process = 7;
    std::strcpy(message.text, "t");
    iovec data{&message, sizeof message};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &data, header.msg_iovlen = 1;
    if (memory >= 0) {
      header.msg_control = control, header.msg_controllen = sizeof control;
      cmsghdr* c = CMSG_FIRSTHDR(&header);
      c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(c), &memory, sizeof memory);
    }
    EXPECT_EQ(sendmsg(client_.get(), &header, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof message));
  }

  const TempDir folder;

 private:
  Fd listener_, client_;
};

// The number of calls that each take() returned, until a take() returned none.
std::vector<std::size_t> turns_of(Source& source) {
  std::vector<std::size_t> iterations;
  do {
    iterations.push_back(0);
    source.take([&](const Call&) { ++iterations.back(); });
  } while (iterations.back() != 0);
  return iterations;
}

TEST(TraceSource, ATurnTakesNoMoreThanAQuarterOfWhatASessionHolds) {
  std::vector<Worker> workers(3);
  PlayedBroker broker;
  const auto source = broker.watch(workers);
  for (Worker& worker : workers) worker.fill();
  std::size_t sum = 0;
  for (const std::size_t turn : turns_of(*source)) {
    EXPECT_LE(turn, whole / 4);
    sum += turn;
  }
  EXPECT_EQ(sum, 3 * whole);
  EXPECT_EQ(source->lost(), 0U);
}

TEST(TraceSource, SessionsThatHaveEndedAreReadToTheirEnds) {
  std::vector<Worker> workers(2);
  PlayedBroker broker;
  const auto source = broker.watch(workers);
  for (Worker& worker : workers) worker.fill();
  for (std::size_t k = 0; k < workers.size(); ++k) broker.tell(TraceNews::Ended, k);
  ASSERT_TRUE(source->listen());
  std::size_t sum = 0;
  source->take_rest([&](const Call&) { ++sum; });
  EXPECT_EQ(sum, 2 * whole);
  EXPECT_EQ(source->ended(), 2U);
  EXPECT_EQ(source->held(), 0U);
  EXPECT_EQ(source->lost(), 0U);
}

}  // namespace
}  // namespace ivgpu::trace
