// The command line of `ivgpu`. One function per command adds the command with its options and help; these functions
// share the helpers below. Only main.cc and the command_line sources include this header.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/error.h"

namespace ivgpu {

inline constexpr const char* exit_codes =
    "Exit codes: the program's own; 128 + n if signal n ended it; 2 the command line makes no sense; 3 a piece is\n"
    "missing or does not start; 4 the guest was lost; 5 with IVGPU_STRICT set: a worker failed, or a signal\n"
    "ended ivgpud or QEMU; 124 --timeout ran out; 126 cannot be run; 127 not found.";

// The command line, split at the first "--". CLI11 parses only the words before it.
struct Words {
  std::vector<std::string> before, after;
  bool cut = false;

  Words(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      if (!cut && std::string(argv[i]) == "--")
        cut = true;
      else
        (cut ? after : before).emplace_back(argv[i]);
    }
  }
};

// Runs the command that the user chose, with its options, and returns the exit code.
using Chosen = std::function<int(const Words&)>;

// start.cc: commands that start a program or a guest.
CLI::App& add_run(CLI::App& app, Chosen& chosen);
CLI::App& add_sim(CLI::App& app, Chosen& chosen);
CLI::App& add_vm(CLI::App& app, Chosen& chosen);
CLI::App& add_trace(CLI::App& app, Chosen& chosen);
CLI::App& add_coverage(CLI::App& app, Chosen& chosen);

// look.cc: commands that query a broker or this machine, run benchmarks, or send the broker a request.
CLI::App& add_status(CLI::App& app, Chosen& chosen);
CLI::App& add_top(CLI::App& app, Chosen& chosen);
CLI::App& add_bench(CLI::App& app, Chosen& chosen);
CLI::App& add_end(CLI::App& app, Chosen& chosen);
CLI::App& add_reload(CLI::App& app, Chosen& chosen);
CLI::App& add_check(CLI::App& app, Chosen& chosen);

// vms.cc: commands that add VMs to a broker and remove them.
CLI::App& add_add(CLI::App& app, Chosen& chosen);
CLI::App& add_remove(CLI::App& app, Chosen& chosen);

// shared.cc: all functions from here on.

// The program's name and all its arguments, including its options. CLI11 may have consumed the name before the "--".
std::vector<std::string> program_of(const CLI::App& command, const Words& words);
// Same as program_of(), but throws an Error if there is no program.
std::vector<std::string> some_program_of(const CLI::App& command, const Words& words);

// CLI11 shows a value's type, a colon and its check. This function removes the check's name, for a type whose name says
// the same.
CLI::Validator unnamed(CLI::Validator validator);

CLI::Option& file_option(CLI::App& command, const char* name, std::filesystem::path& into, const char* what);
CLI::Option& existing_file_option(CLI::App& command, const char* name, std::filesystem::path& into, const char* what);
void add_runtime_dir(CLI::App& command, std::filesystem::path& into);
void add_broker_options(CLI::App& command, BrokerOptions& broker);
// Adds the options of a command that runs a program on this machine and chooses a region size if the user gives none.
void add_program_broker_options(CLI::App& command, BrokerOptions& broker);

}  // namespace ivgpu
