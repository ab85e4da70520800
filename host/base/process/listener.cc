#include "host/base/process/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "host/base/mark.h"

namespace host::broker {

namespace {

constexpr int accepts_per_wakeup = 16;  // then the loop serves other clients

// Identifies the socket file by device and inode, which stay unique while its socket is kept. "": no socket at the
// path.
std::string file_in_words(const std::string& path) {
  struct stat there {};
  if (lstat(path.c_str(), &there) != 0 || !S_ISSOCK(there.st_mode)) return "";
  return fmt::format("{}{:x}-{:x}-", kept_listener, there.st_dev, there.st_ino);
}

// The name in the store. It changes with the file and with the configured permissions.
std::string kept_name(const ListenerOptions& options) {
  const auto& [mode, owner, group] = options.access;
  const std::string file = file_in_words(options.path);
  return file.empty() ? "" : fmt::format("{}{:x}", file, mark_of(fmt::format("{:o}\n{}\n{}", mode, owner, group)));
}

std::string path_of(const Fd& socket) {
  sockaddr_un address{};
  socklen_t size = sizeof address - 1;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 || address.sun_family != AF_UNIX)
    return "";
  return address.sun_path;
}

}  // namespace

bool is_listening(const Fd& fd) {
  int answer = 0;
  socklen_t size = sizeof answer;
  return getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &answer, &size) == 0 && answer == 1;
}

void remove_left_sockets(const FdStore& store) {
  for (const std::string& name : store.left(kept_listener)) {
    const std::string path = path_of(store.peek(name)), file = file_in_words(path);
    if (file.empty() || !name.starts_with(file)) continue;
    unlink(path.c_str());
    unlink((path + ".lock").c_str());
  }
}

std::string folder_remedy(const std::string& folder, int error) {
  if (error != EACCES && error != EPERM && error != EROFS) return "";
  return fmt::format(
      "; user {} may not make files in {}: set [broker] runtime_dir to a folder of its own, give it that one, or start "
      "ivgpud as root",
      geteuid(), folder);
}

Result<std::unique_ptr<Listener>> Listener::open(EventLoop& loop, const ListenerOptions& options, Accepted accepted) {
  std::unique_ptr<Listener> listener(new Listener(loop, options, std::move(accepted)));
  if (const auto locked = listener->lock(); !locked) return locked.error();
  if (listener->adopt_socket()) return listener;
  if (const auto bound = listener->bind_socket(); !bound) return bound.error();
  if (const auto permitted = listener->set_permissions(); !permitted) return permitted.error();
  if (const auto started = listener->start(); !started) return started.error();
  listener->keep();
  return listener;
}

Result<std::unique_ptr<Listener>> Listener::open(EventLoop& loop, const LoopbackAddress& address, Accepted accepted) {
  Fd bound = bind_to(address);
  if (!bound) return Error{fmt::format("{}: {}", in_words(address), std::strerror(errno))};
  return open(loop, {std::move(bound), in_words(address)}, std::nullopt, std::move(accepted));
}

Result<std::unique_ptr<Listener>> Listener::open(EventLoop& loop, BoundSocket bound, std::optional<TokenBucket> pace,
                                                 Accepted accepted) {
  const ListenerOptions options{bound.name, {}, "", bound.store, pace};
  std::unique_ptr<Listener> listener(new Listener(loop, options, std::move(accepted)));
  listener->socket_ = std::move(bound.socket);
  if (const auto started = listener->start(); !started) return started.error();
  if (bound.store == nullptr) return listener;
  listener->kept_as_ = bound.kept_as;
  if (!bound.is_kept) bound.store->keep(bound.kept_as, listener->socket_.get());
  return listener;
}

Result<void> Listener::start() {
  if (listen(socket_.get(), 64) != 0) return Error{fmt::format("{}: listen: {}", options_.path, std::strerror(errno))};
  watch();
  return {};
}

// shutdown() refuses clients at once: the loop's io_uring request may hold the socket open for a moment. A socket that
// the service manager keeps is not shut down, because the next broker serves it.
Listener::~Listener() {
  if (kept_as_.empty() && socket_) shutdown(socket_.get(), SHUT_RDWR);
  loop_.forget(watch_);
  loop_.forget(timer_);
  if (!kept_as_.empty()) options_.store->forget(kept_as_);
  if (bound_) unlink(options_.path.c_str());
  // Unlink while the lock is held: a process that then locks the old file sees that the path has another inode.
  if (lock_) unlink((options_.path + ".lock").c_str());
}

