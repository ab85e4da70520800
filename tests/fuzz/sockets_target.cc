// The broker's sockets: a VM's real ivshmem server, the control socket of `ivgpu end`, and the metrics endpoint. Their
// clients read late, in pieces or not at all, send data, or hang up in the middle of a message. The target also covers
// a worker's only message and its printed output.
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <map>
#include <string>

#include "host/broker/config/config.h"
#include "host/broker/ops/control_protocol.h"
#include "host/broker/ops/metrics_server.h"
#include "host/broker/transport/ivshmem_server.h"
#include "host/broker/worker/worker_message.h"
#include "host/broker/worker/worker_output.h"
#include "host/broker/worker/worker_process.h"
#include "ring/layout/layout.h"
#include "tests/fuzz/client.h"
#include "tests/fuzz/clock.h"
#include "tests/fuzz/input.h"

namespace {

using namespace host::broker;
using fuzz::require;

bool printable(const std::string& line) {
  return std::all_of(line.begin(), line.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

// ---- a worker's messages -------------------------------------------------------------------------------------------

void worker_message(fuzz::Input& in) {
  host::worker::ReadyMessage whole{};
  if (in.once_in(2)) whole.kind = host::worker::ready_kind;
  auto* bytes = reinterpret_cast<std::uint8_t*>(&whole);
  for (std::size_t at = in.number(); at < sizeof whole && !in.empty(); at += in.number()) bytes[at] = in.number();
  const std::size_t length = in.once_in(4) ? in.below(sizeof whole + 2) : sizeof whole;
  std::vector<std::uint8_t> sent(bytes, bytes + std::min(length, sizeof whole));
  sent.resize(length);
  if (const auto message = parse_ready(sent.data(), sent.size(), in.once_in(8) ? MSG_TRUNC : 0)) {
    require(length == sizeof whole && message->kind == host::worker::ready_kind, "only the one message is taken");
    require(printable(escaped(message->text)), "what is logged cannot be mistaken for the broker's own lines");
  }
}

void worker_output(fuzz::Input& in) {
  LineCutter lines;
  while (!in.empty()) {
    const auto piece = in.take(1 + in.number());
    for (const std::string& line : lines.add({reinterpret_cast<const char*>(piece.data()), piece.size()}))
      require(printable(line) && line.size() <= 4 * LineCutter::longest_line + 4, "a line of %zu letters", line.size());
  }
  for (const std::string& line : lines.finish()) require(printable(line), "a last line is escaped, too");
}

// ---- the control socket --------------------------------------------------------------------------------------------

void control_line(fuzz::Input& in) {
  const bool begun = in.once_in(4);
  const auto bytes = in.take(in.number());
  const std::string line = (begun ? "" : "end ") + std::string(bytes.begin(), bytes.end());
  const auto request = parse_end(line);
  if (!request) return;
  require(is_vm_name(request->vm) && printable(request->vm), "a request names what can be a VM");
  require(!request->slot || *request->slot < ring::max_slots, "and what can be a slot");
  require(line.rfind("end " + request->vm, 0) == 0, "it is what the line says");
}

// ---- GET /metrics --------------------------------------------------------------------------------------------------

// Each request must get one answer of its own length. Only GET /metrics gets the page.
void http_request(fuzz::Input& in) {
  const bool begun = in.once_in(2);
  const auto bytes = in.take(in.number());
  const std::string request = (begun ? "GET /metrics" : "") + std::string(bytes.begin(), bytes.end());
  bool asked = false;
  const std::string answer = http_answer(request, [&] {
    asked = true;
    return std::string("page\n");
  });
  const std::size_t head = answer.find("\r\n\r\n");
  require(answer.starts_with("HTTP/1.1 ") && head != std::string::npos, "an answer of HTTP");
  const std::string length = "Content-Length: " + std::to_string(answer.size() - head - 4) + "\r\n";
  require(answer.find(length) != std::string::npos, "it says its length");
  require(asked == answer.starts_with("HTTP/1.1 200 OK\r\n"), "the page is in the answer for which it was made");
  require(!asked || request.starts_with("GET /metrics"), "and was asked for");
}

// ---- a server that answers each client once ----------------------------------------------------------------------

// Clients send any bytes in any pieces. Each client gets at most one answer, only to a valid request, at once or later.
// No client may stay connected.
void answer_server(fuzz::Input& in, const Protocol& protocol, const std::string& end) {
  EventLoop loop(make_epoll_waiter());
  const std::string path = fuzz::socket_folder() + "/answers";
  std::size_t asked = 0;
  std::vector<AnswerServer::Answer> later;
  const auto on_request = [&](std::string_view request, AnswerServer::Answer answer) {
    require(request.size() < protocol.longest, "a request of %zu bytes", request.size());
    require(protocol.length_of(std::string(request) + end) == request.size(), "a request without its end");
    ++asked;
    answer.reply(parse_end(request) ? "ok 0\n" : "error no\n");
    if (asked % 2 == 0) return answer.end();
    later.push_back(answer);
  };
  const std::unique_ptr<AnswerServer> server =
      AnswerServer::listen(loop, ListenerOptions{path, {0600, "", ""}}, protocol, on_request).value();
  const auto turn = [&] {
    loop.after(Clock::duration::zero(), [&] { loop.stop(); });
    loop.run();
  };
  std::vector<Fd> clients;
  std::size_t connected = 0;
  while (!in.empty()) {
    if (clients.empty() || in.once_in(8)) {
      if (Fd socket = fuzz::connect_to(path)) clients.push_back(std::move(socket)), ++connected;
    } else if (in.once_in(8)) {
      clients.erase(clients.begin() + static_cast<long>(in.below(clients.size())));
    } else if (in.once_in(8)) {
      fuzz::clock_ns += 10'000'000ULL << in.below(12);
    } else if (!later.empty() && in.once_in(8)) {
      later.back().reply("more\n");
      later.back().end();
      later.pop_back();
    } else {
      auto bytes = in.take(in.number());
      std::string said(bytes.begin(), bytes.end());
      if (in.once_in(3)) said += end;
      [[maybe_unused]] const auto sent =
          send(clients[in.below(clients.size())].get(), said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    turn();
  }
  require(asked <= connected, "%zu answers for %zu clients", asked, connected);
}

// ---- the server ----------------------------------------------------------------------------------------------------

class Script {
 public:
  static constexpr std::size_t connections = 3;

  explicit Script(fuzz::Input& in) : in_(in), loop_(make_epoll_waiter()), path_(fuzz::socket_folder() + "/vm.sock") {
    ServerOptions options{.socket = {path_, {0600, "", ""}},
                          .connections = connections,
                          .memfd = doorbell_.get(),
                          .host_peers = {},
                          .store = {},
                          .guest_interrupts = {doorbell_.get()}};
    for (std::uint32_t k = 0; k < 5; ++k) options.host_peers.push_back({k, doorbell_.get()});
    server_ = IvshmemServer::listen(loop_, std::move(options), [this](std::uint32_t peer) { on_gone(peer); }).value();
  }

  void run() {
    while (!in_.empty()) {
      one_step();
      turn();
    }
    // Clients hang up or time out. No client may remain, and each announced client must be reported as gone once.
    if (in_.once_in(2)) clients_.clear();
    for (auto& client : clients_) shutdown(client.socket.get(), SHUT_RDWR);
    for (int i = 0; i < 4; ++i) turn();
    require(server_->connected() == 0, "%zu clients are connected though all have gone", server_->connected());
    for (const auto& [peer, times] : told_)
      require(gone_[peer] == times, "peer %u has gone %d times", peer, gone_[peer]);
  }

 private:
  struct Client {
    Fd socket;
    std::size_t read = 0;
    std::int64_t own = -1;
  };

  void turn() {
    loop_.after(Clock::duration::zero(), [this] { loop_.stop(); });
    loop_.run();
    require(server_->connected() <= connections, "%zu clients are connected", server_->connected());
  }

  void on_gone(std::uint32_t peer) {
    require(peer >= ring::first_guest_peer && peer < 65536, "a guest's number is no host's: %u", peer);
    ++gone_[peer];
  }

  void one_step() {
    switch (in_.below(6)) {
      case 0: connect_one(); break;
      case 1:
        if (Client* c = some()) read_some(*c, 1 + in_.below(12));
        break;
      case 2:
        if (Client* c = some()) speak(*c);
        break;
      case 3:
        if (Client* c = some()) shutdown(c->socket.get(), static_cast<int>(in_.below(3)));
        break;
      case 4:
        if (!clients_.empty()) clients_.erase(clients_.begin() + static_cast<long>(in_.below(clients_.size())));
        break;
      default: fuzz::clock_ns += 10'000'000ULL << in_.below(12); break;
    }
  }

  Client* some() { return clients_.empty() ? nullptr : &clients_[in_.below(clients_.size())]; }

  void connect_one() {
    if (clients_.size() > 2 * connections) return;
    if (Fd socket = fuzz::connect_to(path_)) clients_.push_back({std::move(socket)});
  }

  void speak(Client& c) {
    const auto bytes = in_.take(in_.number());
    [[maybe_unused]] const auto sent = send(c.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // Reads messages in order, each with its own descriptor.
  void read_some(Client& c, std::size_t most) {
    for (; most > 0; --most) {
      std::int64_t value = 0;
      std::vector<Fd> descriptors;
      if (fuzz::receive(c.socket, value, descriptors) != sizeof value) return;
      check_message(c, value, descriptors.size());
      ++c.read;
    }
  }

  void check_message(Client& c, std::int64_t value, std::size_t descriptors) {
    require(descriptors == (c.read >= 2 ? 1 : 0), "message %zu comes with %zu descriptors", c.read, descriptors);
    if (c.read == 0) require(value == 0, "the protocol's version is 0");
    if (c.read == 1) {
      require(value >= ring::first_guest_peer, "a guest's own number");
      c.own = value;
      ++told_[static_cast<std::uint32_t>(value)];
    }
    if (c.read == 2) require(value == -1, "the region follows");
    if (c.read > 2)
      require(value == (c.read < 8 ? static_cast<std::int64_t>(c.read) - 3 : c.own), "then the peers, in order");
  }

  fuzz::Input& in_;
  EventLoop loop_;
  const std::string path_;
  const Fd doorbell_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::vector<Client> clients_;
  std::map<std::uint32_t, int> told_, gone_;
  std::unique_ptr<IvshmemServer> server_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input in(data, std::min<std::size_t>(size, 512));
  switch (in.below(4)) {
    case 0: worker_message(in); break;
    case 1:
      switch (in.below(4)) {
        case 0: control_line(in); break;
        case 1:
          if (in.once_in(2))
            answer_server(in, http_protocol(), "\n\n");
          else
            answer_server(in, control_protocol(), "\n");
          break;
        case 2: http_request(in); break;
        default: worker_output(in); break;
      }
      break;
    default: Script(in).run(); break;
  }
  return 0;
}
