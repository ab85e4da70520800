#include "host/broker/mps/mps_connect_proxy.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace host::broker {
namespace {

// While it lives, this thread acts as the given user: the kernel reports the caller's user to the daemon, and a daemon
// might obey root. Only the effective IDs change, so that this user cannot signal the broker. The raw system call
// changes one thread; the C library would change all.
class AsUser {
 public:
  AsUser(uid_t uid, gid_t gid) : was_(geteuid()), group_(getegid()), dumpable_(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)) {
    if (was_ != 0) return;
    prctl(PR_GET_PDEATHSIG, &with_parent_, 0, 0, 0);
    is_ = syscall(SYS_setresgid, -1, gid, -1) == 0 && syscall(SYS_setresuid, -1, uid, -1) == 0;
  }
  // Aborts if the user cannot be restored: the broker would go on as a worker's user.
  ~AsUser() {
    if (was_ != 0) return;
    if (syscall(SYS_setresuid, -1, was_, -1) != 0 || syscall(SYS_setresgid, -1, group_, -1) != 0) std::abort();
    // The kernel resets these when the user changes.
    if (dumpable_ == 1) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, with_parent_, 0, 0, 0);
  }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
  explicit operator bool() const { return is_; }

 private:
  const uid_t was_;
  const gid_t group_;
  const int dumpable_;
  int with_parent_ = 0;  // PR_SET_PDEATHSIG's signal
  bool is_ = true;
};

// Connects without blocking: EAGAIN if the queue of an unresponsive daemon is full. Empty on failure, and errno has the
// reason.
Fd connected_to(const std::string& path, uid_t uid, gid_t gid) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return Fd();
  }
  path.copy(address.sun_path, path.size());
  Fd own(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!own || setsockopt(own.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) return Fd();
  const AsUser user(uid, gid);
  if (!user || ::connect(own.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return Fd();
  fcntl(own.get(), F_SETFL, 0);  // blocking again, as its new owner expects
  return own;
}

// True if the kernel supports this request: it then complains of the missing descriptor.
bool hands_over(int listener) {
  seccomp_notif_addfd nothing{};
  nothing.srcfd = ~0U;
  return ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &nothing) < 0 && errno == EBADF;
}

}  // namespace

std::unique_ptr<MpsConnectProxy> MpsConnectProxy::open(EventLoop& loop, Fd listener, Place place) {
  if (!hands_over(listener.get())) return nullptr;
  return std::unique_ptr<MpsConnectProxy>(new MpsConnectProxy(loop, std::move(listener), std::move(place)));
}

MpsConnectProxy::MpsConnectProxy(EventLoop& loop, Fd listener, Place place)
    : listener_(std::move(listener)),
      place_(std::move(place)),
      watch_(std::make_unique<PacedWatch>(
          loop, listener_.get(), [this] { on_call(); }, pace)) {}

short MpsConnectProxy::state() const {
  pollfd state{listener_.get(), POLLIN, 0};
  poll(&state, 1, 0);
  return state.revents;
}

void MpsConnectProxy::on_call() {
  const short is = state();
  if ((is & POLLIN) == 0) {
    if (is != 0) watch_.reset();  // its worker has ended
    return;
  }
  const Fd connection = connected_to(place_.daemon, place_.uid, place_.gid);
  const int why = errno;
  if (!connection && may_wait(why)) return watch_->pause(between_tries);
  if (!connection) report_failure(why);
  answer(connection);
  waits_since_.reset();
}

// True if a call may wait because the daemon's queue is full.
bool MpsConnectProxy::may_wait(int why) {
  if (why != EAGAIN) return false;
  const auto now = Clock::now();
  if (!waits_since_) waits_since_ = now;
  return now - *waits_since_ < patience;
}

// Receives a call. The request blocks if there is none, but poll() has reported one: no other process takes calls, and
// a call of a killed thread still counts.
std::optional<MpsConnectProxy::Call> MpsConnectProxy::take() const {
  union {
    seccomp_notif call;
    char room[1024] = {};  // space for fields of a later kernel
  } taken;
  if (ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &taken) != 0) return std::nullopt;
  return Call{taken.call.id, static_cast<std::uint32_t>(taken.call.data.args[0])};
}

void MpsConnectProxy::answer(const Fd& connection) const {
  const auto call = take();
  if (!call) return;
  seccomp_notif_resp answer{};
  answer.id = call->id;
  answer.error = connection && put_in_place(*call, connection) ? 0 : -ECONNREFUSED;
  ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);  // fails if the calling thread has gone
}

// The kernel itself checks that the thread still waits. SECCOMP_IOCTL_NOTIF_ID_VALID would add nothing, because the
// broker reads no memory of the thread.
bool MpsConnectProxy::put_in_place(const Call& call, const Fd& connection) const {
  seccomp_notif_addfd given{};
  given.id = call.id;
  given.flags = SECCOMP_ADDFD_FLAG_SETFD;
  given.srcfd = static_cast<std::uint32_t>(connection.get());
  given.newfd = call.number;
  given.newfd_flags = O_CLOEXEC;
  return ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &given) >= 0;
}

void MpsConnectProxy::report_failure(int why) {
  if (const auto more = failures_.admit())
    spdlog::warn("{}: the MPS daemon at {} cannot be reached for it: {}{}", place_.worker, place_.daemon,
                 std::strerror(why), *more);
}

}  // namespace host::broker
