// Notifies systemd, or another service manager, that ivgpud is ready, reloads, lives and stops, and passes it
// descriptors to hold (sd_notify(3): datagrams to $NOTIFY_SOCKET). Without a manager it does nothing.
//
// The manager is trusted, but a manager that does not read must not block the broker: datagrams then wait in a queue.
// The queue is bounded, although guests cause most of it. A descriptor forgotten before it was sent is removed from the
// queue, and at most `most_waiting` descriptors wait. The watchdog's message goes first.
#pragma once

#include <chrono>
#include <list>
#include <string>
#include <unordered_map>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/log_limiter.h"

namespace host::broker {

class ServiceManager {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and removes them from the environment, so that child processes
  // cannot notify in the broker's name.
  explicit ServiceManager(EventLoop& loop);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // Called at the start and at the end of each reload. `status` is one line for `systemctl status`. The first call
  // starts the watchdog messages, two in each period.
  void ready(const std::string& status);
  void reloading();
  void stopping();

  // FileDescriptorStoreMax of the unit (tools/host/ivgpud.service.in): the manager holds no more.
  static constexpr std::size_t most_waiting = 16384;

  // True if a manager is connected.
  bool is_there() const { return static_cast<bool>(socket_); }
  // Has the manager hold a copy under an unused name. False if too many requests wait.
  bool keep(const std::string& name, int fd);
  // Has the manager release it (host/base/process/fd_store.h).
  void forget(const std::string& name);
  // Descriptors that the manager has passed, from 3 on. Removes the variables from the environment.
  struct Passed {
    int count = 0;
    std::string names;  // separated by colons
  };
  static Passed take_passed();
  // Sends the queue as far as the manager reads it within a moment, because this process is about to end.
  void finish();

 private:
  struct Datagram {
    std::string text;
    std::string name = {};  // of the descriptor to hold; "": none
    Fd fd = {};             // attached to the datagram
  };
  void connect_to(const char* path);
  void send_datagram(Datagram datagram);
  void send_waiting();
  bool send_next();
  bool has_more() const { return watchdog_is_due_ || !waiting_.empty(); }
  void keep_watchdog();

  EventLoop& loop_;
  Fd socket_;
  std::list<Datagram> waiting_;
  std::unordered_map<std::string, std::list<Datagram>::iterator>
      to_keep_;  // queued datagrams with a descriptor, by its name
  bool watchdog_is_due_ = false;
  LogLimiter too_many_;
  std::chrono::microseconds watchdog_{0};  // 0: none
  EventLoop::Id retry_timer_ = 0, watchdog_timer_ = 0;
};

}  // namespace host::broker
