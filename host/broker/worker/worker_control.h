// The broker's end of one worker's control socket.
//
// WorkerProcess owns it. Thread: the broker's loop.
//
// Trust: a guest may control the worker. Each message is checked byte by byte, and read at a limited rate. A descriptor is
// accepted beside the first message alone, and only where `listener` takes it.
#pragma once

#include <cstddef>
#include <functional>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/process/control.h"
#include "host/base/rate.h"

namespace host::broker {

class WorkerControl {
 public:
  struct Events {
    std::function<void(const worker::ReadyMessage&)> ready;
    // Called before `ready` with the descriptor beside the message. Null: none is accepted.
    std::function<void(Fd)> listener = {};
    // Returns false if the message breaks the protocol. Null: none is allowed.
    std::function<bool(const worker::MemoryMessage&)> memory = {};
    // A message has broken the protocol.
    std::function<void()> broken;
  };
  // `is_ready`: an earlier broker has read the first message.
  WorkerControl(EventLoop& loop, Fd socket, bool is_ready, Events events);
  ~WorkerControl();
  WorkerControl(const WorkerControl&) = delete;
  WorkerControl& operator=(const WorkerControl&) = delete;

  void watch();
  void stop_reading();
  // Asks the worker to end.
  void shut();
  // False if the worker does not read, or has gone.
  [[nodiscard]] bool send(const worker::MemoryMessage& message) const;
  // Tells the worker of an earlier broker that this one takes it over. True even if it has ended; the loop sees that later.
  [[nodiscard]] bool adopt(int life_fd) const;
  int fd() const { return socket_.get(); }

 private:
  void on_readable();
  bool take(const void* bytes, std::size_t length, int flags, Fd beside);
  void pause(Clock::duration pause);

  EventLoop& loop_;
  const Fd socket_;
  const Events events_;
  EventLoop::Id watch_ = 0, timer_ = 0;
  // Each message costs the broker a few microseconds.
  static constexpr int messages_per_second = 200, message_burst = 100;
  TokenBucket messages_{messages_per_second, message_burst, Clock::now()};
  bool is_ready_;
};

}  // namespace host::broker
