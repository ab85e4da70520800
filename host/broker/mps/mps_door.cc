#include "host/broker/mps/mps_door.h"

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

// This thread acts as another user while the object lives: the kernel tells whoever is connected to as whom the caller
// came, and a daemon that is asked by root may obey. Real and saved user stay, so that nobody of that user can signal the
// broker meanwhile. By the system call alone, since the C library would have all threads change.
class AsUser {
 public:
  AsUser(uid_t uid, gid_t gid) : was_(geteuid()), group_(getegid()), dumpable_(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)) {
    if (was_ != 0) return;
    prctl(PR_GET_PDEATHSIG, &with_parent_, 0, 0, 0);
    is_ = syscall(SYS_setresgid, -1, gid, -1) == 0 && syscall(SYS_setresuid, -1, uid, -1) == 0;
  }
  // A broker that is not itself again would do all else as a worker's user.
  ~AsUser() {
    if (was_ != 0) return;
    if (syscall(SYS_setresuid, -1, was_, -1) != 0 || syscall(SYS_setresgid, -1, group_, -1) != 0) std::abort();
    // What a change of user takes away.
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
  int with_parent_ = 0;  // the signal that it gets when its parent ends
  bool is_ = true;
};

// Without waiting: where the daemon takes nobody up, its queue is full after some, which is EAGAIN. Empty on failure, and errno says why.
Fd connected_to(const std::string& path, uid_t uid, gid_t gid) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return errno = ENAMETOOLONG, Fd();
  path.copy(address.sun_path, path.size());
  Fd own(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!own || setsockopt(own.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) return Fd();
  const AsUser user(uid, gid);
  if (!user || ::connect(own.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return Fd();
  fcntl(own.get(), F_SETFL, 0);  // its next owner waits for what the daemon says
  return own;
}

// Whether the kernel knows this request of the descriptor: it then misses the one that is to be put in place.
bool hands_over(int listener) {
  seccomp_notif_addfd nothing{};
  nothing.srcfd = ~0U;
  return ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &nothing) < 0 && errno == EBADF;
}

}  // namespace

std::unique_ptr<MpsDoor> MpsDoor::open(EventLoop& loop, Fd listener, Place place) {
  if (!hands_over(listener.get())) return nullptr;
  return std::unique_ptr<MpsDoor>(new MpsDoor(loop, std::move(listener), std::move(place)));
}

MpsDoor::MpsDoor(EventLoop& loop, Fd listener, Place place)
    : loop_(loop),
      listener_(std::move(listener)),
      place_(std::move(place)),
      watch_(std::make_unique<PacedWatch>(
          loop, listener_.get(), [this] { on_call(); }, pace)) {}

short MpsDoor::state() const {
  pollfd state{listener_.get(), POLLIN, 0};
  poll(&state, 1, 0);
  return state.revents;
}

void MpsDoor::on_call() {
  const short is = state();
  if ((is & POLLIN) == 0) {
    if (is != 0) watch_.reset();  // its worker has ended
    return;
  }
  const Fd connection = connected_to(place_.daemon, place_.uid, place_.gid);
  const int why = errno;
  if (!connection && may_wait(why)) return watch_->pause(between_tries);
  if (!connection) tell_failure(why);
  answer(connection);
  waits_since_.reset();
}

// For a daemon whose queue is full.
bool MpsDoor::may_wait(int why) {
  if (why != EAGAIN) return false;
  const auto now = Clock::now();
  if (!waits_since_) waits_since_ = now;
  return now - *waits_since_ < patience;
}

// The kernel has no request that takes a call without waiting for one. It does not wait where poll() has seen one: no one
// else takes any, and one whose thread was killed since still counts.
std::optional<MpsDoor::Call> MpsDoor::take() const {
  union {
    seccomp_notif call;
    char room[1024] = {};  // a later kernel may tell more
  } taken;
  if (ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &taken) != 0) return std::nullopt;
  return Call{taken.call.id, static_cast<std::uint32_t>(taken.call.data.args[0])};
}

void MpsDoor::answer(const Fd& connection) const {
  const auto call = take();
  if (!call) return;
  seccomp_notif_resp answer{};
  answer.id = call->id;
  answer.error = connection && put_in_place(*call, connection) ? 0 : -ECONNREFUSED;
  ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);  // fails where the thread has gone
}

// The kernel looks whether that thread still waits in its call, so SECCOMP_IOCTL_NOTIF_ID_VALID would add nothing: no
// memory of it is looked at.
bool MpsDoor::put_in_place(const Call& call, const Fd& connection) const {
  seccomp_notif_addfd given{};
  given.id = call.id;
  given.flags = SECCOMP_ADDFD_FLAG_SETFD;
  given.srcfd = static_cast<std::uint32_t>(connection.get());
  given.newfd = call.number;
  given.newfd_flags = O_CLOEXEC;
  return ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &given) >= 0;
}

void MpsDoor::tell_failure(int why) {
  if (const auto more = failures_.admit())
    spdlog::warn("{}: the MPS daemon at {} cannot be reached for it: {}{}", place_.worker, place_.daemon,
                 std::strerror(why), *more);
}

}  // namespace host::broker
