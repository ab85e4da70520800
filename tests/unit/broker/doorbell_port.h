// The far end of a doorbell channel: QEMU's end of a virtio-serial port, or a program's own socket.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "ring/layout/doorbell_channel.h"
#include "tests/deadline.h"

namespace broker_test {

class Port {
 public:
  explicit Port(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << path;
  }
  ~Port() { end(); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  void end() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  bool say(unsigned char byte) const { return send(fd_, &byte, 1, MSG_NOSIGNAL) == 1; }
  void flood(const std::string& bytes) const {
    [[maybe_unused]] const auto n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  // Counts wake-up bytes until the channel is quiet for `milliseconds`. A test that expects a wake-up calls heard()
  // instead.
  int woken(int milliseconds = 200) const {
    int count = 0;
    for (pollfd port{fd_, POLLIN, 0}; poll(&port, 1, milliseconds) == 1;) {
      unsigned char byte = 0;
      if (recv(fd_, &byte, 1, 0) != 1) break;
      EXPECT_EQ(byte, ring::doorbell_woken);
      ++count;
    }
    return count;
  }
  // Waits for the next byte. Returns true if the byte is a wake-up.
  bool heard() const {
    unsigned char byte = 0;
    return receives() && recv(fd_, &byte, 1, 0) == 1 && byte == ring::doorbell_woken;
  }
  bool heard_once() const { return heard() && woken() == 0; }
  bool ended() const {
    unsigned char byte = 0;
    return receives() && recv(fd_, &byte, 1, 0) == 0;
  }

 private:
  bool receives() const {
    pollfd port{fd_, POLLIN, 0};
    return poll(&port, 1, static_cast<int>(std::chrono::milliseconds(test_deadline).count())) == 1;
  }

  int fd_;
};

}  // namespace broker_test
