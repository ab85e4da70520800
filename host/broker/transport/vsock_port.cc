#include "host/broker/transport/vsock_port.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace host::broker {
namespace {

// A port becomes free with a delay: the kernel still closes a killed process's io_uring, or the service manager has yet
// to close its copy.
constexpr auto between_tries = std::chrono::milliseconds(10), let_go_within = std::chrono::milliseconds(200);
constexpr auto between_late_tries = std::chrono::milliseconds(500);

}  // namespace

std::string VsockEndpoint::in_words(const std::string& vm, const std::string& error) const {
  return fmt::format("VM {}: vsock_port = {}: {}", vm, port, error);
}

VsockPort::VsockPort(EventLoop& loop, std::string vm, VsockEndpoint endpoint, Listener::Accepted accepted)
    : loop_(loop),
      vm_(std::move(vm)),
      endpoint_(std::move(endpoint)),
      accepted_(std::move(accepted)),
      keeping_(endpoint_.kept_per_second, endpoint_.kept_burst, Clock::now()) {}

Result<void> VsockPort::open() {
  if (endpoint_.socket.socket) return listen();
  retry(Clock::now());
  return {};
}

void VsockPort::close() {
  loop_.forget(timer_);
  listener_.reset();
}

Result<void> VsockPort::listen() {
  const TokenBucket pace(endpoint_.per_second, endpoint_.burst, Clock::now());
  auto listener =
      Listener::open(loop_, std::move(endpoint_.socket), pace, [this](Fd peer) { on_connection(std::move(peer)); });
  if (!listener) return listener.error();
  listener_ = *std::move(listener);
  return {};
}

// Retries while the loop goes on. Programs that find no listener use timed sleeps.
void VsockPort::retry(Clock::time_point since) {
  const bool is_late = Clock::now() - since >= let_go_within;
  timer_ = loop_.after(is_late ? between_late_tries : between_tries, [this, since, is_late] {
    timer_ = 0;
    try_again(since, is_late);
  });
}

void VsockPort::try_again(Clock::time_point since, bool is_late) {
  BoundVsock made = endpoint_.bind(endpoint_.port);
  if (!made.socket) {
    if (!is_late && Clock::now() - since >= let_go_within)
      spdlog::error("{}; the VM's programs use timed sleeps until then", endpoint_.in_words(vm_, made.error));
    return retry(since);
  }
  endpoint_.socket.socket = std::move(made.socket);
  if (const auto listening = listen(); !listening) return spdlog::error("{}", listening.error().message);
  if (is_late) spdlog::info("{}: port {} of vsock is free now", vm_, endpoint_.port);
}

// A program connects: of this VM, of another VM, or of this machine.
void VsockPort::on_connection(Fd peer) {
  const auto cid = cid_of(peer);
  if (cid == endpoint_.cid) return accepted_(std::move(peer));
  if (const auto more = strangers_.admit(); cid && more)
    spdlog::warn("{}: a connection by vsock is refused: it comes from CID {}, and the VM's vsock_cid is {}{}", vm_,
                 *cid, endpoint_.cid, *more);
}

}  // namespace host::broker
