// `ivgpu`: runs CUDA programs through the project on this machine. The command line and the exit codes; the commands
// themselves have a file each.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>

#include "tools/ivgpu/commands.h"
#include "tools/ivgpu/error.h"
#include "tools/ivgpu/say.h"

namespace {

using namespace ivgpu;

constexpr const char* exit_codes =
    "Exit codes: the program's own; 128 + n if signal n ended it; 2 the command line makes no sense; 3 a piece is\n"
    "missing or does not start; 4 the guest was lost; 5 with IVGPU_STRICT set: a worker failed, or a signal\n"
    "ended ivgpud or QEMU; 124 --timeout ran out; 126 cannot be run; 127 not found.";

// CLI11 knows nothing of the words that prefix_command() leaves, so its usage line lacks them.
class Formatter : public CLI::Formatter {
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, name);
    const std::size_t end = usage.find_last_not_of('\n') + 1;
    const char* words = !app->get_prefix_command()   ? ""
                        : app->get_name() == "vm"    ? " [-- COMMAND...]"
                        : app->get_name() == "trace" ? " [-- PROGRAM [ARGUMENTS...]]"
                                                     : " PROGRAM [ARGUMENTS...]";
    return usage.substr(0, end) + words + usage.substr(end);
  }
};

// The command line, cut at the first "--": CLI11 sees what stands before it.
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

// Whatever follows the options is the program's, its own options included: where CLI11 met the program's name before
// the "--", that belongs to the program, too.
std::vector<std::string> program_of(const CLI::App& command, const Words& words) {
  std::vector<std::string> program = command.remaining();
  if (!program.empty() && program.front().starts_with("-"))
    throw Error(exit_code::usage, command.get_name() + " has no option " + program.front());
  if (!program.empty() && words.cut) program.emplace_back("--");
  program.insert(program.end(), words.after.begin(), words.after.end());
  return program;
}

std::vector<std::string> some_program_of(const CLI::App& command, const Words& words) {
  std::vector<std::string> program = program_of(command, words);
  if (program.empty()) throw Error(exit_code::usage, command.get_name() + " needs a PROGRAM");
  return program;
}

// CLI11 shows a value's type and, behind a colon, what it is held against: where the type's name says it, once is
// enough.
CLI::Validator unnamed(CLI::Validator validator) { return validator.description(""); }

CLI::Option& file_option(CLI::App& command, const char* name, std::filesystem::path& into, const char* what) {
  return *command.add_option(name, into, what)->type_name("FILE");
}

CLI::Option& existing_file_option(CLI::App& command, const char* name, std::filesystem::path& into, const char* what) {
  return *file_option(command, name, into, what).check(unnamed(CLI::ExistingFile));
}

void add_runtime_dir(CLI::App& command, std::filesystem::path& into) {
  command.add_option("--runtime-dir", into, "The runtime_dir of the broker's configuration")
      ->type_name("DIR")
      ->capture_default_str();
}

void add_broker_options(CLI::App& command, BrokerOptions& broker) {
  command
      .add_option("--gpu", broker.gpu,
                  "auto (a real one where there is one), sim (the simulated GPU), or the PATH of a libcuda.so.1")
      ->type_name("GPU")
      ->capture_default_str();
  command.add_option("--region-size", broker.region_size, "The shared memory, a power of two, as 1G or 512M")
      ->type_name("SIZE")
      ->capture_default_str();
  existing_file_option(command, "--extra-config", broker.extra_config,
                       "TOML to append to the private broker's configuration");
  command.add_flag("-v,--verbose", broker.verbose, "Show the private broker's log");
}

using Chosen = std::function<int(const Words&)>;

CLI::App& add_run(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<RunOptions>();
  options->broker.vm = "local";
  CLI::App& command = *app.add_subcommand("run", "Run a program through guest library and worker on this machine");
  add_broker_options(command, options->broker);
  command.add_flag("--private", options->own_broker, "Start an own broker even where one is running");
  command.prefix_command()->callback([&command, &chosen, options] {
    // An option that shapes the broker cannot be kept by one that is running.
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

void add_guest_options(CLI::App& command, VmOptions& options) {
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
      return vm(*options);
    };
  });
  return command;
}