// One broker per socket. The kernel releases the lock when the process ends, for whatever reason.
Result<void> Listener::lock() {
  const std::string path = options_.path + ".lock";
  for (int attempt = 0; attempt < 10; ++attempt) {
    Fd file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) {
      const int why = errno;
      const std::string folder = std::filesystem::path(path).parent_path();
      return Error{fmt::format("{}: {}{}", path, std::strerror(why), folder_remedy(folder, why))};
    }
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0)
      return Error{fmt::format("{}: another ivgpud serves this socket ({} is locked)", options_.path, path)};
    struct stat held {
    }, named{};
    if (fstat(file.get(), &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
        held.st_dev == named.st_dev) {
      lock_ = std::move(file);
      return {};
    }
  }
  return Error{fmt::format("{}: the lock file changes all the time", path)};
}

Result<void> socket_path_fits(const std::string& path) {
  constexpr std::size_t room = sizeof sockaddr_un::sun_path;
  if (path.size() < room) return {};
  return Error{fmt::format("{}: a socket's path has {} characters at most, this has {}", path, room - 1, path.size())};
}

bool Listener::adopt_socket() {
  const std::string name = options_.store != nullptr ? kept_name(options_) : "";
  if (name.empty() || !options_.store->has(name)) return false;
  if (!is_listening(options_.store->peek(name))) {
    options_.store->forget(name);  // frees the file's inode number for the next socket
    return false;
  }
  socket_ = options_.store->take(name);
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  kept_as_ = name;
  bound_ = true;
  watch();
  return true;
}

void Listener::keep() {
  if (options_.store == nullptr) return;
  kept_as_ = kept_name(options_);
  if (!kept_as_.empty()) options_.store->keep(kept_as_, socket_.get());
}

Result<void> Listener::bind_socket() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (const auto fits = socket_path_fits(options_.path); !fits) return fits.error();
  options_.path.copy(address.sun_path, sizeof address.sun_path - 1);
  struct stat there {};
  if (lstat(options_.path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) return Error{fmt::format("{}: is in the way and no socket", options_.path)};
    unlink(options_.path.c_str());  // left by a dead broker; a live one would hold the lock
  }
  socket_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // No client may connect before the configured permissions are set.
  const mode_t before = umask(0177);
  bound_ = socket_ && bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  const int why = errno;
  umask(before);
  if (!bound_) return Error{fmt::format("{}: {}", options_.path, std::strerror(why))};
  return {};
}

Result<void> Listener::set_permissions() {
  const auto failure = [&](const char* key, const std::string& value, const std::string& why) {
    return Error{fmt::format("{}: {}_{} = \"{}\": {}", options_.path, options_.keys, key, value, why)};
  };
  const auto& [mode, owner, group] = options_.access;
  auto uid = static_cast<uid_t>(-1);
  auto gid = static_cast<gid_t>(-1);
  if (!owner.empty()) {
    const auto found = user_of(owner);
    if (!found) return failure("owner", owner, "there is no such user");
    uid = *found;
  }
  if (!group.empty()) {
    const auto found = group_of(group);
    if (!found) return failure("group", group, "there is no such group");
    gid = *found;
  }
  // One call for each key, so that the error names the right key. The group first: after giving the file to another
  // user this process may not change its group.
  if (!group.empty() && lchown(options_.path.c_str(), static_cast<uid_t>(-1), gid) != 0)
    return failure("group", group, std::strerror(errno));
  if (chmod(options_.path.c_str(), mode) != 0)
    return failure("mode", fmt::format("{:04o}", mode), std::strerror(errno));
  if (!owner.empty() && lchown(options_.path.c_str(), uid, static_cast<gid_t>(-1)) != 0)
    return failure("owner", owner,
                   fmt::format("{}; only root may give a socket to another user", std::strerror(errno)));
  return {};
}

void Listener::watch() {
  watch_ = loop_.watch(socket_.get(), POLLIN, [this](short) { on_connection(); });
}

void Listener::on_connection() {
  for (int i = 0; i < accepts_per_wakeup; ++i) {
    Fd client(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client) {
      accepted_(std::move(client));
      const Span wait = pace_ ? pace_->take(Clock::now()) : Span::zero();
      if (wait > Span::zero()) return pause(wait, true);
      continue;
    }
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
    // Out of descriptors or memory. The connection stays in the queue, and would wake the loop again at once.
    spdlog::warn("{}: accept: {}", options_.path, std::strerror(errno));
    return pause(std::chrono::seconds(1));
  }
}

// `owes`: the last client was accepted before the bucket had a token for it.
void Listener::pause(Clock::duration time, bool owes) {
  loop_.forget(watch_);
  timer_ = loop_.after(time, [this, owes] {
    timer_ = 0;
    if (owes) static_cast<void>(pace_->take(Clock::now()));
    watch();
  });
}

}  // namespace host::broker
