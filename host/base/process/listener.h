// A listening socket at a path that nobody else serves: bound under a lock, with the permissions of the configuration,
// and gone with its lock when this object goes. Or one that is bound already, which has none of these. Its clients are
// handed out as they come, or so many a second.
//
// With a store it listens on while one broker follows another, and whoever connects meanwhile waits for the next. That one
// takes it if it is the socket at the path still, with the permissions of the configuration; else it makes another.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/loopback_address.h"
#include "host/base/owner.h"
#include "host/base/process/fd_store.h"
#include "host/base/rate.h"

namespace host::broker {

struct ListenerOptions {
  std::string path;  // a lock file lies beside it
  FileAccess access;
  std::string keys = "socket";  // the beginning of its keys in the configuration
  FdStore* store = nullptr;     // which keeps it for the next broker; null: it ends with this one
  // Clients that come faster wait in the socket's queue, and those that find it full are refused.
  std::optional<TokenBucket> pace = {};
};

// Of a VM's socket. Each client that is let in is two messages to the service manager, which serves all VMs. A program
// connects once, and needs a worker: `starts_per_second` lets 20 a second begin by default. The burst lets all clients
// that a VM may have by default (`connections`) come back at once.
inline TokenBucket pace_of_guests() { return {200, 200, Clock::now()}; }

// One that is bound already, of a family without paths.
struct BoundSocket {
  Fd socket;
  std::string name;          // what sentences call it
  FdStore* store = nullptr;  // which keeps it for the next broker, as `kept_as`; null: it ends with this one
  std::string kept_as = {};
  bool is_kept = false;  // it is an earlier broker's, and listens
};

// How the names begin by which the store has them. No VM's descriptor: these have a slash.
inline constexpr const char* kept_listener = "listen-";
bool is_listening(const Fd& fd);
// Sockets that an earlier broker has left and this one did not take: what is still at their paths is removed.
void remove_left_sockets(const FdStore& store);

// True if a socket can have this path; else `error` is one sentence.
bool socket_path_fits(const std::string& path, std::string& error);
// The remedy that lets this user make files in a folder, to follow an error of it: "; user 1000 may not ..."; "" for
// other errors.
std::string folder_remedy(const std::string& folder, int error);

class Listener {
 public:
  using Accepted = std::function<void(Fd client)>;  // close-on-exec, non-blocking

  // Null on failure, and `error` is one sentence: another broker serves this socket, the path is no socket's, ...
  static std::unique_ptr<Listener> open(EventLoop& loop, const ListenerOptions& options, Accepted accepted,
                                        std::string& error);
  static std::unique_ptr<Listener> open(EventLoop& loop, const LoopbackAddress& address, Accepted accepted,
                                        std::string& error);
  // `pace`: as of ListenerOptions.
  static std::unique_ptr<Listener> open(EventLoop& loop, BoundSocket bound, std::optional<TokenBucket> pace,
                                        Accepted accepted, std::string& error);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  Listener(EventLoop& loop, const ListenerOptions& options, Accepted accepted)
      : loop_(loop), options_(options), accepted_(std::move(accepted)), pace_(options.pace) {}
  bool start(std::string& error);
  bool lock(std::string& error);
  bool adopt_socket();
  bool bind_socket(std::string& error);
  bool set_permissions(std::string& error);
  void keep();
  void watch();
  void on_connection();
  void pause(Clock::duration time, bool owes = false);

  EventLoop& loop_;
  const ListenerOptions options_;  // of one that was bound already: the path is its name
  const Accepted accepted_;
  Fd lock_, socket_;
  std::optional<TokenBucket> pace_;
  EventLoop::Id watch_ = 0, timer_ = 0;
  bool bound_ = false;
  std::string kept_as_;  // "": it is not kept
};

}  // namespace host::broker
