// One boot, from the start of QEMU to its end, and between the guest's serial ports and our own standard output and error
// this process. The command's output has a port of its own, so no kernel message can get into it.
#pragma once

#include <filesystem>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/vm/qemu.h"
#include "tools/ivgpu/vm/steps.h"

namespace ivgpu {

// Returns the exit code of the guest's command, or of what ended it. Throws an Error where the guest is lost. What QEMU
// says goes to `qemu_log`, unless it has the terminal.
int boot(const VmOptions& options, const SignalGate& gate, const Steps& steps, const std::filesystem::path& qemu_log,
         QemuOptions qemu);

}  // namespace ivgpu
