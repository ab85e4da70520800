// What ivgpud says to the service manager that has started it, systemd: that it serves, reads its file again, lives, and
// ends, and which descriptors the manager shall hold (sd_notify(3): a datagram to $NOTIFY_SOCKET). Started otherwise, it
// says nothing.
//
// The manager is trusted. One that does not read must not stop the broker, so a datagram that has no room waits. What waits
// is bounded, though guests cause most of it: a descriptor that is forgotten before it was sent is not sent at all, and so
// many descriptors wait at most. The watchdog's message goes before everything that waits.
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

  // As many as the unit's FileDescriptorStoreMax (tools/host/ivgpud.service.in): the manager holds no more.
  static constexpr std::size_t most_waiting = 16384;

  // Whether there is one that can be told.
  bool is_there() const { return static_cast<bool>(socket_); }
  // Has the manager hold a copy of it under a name, of which it holds none. False: it will not, because too many wait.
  bool keep(const std::string& name, int fd);
  // Has the manager hold it no more (host/base/process/fd_store.h).
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
    std::string name = {};  // of the descriptor to be held; "": none
    Fd fd = {};             // sent beside it
  };
  void connect_to(const char* path);
  void say(Datagram datagram);
  void send_waiting();
  bool send_next();
  bool has_more() const { return watchdog_is_due_ || !waiting_.empty(); }
  void keep_watchdog();

  EventLoop& loop_;
  Fd socket_;
  std::list<Datagram> waiting_;
  std::unordered_map<std::string, std::list<Datagram>::iterator> to_keep_;  // those that wait and hold a descriptor
  bool watchdog_is_due_ = false;
  LogLimiter too_many_;
  std::chrono::microseconds watchdog_{0};  // 0: none
  EventLoop::Id retry_timer_ = 0, watchdog_timer_ = 0;
};

}  // namespace host::broker
