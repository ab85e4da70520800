// The Waiter over io_uring. arm() and disarm() queue requests, and the next wait submits them.
#include <liburing.h>
#include <poll.h>

#include "host/base/event_loop.h"

namespace host::broker {
namespace {

// Enough for an iteration of a busy VM. A full queue is submitted early; the kernel keeps completions that overflow.
constexpr unsigned queue_entries = 256;
// Then the loop runs its timers, as with epoll: 4096 connections may close at once.
constexpr std::size_t most_events = 64;
constexpr std::uint64_t unawaited = 0;  // user data of cancellations, whose completions are ignored

class UringWaiter final : public Waiter {
 public:
  bool open() { return opened_ = io_uring_queue_init(queue_entries, &ring_, 0) == 0; }
  ~UringWaiter() override {
    if (opened_) io_uring_queue_exit(&ring_);
  }
  const char* name() const override { return "io_uring"; }

  void arm(std::uint64_t id, int fd, short events) override {
    io_uring_sqe* request = next_request();
    io_uring_prep_poll_add(request, fd, static_cast<unsigned>(static_cast<unsigned short>(events)));
    io_uring_sqe_set_data64(request, id);
  }

  void disarm(std::uint64_t id, int) override {
    io_uring_sqe* request = next_request();
    io_uring_prep_poll_remove(request, id);
    io_uring_sqe_set_data64(request, unawaited);
  }

  void wait(const std::chrono::nanoseconds* timeout, std::vector<Event>& events) override {
    io_uring_cqe* completion = nullptr;
    if (timeout == nullptr) {
      io_uring_submit_and_wait(&ring_, 1);
    } else {
      __kernel_timespec limit{timeout->count() / 1'000'000'000, timeout->count() % 1'000'000'000};
      io_uring_submit_and_wait_timeout(&ring_, &completion, 1, &limit, nullptr);
    }
    while (events.size() < most_events && io_uring_peek_cqe(&ring_, &completion) == 0 && completion != nullptr) {
      const std::uint64_t id = io_uring_cqe_get_data64(completion);
      if (id != unawaited && id != LIBURING_UDATA_TIMEOUT && completion->res != -ECANCELED) {
        events.push_back({id, completion->res < 0 ? static_cast<short>(POLLERR) : static_cast<short>(completion->res)});
      }
      io_uring_cqe_seen(&ring_, completion);
    }
  }

 private:
  io_uring_sqe* next_request() {
    io_uring_sqe* request = io_uring_get_sqe(&ring_);
    while (request == nullptr) {
      io_uring_submit(&ring_);
      request = io_uring_get_sqe(&ring_);
    }
    return request;
  }

  io_uring ring_{};
  bool opened_ = false;
};

}  // namespace

std::unique_ptr<Waiter> make_uring_waiter() {
  auto waiter = std::make_unique<UringWaiter>();
  if (!waiter->open()) return nullptr;
  return waiter;
}

}  // namespace host::broker
