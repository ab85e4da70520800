// QEMU's command line for the demo guest: a stock kernel, no disk, no network, the device (device.h) and four serial
// ports. qemu-config/ explains the options for other VMs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/ivgpu/vm/device.h"

namespace ivgpu {

// KVM if the processor has vmx or svm and the user may open /dev/kvm, else TCG, QEMU's emulation.
enum class Accelerator { Kvm, Tcg };
Accelerator usable_accelerator();

// True if `cpuinfo`, the text of /proc/cpuinfo, shows hardware virtualisation.
bool has_virtualisation(const std::string& cpuinfo);

// The guest's serial ports, ttyS0 to ttyS3 in this order.
struct SerialPorts {
  // The kernel's console: the user's terminal or a file.
  std::filesystem::path console_log = {};  // empty: the user's terminal
  int out = -1, err = -1;                  // sockets for the command's standard output and error
  int control = -1;                        // the reports of guest/init, which describes the lines
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
