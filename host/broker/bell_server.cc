#include "host/broker/bell_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "host/broker/transport.h"
#include "ring/bells.h"

namespace host::broker {

std::unique_ptr<BellServer> BellServer::listen(EventLoop& loop, Options options, std::function<void()> look,
                                               std::string& error) {
  std::unique_ptr<BellServer> server(new BellServer(loop, std::move(options), std::move(look)));
  BellServer& self = *server;
  if (!self.make_interrupts()) {
    error = fmt::format("VM {}: an interrupt: {}", self.options_.vm, std::strerror(errno));
    return nullptr;
  }
  self.listener_ = Listener::open(
      loop, self.options_.socket, [&self](Fd client) { self.admit(std::move(client)); }, error);
  return self.listener_ ? std::move(server) : nullptr;
}

BellServer::~BellServer() = default;

bool BellServer::make_interrupts() {
  slots_.resize(options_.slots);
  for (std::uint32_t k = 0; k < options_.slots; ++k) {
    Slot& slot = slots_[k];
    slot.interrupt.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!slot.interrupt) return false;
    slot.watch = std::make_unique<PacedWatch>(loop_, slot.interrupt.get(), [this, k] { on_interrupt(k); });
  }
  return true;
}

void BellServer::admit(Fd socket) {
  if (clients_.size() >= options_.connections) {
    if (const auto more = full_.admit())
      spdlog::warn("{}: a bell channel is refused: there are {} already{}", options_.vm, clients_.size(), *more);
    return;
  }
  const ClientId id = next_++;
  Client& client = clients_[id];
  client.socket = std::move(socket);
  client.watch = std::make_unique<PacedWatch>(loop_, client.socket.get(), [this, id] { on_bytes(id); });
  spdlog::debug("{}: bell channel {} of {}", options_.vm, clients_.size(), options_.connections);
}

void BellServer::on_bytes(ClientId id) {
  unsigned char bytes[256];
  const ssize_t n = recv(clients_[id].socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    for (Slot& slot : slots_)
      if (slot.client == id) slot.client = 0;
    clients_.erase(id);
    spdlog::debug("{}: a bell channel has ended", options_.vm);
    return;
  }
  bool looks = false;
  for (ssize_t k = 0; k < n; ++k) take(id, bytes[k], looks);
  if (looks) look_();
}

void BellServer::take(ClientId id, unsigned char byte, bool& looks) {
  if (byte == ring::bell_look) {
    looks = true;
    return;
  }
  if (byte >= slots_.size()) {
    if (const auto more = nonsense_.admit())
      spdlog::warn("{}: a bell channel says {:#04x}, which means nothing{}", options_.vm, byte, *more);
    return;
  }
  slots_[byte].client = id;
  wake(slots_[byte]);  // its worker may have rung before this was said
}

// Read whether or not there is somebody to hear it: a worker does not ring where it has not been heard yet.
void BellServer::on_interrupt(std::uint32_t slot) {
  drain(slots_[slot].interrupt.get());
  wake(slots_[slot]);
}

// A channel that takes no byte has one that was not read yet.
void BellServer::wake(const Slot& slot) const {
  const auto client = clients_.find(slot.client);
  if (client == clients_.end()) return;
  [[maybe_unused]] const auto n = send(client->second.socket.get(), &ring::bell_woken, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace host::broker
