// A VM whose programs connect by vsock, for tests of a real ivgpud. vsock_by_unix.cc replaces the VM's vsock sockets by
// UNIX sockets.
#pragma once

#include "tests/unit/broker/doorbell_port.h"
#include "tests/unit/broker/opened_memory.h"

namespace broker_test {

inline constexpr std::uint32_t our_cid = 5;

struct VmByVsock : OpenedMemory {
  explicit VmByVsock(const std::string& path) : OpenedMemory(path, ring::devdax_start) {}
};

// The configuration keys of the VM. `file` holds its memory.
inline std::string by_vsock(const std::string& file, const std::string& more = "") {
  return more +
         "transport = \"pmem\"\nslots = 2\ndoorbell_idle_poll_ms = 500\nvsock_cid = 5\nvsock_port = 5000\nplain_file = "
         "\"" +
         file + "\"\n";
}

// The folder of the UNIX sockets. It has one socket per port number, and a file `cid` with the CID of connecting
// programs.
struct VsockFolder : Folder {
  VsockFolder() { cid(our_cid); }
  void cid(std::uint32_t cid) const { write("cid", std::to_string(cid)); }
  std::string port() const { return *this / "5000"; }
  void preload() const {
    setenv("LD_PRELOAD", VSOCK_BY_UNIX, 1);
    setenv("VSOCK_BY_UNIX", path().c_str(), 1);
  }
};

}  // namespace broker_test
