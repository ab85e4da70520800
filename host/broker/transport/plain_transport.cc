// ivshmem-plain: the VM has the memory and nothing else. The broker polls the bits that guests set
// (host/broker/transport/doorbell_poller.h), signals workers for them, and asks the kernel whether the VM has the memory
// open. A VM with persistent memory may also have doorbell channels (host/broker/transport/doorbell_server.h). A guest
// without a channel is served as well, but cannot be woken.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "host/base/shared_fd.h"
#include "host/broker/region/plain_memory.h"
#include "host/broker/transport/doorbell_poller.h"
#include "host/broker/transport/doorbell_server.h"
#include "host/broker/transport/transport.h"

namespace host::broker {
namespace {

// No event reports the VM's end, so the broker polls for it at this interval.
constexpr auto between_vm_looks = std::chrono::milliseconds(500);

// A worker's doorbell that the broker signals: a pipe, which worker and broker have each opened. The worker opens it
// for reading and writing, since it signals itself, too.
struct Doorbell {
  SharedFd worker;
  Fd broker_end;

  bool make() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    const SharedFd reading{Fd(ends[0])};
    const Fd writing(ends[1]);
    return adopt(reading.own_opening());
  }
  // Takes over the worker's end, which an earlier broker may have made.
  bool adopt(Fd of_worker) {
    worker = SharedFd(std::move(of_worker));
    broker_end = worker.own_opening();
    return worker && broker_end;
  }
  void ring() const {
    const char ring[8] = {1};  // the number of bytes that a worker reads at once
    [[maybe_unused]] const auto n =
        write(broker_end.get(), ring, sizeof ring);  // if it is full, it is already signalled
  }
  void forget_rings() const {
    char rings[4096];
    for (int pages = 0; pages < 16 && read(broker_end.get(), rings, sizeof rings) == sizeof rings;)
      ++pages;  // the capacity of a pipe
  }
};

class PlainTransport final : public Transport {
 public:
  PlainTransport(EventLoop& loop, const Region& region, std::string name, KeptTransport keep, Events events)
      : loop_(loop), region_(region), name_(std::move(name)), keep_(std::move(keep)), events_(std::move(events)) {}
  ~PlainTransport() override { close(); }

  Result<void> open(const VmOptions& options, const BrokerOptions& broker) {
    doorbells_.resize(static_cast<std::size_t>(options.slots));
    vm_seen_ = keep_.guests;  // if the VM has ended meanwhile, the next look finds that
    for (std::uint32_t k = 0; k < doorbells_.size(); ++k)
      if (!open(doorbells_[k], name_of_doorbell(k)))
        return Error{fmt::format("VM {}: a doorbell: {}", options.name, std::strerror(errno))};
    if (const auto named = name_memory(options, broker); !named) return named.error();
    const DoorbellPoller::Pace pace{std::chrono::microseconds(options.doorbell_poll_us),
                                    std::chrono::milliseconds(options.doorbell_idle_poll_ms)};
    poller_ = std::make_unique<DoorbellPoller>(
        loop_, region_.header(), ring::peer_of_slot(static_cast<std::uint32_t>(options.slots)), pace,
        [this](std::uint32_t peer) { on_doorbell(peer); }, [this] { look_for_vm(); });
    if (options.transport == "pmem") return open_channels(options, broker);
    return {};
  }

  int doorbell(std::uint32_t slot) const override { return doorbells_[slot].worker.get(); }
  int interrupt(std::uint32_t slot) const override { return channels_ ? channels_->interrupt(slot) : -1; }
  void forget_rings(std::uint32_t slot) override {
    doorbells_[slot].forget_rings();
    if (channels_) channels_->forget(slot);
  }
  bool anybody() const override { return open_elsewhere(region_.memfd()); }
  bool knows_peers() const override { return false; }
  bool has(std::uint32_t) const override { return false; }
  std::size_t connections() const override { return channels_ ? channels_->connected() : 0; }
  std::string socket() const override { return socket_; }
  std::string memory() const override { return memory_; }
  void bound_connections(std::size_t most) override {
    if (channels_) channels_->bound_connections(most);
  }
  void stop_admitting() override {
    if (channels_) channels_->stop_admitting();
  }
  void close() override {
    channels_.reset();
    poller_.reset();
    loop_.forget(pause_);
  }

 private:
  bool open(Doorbell& doorbell, const std::string& name) const {
    if (Fd left = keep_.store.take(name); left) return doorbell.adopt(std::move(left));
    if (!doorbell.make()) return false;
    keep_.store.keep(name, doorbell.worker.get());
    return true;
  }

