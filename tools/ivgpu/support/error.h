// The failure of an `ivgpu` command: one sentence for the user and an exit code for scripts. Only main() catches it.
#pragma once

#include <stdexcept>
#include <string>

namespace ivgpu {

// Exit codes of ivgpu itself. A program's exit code is passed on unchanged, as 128 + n if signal n ended the program.
namespace exit_code {
// end, remove: no such VM or session exists; reload, add: the broker does not serve a VM
inline constexpr int refused = 1;
inline constexpr int usage = 2;      // the command line is invalid
inline constexpr int missing = 3;    // a component is missing or fails to start: broker, QEMU, kernel, guest image
inline constexpr int lost = 4;       // the guest reports no exit code of its command, or the kernel none of a program
inline constexpr int died = 5;       // with IVGPU_STRICT: a worker failed, or a signal ended ivgpud or QEMU (deaths.h)
inline constexpr int timeout = 124;  // --timeout ran out
inline constexpr int not_executable = 126;
inline constexpr int not_found = 127;  // no such program
inline constexpr int signal_base = 128;
}  // namespace exit_code

struct Error : std::runtime_error {
  // An empty sentence prints nothing: the user was informed already.
  Error(int exit_code, const std::string& sentence) : std::runtime_error(sentence), code(exit_code) {}
  int code;
};

}  // namespace ivgpu
