// The worker's side of the control channel while the worker serves. Through this channel, the session reserves device
// memory, and learns that it must end.
//
// A channel's thread sends a question and sleeps; the doorbell thread, the only reader of the socket, wakes this
// thread. If the thread has stopped waiting, the grant goes back to the broker. The broker is trusted. A restarted
// broker may not know the open question, so the question is sent again; an unexpected second answer is discarded.
//
// Thread-safety: borrow() and room() from any thread, one at a time; hear() from the doorbell thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <optional>

#include "host/base/process/control.h"
#include "host/base/process/liveness_pipe.h"
#include "host/session/memory/device_memory.h"
#include "ring/base/mutex.h"

namespace host {

class ControlChannel : public MemoryReserver {
 public:
  // `control`: the socket, which the caller owns. The other arguments are passed to LivenessPipe.
  explicit ControlChannel(int control, int life = -1, std::chrono::milliseconds outlive = {},
                          bool doorbell_by_broker = false)
      : liveness_pipe(life, outlive, doorbell_by_broker), control_(control) {}

  std::uint64_t reserve(unsigned device, std::uint64_t bytes) override;
  std::optional<Headroom> headroom(unsigned device) override;

  // Reads pending messages. Returns false if the broker has closed the socket, so that the worker must end.
  bool hear(DeviceMemory& memory);
  // Ends all questions, present and future, without an answer. Called when hear() is not called any more.
  void close();

  worker::LivenessPipe liveness_pipe;  // used only by the doorbell thread

 private:
  using Message = worker::MemoryMessage;
  std::optional<Message> ask(worker::MemoryWord word, unsigned device, std::uint64_t bytes);
  bool send_message(worker::MemoryWord word, unsigned device, std::uint32_t sequence, std::uint64_t bytes) const;
  void answered(const Message& answer);
  void ask_again();

  const int control_;
  ring::Mutex mutex_;
  std::condition_variable news_;
  std::uint32_t sequence_ GUARDED_BY(mutex_) = 0;  // the number of the last question
  bool waiting_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
  Message question_ GUARDED_BY(mutex_){};  // valid while waiting_ is set
  std::optional<Message> answer_ GUARDED_BY(mutex_);
};

}  // namespace host
