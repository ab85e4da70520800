// The real server of `ivgpu trace` on a real socket. Clients send any request, in pieces, twice or not at all, do not
// read, or hang up in the middle of a message, while sessions begin, are claimed and end.
//
// A client must get only the sessions that it asked for, must get no writable descriptor, and must leave no trace
// switched on.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <map>
#include <string>
#include <vector>

#include "host/broker/ops/trace_server.h"
#include "tests/fuzz/client.h"
#include "tests/fuzz/clock.h"
#include "tests/fuzz/input.h"

namespace {

using namespace host::broker;
using fuzz::require;
using ring::TraceMessage, ring::TraceNews, ring::TraceRequest;

constexpr const char* vms[] = {"a", "b"};
constexpr std::uint32_t slots[] = {1, 3};

struct Worker {
  std::size_t vm;
  std::uint32_t slot, process = 0;
  TraceServer::Session session = 0;
};

struct Client {
  Fd socket;
  TraceRequest asked{};  // the last complete request
  std::size_t sent = 0;  // bytes of the next request
  bool plain = true;     // the client sent only complete requests
  bool refused = false;
};

// All workers and inputs share this memory, since the target only checks how the server uses it.
const Telemetry& telemetry() {
  static const std::unique_ptr<Telemetry> made = Telemetry::create("ivgpu-fuzz").value();
  return *made;
}

class Script {
 public:
  explicit Script(fuzz::Input& in)
      : in_(in), loop_(make_epoll_waiter()), path_(fuzz::socket_folder() + "/trace"), server_(loop_) {
    server_.listen({path_, {0600, "", ""}}).value();
    for (std::size_t k = 0; k < std::size(vms); ++k) server_.add_vm(vms[k], slots[k]);
    telemetry().trace(false);
  }

  void run() {
    while (!in_.empty()) {
      one_step();
      turn();
    }
    for (Client& c : clients_) listen_to(c, 1000);
    clients_.clear();
    for (int i = 0; i < 4; ++i) turn();
    require(!switched_on(), "nobody watches, and a trace is on");
  }

 private:
  void turn() {
    loop_.after(Clock::duration::zero(), [this] { loop_.stop(); });
    loop_.run();
  }

  void one_step() {
    switch (in_.below(8)) {
      case 0: connect_one(); break;
      case 1:
      case 2:
        if (Client* c = some()) ask(*c);
        break;
      case 3:
        if (Client* c = some()) listen_to(*c, 1 + in_.below(12));
        break;
      case 4:
        if (Client* c = some()) shutdown(c->socket.get(), static_cast<int>(in_.below(3)));
        break;
      case 5:
        if (!clients_.empty()) clients_.erase(clients_.begin() + static_cast<long>(in_.below(clients_.size())));
        break;
      case 6: change_workers(); break;
      default: fuzz::clock_ns += 10'000'000ULL << in_.below(12); break;
    }
  }

  Client* some() { return clients_.empty() ? nullptr : &clients_[in_.below(clients_.size())]; }

  void connect_one() {
    if (clients_.size() >= 20) return;  // the server accepts fewer clients
    if (Fd socket = fuzz::connect_to(path_)) clients_.push_back({.socket = std::move(socket)});
  }

  // Most requests are valid, since the server refuses invalid requests at once.
  TraceRequest request() {
    TraceRequest r{ring::trace_magic, ring::telemetry_version, ring::any_slot, 0, {}};
    if (in_.once_in(2)) r.slot = static_cast<std::uint32_t>(in_.below(4));
    if (in_.once_in(2)) r.process = static_cast<std::uint32_t>(in_.below(3));
    if (in_.once_in(2)) r.vm[0] = "abc"[in_.below(3)];
    if (in_.once_in(8)) {
      auto* bytes = reinterpret_cast<std::uint8_t*>(&r);
      for (std::size_t at = in_.number(); at < sizeof r && !in_.empty(); at += in_.number()) bytes[at] = in_.number();
    }
    return r;
  }

  void ask(Client& c) {
    const TraceRequest r = request();
    const std::size_t length = in_.once_in(4) ? in_.below(2 * sizeof r) : sizeof r;
    char bytes[2 * sizeof r] = {};
    std::memcpy(bytes, &r, sizeof r);
    if (send(c.socket.get(), bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
    c.plain = c.plain && length == sizeof r && (c.asked.magic == 0 || same_sessions(c.asked, r));
    c.asked = r;
  }
  // A second request may change only the process.
  static bool same_sessions(const TraceRequest& a, const TraceRequest& b) {
    return a.slot == b.slot && std::memcmp(a.vm, b.vm, sizeof a.vm) == 0;
  }

  void change_workers() {
    const std::size_t vm = in_.below(std::size(vms));
    const auto slot = static_cast<std::uint32_t>(in_.below(slots[vm]));
    const auto at = workers_.find({vm, slot});
    if (at == workers_.end()) {
      Worker& worker = workers_[{vm, slot}] = {vm, slot};
      worker.session = server_.begin(vms[vm], slot, 1, telemetry());
      known_[worker.session] = worker;
    } else if (in_.once_in(2)) {
      server_.claimed(at->second.session, static_cast<std::uint32_t>(in_.below(3)), 1);
    } else {
      server_.end(at->second.session);
      workers_.erase(at);
    }
  }

  bool switched_on() const {
    std::uint32_t on = 0;
    require(pread(telemetry().memfd(), &on, sizeof on, offsetof(ring::TelemetryPage, tracing)) == sizeof on,
            "the page can be read");
    return on != 0 && !workers_.empty();
  }

  void listen_to(Client& c, std::size_t most) {
    for (; most > 0; --most) {
      TraceMessage message{};
      std::vector<Fd> descriptors;
      const ssize_t n = fuzz::receive(c.socket, message, descriptors);
      if (n <= 0) return;
      require(n == sizeof message, "a message comes whole");
      for (const Fd& fd : descriptors)
        require((fcntl(fd.get(), F_GETFL) & O_ACCMODE) == O_RDONLY, "a client's descriptor only reads");
      check(c, message, descriptors.size());
    }
  }

  void check(Client& c, const TraceMessage& message, std::size_t descriptors) {
    require(message.magic == ring::trace_magic && message.version == ring::telemetry_version, "magic and version");
    require(strnlen(message.text, sizeof message.text) < sizeof message.text, "the text ends");
    require(descriptors == (message.news == TraceNews::Begins ? 1 : 0), "%zu descriptors come", descriptors);
    require(!c.refused, "a refusal is the last message");
    c.refused = message.news == TraceNews::Refused;
    if (c.refused || message.news == TraceNews::Listed) return;
    const auto worker = known_.find(message.session);
    require(worker != known_.end(), "a session that is known");
    require(message.slot == worker->second.slot && std::string(message.text) == vms[worker->second.vm],
            "what is told of a session is its own");
    if (!c.plain) return;
    require(c.asked.vm[0] == '\0' || std::string(c.asked.vm) == message.text, "another VM's session is told");
    require(c.asked.slot == ring::any_slot || c.asked.slot == message.slot, "another slot's session is told");
  }

  fuzz::Input& in_;
  EventLoop loop_;
  const std::string path_;
  std::vector<Client> clients_;
  std::map<std::pair<std::size_t, std::uint32_t>, Worker> workers_;
  std::map<TraceServer::Session, Worker> known_;
  TraceServer server_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input in(data, std::min<std::size_t>(size, 512));
  Script(in).run();
  return 0;
}
