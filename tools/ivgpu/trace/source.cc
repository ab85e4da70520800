#include "tools/ivgpu/trace/source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/socket.h"

namespace ivgpu::trace {
namespace {

using ring::TraceMessage, ring::TraceNews;

constexpr int patience_ms = 5000;  // for the broker's answer, in milliseconds
// The maximum number of calls per iteration, shared by all workers: a quarter of one worker's telemetry, 32 MB. Without
// this limit, 64 workers of one VM could make the reader use 8 GB.
constexpr std::size_t passes_of_a_worker = 4;
constexpr std::size_t most_of_a_pass = std::size_t{ring::max_channels} * ring::trace_cells / passes_of_a_worker;

[[noreturn]] void another_version() {
  throw Error(exit_code::missing, "the broker is of another version: it does not trace as this ivgpu does");
}

// A worker's telemetry, mapped for reading.
class Mapping {
 public:
  explicit Mapping(const Fd& memory) {
    struct stat status {};
    const int seals = fcntl(memory.get(), F_GET_SEALS);
    if (fstat(memory.get(), &status) != 0 || static_cast<std::uint64_t>(status.st_size) != ring::telemetry_bytes ||
        seals < 0 || (seals & F_SEAL_SHRINK) == 0)
      another_version();
    void* at = mmap(nullptr, ring::telemetry_bytes, PROT_READ, MAP_SHARED, memory.get(), 0);
    if (at == MAP_FAILED)
      throw Error(exit_code::missing, std::string("a worker's trace cannot be mapped: ") + std::strerror(errno));
    base_ = static_cast<std::byte*>(at);
  }
  ~Mapping() { munmap(base_, ring::telemetry_bytes); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  ring::TraceReader reader(std::uint32_t channel) const {
    const ring::TelemetryView view(base_);
    return {view.page().channel[channel].written, view.cells(channel)};
  }

 private:
  std::byte* base_ = nullptr;
};

}  // namespace

struct Source::Traced {
  Traced(Session which, const Fd& memory) : session(std::move(which)), mapping(memory) {
    for (std::uint32_t c = 0; c < ring::max_channels; ++c) readers.push_back(mapping.reader(c));
  }
  // Reads at most one channel's capacity per channel, so that a fast writer does not delay other channels, and at most
  // `most` calls. The next read() continues with the channel at which this read() stopped.
  void read(std::size_t most, std::vector<std::pair<std::uint32_t, ring::TraceEntry>>& into) {
    complete = true;
    const std::uint32_t begin = next;
    for (std::uint32_t k = 0; k < readers.size() && complete; ++k) {
      next = (begin + k) % static_cast<std::uint32_t>(readers.size());
      complete = read_channel(next, most, into);
    }
  }
  // Returns false if the read stopped because of `most`.
  bool read_channel(std::uint32_t c, std::size_t most, std::vector<std::pair<std::uint32_t, ring::TraceEntry>>& into) {
    for (std::uint32_t i = 0; i < ring::trace_cells; ++i) {
      if (into.size() == most) return false;
      ring::TraceEntry entry;
      const ring::Taken taken = readers[c].take(entry);
      if (taken == ring::Taken::Nothing) break;
      if (taken == ring::Taken::Entry) into.emplace_back(c, entry);
    }
    return true;
  }
  std::uint64_t lost() const {
    std::uint64_t sum = 0;
    for (const ring::TraceReader& reader : readers) sum += reader.lost();
    return sum;
  }

