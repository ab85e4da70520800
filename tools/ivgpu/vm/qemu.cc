// A comment beside each option has its reason. All other options keep QEMU's defaults.
#include "tools/ivgpu/vm/qemu.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "tools/ivgpu/vm/emulated_clock.h"

namespace ivgpu {
namespace {

void append(std::vector<std::string>& argv, std::initializer_list<std::string> words) {
  argv.insert(argv.end(), words.begin(), words.end());
}

// The kernel's command line. panic=-1 with -no-reboot ends QEMU at once if the guest panics.
std::string kernel_arguments(Accelerator accelerator) {
  const std::string common = "console=ttyS0 quiet loglevel=1 panic=-1";
  return accelerator == Accelerator::Kvm ? common : common + " " + emulated_clock();
}

void add_serial(std::vector<std::string>& argv, const std::string& id, int socket) {
  append(argv, {"-chardev", "socket,id=" + id + ",fd=" + std::to_string(socket), "-serial", "chardev:" + id});
}

// QEMU omits memory barriers and locked operations for a VM that can never have a second processor. Our guests need
// both, since they share memory with the host (docs/design/040-kvm-in-emulation.md).
std::string processors_in_words(const QemuOptions& options) {
  const bool lacks_barriers = options.accelerator == Accelerator::Tcg && options.cpus == 1;
  return std::to_string(options.cpus) + (lacks_barriers ? ",sockets=2,maxcpus=2" : "");
}

}  // namespace

bool has_virtualisation(const std::string& cpuinfo) {
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;)
      if (word == "vmx" || word == "svm") return true;
  }
  return false;
}

Accelerator usable_accelerator() {
  std::ifstream in("/proc/cpuinfo");
  const std::string cpuinfo{std::istreambuf_iterator<char>(in), {}};
  const bool kvm = has_virtualisation(cpuinfo) && access("/dev/kvm", R_OK | W_OK) == 0;
  return kvm ? Accelerator::Kvm : Accelerator::Tcg;
}

std::vector<std::string> qemu_command(const QemuOptions& options) {
  const bool kvm = options.accelerator == Accelerator::Kvm;
  std::vector<std::string> argv = {options.qemu, "-machine", "q35", "-nodefaults", "-no-reboot"};
  append(argv, {"-accel", kvm ? "kvm" : "tcg,thread=multi", "-cpu", kvm ? "host" : "max"});
  append(argv, {"-smp", processors_in_words(options), "-m", memory_words(options.memory, options.device)});
  append(argv, {"-nic", "none", "-display", "none", "-vga", "none"});
  append(argv, {"-kernel", options.kernel.string(), "-initrd", options.initrd.string(), "-append",
                kernel_arguments(options.accelerator)});
  for (std::string& word : qemu_words(options.device)) argv.push_back(std::move(word));
  if (options.serial.console_log.empty())
    // The guest has the terminal: Ctrl-C goes to the guest, and Ctrl-A X ends QEMU.
    append(argv,
           {"-chardev", "stdio,id=console,mux=on,signal=off", "-serial", "chardev:console", "-mon", "chardev=console"});
  else
    append(argv, {"-serial", "file:" + options.serial.console_log.string()});
  add_serial(argv, "out", options.serial.out);
  add_serial(argv, "err", options.serial.err);
  add_serial(argv, "control", options.serial.control);
  return argv;
}

}  // namespace ivgpu
