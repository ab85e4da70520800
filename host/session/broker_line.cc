#include "host/session/broker_line.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace host {
namespace {

using worker::MemoryWord;

// The broker answers within 100 ms, including the time that other workers take. It reads more slowly when a VM's
// workers send too many messages.
constexpr auto patience = std::chrono::seconds(5);

}  // namespace

bool BrokerLine::say(MemoryWord word, unsigned device, std::uint32_t sequence, std::uint64_t bytes) const {
  const Message message{worker::memory_kind, word, device, sequence, bytes, 0};
  return send(control_, &message, sizeof message, MSG_NOSIGNAL) == sizeof message;
}

std::optional<BrokerLine::Message> BrokerLine::ask(MemoryWord word, unsigned device, std::uint64_t bytes) {
  std::unique_lock lock(mutex_);
  if (closed_) return std::nullopt;
  if (++sequence_ == 0) ++sequence_;
  answer_.reset();
  waiting_ = true;
  question_ = {worker::memory_kind, word, device, sequence_, bytes, 0};
  // The answer may arrive before wait_for() releases the mutex: the doorbell thread then blocks until it does.
  if (say(word, device, sequence_, bytes))
    news_.wait_for(lock, patience, [this] { return answer_.has_value() || closed_; });
  waiting_ = false;
  return answer_;
}

std::uint64_t BrokerLine::borrow(unsigned device, std::uint64_t bytes) {
  const auto answer = ask(MemoryWord::Borrow, device, bytes);
  return answer ? answer->bytes : 0;
}

std::optional<Lender::Room> BrokerLine::room(unsigned device) {
  const auto answer = ask(MemoryWord::Room, device, 0);
  if (!answer || answer->total == worker::unbounded) return std::nullopt;
  return Room{answer->bytes, answer->total};
}

void BrokerLine::answered(const Message& answer) {
  std::unique_lock lock(mutex_);
  if (waiting_ && !answer_ && answer.sequence == sequence_) {
    answer_ = answer;
    news_.notify_one();
    return;
  }
  lock.unlock();
  if (answer.word == MemoryWord::Lend && answer.bytes != 0) say(MemoryWord::Return, answer.device, 0, answer.bytes);
}

bool BrokerLine::hear(DeviceMemory& memory) {
  Message message{};
  const ssize_t length = life_line.receive(control_, message);
  if (length < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (length <= 0) return false;
  if (length == sizeof message && message.kind == worker::adopt_kind) return ask_again(), true;
  if (length != sizeof message || message.kind != worker::memory_kind) return true;  // a message kind of a later broker
  if (message.word == MemoryWord::Collect)
    say(MemoryWord::Return, message.device, message.sequence, memory.collect(message.device));
  else
    answered(message);
  return true;
}

void BrokerLine::ask_again() {
  const std::lock_guard lock(mutex_);
  if (waiting_ && !answer_) say(question_.word, question_.device, question_.sequence, question_.bytes);
}

void BrokerLine::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  news_.notify_all();
}

}  // namespace host
