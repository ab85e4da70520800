// ivshmem-doorbell: QEMU, or a program on this machine, connects to the VM's socket. It gets the region, an eventfd for
// each of the host's peers, and an eventfd for each of its own interrupts.
//
// All clients share the interrupts' eventfds, so a worker need not know its clients. Trust: clients and workers of the
// VM may read, write and fill them, and change their flags. The broker neither reads nor writes them.
#include <fmt/format.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "host/base/shared_fd.h"
#include "host/broker/transport/ivshmem_server.h"
#include "host/broker/transport/transport.h"

namespace host::broker {
namespace {

class DoorbellTransport final : public Transport {
 public:
  DoorbellTransport(EventLoop& loop, const KeptTransport& keep, Events events)
      : loop_(loop), keep_(keep), events_(std::move(events)) {}
  ~DoorbellTransport() override { close(); }

  Result<void> open(const Region& region, const VmOptions& options, const BrokerOptions& broker) {
    socket_ = socket_path(broker.runtime_dir, options.name);
    ServerOptions server;
    if (!make_doorbells(static_cast<std::uint32_t>(options.slots), server) ||
        !make_interrupts(guest_vectors(options), server))
      return Error{fmt::format("VM {}: a doorbell: {}", options.name, std::strerror(errno))};
    server.socket = {socket_, access_of(options), "socket", keep_.store.all(), pace_of_guests()};
    server.connections = static_cast<std::size_t>(options.connections);
    server.memfd = region.memfd();
    server.store = keep_.store;
    server.first_peer = keep_.first_peer;
    auto listening = IvshmemServer::listen(loop_, std::move(server), events_.peer_gone);
    if (!listening) return listening.error();
    server_ = *std::move(listening);
    watch();
    return {};
  }

  int doorbell(std::uint32_t slot) const override { return doorbells_[slot].get(); }
  int interrupt(std::uint32_t slot) const override { return interrupts_[slot % interrupts_.size()].get(); }
  void forget_rings(std::uint32_t slot) override { doorbells_[slot].drain(); }
  bool anybody() const override { return connections() != 0; }
  bool knows_peers() const override { return true; }
  bool has(std::uint32_t peer) const override { return server_ && server_->has(peer); }
  std::size_t connections() const override { return server_ ? server_->connected() : 0; }
  std::string socket() const override { return socket_; }
  std::string memory() const override { return ""; }
  void bound_connections(std::size_t most) override { server_->bound_connections(most); }
  void stop_admitting() override { server_->stop_admitting(); }
  void close() override {
    server_.reset();
    for (EventLoop::Id* id : {&watch_, &pause_}) loop_.forget(*id);
  }

 private:
  // Takes the eventfd of an earlier broker, or makes one.
  SharedFd make(const std::string& name) const {
    if (Fd left = keep_.store.take(name); left) return SharedFd(std::move(left));
    SharedFd made = SharedFd::make_doorbell();
    if (made) keep_.store.keep(name, made.get());
    return made;
  }

  bool make_doorbells(std::uint32_t slots, ServerOptions& server) {
    broker_ = make(name_of_broker_doorbell);
    bool made = static_cast<bool>(broker_);
    server.host_peers = {{ring::peer_broker, broker_.get()}};
    for (std::uint32_t k = 0; made && k < slots; ++k) {
      doorbells_.push_back(make(name_of_doorbell(k)));
      made = static_cast<bool>(doorbells_.back());
      server.host_peers.push_back({ring::peer_of_slot(k), doorbells_.back().get()});
    }
    return made;
  }

  // Precondition: vectors > 0.
  bool make_interrupts(std::uint32_t vectors, ServerOptions& server) {
    for (std::uint32_t v = 0; v < vectors; ++v) {
      interrupts_.push_back(make(name_of_interrupt(v)));
      if (!interrupts_.back()) return false;
      server.guest_interrupts.push_back(interrupts_.back().get());
    }
    return true;
  }

  void watch() {
    watch_ = loop_.watch(broker_.get(), POLLIN, [this](short) { on_ring(); });
  }

  void on_ring() {
    broker_.drain();
    const auto since = Clock::now() - last_;
    if (since >= between_rings) return pass_on();
    loop_.forget(watch_);
    pause_ = loop_.after(between_rings - since, [this] {
      pause_ = 0;
      watch();
      pass_on();
    });
  }

  void pass_on() {
    last_ = Clock::now();
    events_.signalled();
  }

  EventLoop& loop_;
  const KeptTransport keep_;
  const Events events_;
  std::string socket_;
  SharedFd broker_;                        // signals the broker
  std::vector<SharedFd> doorbells_;        // signal the workers
  std::vector<SharedFd> interrupts_;       // of the guest, by vector
  std::unique_ptr<IvshmemServer> server_;  // after the descriptors above, which it uses
  Clock::time_point last_;
  EventLoop::Id watch_ = 0, pause_ = 0;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_doorbell_transport(EventLoop& loop, const Region& region,
                                                           const VmOptions& options, const BrokerOptions& broker,
                                                           const KeptTransport& keep, Transport::Events events) {
  auto transport = std::make_unique<DoorbellTransport>(loop, keep, std::move(events));
  if (const auto opened = transport->open(region, options, broker); !opened) return opened.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace host::broker
