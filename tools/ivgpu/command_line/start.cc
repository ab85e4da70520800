// The options of the commands that start a program or a guest: run, sim, vm, trace and coverage. See command_line.h.
#include "tools/ivgpu/command_line/command_line.h"

namespace ivgpu {
namespace {

void add_guest_options(CLI::App& command, VmOptions& options) {
  command
      .add_option("--transport", options.broker.transport,
                  "The guest's way to the host, as in ivgpud's configuration: ivshmem-doorbell, ivshmem-plain, or "
                  "persistent memory with ports of virtio-serial")
      ->type_name("WAY")
      ->capture_default_str()
      ->check(CLI::IsMember({"doorbell", "plain", "pmem"}));
  command.add_flag("--vsock", options.vsock, "With --transport pmem: vsock in the place of these ports");
  command.add_option("--memory", options.memory, "The guest's memory")->type_name("SIZE")->capture_default_str();
  command.add_option("--cpus", options.cpus, "The guest's processors")->capture_default_str()->check(CLI::Range(1, 64));
  existing_file_option(command, "--kernel", options.kernel, "A bzImage instead of Debian's cloud kernel");
  command.add_option("--program-dir", options.program_dirs, "A folder that appears in the guest as /programs/NAME")
      ->type_name("DIR")
      ->check(unnamed(CLI::ExistingDirectory))
      ->allow_extra_args(false);
  command.add_option("--env", options.environment, "A variable for the command")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--timeout", options.timeout_s, "Seconds that the command may take, boot included")
      ->check(CLI::PositiveNumber);
  command.add_flag("--keep", options.keep, "After the command, a shell on the terminal");
  command.add_flag("--steps", options.steps, "Say what is being done");
}

// Some options need a program. Others apply only to sessions that other processes start.
void check_trace(const CLI::App& command, bool program) {
  for (const char* name : {"--gpu", "--region-size", "--extra-config", "--private", "--verbose"})
    if (!program && command.count(name) > 0) throw Error(exit_code::usage, std::string(name) + " needs a PROGRAM");
  for (const char* name : {"--vm", "--slot", "--process", "--seconds", "--runtime-dir"})
    if (program && command.count(name) > 0)
      throw Error(exit_code::usage, std::string(name) + " is for sessions that run already, not for a PROGRAM");
}

void add_trace_options(CLI::App& command, TraceOptions& options) {
  add_runtime_dir(command, options.runtime_dir);
  command.add_option("--vm", options.vm, "Only this VM's sessions")->type_name("NAME");
  command.add_option("--slot", options.slot, "Only this slot's")->check(CLI::Range(0, 63));
  command.add_option("--process", options.process, "Only this process's, as its guest counts processes")
      ->check(CLI::PositiveNumber);
  command.add_option("--seconds", options.seconds, "End after so long")->check(CLI::PositiveNumber);
  command.add_flag("--summary", options.summary,
                   "At the end a line for each call's name: how many, how long, how many failed");
  file_option(command, "--perfetto", options.perfetto, "Write this file for the Perfetto viewer, ui.perfetto.dev");
  add_program_broker_options(command, options.broker);
  command.add_flag("--private", options.own_broker, "Start an own broker even where one is running");
}

}  // namespace

CLI::App& add_run(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<RunOptions>();
  options->broker.vm = "local";
  CLI::App& command = *app.add_subcommand("run", "Run a program through guest library and worker on this machine");
  add_program_broker_options(command, options->broker);
  command.add_flag("--private", options->own_broker, "Start an own broker even where one is running");
  command.prefix_command()->callback([&command, &chosen, options] {
    // A running broker keeps its settings, so an option that changes them needs a broker of our own.
    for (const char* name : {"--gpu", "--region-size", "--extra-config"})
      options->own_broker = options->own_broker || command.count(name) > 0;
    chosen = [&command, options](const Words& words) {
      options->program = some_program_of(command, words);
      return run(*options);
    };
  });
  return command;
}

CLI::App& add_sim(CLI::App& app, Chosen& chosen) {
  CLI::App& command = *app.add_subcommand("sim", "Run a program directly on the simulated GPU");
  command.prefix_command()->callback([&command, &chosen] {
    chosen = [&command](const Words& words) { return sim({.program = some_program_of(command, words)}); };
  });
  return command;
}

CLI::App& add_vm(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<VmOptions>();
  options->broker.vm = "guest";
  CLI::App& command = *app.add_subcommand("vm", "Boot the demo's guest in QEMU and run a command there, or a shell");
  command.footer(
      "The words of COMMAND, joined by blanks, go to the guest's shell; programs lie in /programs, which is\n"
      "in its PATH. Without COMMAND: a shell on the terminal (Ctrl-A X ends QEMU), or the commands that\n"
      "stand on standard input. IVGPU_BUNDLE names a folder with QEMU, kernel and busybox to use.\n" +
      std::string(exit_codes));
  add_broker_options(command, options->broker);
  add_guest_options(command, *options);
  command.prefix_command()->callback([&command, &chosen, options] {
    chosen = [&command, options](const Words& words) {
      options->command = program_of(command, words);
      if (options->vsock && options->broker.transport != "pmem")
        throw Error(exit_code::usage, "--vsock needs --transport pmem");
      return vm(*options);
    };
  });
  return command;
}

CLI::App& add_trace(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<TraceOptions>();
  options->broker.vm = "local";
  CLI::App& command = *app.add_subcommand("trace", "Show the calls of sessions while they are made");
  add_trace_options(command, *options);
  command.footer(
      "Shows what reaches the host, as its worker sees it: names, arguments, results, and how long the driver took. "
      "What\n"
      "the guest's library answers by itself (attributes, the current context, what is known to be done) never gets\n"
      "there, and is not shown; IVGPU_LOG=trace in the guest shows every call. A line: seconds since the beginning, "
      "VM,\n"
      "slot and channel, the call. With PROGRAM: starts it as `ivgpu run` does, shows it from its first call on, and\n"
      "writes to standard error. Calls that come faster than they are read are counted as missing. Tracing slows a "
      "call\n"
      "by less than a microsecond.\n" +
      std::string(exit_codes));
  command.prefix_command()->callback([&command, &chosen, options] {
    for (const char* name : {"--gpu", "--region-size", "--extra-config"})
      options->own_broker = options->own_broker || command.count(name) > 0;
    chosen = [&command, options](const Words& words) {
      options->program = program_of(command, words);
      check_trace(command, !options->program.empty());
      return trace_calls(*options);
    };
  });
  return command;
}

CLI::App& add_coverage(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<CoverageOptions>();
  options->broker.vm = "local";
  CLI::App& command = *app.add_subcommand("coverage", "Show which driver calls a program uses, and the state of each");
  add_program_broker_options(command, options->broker);
  command.add_flag("--static", options->files_only,
                   "Do not run it: look for the names of calls in PROGRAM, a file, and its libraries");
  command.add_flag("--json", options->json, "One JSON document instead of a table");
  command.footer(
      "Runs the program on this machine as `ivgpu run --private` does, its output on standard error, and records its\n"
      "driver calls. What is not served is handed out all the same and refuses, so that it is seen who calls it: a\n"
      "program that asks first may take another way than without this. Of --static, what is found need not be used, "
      "and\n"
      "NVIDIA's runtime names every call; libraries that a program loads by itself are not seen.\n"
      "Exit codes: 0 all that it called is served; 1 something is not, or a library was not found; 2 the command line\n"
      "makes no sense; 3 a piece is missing or does not start; 126, 127 the program cannot be run.");
  command.prefix_command()->callback([&command, &chosen, options] {
    chosen = [&command, options](const Words& words) {
      options->program = some_program_of(command, words);
      return coverage(*options);
    };
  });
  return command;
}

}  // namespace ivgpu
