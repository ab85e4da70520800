// The Waiter over epoll, where io_uring is disabled (by a sysctl or a container's filter).
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <stdexcept>

#include "host/base/event_loop.h"

namespace host::broker {
namespace {

static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR && EPOLLHUP == POLLHUP &&
              EPOLLRDHUP == POLLRDHUP);

class EpollWaiter final : public Waiter {
 public:
  EpollWaiter() : fd_(epoll_create1(EPOLL_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("the kernel gives neither io_uring nor epoll");
  }
  ~EpollWaiter() override { close(fd_); }
  const char* name() const override { return "epoll"; }

  void arm(std::uint64_t id, int fd, short events) override {
    epoll_event event{};
    event.events = static_cast<unsigned short>(events) | EPOLLONESHOT;
    event.data.u64 = id;
    if (epoll_ctl(fd_, EPOLL_CTL_MOD, fd, &event) == 0) return;
    if (errno != ENOENT || epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) != 0) failed_.push_back({id, POLLERR});
  }

  void disarm(std::uint64_t id, int fd) override {
    epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr);
    failed_.erase(std::remove_if(failed_.begin(), failed_.end(), [id](const Event& e) { return e.id == id; }),
                  failed_.end());
  }

  void wait(const std::chrono::nanoseconds* timeout, std::vector<Event>& events) override {
    std::array<epoll_event, 64> ready;
    const int count = epoll_wait(fd_, ready.data(), static_cast<int>(ready.size()), milliseconds(timeout));
    for (int i = 0; i < count; ++i) {
      const auto& event = ready[static_cast<std::size_t>(i)];
      events.push_back({event.data.u64, static_cast<short>(event.events)});
    }
    events.insert(events.end(), failed_.begin(), failed_.end());
    failed_.clear();
  }

 private:
  int milliseconds(const std::chrono::nanoseconds* timeout) const {
    if (!failed_.empty()) return 0;
    if (timeout == nullptr) return -1;
    // Rounded up: a wait that ends before the timer is due would be repeated at once.
    return static_cast<int>(std::min<std::int64_t>((timeout->count() + 999'999) / 1'000'000, INT_MAX));
  }

  int fd_;
  std::vector<Event> failed_;  // watches that epoll refused; the next wait reports them
};

}  // namespace

std::unique_ptr<Waiter> make_epoll_waiter() { return std::make_unique<EpollWaiter>(); }

}  // namespace host::broker