  Result<void> name_memory(const VmOptions& options, const BrokerOptions& broker) {
    memory_ = options.plain_file;
    if (!memory_.empty()) return {};
    memory_ = memory_path(broker.runtime_dir, options.name);
    auto link = MemoryLink::make(memory_, region_.memfd());
    if (!link) return Error{fmt::format("VM {}: {}", options.name, link.error().message)};
    link_ = *std::move(link);
    return {};
  }

  Result<void> open_channels(const VmOptions& options, const BrokerOptions& broker) {
    socket_ = socket_path(broker.runtime_dir, options.name);
    DoorbellServer::Options channels{
        .vm = name_,
        .socket = {socket_, access_of(options), "socket", keep_.store.all(), pace_of_guests()},
        .slots = static_cast<std::uint32_t>(options.slots),
        .connections = static_cast<std::size_t>(options.connections),
        .vsock = std::nullopt,
        .store = keep_.store,
        .channels = keep_.channels};
    if (options.vsock_port != 0) {
      auto vsock = open_vsock(options);
      if (!vsock) return vsock.error();
      channels.vsock = *std::move(vsock);
    }
    auto server = DoorbellServer::listen(loop_, std::move(channels),
                                         {[this] { poller_->look_now(); }, events_.holder_gone, events_.channel_named});
    if (!server) return server.error();
    channels_ = *std::move(server);
    return {};
  }

  Result<VsockEndpoint> open_vsock(const VmOptions& options) const {
    VsockEndpoint vsock;
    vsock.port = static_cast<std::uint32_t>(options.vsock_port);
    vsock.socket = adopt(vsock.port);
    if (!vsock.socket.socket) {
      BoundVsock made = bind_vsock(vsock.port);
      if (!made.socket && !made.is_taken) return Error{vsock.in_words(name_, made.error)};
      vsock.socket.socket = std::move(made.socket);
    }
    vsock.cid = static_cast<std::uint32_t>(options.vsock_cid);
    spdlog::info("{}: programs of CID {} connect to port {} of vsock", name_, options.vsock_cid, options.vsock_port);
    if (options.vsock_cid != vsock_local && access("/dev/vhost-vsock", F_OK) != 0)
      spdlog::warn("{}: there is no /dev/vhost-vsock, which QEMU needs: `modprobe vhost_vsock`", name_);
    return vsock;
  }

  // Takes an earlier broker's socket, of whichever VM: no other process can bind its port while the store holds it.
  BoundSocket adopt(std::uint32_t port) const {
    FdStore* const store = keep_.store.all();
    BoundSocket made{Fd(), "vsock of " + name_, store, fmt::format("{}vsock-{}", kept_listener, port)};
    if (store != nullptr) made.socket = store->take(made.kept_as);
    made.is_kept = made.socket && is_at_vsock(made.socket.get(), port) && is_listening(made.socket);
    if (!made.is_kept && made.socket) {
      store->forget(made.kept_as);
      made.socket.reset();
    }
    return made;
  }

  void on_doorbell(std::uint32_t peer) {
    if (peer != ring::peer_broker) return doorbells_[peer - 1].ring();
    if (pause_ != 0) return;
    const auto since = Clock::now() - last_;
    if (since >= between_rings) return pass_on();
    pause_ = loop_.after(between_rings - since, [this] {
      pause_ = 0;
      pass_on();
    });
  }

  void pass_on() {
    last_ = Clock::now();
    events_.signalled();
  }

  // The VM exists while a process has its memory open.
  void look_for_vm() {
    const auto now = Clock::now();
    if (now - vm_looked_ < between_vm_looks) return;
    vm_looked_ = now;
    region_.look_at_size();
    const bool there = anybody(), was_there = std::exchange(vm_seen_, there);
    if (there && !was_there) spdlog::debug("{}: a VM has opened its memory", name_);
    if (was_there && !there) {
      spdlog::info("{}: the VM has ended", name_);
      events_.vm_gone();
    }
  }

  EventLoop& loop_;
  const Region& region_;
  const std::string name_;
  const KeptTransport keep_;
  const Events events_;
  std::vector<Doorbell> doorbells_;
  std::unique_ptr<DoorbellPoller> poller_;
  std::string memory_;
  std::unique_ptr<MemoryLink> link_;          // null: the memory is a file
  std::string socket_;                        // "": no channels
  std::unique_ptr<DoorbellServer> channels_;  // after the members that it calls
  bool vm_seen_ = false;
  Clock::time_point vm_looked_, last_;
  EventLoop::Id pause_ = 0;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_plain_transport(EventLoop& loop, const Region& region, const VmOptions& options,
                                                        const BrokerOptions& broker, const KeptTransport& keep,
                                                        Transport::Events events) {
  auto transport = std::make_unique<PlainTransport>(loop, region, options.name, keep, std::move(events));
  if (const auto opened = transport->open(options, broker); !opened) return opened.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace host::broker
