// Helpers of the fuzzers for the broker's sockets: a folder for a socket, and a client that never blocks.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "host/base/fd.h"
#include "tests/fuzz/input.h"

namespace fuzz {

// The folder exists until the process exits.
inline const std::string& socket_folder() {
  static const struct Folder {
    Folder() {
      char name[] = "/tmp/ivgpu-fuzz-XXXXXX";
      require(mkdtemp(name) != nullptr, "a folder can be made");
      path = name;
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string path;
  } made;
  return made.path;
}

// Returns an empty descriptor if the connection is refused.
inline host::broker::Fd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  host::broker::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) socket.reset();
  return socket;
}

// Receives the next message and its descriptors. Returns the message's length, or the result of recvmsg().
template <class Message>
ssize_t receive(const host::broker::Fd& socket, Message& message, std::vector<host::broker::Fd>& descriptors) {
  iovec data{&message, sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  msghdr header{};
  header.msg_iov = &data, header.msg_iovlen = 1;
  header.msg_control = control, header.msg_controllen = sizeof control;
  const ssize_t length = recvmsg(socket.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  for (cmsghdr* c = length < 0 ? nullptr : CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c))
    for (std::size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
      descriptors.emplace_back(fd);
    }
  return length;
}

}  // namespace fuzz