CLI::App& add_status(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App& command =
      *app.add_subcommand("status", "Show a broker's VMs, slots, workers, their jail and what they have done");
  add_runtime_dir(command, options->runtime_dir);
  command.add_flag("--json", options->json, "The same as one JSON document; with --watch one after the other");
  command
      .add_option("--watch", options->watch_s,
                  "Again each SECONDS (default 1), with rates per second, until the broker ends")
      ->expected(0, 1)
      ->default_str("1")
      ->check(CLI::Range(0.1, 86400.0))
      ->type_name("[SECONDS]");
  command.footer(
      "Of each worker: calls that came to it (what the guest's library answers by itself does not), posted and "
      "waited;\n"
      "bytes through the rings; bytes that copies moved; device memory held; how often it found the next record while "
      "it\n"
      "polled (spun), slept (parked), and woke its guest (woken). The line \"all\" counts workers that have ended, "
      "too.\n" +
      std::string(exit_codes));
  command.callback([&chosen, options] { chosen = [options](const Words&) { return status(*options); }; });
  return command;
}

void add_bench_options(CLI::App& command, BenchOptions& options) {
  command.add_option("FIGURES", options.groups, "Any of latency, copy, start and sessions; without one, all of them")
      ->check(CLI::IsMember({"latency", "copy", "start", "sessions"}));
  command.add_flag("--quick", options.quick, "Few samples: shows in seconds that the measurement works");
  command.add_flag("--mps", options.mps, "Under a MPS control daemon that is started for the run and ended with it");
  command.add_option("--idle", options.idle_s, "Seconds that a session is left idle, to see what that takes [10]")
      ->check(CLI::Range(0.1, 3600.0));
  file_option(command, "--json", options.json, "Write the run to this file, too");
  file_option(command, "--plot", options.plot, "Draw the run into this file, as SVG");
  command.add_flag("--markdown", options.markdown, "Print the tables as Markdown, without the histograms");
  file_option(command, "--against", options.against, "Compare with the run in this file, which --json wrote");
  command.add_option("--margin", options.margin_percent, "Per cent that a figure may be worse than in that run")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
}

CLI::App& add_bench(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<BenchOptions>();
  options->broker.vm = "bench";
  options->broker.region_size.clear();
  CLI::App& command = *app.add_subcommand("bench", "Measure natively and through ivgpu on this machine, and compare");
  command.footer(
      "Prints for each figure median, 99th percentile and worst of both, and ivgpu's ratio to native: below 1 is\n"
      "better for times, above 1 for rates (GB/s, kernels/ms). The machine should do nothing else meanwhile.\n"
      "  latency   single launches, waits, queries, 4-byte copies, and a session that is idle\n"
      "  copy      4 KiB to 256 MiB of pinned and pageable memory, both ways\n"
      "  start     a new process until its first result: one at a time, and eight at once\n"
      "  sessions  1, 2, 4 and 8 processes at once on one GPU\n"
      "--against compares the ratios, or the medians of what has no native side. Without --region-size: 8GiB where\n"
      "the machine has memory for it, so that copies of 256 MiB find pinned memory, else 1GiB.\n"
      "Exit codes: 0 measured; 1 something is worse than --margin allows; 2 the command line makes no sense, or a "
      "file\n"
      "that it names cannot be read or written; 3 a piece is missing or fails; 128 + n after signal n.");
  add_broker_options(command, options->broker);
  add_bench_options(command, *options);
  command.callback([&chosen, options] { chosen = [options](const Words&) { return benchmark(*options); }; });
  return command;
}

CLI::App& add_end(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<EndOptions>();
  CLI::App& command = *app.add_subcommand("end", "End all sessions of a VM, or one");
  add_runtime_dir(command, options->runtime_dir);
  command.add_option("session", options->target, "Whose; as `ivgpu status` shows it")->type_name("VM[/SESSION]");
  command.footer(
      "Its programs' calls return CUDA_ERROR_DEVICE_UNAVAILABLE from then on.\n"
      "Exit codes: 0 they end; 1 no such VM or session; 2 the command line makes no sense; 3 no broker answers.");
  command.callback([&chosen, options] { chosen = [options](const Words&) { return end_sessions(*options); }; });
  return command;
}

