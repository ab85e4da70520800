#include "host/scheduler/scheduler_queues.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

namespace host::scheduler {
namespace {

void signal_eventfd(const broker::Fd& fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = write(fd.get(), &one, sizeof one);
}

}  // namespace

// Deletes the remaining messages, because Boost's queue does not destroy its remaining elements.
SchedulerQueues::~SchedulerQueues() {
  messages_.consume_all([](const Message&) {});
  drop_reports();
}

bool SchedulerQueues::open() {
  for (broker::Fd* fd : {&lost_, &post_}) fd->reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return lost_ && post_;
}

void SchedulerQueues::send(const Message& message) {
  // The scheduler's thread empties the queue within a millisecond.
  while (!messages_.push(message)) std::this_thread::yield();
  signal_eventfd(post_);
}

void SchedulerQueues::drop_reports() {
  reports_.consume_all([](const Report&) {});
}

bool SchedulerQueues::take_lost() {
  std::uint64_t times;
  return read(lost_.get(), &times, sizeof times) == sizeof times;
}

void SchedulerQueues::drain_post() {
  std::uint64_t count;
  [[maybe_unused]] const auto n = read(post_.get(), &count, sizeof count);
}

void SchedulerQueues::report_lost() { signal_eventfd(lost_); }

}  // namespace host::scheduler
