// What ivgpud says to the service manager that has started it, systemd: that it serves, reads its file again, lives, and
// ends, and which descriptors the manager shall hold (sd_notify(3): a datagram to $NOTIFY_SOCKET). Started otherwise, it
// says nothing.
//
// The manager is trusted. One that does not read must not stop the broker, so a datagram that has no room waits.
#pragma once

#include <chrono>
#include <deque>
#include <string>

#include "host/broker/event_loop.h"
#include "host/broker/fd.h"

namespace host::broker {

class ServiceManager {
 public:
  // Of NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, which it takes out of the environment: the broker's children are
  // not to speak in its name.
  explicit ServiceManager(EventLoop& loop);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // At the start, and at the end of each reload. `status` is one line for `systemctl status`. From the first on, the
  // manager hears twice in each of its watchdog's periods that the loop turns.
  void ready(const std::string& status);
  void reloading();
  void stopping();

  // Whether there is one that can be told.
  bool is_there() const { return static_cast<bool>(socket_); }
  // Has the manager hold a copy of it under a name, or hold it no more (host/broker/fd_store.h).
  void keep(const std::string& name, int fd);
  void forget(const std::string& name);
  // What the manager has passed this process, from descriptor 3 on: taken out of the environment, too.
  struct Passed {
    int count = 0;
    std::string names;  // with colons between them
  };
  static Passed take_passed();
  // What waits is said, as far as the manager reads within a moment: this process is about to end.
  void finish();

 private:
  struct Datagram {
    std::string text;
    Fd fd;  // sent beside it; empty: none
  };
  void connect_to(const char* path);
  void say(const std::string& text, Fd fd = {});
  void send_waiting();
  void keep_watchdog();

  EventLoop& loop_;
  Fd socket_;
  std::deque<Datagram> waiting_;
  std::chrono::microseconds watchdog_{0};  // 0: none
  EventLoop::Id retry_timer_ = 0, watchdog_timer_ = 0;
};

}  // namespace host::broker
