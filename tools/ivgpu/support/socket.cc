#include "tools/ivgpu/support/socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "tools/ivgpu/support/error.h"

namespace ivgpu {

Fd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw Error(exit_code::usage, path + " is too long for a socket's path");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw Error(exit_code::missing,
                (errno == EACCES ? "this user may not talk to ivgpud at " : "no ivgpud answers at ") + path + ": " +
                    std::strerror(errno));
  return socket;
}

}  // namespace ivgpu
