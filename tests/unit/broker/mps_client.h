// A client and the daemon of a simulated MPS. The order of messages is that of NVIDIA's driver when a client makes a
// context, as strace shows it: the client connects, both sides introduce themselves, and the daemon passes the
// descriptors for client and server. The messages' content is invented.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/deadline.h"

namespace mps_play {

inline constexpr std::size_t passed = 5;        // descriptors
inline constexpr std::size_t talk_bytes = 528;  // size of a message between client and server

inline sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

// A message, its sender, and the descriptors that came with it.
struct Message {
  std::string text;
  ucred sender{-1, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
  std::vector<int> fds;
};

// Returns false if no message came before the deadline, or if the peer has closed the socket.
inline bool receive(int socket, Message& message) {
  pollfd news{socket, POLLIN, 0};
  if (poll(&news, 1, static_cast<int>(std::chrono::milliseconds(test_deadline).count())) != 1) return false;
  std::array<char, 256> bytes{};
  iovec data{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, 256> room{};
  msghdr header{};
  header.msg_iov = &data, header.msg_iovlen = 1;
  header.msg_control = room.data(), header.msg_controllen = room.size();
  const ssize_t length = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  if (length <= 0) return false;
  message.text.assign(bytes.data(), static_cast<std::size_t>(length));
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_type == SCM_CREDENTIALS) std::memcpy(&message.sender, CMSG_DATA(c), sizeof message.sender);
    if (c->cmsg_type != SCM_RIGHTS) continue;
    message.fds.resize((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(message.fds.data(), CMSG_DATA(c), message.fds.size() * sizeof(int));
  }
  return true;
}

// Sends the message with the process's own credentials, or with descriptors instead of credentials.
inline bool send(int socket, const std::string& text, const std::vector<int>& fds = {}) {
  iovec data{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, 256> room{};
  msghdr header{};
  header.msg_iov = &data, header.msg_iovlen = 1;
  header.msg_control = room.data(), header.msg_controllen = room.size();
  cmsghdr* const c = CMSG_FIRSTHDR(&header);
  c->cmsg_level = SOL_SOCKET;
  if (fds.empty()) {
    const ucred own{getpid(), geteuid(), getegid()};
    c->cmsg_type = SCM_CREDENTIALS, c->cmsg_len = CMSG_LEN(sizeof own);
    std::memcpy(CMSG_DATA(c), &own, sizeof own);
  } else {
    c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
  }
  header.msg_controllen = CMSG_ALIGN(c->cmsg_len);
  return sendmsg(socket, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

inline std::string failed(const char* call) { return std::string(call) + ": " + strerrorname_np(errno); }

// Exchanges a message with the server over the first descriptor.
inline std::string talk(const std::vector<int>& fds) {
  if (fds.size() != passed) return "the daemon passed " + std::to_string(fds.size()) + " descriptors";
  std::array<char, talk_bytes> out, in{};
  out.fill('c');
  if (write(fds[0], out.data(), out.size()) != talk_bytes) return failed("write");
  if (read(fds[0], in.data(), in.size()) != talk_bytes || in[0] != 's') return "the server said something else";
  return "talks";
}

inline std::string introduce(int socket) {
  if ((fcntl(socket, F_GETFL) & O_NONBLOCK) != 0) return "it would not wait for the daemon's words";
  Message hello, descriptors;
  if (!receive(socket, hello) || hello.text != "who is it?") return "the daemon did not ask";
  if (hello.sender.pid <= 0) return "the daemon did not say who it is";
  if (!send(socket, "a client")) return failed("sendmsg");
  if (!receive(socket, descriptors)) return "the daemon passed nothing";
  const std::string came = talk(descriptors.fds);
  for (const int fd : descriptors.fds) close(fd);
  return came;
}

// Makes a context. Returns the step that it reached; "talks" means complete. `path`: the daemon's socket.
inline std::string make_context(const std::string& path) {
  const int own = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), on = 1;
  if (own < 0) return failed("socket");
  std::string came;
  const sockaddr_un address = address_of(path);
  if (setsockopt(own, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
    came = failed("setsockopt");
  else if (connect(own, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    came = failed("connect");
  else
    came = introduce(own);
  close(own);
  return came;
}

}  // namespace mps_play
