// One boot of the guest. This process forwards the guest's serial ports to its standard output and error. The command's
// output has its own port, so kernel messages cannot mix with it.
#pragma once

#include <filesystem>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/vm/qemu.h"
#include "tools/ivgpu/vm/steps.h"

namespace ivgpu {

// Returns the exit code of the guest's command, or the code for the reason why the guest ended. Throws an Error if the
// guest is lost. QEMU's messages go to `qemu_log`, unless QEMU uses the terminal.
int boot(const VmOptions& options, const SignalGate& gate, const Steps& steps, const std::filesystem::path& qemu_log,
         QemuOptions qemu);

}  // namespace ivgpu
