// Non-blocking send and receive on the broker's sockets, whatever the flags of the socket are.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>

#include "host/base/fd.h"

namespace host::broker {

// Returns what send() returns.
inline ssize_t send_now(int socket, const void* bytes, std::size_t length) {
  return send(socket, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}
// Returns what recv() returns.
[[nodiscard]] inline ssize_t receive_now(int socket, void* bytes, std::size_t length) {
  return recv(socket, bytes, length, MSG_DONTWAIT);
}
// Returns what recvmsg() returns.
[[nodiscard]] inline ssize_t receive_now(int socket, msghdr& message) {
  return recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
}

// Sends one message with a descriptor attached, and returns what sendmsg() returns. The caller keeps `fd`; a negative
// `fd` attaches none.
inline ssize_t send_with_fd(int socket, const void* bytes, std::size_t length, int fd) {
  iovec data{const_cast<void*>(bytes), length};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data, message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = room, message.msg_controllen = sizeof room;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Returns the descriptor attached to a message that recvmsg() has received, or an empty Fd.
[[nodiscard]] inline Fd fd_beside(const msghdr& message) {
  int fd = -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return Fd(fd);
}

}  // namespace host::broker
