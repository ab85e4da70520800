// A listening Unix socket with a lock, so that no second broker serves its path. It has the configured permissions, and
// the destructor removes socket and lock. It can also serve a socket that the caller has bound, without lock and
// permissions. Clients are handed out as they come, or at a limited rate.
//
// With a store the socket keeps listening while one broker follows another, and new clients wait for the next broker.
// The next broker takes it over if it is still the socket at the path, with the configured permissions.
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
#include "host/base/result.h"

namespace host::broker {

struct ListenerOptions {
  std::string path;  // a lock file lies beside it
  FileAccess access;
  std::string keys = "socket";  // prefix of its keys in the configuration
  FdStore* store = nullptr;     // keeps the socket for the next broker; null: it ends with this broker
  // Faster clients wait in the socket's queue; the kernel refuses clients when the queue is full.
  std::optional<TokenBucket> pace = {};
};

// The pace for a VM's socket. Each accepted client costs two messages to the service manager, which all VMs share.
// Programs start at most 20 a second by default (`starts_per_second`). The burst lets all clients of a VM's default
// `connections` reconnect at once.
inline TokenBucket pace_of_guests() { return {200, 200, Clock::now()}; }

// A socket that the caller has bound, of an address family without paths.
struct BoundSocket {
  Fd socket;
  std::string name;          // its name in messages
  FdStore* store = nullptr;  // keeps it for the next broker under `kept_as`; null: it ends with this broker
  std::string kept_as = {};
  bool is_kept = false;  // an earlier broker left it, already listening
};

// Prefix of sockets in the store. Names of VMs' descriptors contain a slash, so they never collide.
inline constexpr const char* kept_listener = "listen-";
[[nodiscard]] bool is_listening(const Fd& fd);
// Removes the files of sockets that an earlier broker left and this broker did not take.
void remove_left_sockets(const FdStore& store);

// An error, one sentence, if the path is too long for a socket.
Result<void> socket_path_fits(const std::string& path);
// The remedy to append to an error of making a file in a folder: "; user 1000 may not ..."; "" for other errors.
std::string folder_remedy(const std::string& folder, int error);

class Listener {
 public:
  using Accepted = std::function<void(Fd client)>;  // close-on-exec, non-blocking

  // The error is one sentence: another broker serves this socket, the path is not a socket, ...
  static Result<std::unique_ptr<Listener>> open(EventLoop& loop, const ListenerOptions& options, Accepted accepted);
  static Result<std::unique_ptr<Listener>> open(EventLoop& loop, const LoopbackAddress& address, Accepted accepted);
  // `pace` as in ListenerOptions.
  static Result<std::unique_ptr<Listener>> open(EventLoop& loop, BoundSocket bound, std::optional<TokenBucket> pace,
                                                Accepted accepted);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  Listener(EventLoop& loop, const ListenerOptions& options, Accepted accepted)
      : loop_(loop), options_(options), accepted_(std::move(accepted)), pace_(options.pace) {}
  Result<void> start();
  Result<void> lock();
  bool adopt_socket();
  Result<void> bind_socket();
  Result<void> set_permissions();
  void keep();
  void watch();
  void on_connection();
  void pause(Clock::duration time, bool owes = false);

  EventLoop& loop_;
  const ListenerOptions options_;  // `path` holds the name of a socket that was already bound
  const Accepted accepted_;
  Fd lock_, socket_;
  std::optional<TokenBucket> pace_;
  EventLoop::Id watch_ = 0, timer_ = 0;
  bool bound_ = false;
  std::string kept_as_;  // "": not kept
};

}  // namespace host::broker
