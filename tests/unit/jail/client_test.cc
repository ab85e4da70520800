// The seccomp filter of a client of MPS: its additional system calls, and the process that answers its connect().
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <utility>

#include "host/base/fd_message.h"
#include "host/jail/privileges.h"
#include "host/jail/seccomp.h"
#include "tests/deadline.h"
#include "tests/unit/jail/child.h"

namespace {

using namespace host::jail;

constexpr int no_listener = 201;  // a child's exit code

// A child with the filter, which runs `what`. This process has the filter's listener.
class Filtered {
 public:
  explicit Filtered(const std::function<int()>& what) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    child_ = fork();
    if (child_ == 0) _exit(filtered(ends[1], what));
    close(ends[1]);
    char byte;
    iovec data{&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &data, header.msg_iovlen = 1;
    header.msg_control = room, header.msg_controllen = sizeof room;
    if (recvmsg(ends[0], &header, MSG_CMSG_CLOEXEC) == 1) listener = host::broker::fd_beside(header);
    close(ends[0]);
  }
  ~Filtered() {
    if (child_ > 0) end();
  }
  Filtered(const Filtered&) = delete;
  Filtered& operator=(const Filtered&) = delete;

  // Answers the next call, and returns the call's arguments.
  seccomp_data answer(int error) const {
    pollfd news{listener.get(), POLLIN, 0};
    EXPECT_EQ(poll(&news, 1, static_cast<int>(std::chrono::milliseconds(test_deadline).count())), 1);
    seccomp_notif call{};
    EXPECT_EQ(ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_RECV, &call), 0);
    seccomp_notif_resp answer{call.id, 0, -error, 0};
    EXPECT_EQ(ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer), 0);
    return call.data;
  }
  // Returns the child's exit code, or 200 plus a signal's number.
  int end() {
    int status = 0;
    waitpid(std::exchange(child_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
  }

  host::broker::Fd listener;

 private:
  static int filtered(int to, const std::function<int()>& what) {
    int listener = -1;
    CHILD_EXPECT(apply_no_new_privileges().active());
    CHILD_EXPECT(apply_seccomp(Requests::Listed, 0, &listener).active());
    if (listener < 0) return no_listener;
    CHILD_EXPECT(host::broker::send_with_fd(to, "x", 1, listener) == 1);
    close(listener);
    close(to);
    return what();
  }

  pid_t child_ = -1;
};

#define NEEDS_LISTENER(process) \
  if (!(process).listener) GTEST_SKIP() << "this kernel gives no listener, or the child failed: " << (process).end()

int try_sockets() {
  for (const int more : std::initializer_list<int>{0, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_CLOEXEC | SOCK_NONBLOCK})
    CHILD_EXPECT(socket(AF_UNIX, SOCK_SEQPACKET | more, 0) >= 0);
  for (const int kind : std::initializer_list<int>{SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET | 0x100})
    CHILD_EXPECT(refused(socket(AF_UNIX, kind, 0), EPERM));
  for (const int family : {AF_INET, AF_INET6, AF_NETLINK, AF_VSOCK, AF_PACKET, AF_BLUETOOTH, AF_ALG})
    CHILD_EXPECT(refused(socket(family, SOCK_SEQPACKET, 0), EPERM));
  CHILD_EXPECT(refused(socket(AF_UNIX, SOCK_SEQPACKET, 1), EPERM));
  // The kernel uses only 32 bits of each argument.
  CHILD_EXPECT(syscall(SYS_socket, 0xffffffff00000001UL, SOCK_SEQPACKET, 0) >= 0);
  return 0;
}

TEST(JailOfAClient, MakesTheOneKindOfSocket) {
  Filtered process(try_sockets);
  NEEDS_LISTENER(process);
  EXPECT_EQ(process.end(), 0);
}

int use_a_socket() {
  const int own = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), on = 1, bytes = 1 << 20;
  CHILD_EXPECT(setsockopt(own, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
  CHILD_EXPECT(refused(setsockopt(own, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), EPERM));
  CHILD_EXPECT(refused(setsockopt(own, SOL_SOCKET, SO_ATTACH_FILTER, &bytes, sizeof bytes), EPERM));
  CHILD_EXPECT(refused(setsockopt(own, SOL_NETLINK, SO_PASSCRED, &on, sizeof on), EPERM));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  address.sun_path[1] = 'x';
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  CHILD_EXPECT(refused(bind(own, name, sizeof address), EPERM));
  CHILD_EXPECT(refused(listen(own, 1), EPERM));
  CHILD_EXPECT(refused(accept(own, nullptr, nullptr), EPERM));
  // A destination address has no effect.
  CHILD_EXPECT(refused(sendto(own, "x", 1, MSG_NOSIGNAL, name, sizeof address), ENOTCONN));
  int ends[2];
  CHILD_EXPECT(refused(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), EPERM));
  return 0;
}

TEST(JailOfAClient, DoesNothingElseWithIt) {
  Filtered process(use_a_socket);
  NEEDS_LISTENER(process);
  EXPECT_EQ(process.end(), 0);
}

int open_for_writing() {
  CHILD_EXPECT(open("/dev/null", O_WRONLY | O_CLOEXEC) >= 0);
  for (const int more : {O_CREAT, O_TRUNC, O_APPEND, O_TMPFILE})
    CHILD_EXPECT(refused(open("/dev/null", O_WRONLY | more, 0600), EPERM));
  return 0;
}

TEST(JailOfAClient, WritesToWhatIsThere) {
  Filtered process(open_for_writing);
  NEEDS_LISTENER(process);
  EXPECT_EQ(process.end(), 0);
}

TEST(JailOfAClient, IsAnsweredByWhoListensAndRefusedOnceNobodyDoes) {
  Filtered process([] {
    CHILD_EXPECT(refused(connect(7, nullptr, 9), ECONNREFUSED));
    CHILD_EXPECT(connect(8, nullptr, 9) == 0);
    CHILD_EXPECT(refused(connect(7, nullptr, 9), ENOSYS));
    CHILD_EXPECT(refused(kill(getppid(), 0), EPERM));  // all other calls are refused as for other workers
    return 0;
  });
  NEEDS_LISTENER(process);
  const seccomp_data call = process.answer(ECONNREFUSED);
  EXPECT_EQ(call.nr, SYS_connect);
  EXPECT_EQ(call.args[0], 7U);
  EXPECT_EQ(call.args[2], 9U);
  process.answer(0);
  process.listener.reset();
  EXPECT_EQ(process.end(), 0);
}

}  // namespace
