#include "host/broker/worker/worker_control.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "host/base/fd_message.h"
#include "host/broker/worker/worker_message.h"

namespace host::broker {

WorkerControl::WorkerControl(EventLoop& loop, Fd socket, bool is_ready, Events events)
    : loop_(loop), socket_(std::move(socket)), events_(std::move(events)), is_ready_(is_ready) {}

WorkerControl::~WorkerControl() { stop_reading(); }

void WorkerControl::watch() {
  watch_ = loop_.watch(socket_.get(), POLLIN, [this](short) { on_readable(); });
}

void WorkerControl::stop_reading() {
  loop_.forget(watch_);
  loop_.forget(timer_);
}

// Not just close(): a poll request in the kernel would keep the socket open.
void WorkerControl::shut() {
  stop_reading();
  shutdown(socket_.get(), SHUT_RDWR);
}

bool WorkerControl::send(const worker::MemoryMessage& message) const {
  return send_now(socket_.get(), &message, sizeof message) == sizeof message;
}

bool WorkerControl::adopt(int life_fd) const {
  worker::MemoryMessage words{};
  words.kind = worker::adopt_kind;
  return send_with_fd(socket_.get(), &words, sizeof words, life_fd) == sizeof words || errno == EPIPE ||
         errno == ECONNRESET;
}

void WorkerControl::on_readable() {
  std::array<char, sizeof(worker::ReadyMessage) + 1> bytes;
  iovec data{bytes.data(), bytes.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};  // no space for descriptors: the kernel discards those sent
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!is_ready_ && events_.listener) header.msg_control = room, header.msg_controllen = CMSG_LEN(sizeof(int));
  const ssize_t length = receive_now(socket_.get(), header);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (length <= 0) {  // the worker is about to exit
    loop_.forget(watch_);
    return;
  }
  if (!take(bytes.data(), static_cast<std::size_t>(length), header.msg_flags, fd_beside(header)))
    return events_.broken();
  if (const auto wait = messages_.take(Clock::now()); wait != Span::zero() && watch_ != 0) pause(wait);
}

bool WorkerControl::take(const void* bytes, std::size_t length, int flags, Fd beside) {
  if (is_ready_) {
    const auto message = parse_memory(bytes, length, flags);
    return message && events_.memory && events_.memory(*message);
  }
  const auto message = parse_ready(bytes, length, flags);
  if (!message) return false;
  is_ready_ = true;
  if (beside) events_.listener(std::move(beside));
  events_.ready(*message);
  return true;
}

// Stops reading a worker that sends too much: its socket fills, and it blocks.
void WorkerControl::pause(Clock::duration pause) {
  loop_.forget(watch_);
  timer_ = loop_.after(pause, [this] {
    timer_ = 0;
    watch();
  });
}

}  // namespace host::broker
