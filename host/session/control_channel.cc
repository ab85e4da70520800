#include "host/session/control_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "ring/base/mutex.h"

namespace host {
namespace {

using worker::MemoryWord;

// The broker answers within 100 ms, including the time that other workers take. The broker reads more slowly if a VM's
// workers send too many messages.
constexpr auto patience = std::chrono::seconds(5);

}  // namespace

bool ControlChannel::send_message(MemoryWord word, unsigned device, std::uint32_t sequence, std::uint64_t bytes) const {
  const Message message{worker::memory_kind, word, device, sequence, bytes, 0};
  return send(control_, &message, sizeof message, MSG_NOSIGNAL) == sizeof message;
}

std::optional<ControlChannel::Message> ControlChannel::ask(MemoryWord word, unsigned device, std::uint64_t bytes) {
  ring::UniqueLock lock(mutex_);
  if (closed_) return std::nullopt;
  if (++sequence_ == 0) ++sequence_;
  answer_.reset();
  waiting_ = true;
  question_ = {worker::memory_kind, word, device, sequence_, bytes, 0};
  // The answer may arrive before wait_for() releases the mutex. The doorbell thread then blocks until the mutex is
  // free.
  if (send_message(word, device, sequence_, bytes))
    news_.wait_for(lock.native(), patience, [this]() REQUIRES(mutex_) { return answer_.has_value() || closed_; });
  waiting_ = false;
  return answer_;
}

std::uint64_t ControlChannel::reserve(unsigned device, std::uint64_t bytes) {
  const auto answer = ask(MemoryWord::Reserve, device, bytes);
  return answer ? answer->bytes : 0;
}

std::optional<MemoryReserver::Headroom> ControlChannel::headroom(unsigned device) {
  const auto answer = ask(MemoryWord::Headroom, device, 0);
  if (!answer || answer->total == worker::unbounded) return std::nullopt;
  return Headroom{answer->bytes, answer->total};
}

void ControlChannel::answered(const Message& answer) {
  ring::UniqueLock lock(mutex_);
  if (waiting_ && !answer_ && answer.sequence == sequence_) {
    answer_ = answer;
    news_.notify_one();
    return;
  }
  lock.unlock();
  if (answer.word == MemoryWord::Reserved && answer.bytes != 0)
    send_message(MemoryWord::Return, answer.device, 0, answer.bytes);
}

bool ControlChannel::hear(DeviceMemory& memory) {
  Message message{};
  const ssize_t length = liveness_pipe.receive(control_, message);
  if (length < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (length <= 0) return false;
  if (length == sizeof message && message.kind == worker::adopt_kind) {
    ask_again();
    return true;
  }
  if (length != sizeof message || message.kind != worker::memory_kind) return true;  // a message kind of a newer broker
  if (message.word == MemoryWord::Collect)
    send_message(MemoryWord::Return, message.device, message.sequence, memory.collect(message.device));
  else
    answered(message);
  return true;
}

void ControlChannel::ask_again() {
  const ring::MutexLock lock(mutex_);
  if (waiting_ && !answer_) send_message(question_.word, question_.device, question_.sequence, question_.bytes);
}

void ControlChannel::close() {
  const ring::MutexLock lock(mutex_);
  closed_ = true;
  news_.notify_all();
}

}  // namespace host
