// A preloaded library that gives a program vsock on a machine without vsock. AF_VSOCK sockets become UNIX sockets in
// the folder VSOCK_BY_UNIX, named by their port. The file `cid` in this folder holds the CID of connecting clients. A
// port is free again when the last process closes the socket that is bound to it. The library is strict: a call that
// the kernel's vsock would refuse ends the program.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
// linux/vm_sockets.h requires sys/socket.h.
#include <linux/vm_sockets.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

std::string folder() {
  const char* set = std::getenv("VSOCK_BY_UNIX");
  if (set == nullptr) std::abort();
  return std::string(set) + "/";
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

sockaddr_un path_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) std::abort();
  path.copy(address.sun_path, path.size());
  return address;
}

// Removes the file of a socket that no process holds. Sockets that were accepted from it have the same path.
void remove_left(const std::string& path) {
  struct stat there {};
  if (lstat(path.c_str(), &there) != 0 || !S_ISSOCK(there.st_mode)) return;
  std::ifstream bound("/proc/net/unix");
  for (std::string line; std::getline(bound, line);)
    if (line.find(" 00010000 ") != std::string::npos && line.find(" " + path) != std::string::npos) return;
  unlink(path.c_str());
}

// The socket's path in this folder; "" for any other socket.
std::string own_path(int fd) {
  sockaddr_un own{};
  socklen_t room = sizeof own - 1;
  if (next<decltype(getsockname)>("getsockname")(fd, reinterpret_cast<sockaddr*>(&own), &room) != 0) return "";
  const std::string path = own.sun_family == AF_UNIX ? own.sun_path : "";
  return path.rfind(folder(), 0) == 0 ? path : "";
}

int tell(const sockaddr_vm& answer, sockaddr* address, socklen_t* length) {
  if (*length < sizeof answer) std::abort();
  std::memcpy(address, &answer, sizeof answer);
  *length = sizeof answer;
  return 0;
}

}  // namespace

#define EXPORTED __attribute__((visibility("default")))

extern "C" {

EXPORTED int socket(int family, int type, int protocol) {
  if (family == AF_VSOCK && (type & 0xf) != SOCK_STREAM) std::abort();
  return next<decltype(socket)>("socket")(family == AF_VSOCK ? AF_UNIX : family, type, protocol);
}

EXPORTED int setsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  if (level != AF_VSOCK) return next<decltype(setsockopt)>("setsockopt")(fd, level, name, value, length);
  if (name != SO_VM_SOCKETS_BUFFER_SIZE || length != sizeof(unsigned long long)) std::abort();
  return 0;
}

EXPORTED int bind(int fd, const sockaddr* address, socklen_t length) {
  if (address->sa_family != AF_VSOCK) return next<decltype(bind)>("bind")(fd, address, length);
  sockaddr_vm to;
  if (length != sizeof to) std::abort();
  std::memcpy(&to, address, sizeof to);
  if (to.svm_cid != VMADDR_CID_ANY || to.svm_reserved1 != 0 || to.svm_flags != 0) std::abort();
  const sockaddr_un path = path_of(folder() + std::to_string(to.svm_port));
  remove_left(path.sun_path);
  return next<decltype(bind)>("bind")(fd, reinterpret_cast<const sockaddr*>(&path), sizeof path);
}

EXPORTED int getpeername(int fd, sockaddr* address, socklen_t* length) {
  if (own_path(fd).empty()) return next<decltype(getpeername)>("getpeername")(fd, address, length);
  sockaddr_vm peer{};
  peer.svm_family = AF_VSOCK;
  peer.svm_port = 1024;
  std::ifstream(folder() + "cid") >> peer.svm_cid;
  return tell(peer, address, length);
}

EXPORTED int getsockname(int fd, sockaddr* address, socklen_t* length) {
  const std::string path = own_path(fd);
  if (path.empty()) return next<decltype(getsockname)>("getsockname")(fd, address, length);
  sockaddr_vm own{};
  own.svm_family = AF_VSOCK;
  own.svm_cid = VMADDR_CID_ANY;
  own.svm_port = static_cast<unsigned>(std::stoul(path.substr(folder().size())));
  return tell(own, address, length);
}

}  // extern "C"
