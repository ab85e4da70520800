// The failure of an `ivgpu` command: one sentence for the user and an exit code that a script can read. Thrown anywhere
// below main(), caught there and nowhere else.
#pragma once

#include <stdexcept>
#include <string>

namespace ivgpu {

// Codes of ivgpu itself. A program's own code is passed on as it is, 128 + n where signal n ended it.
namespace exit_code {
inline constexpr int refused = 1;  // end, remove: there is no such VM or session; reload, add: something is not served
inline constexpr int usage = 2;    // the command line makes no sense
inline constexpr int missing = 3;  // a piece is missing or does not start: broker, QEMU, kernel, guest image
inline constexpr int lost = 4;     // the guest does not say how its command ended, or the kernel how a program did
inline constexpr int died = 5;     // with IVGPU_STRICT: a worker failed, or a signal ended ivgpud or QEMU (deaths.h)
inline constexpr int timeout = 124;  // --timeout ran out
inline constexpr int not_executable = 126;
inline constexpr int not_found = 127;  // no such program
inline constexpr int signal_base = 128;
}  // namespace exit_code

struct Error : std::runtime_error {
  // An empty sentence: the user knows already.
  Error(int exit_code, const std::string& sentence) : std::runtime_error(sentence), code(exit_code) {}
  int code;
};

}  // namespace ivgpu
