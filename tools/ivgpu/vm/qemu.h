// The command line of QEMU for the demo's guest: a stock kernel, no disk, no network, the device (device.h) and four serial
// ports. qemu-config/ explains the same for a VM of one's own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/ivgpu/vm/device.h"

namespace ivgpu {

// KVM where the processor can (vmx or svm) and the user may; TCG, QEMU's emulation, everywhere else.
enum class Accelerator { Kvm, Tcg };
Accelerator usable_accelerator();

// True if /proc/cpuinfo, given as text, names a processor with hardware virtualisation.
bool has_virtualisation(const std::string& cpuinfo);

// The guest's serial ports, in the order of its device files ttyS0 to ttyS3.
struct SerialPorts {
  // The kernel's console: the terminal where the user works in the guest, else a file.
  std::filesystem::path console_log = {};  // empty: the terminal
  int out = -1, err = -1;                  // sockets for the command's standard output and error
  int control = -1;                        // /init's reports: guest/init lists the lines
};

struct QemuOptions {
  std::string qemu = "qemu-system-x86_64";
  Accelerator accelerator = Accelerator::Tcg;
  std::string memory = "1G";
  int cpus = 1;
  std::filesystem::path kernel = {};
  std::filesystem::path initrd = {};
  Device device = {};
  SerialPorts serial = {};
};
std::vector<std::string> qemu_command(const QemuOptions& options);

}  // namespace ivgpu