// What is only for a program, and what is only for sessions that others start.
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
  add_broker_options(command, options.broker);
  command.add_flag("--private", options.own_broker, "Start an own broker even where one is running");
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

CLI::App& add_check(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App& command = *app.add_subcommand("check", "Say what is wrong with this host or this guest, and the remedy");
  CLI::Option* host = command.add_flag("--host", options->host, "Check it as a host");
  command.add_flag("--guest", options->guest, "Check it as a guest: one with an ivshmem device is taken for one")
      ->excludes(host);
  command.add_flag("--json", options->json, "The same as one JSON document");
  add_runtime_dir(command, options->runtime_dir);
  command.add_option("--root", options->root, "Look at the files below this folder as if it were the machine")
      ->type_name("DIR")
      ->check(unnamed(CLI::ExistingDirectory));
  command.callback([&chosen, options] { chosen = [options](const Words&) { return check(*options); }; });
  command.footer(
      "Each line is ok, warning or wrong. In a guest, the program ivgpu-check does the same by itself.\n"
      "Exit codes: 0 nothing is wrong; 1 something is; 2 the command line makes no sense; 3 ivgpu-check is missing,\n"
      "or its answer could not be written.");
  return command;
}

CLI::App& add_coverage(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<CoverageOptions>();
  options->broker.vm = "local";
  CLI::App& command = *app.add_subcommand("coverage", "Tell which driver calls a program uses, and the state of each");
  add_broker_options(command, options->broker);
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

// What is wrong with the words, as one sentence in the form of all others.
std::string sentence_of(const CLI::App& app, const CLI::ParseError& error) {
  const auto commands = app.get_subcommands();
  const CLI::App& command = commands.empty() ? app : *commands.front();
  const std::string name = commands.empty() ? "ivgpu" : "ivgpu " + command.get_name();
  const auto rest = command.remaining();
  std::string what = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && !rest.empty())
    what = command.get_name() + (rest.front().starts_with("-") ? " has no option " : " takes no ") + rest.front();
  return what.substr(0, what.find('\n')) + "; see " + name + " --help";
}

// CLI11 would say only that a command is missing.
void check_command(const CLI::App& app, const Words& words) {
  const std::string first = words.before.empty() ? "" : words.before.front();
  const auto is_first = [&](const CLI::App* command) { return command->get_name() == first; };
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  if (first.empty()) throw Error(exit_code::usage, "a command is missing; see ivgpu --help");
  for (const char* option : {"-h", "--help", "--version"})
    if (first == option) return;
  if (std::none_of(commands.begin(), commands.end(), is_first))
    throw Error(exit_code::usage, "there is no " + std::string(first.starts_with("-") ? "option " : "command ") +
                                      first + "; see ivgpu --help");
}

int parse_and_run(int argc, char** argv) {
  CLI::App app{"ivgpu runs CUDA programs on a GPU that several virtual machines share.", "ivgpu"};
  app.require_subcommand(1)->footer(exit_codes);
  app.formatter(std::make_shared<Formatter>());
  app.set_version_flag("--version", "ivgpu " IVGPU_VERSION, "Print the version and exit");
  const Words words(argc, argv);
  Chosen chosen;
  add_run(app, chosen).footer(exit_codes);
  add_sim(app, chosen).footer(exit_codes);
  add_vm(app, chosen);
  add_status(app, chosen);
  add_trace(app, chosen);
  add_end(app, chosen);
  add_bench(app, chosen);
  add_check(app, chosen);
  add_coverage(app, chosen);
  check_command(app, words);
  try {
    app.parse(std::vector<std::string>(words.before.rbegin(), words.before.rend()));  // CLI11 wants the last one first
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw Error(exit_code::usage, sentence_of(app, error));
    app.exit(error);  // prints what was asked for
    flush(stdout);
    return 0;
  }
  return chosen(words);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const Error& error) {
    if (*error.what() != '\0') std::fprintf(stderr, "ivgpu: %s\n", error.what());
    return error.code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ivgpu: %s\n", error.what());
    return exit_code::missing;
  }
}
