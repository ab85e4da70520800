// `ivgpu add` and `ivgpu remove` add and remove a VM while the broker runs. They write or remove the VM's file
// (vm_file.h) and have the broker reload. Users and libvirt's hook (tools/host/ivgpu-libvirt-hook) call them.
#include <cstdio>
#include <string>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/control.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/standard_output.h"
#include "tools/ivgpu/support/status_document.h"
#include "tools/ivgpu/support/vm_file.h"

namespace ivgpu {
namespace {

bool is_served(const std::filesystem::path& runtime_dir, const std::string& vm) {
  const json status = parse_status(read_status(runtime_dir));
  for (const json& one : status.at("vms"))
    if (one.at("name") == vm) return true;
  return false;
}

// Returns the broker's error about this VM or the whole file, or "". Errors about other VMs do not affect this VM and
// go to standard error.
std::string reload_for(const std::filesystem::path& runtime_dir, const std::string& vm, const std::string& file) {
  std::string wrong;
  bool done = false;
  ask_broker(runtime_dir, "reload", reload_patience, [&](const std::string& line) {
    done = done || line == "done";
    if (!line.starts_with("error ")) return;
    const std::string sentence = line.substr(6);
    if (sentence.starts_with(file + ":") || sentence.starts_with("VM " + vm + " ") ||
        sentence.ends_with("; nothing is changed"))
      wrong = sentence;
    else
      std::fprintf(stderr, "ivgpu: %s\n", sentence.c_str());
  });
  if (!done) throw Error(exit_code::missing, "the broker has ended before it was done");
  return wrong;
}

// Removes a file left by the same owner: its QEMU has ended, and the new one needs a fresh region.
void make_room(const AddOptions& options, const VmFile& file) {
  if (file.exists()) {
    const std::string owner = file.owner();
    if (options.owner.empty() || owner != options.owner)
      throw Error(exit_code::refused, "VM " + options.vm + " is there already" +
                                          (owner.empty() ? "" : ", for " + owner) + ": `ivgpu remove " + options.vm +
                                          "` takes it away");
    file.remove();
    reload_for(options.runtime_dir, options.vm, file.path().string());
  }
  if (is_served(options.runtime_dir, options.vm))
    throw Error(exit_code::refused,
                "VM " + options.vm + " is served already, by a table of the configuration: take it out there first");
}

}  // namespace

int add_vm_file(const AddOptions& options) {
  const VmFile file(options.runtime_dir, options.vm);
  for (const std::string& line : options.lines) {
    check_line("--set", line);
    if (line.find('=') == std::string::npos)
      throw Error(exit_code::usage, "--set takes KEY = VALUE, as in --set 'slots = 4'");
  }
  if (!options.owner.empty()) check_line("--owner", options.owner);
  make_room(options, file);
  file.write(options.owner, options.lines);
  std::string wrong;
  try {
    wrong = reload_for(options.runtime_dir, options.vm, file.path().string());
    if (wrong.empty() && !is_served(options.runtime_dir, options.vm))
      wrong = "VM " + options.vm + " is not served; the broker's log says why";
  } catch (const Error&) {
    file.remove();
    throw;
  }
  if (!wrong.empty()) {
    file.remove();
    throw Error(exit_code::refused, wrong);
  }
  print("VM " + options.vm + ": added\n");
  return 0;
}

int remove_vm_file(const RemoveOptions& options) {
  const VmFile file(options.runtime_dir, options.vm);
  if (!file.exists()) {
    if (!options.owner.empty()) return 0;
    throw Error(exit_code::refused,
                "VM " + options.vm + " was not added by `ivgpu add`; a table of the configuration is taken out there");
  }
  if (!options.owner.empty() && file.owner() != options.owner) return 0;
  file.remove();
  reload_for(options.runtime_dir, options.vm, file.path().string());
  print("VM " + options.vm + ": removed\n");
  return 0;
}

}  // namespace ivgpu
