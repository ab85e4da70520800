#include "host/base/process/service_manager.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <thread>
#include <utility>

#include "host/base/fd_message.h"

namespace host::broker {
namespace {

constexpr auto retry_after = std::chrono::milliseconds(20);

// Removes a variable from the environment and returns its value; "" if unset.
std::string take_environment(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value != nullptr ? value : "";
  unsetenv(name);
  return text;
}

// 0 unless the whole text is a number.
std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc() && end == text.data() + text.size() ? number : 0;
}

std::int64_t monotonic_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace

ServiceManager::ServiceManager(EventLoop& loop) : loop_(loop) {
  const std::string path = take_environment("NOTIFY_SOCKET"), period = take_environment("WATCHDOG_USEC"),
                    watched = take_environment("WATCHDOG_PID");
  if (!path.empty()) connect_to(path.c_str());
  // The variables are meant for another process if WATCHDOG_PID names its parent, for example.
  if (watched.empty() || number_in(watched) == getpid()) watchdog_ = std::chrono::microseconds(number_in(period));
}

ServiceManager::~ServiceManager() {
  finish();
  loop_.forget(retry_timer_);
  loop_.forget(watchdog_timer_);
}

void ServiceManager::connect_to(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  const auto give_up = [&](const char* why) {
    socket_.reset();
    spdlog::warn("NOTIFY_SOCKET={}: {}; the service manager is not told that ivgpud serves", path, why);
  };
  // '@' begins the name of an abstract socket, and stands for NUL.
  if ((path[0] != '/' && path[0] != '@') || length < 2) return give_up("neither a path nor @ and a name");
  if (length >= sizeof address.sun_path) return give_up("too long");
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const std::size_t bytes = offsetof(sockaddr_un, sun_path) + length + (path[0] == '/' ? 1 : 0);
  socket_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_ || connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), static_cast<socklen_t>(bytes)) != 0)
    give_up(std::strerror(errno));
}

void ServiceManager::ready(const std::string& status) {
  send_datagram({fmt::format("READY=1\nSTATUS={}", status)});
  if (watchdog_timer_ == 0) keep_watchdog();
}

// The time lets the manager match this reload with its own request (Type=notify-reload).
void ServiceManager::reloading() { send_datagram({fmt::format("RELOADING=1\nMONOTONIC_USEC={}", monotonic_us())}); }

void ServiceManager::stopping() { send_datagram({"STOPPING=1"}); }

// FDPOLL=0: otherwise the manager drops a descriptor whose peer has closed, and the next broker would miss it.
bool ServiceManager::keep(const std::string& name, int fd) {
  if (!socket_) return false;
  Fd copy(to_keep_.size() < most_waiting ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1);
  if (!copy) {
    const int why = errno;
    if (const auto more = too_many_.admit())
      spdlog::warn("{} is not kept for the next ivgpud: {}{}", name,
                   to_keep_.size() < most_waiting ? std::strerror(why) : "the service manager does not read", *more);
    return false;
  }
  send_datagram({fmt::format("FDSTORE=1\nFDNAME={}\nFDPOLL=0", name), name, std::move(copy)});
  return true;
}

void ServiceManager::forget(const std::string& name) {
  const auto waits = to_keep_.find(name);
  if (waits == to_keep_.end()) return send_datagram({fmt::format("FDSTOREREMOVE=1\nFDNAME={}", name)});
  waiting_.erase(waits->second);
  to_keep_.erase(waits);
}

ServiceManager::Passed ServiceManager::take_passed() {
  const std::string process = take_environment("LISTEN_PID"), count = take_environment("LISTEN_FDS");
  Passed passed{0, take_environment("LISTEN_FDNAMES")};
  constexpr std::int64_t most = 1 << 20;
  if (number_in(process) == getpid())
    passed.count = static_cast<int>(std::clamp<std::int64_t>(number_in(count), 0, most));
  return passed;
}

void ServiceManager::send_datagram(Datagram datagram) {
  if (!socket_) return;
  waiting_.push_back(std::move(datagram));
  if (const Datagram& last = waiting_.back(); last.fd) to_keep_[last.name] = std::prev(waiting_.end());
  if (retry_timer_ == 0) send_waiting();
}

void ServiceManager::send_waiting() {
  while (has_more() && send_next()) {
  }
}

// False if the socket is full, and a timer retries, or if the connection has failed.
bool ServiceManager::send_next() {
  static constexpr std::string_view alive = "WATCHDOG=1";
  const std::string_view text = watchdog_is_due_ ? alive : waiting_.front().text;
  const int fd = watchdog_is_due_ ? -1 : waiting_.front().fd.get();
  if (send_with_fd(socket_.get(), text.data(), text.size(), fd) >= 0) {
    if (std::exchange(watchdog_is_due_, false)) return true;
    to_keep_.erase(waiting_.front().name);
    waiting_.pop_front();
    return true;
  }
  if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ETOOMANYREFS) {
    retry_timer_ = loop_.after(retry_after, [this] {
      retry_timer_ = 0;
      send_waiting();
    });
    return false;
  }
  spdlog::warn("the service manager cannot be told anything: {}", std::strerror(errno));
  socket_.reset();
  waiting_.clear();
  to_keep_.clear();
  watchdog_is_due_ = false;
  return false;
}

void ServiceManager::finish() {
  for (int tries = 0; tries < 20 && has_more(); ++tries) {
    loop_.forget(retry_timer_);
    send_waiting();
    if (has_more()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// One pending watchdog message is enough.
void ServiceManager::keep_watchdog() {
  if (!socket_ || watchdog_ <= std::chrono::microseconds(0)) return;
  watchdog_is_due_ = true;
  if (retry_timer_ == 0) send_waiting();
  watchdog_timer_ = loop_.after(watchdog_ / 2, [this] { keep_watchdog(); });
}

}  // namespace host::broker
