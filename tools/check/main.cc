// ivgpu-check finds the faults of this host or guest, and `ivgpu check` runs it. It links no library, so it can be
// copied into any guest.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "ring/layout/process_start.h"
#include "tools/check/devdax.h"
#include "tools/check/machine.h"

namespace {

constexpr const char* usage =
    "usage: ivgpu-check [--host|--guest] [--json] [--runtime-dir DIR] [--root DIR]\n"
    "Says what is wrong with this machine, a line for each thing and its remedy: ok, warning or wrong.\n"
    "  --host, --guest    which it is; without one, a machine with an ivshmem device or doorbell channels is a guest\n"
    "  --json             one JSON document instead\n"
    "  --runtime-dir DIR  the runtime_dir of the broker's configuration (/run/ivgpu)\n"
    "  --root DIR         look at the files below DIR as if it were the machine\n"
    "  --version, --help\n"
    "Exit codes: 0 nothing is wrong, 1 something is, 2 the command line makes no sense, 3 this could not be written.\n";

struct Arguments {
  std::string root, side;
  check::HostOptions host;
  bool json = false;
};

// Returns 0 to continue, else the exit code + 1.
int parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool takes_value = word == "--root" || word == "--runtime-dir";
    if (word == "--help" || word == "-h") {
      std::fputs(usage, stdout);
      return 1;
    }
    if (word == "--version") {
      std::puts("ivgpu-check " IVGPU_VERSION);
      return 1;
    }
    if (takes_value && i + 1 < argc)
      (word == "--root" ? arguments.root : arguments.host.runtime_dir) = argv[++i];
    else if (word == "--json")
      arguments.json = true;
    else if (word == "--host" || word == "--guest")
      arguments.side = word.substr(2);
    else {
      std::fprintf(
          stderr, takes_value ? "ivgpu-check: %s needs a folder\n" : "ivgpu-check: there is no option %s; see --help\n",
          argv[i]);
      return 3;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ring::start_process();
  Arguments arguments;
  if (const int end = parse(argc, argv, arguments); end != 0) return end - 1;
  const check::Machine machine(arguments.root);
  if (!arguments.root.empty() && !machine.has("/")) {
    std::fprintf(stderr, "ivgpu-check: %s: there is no such folder\n", arguments.root.c_str());
    return 2;
  }
  const bool device = !check::ivshmem_devices(machine).empty() || check::doorbell_channels(machine) > 0;
  const bool guest = arguments.side.empty() ? device : arguments.side == "guest";
  const check::Findings found = guest ? check::check_guest(machine) : check::check_host(machine, arguments.host);
  const std::string text = arguments.json ? check::as_json(found, guest ? "guest" : "host") : check::as_text(found);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    std::fprintf(stderr, "ivgpu-check: the output cannot be written: %s\n", std::strerror(errno));
    return 3;
  }
  return check::anything_wrong(found) ? 1 : 0;
}
