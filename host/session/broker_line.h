// A worker's line to its broker once it serves: by it the session borrows device memory, and learns that it shall end.
//
// A channel's thread asks and sleeps; the bell thread, which alone reads the socket, wakes it. What a thread asked for and
// did not wait for goes back to the broker. The broker is believed. Another broker than the one that was asked may not know
// of the question, so it is asked again; a second answer to it is one that nobody waits for.
//
// Thread-safety: borrow() and room() from any thread, one at a time; hear() from the bell thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "host/base/process/control.h"
#include "host/base/process/life_line.h"
#include "host/session/memory/device_memory.h"

namespace host {

class BrokerLine : public Lender {
 public:
  // `control`: the socket, which stays the caller's. The others: of the LifeLine.
  explicit BrokerLine(int control, int life = -1, std::chrono::milliseconds outlive = {}, bool rung_by_broker = false)
      : life_line(life, outlive, rung_by_broker), control_(control) {}

  std::uint64_t borrow(unsigned device, std::uint64_t bytes) override;
  std::optional<Room> room(unsigned device) override;

  // Reads what has come. False: the broker has closed the socket, and the worker shall end.
  bool hear(DeviceMemory& memory);
  // Nobody hears any more: whoever asks, or has asked, gets nothing.
  void close();

  worker::LifeLine life_line;  // the bell thread's

 private:
  using Message = worker::MemoryMessage;
  std::optional<Message> ask(worker::MemoryWord word, unsigned device, std::uint64_t bytes);
  bool say(worker::MemoryWord word, unsigned device, std::uint32_t sequence, std::uint64_t bytes) const;
  void answered(const Message& answer);
  void ask_again();

  const int control_;
  std::mutex mutex_;  // for the members below
  std::condition_variable news_;
  std::uint32_t sequence_ = 0;  // of the question
  bool waiting_ = false, closed_ = false;
  Message question_{};  // while it waits
  std::optional<Message> answer_;
};

}  // namespace host
