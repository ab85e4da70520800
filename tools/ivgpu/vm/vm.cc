// `ivgpu vm` starts a broker, builds the guest image and runs QEMU.
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "ring/layout/layout.h"
#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/standard_output.h"
#include "tools/ivgpu/support/temp_dir.h"
#include "tools/ivgpu/vm/boot.h"
#include "tools/ivgpu/vm/device.h"
#include "tools/ivgpu/vm/guest.h"
#include "tools/ivgpu/vm/qemu.h"
#include "tools/ivgpu/vm/steps.h"
#include "tools/ivgpu/vm/vsock.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

// Passes IVGPU_HOST_PATIENCE of this process to the guest. A value given by --env follows and wins.
std::vector<std::string> environment_of(const VmOptions& options) {
  std::vector<std::string> all = options.environment;
  constexpr const char* patience = "IVGPU_HOST_PATIENCE";
  if (const char* value = std::getenv(patience)) all.insert(all.begin(), std::string(patience) + "=" + value);
  return all;
}

// Without a command, runs a shell on the terminal, or the script on standard input.
GuestJob job_of(const VmOptions& options) {
  GuestJob job{.keep = options.keep,
               .command = joined(options.command),
               .environment = environment_of(options),
               .awaited = awaited_for(options.broker.transport, options.vsock)};
  if (!options.command.empty()) return job;
  job.interactive = isatty(STDIN_FILENO) != 0;
  char buffer[4096];
  ssize_t n = 0;
  while (!job.interactive && (n = read(STDIN_FILENO, buffer, sizeof buffer)) > 0)
    job.command.append(buffer, static_cast<std::size_t>(n));
  return job;
}

std::string bundled(const char* name, const std::string& otherwise) {
  const char* bundle = std::getenv("IVGPU_BUNDLE");
  return bundle && *bundle ? (fs::path(bundle) / name).string() : otherwise;
}

QemuOptions machine_of(const VmOptions& options, const fs::path& kernel, const fs::path& initrd, const Device& device,
                       const fs::path& console_log) {
  return {.qemu = bundled("qemu", "qemu-system-x86_64"),
          .accelerator = usable_accelerator(),
          .memory = options.memory,
          .cpus = options.cpus,
          .kernel = kernel,
          .initrd = initrd,
          .device = device,
          .serial = {.console_log = console_log}};
}

BrokerOptions broker_of(const VmOptions& options, const std::optional<VsockPlace>& vsock) {
  BrokerOptions broker = for_this_machine(options.broker);
  // Requests one vector per possible slot; the broker and the guest's module use as many vectors as the VM has slots.
  if (broker.transport == by_doorbell) broker.vectors = ring::max_slots;
  if (vsock) broker.vsock = vsock->both;
  return broker;
}

Device device_of(const BrokerOptions& broker, const fs::path& runtime_dir, const std::optional<VsockPlace>& vsock) {
  Device device = device_behind(read_status(runtime_dir), broker.vm, broker.transport);
  device.vectors = extra_vectors(broker).value_or(broker.vectors);
  if (vsock) device.take_vsock(vsock->both, vsock->device.get());
  return device;
}

}  // namespace

int vm(const VmOptions& options) {
  const Steps steps(options.steps);
  const Install install = find_install();
  const GuestJob job = job_of(options);
  const std::string settings = job_settings(job);  // reports an invalid command line before any work
  report_unknown_log_level();
  const bool terminal = job.interactive || job.keep;
  if (terminal && !isatty(STDIN_FILENO)) throw Error(exit_code::usage, "--keep needs a terminal");

  const SignalGate gate;
  std::optional<VsockPlace> vsock;
  if (options.vsock) vsock = take_vsock();
  const TempDir folder;
  const GuestImage image = make_guest_image(install, {.program_dirs = options.program_dirs,
                                                      .kernel = options.kernel,
                                                      .ways = ways_of(options.broker.transport, options.vsock)});
  const fs::path initrd = folder.path() / "initrd";
  write_initrd(initrd, image, settings);
  steps.show("guest image is ready: " + image.initramfs.string());

  const BrokerOptions broker_options = broker_of(options, vsock);
  PrivateBroker broker(install, broker_options, folder.path(), gate);
  steps.show("ivgpud is ready: GPU " + broker_options.gpu + ", region " + broker_options.region_size);
  const Device device = device_of(broker_options, folder.path(), vsock);
  steps.show("the guest's device: " + described(device));

  const QemuOptions qemu =
      machine_of(options, image.kernel, initrd, device, terminal ? fs::path() : folder.path() / "console.log");
  steps.show("booting " + qemu.kernel.filename().string() + " in QEMU (" +
             (qemu.accelerator == Accelerator::Kvm ? "KVM" : "TCG") + ", " + std::to_string(options.cpus) +
             " processors, " + options.memory + ")");
  return broker.end(boot(options, gate, steps, folder.path() / "qemu.log", qemu));
}

}  // namespace ivgpu
