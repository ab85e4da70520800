// The options of the commands that query, measure or send a request: status, top, bench, end, reload and check. See
// command_line.h.
#include "tools/ivgpu/command_line/command_line.h"
#include "tools/ivgpu/top/rows.h"

namespace ivgpu {
namespace {

void add_bench_options(CLI::App& command, BenchOptions& options) {
  command
      .add_option("FIGURES", options.groups,
                  "Any of latency, kernels, copy, memory, start and sessions; without one, all. Or share, alone")
      ->check(CLI::IsMember({"latency", "kernels", "copy", "memory", "start", "sessions", "share"}));
  command.add_flag("--quick", options.quick, "Few samples: shows in seconds that the measurement works");
  command.add_option("--mix", options.mixes, "Of share, only this mix, as its table names it; may be repeated")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--pairs", options.pairs, "Of share, how many rounds each way [2]")->check(CLI::Range(1, 1000));
  command
      .add_option("--round", options.round_s,
                  "Of share, seconds of a round [0.6]; its beginning counts, as programs begin to share the GPU there")
      ->check(CLI::Range(0.05, 600.0));
  command.add_flag("--no-alone", options.no_alone, "Of share, do not measure each load of the mixes alone as well");
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

}  // namespace

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
      "waited,\n"
      "and how many of them gave the GPU something to do (submitted); bytes through the rings; bytes that copies "
      "moved; device memory held; how often it found the next record while "
      "it\n"
      "polled (spun), slept (parked), and woke its guest (woken). The line \"all\" counts workers that have ended, "
      "too.\n" +
      std::string(exit_codes));
  command.callback([&chosen, options] { chosen = [options](const Words&) { return status(*options); }; });
  return command;
}

CLI::App& add_top(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<TopOptions>();
  CLI::App& command = *app.add_subcommand("top", "Show what VMs and their programs do, again and again");
  add_runtime_dir(command, options->runtime_dir);
  command.add_option("--interval", options->interval_s, "Seconds between two views")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(unnamed(CLI::Range(0.1, 86400.0)));
  command.add_option("--sort", options->sort, "The column whose largest come first, or name")
      ->capture_default_str()
      ->check(CLI::IsMember(top::sort_names()));
  command.add_flag("--once", options->once, "One view of one interval, for scripts");
  command.add_flag("--json", options->json, "A JSON document for each view, a line each");
  command.footer(
      "On a terminal q ends it, and s sorts by the next column. Elsewhere each view is a table, until the broker "
      "ends.\n"
      "Exit codes: 0 it was asked to end; 2 the command line makes no sense; 3 no broker answers, or it has ended.");
  command.callback([&chosen, options] { chosen = [options](const Words&) { return live_view(*options); }; });
  return command;
}

CLI::App& add_bench(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<BenchOptions>();
  options->broker.vm = "bench";
  CLI::App& command = *app.add_subcommand("bench", "Measure natively and through ivgpu on this machine, and compare");
  command.footer(
      "Prints for each figure median, 99th percentile and worst of both, and ivgpu's ratio to native: below 1 is\n"
      "better for times, above 1 for rates (GB/s, kernels/ms). The machine should do nothing else meanwhile.\n"
      "  latency   single launches, waits, queries, 4-byte copies, and a session that is idle\n"
      "  kernels   small kernels: waits, launches back to back, small copies, and a worker's processor time\n"
      "  copy      4 KiB to 256 MiB of pinned and pageable memory, both ways\n"
      "  memory    registered memory, kernels that read memory of the host, a texture, virtual memory, pools\n"
      "  start     a new process until its first result: one at a time, and eight at once\n"
      "  sessions  1, 2, 4 and 8 processes at once on one GPU\n"
      "  share     loads in several VMs at once: natively, by the driver's time slices, and by leases\n"
      "--against compares the ratios, or the medians of what has no native side. Without --region-size: 8GiB where\n"
      "the machine has memory for it, so that copies of 256 MiB find pinned memory, else 1GiB.\n"
      "Exit codes: 0 measured; 1 something is worse than --margin allows; 2 the command line makes no sense, or a "
      "file\n"
      "that it names cannot be read or written; 3 a piece is missing or fails; 128 + n after signal n.");
  add_program_broker_options(command, options->broker);
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

CLI::App& add_reload(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<ReloadOptions>();
  CLI::App& command = *app.add_subcommand("reload", "Have a broker read its file again, and show what changes");
  add_runtime_dir(command, options->runtime_dir);
  command.footer(
      "Where VMs are removed, it waits until they have gone and the new ones are there.\n"
      "Exit codes: 0 the file is served; 1 it has a mistake and nothing changes, or something of it is not served;\n"
      "2 the command line makes no sense; 3 no broker answers, or it has ended.");
  command.callback([&chosen, options] { chosen = [options](const Words&) { return reload(*options); }; });
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

}  // namespace ivgpu