  Session session;
  Mapping mapping;
  std::vector<ring::TraceReader> readers;
  KernelNames names;
  std::uint32_t next = 0;  // the channel to read first
  bool complete = true;    // false if the last read() stopped because of `most`
  bool ended = false;
};

Source::Source(const std::filesystem::path& runtime_dir, const Filter& filter) : filter_(filter) {
  if (filter.vm.size() >= sizeof ring::TraceRequest::vm)
    throw Error(exit_code::usage, "--vm " + filter.vm + " is longer than a VM's name can be");
  socket_ = connect_to((runtime_dir / ring::trace_socket_name).string());
  ask();
  while (!listed_) {
    TraceMessage message;
    Fd descriptor;
    if (!receive(message, descriptor)) another_version();
    understand(message, std::move(descriptor));
  }
}

void Source::ask() const {
  ring::TraceRequest request{};
  request.magic = ring::trace_magic;
  request.version = ring::telemetry_version;
  request.slot = filter_.slot;
  request.process = filter_.process;
  filter_.vm.copy(request.vm, sizeof request.vm - 1);
  if (send(socket_.get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request) another_version();
}

void Source::narrow(std::uint32_t process) {
  filter_.process = process;
  ask();
  std::erase_if(sessions_, [process](const auto& s) {
    return s.second->session.process != 0 && s.second->session.process != process;
  });
}

Source::~Source() = default;

// Returns false at the end of the connection.
bool Source::receive(TraceMessage& message, Fd& descriptor) {
  std::size_t have = 0;
  while (have < sizeof message) {
    pollfd wait{socket_.get(), POLLIN, 0};
    if (poll(&wait, 1, patience_ms) <= 0) another_version();
    iovec data{reinterpret_cast<char*>(&message) + have, sizeof message - have};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    have += static_cast<std::size_t>(n);
    if (const cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr && c->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
      descriptor = Fd(fd);
    }
  }
  if (message.magic != ring::trace_magic) another_version();
  message.text[sizeof message.text - 1] = '\0';
  return true;
}

void Source::understand(const TraceMessage& message, Fd descriptor) {
  const auto at = sessions_.find(message.session);
  switch (message.news) {
    case TraceNews::Refused: throw Error(exit_code::missing, std::string("the broker refuses: ") + message.text);
    case TraceNews::Begins: {
      if (!descriptor) another_version();
      Session session{message.session, message.text, message.slot, message.worker, 0};
      sessions_[message.session] = std::make_unique<Traced>(std::move(session), descriptor);
      return;
    }
    case TraceNews::Claimed:
      if (at == sessions_.end()) return;
      at->second->session.process = message.process;
      if (filter_.process != 0 && filter_.process != message.process) sessions_.erase(at);
      return;
    case TraceNews::Ended:
      if (at != sessions_.end()) at->second->ended = true;
      return;
    case TraceNews::Listed: listed_ = true; return;
  }
  another_version();
}

bool Source::listen() {
  for (;;) {
    pollfd wait{socket_.get(), POLLIN, 0};
    if (poll(&wait, 1, 0) <= 0) return true;
    TraceMessage message;
    Fd descriptor;
    if (!receive(message, descriptor)) return false;
    understand(message, std::move(descriptor));
  }
}

bool Source::take(const std::function<void(const Call&)>& call) {
  struct Found {
    Traced* traced;
    std::uint32_t channel;
    ring::TraceEntry entry;
  };
  std::vector<Found> found;
  const std::size_t share = std::max<std::size_t>(most_of_a_pass / std::max<std::size_t>(sessions_.size(), 1), 1);
  for (const auto& [number, traced] : sessions_) {
    if (filter_.process != 0 && traced->session.process == 0)
      continue;  // the telemetry keeps the calls until the process is known
    std::vector<std::pair<std::uint32_t, ring::TraceEntry>> entries;
    traced->read(share, entries);
    for (const auto& [channel, entry] : entries) found.push_back({traced.get(), channel, entry});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.entry.end_ns < b.entry.end_ns; });
  for (const Found& f : found) {
    f.traced->names.learn(f.entry);
    call({f.traced->session, f.channel, f.entry, describe(f.entry, f.traced->names)});
  }
  forget_ended();
  return !found.empty();
}

void Source::take_rest(const std::function<void(const Call&)>& call) {
  // Enough iterations to read each worker's whole telemetry, plus one that finds no further calls.
  for (std::size_t passes = sessions_.size() * passes_of_a_worker + 1; passes > 0 && take(call); --passes) continue;
}

// Drops ended sessions whose calls were all read.
void Source::forget_ended() {
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    const bool over = at->second->ended && at->second->complete;
    if (over) lost_before_ += at->second->lost();
    if (over && at->second->session.process != 0) ++ended_;
    at = over ? sessions_.erase(at) : std::next(at);
  }
}

std::size_t Source::held() const {
  return static_cast<std::size_t>(
      std::count_if(sessions_.begin(), sessions_.end(), [](const auto& s) { return s.second->session.process != 0; }));
}

std::uint64_t Source::lost() const {
  std::uint64_t sum = lost_before_;
  for (const auto& [number, traced] : sessions_) sum += traced->lost();
  return sum;
}

}  // namespace ivgpu::trace
