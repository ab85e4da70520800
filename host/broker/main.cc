// ivgpud: the host's part of every VM's virtual GPU, and the only privileged part.
//
// Process model: one process, one thread, one event loop. For each configured VM the broker makes a region (a sealed
// memfd) and serves it over an ivshmem socket. It keeps workers: one jailed process per guest process, started ahead,
// each with its own slot of the region. It reads region headers and slot directories as untrusted hints, and never a
// ring, a slot's extent or a device page. It loads no driver; if a VM has a memory quota, a separate process queries
// NVIDIA's library (nvml_main.cc). When the broker ends, its workers end: their socket closes, and PR_SET_PDEATHSIG
// kills them if the broker was killed. As a systemd service it leaves them to the next broker
// (docs/design/034-restart.md).
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "host/base/log.h"
#include "host/base/process/listener.h"
#include "host/broker/alloc/placement.h"
#include "host/broker/config/config.h"
#include "host/broker/config/drop_ins.h"
#include "host/broker/config/worker_users.h"
#include "host/broker/daemon.h"
#include "host/broker/start_check.h"
#include "host/broker/worker/worker_program.h"
#include "ring/layout/process_start.h"

namespace {

namespace fs = std::filesystem;
using namespace host::broker;
using host::Error;
using host::Result;

constexpr int exit_failed = 1, exit_bad_configuration = 2;

struct Arguments {
  std::string config;
  int ready_fd = -1;
  int stay_while_fd = -1;
  int last_status_fd = -1;
  bool check = false;
  bool print_config = false;
};

unsigned cores() { return std::max(1U, std::thread::hardware_concurrency()); }

int complain(int code, const std::string& sentence) {
  print_sentence(sentence, code != 0);
  return code;
}

// Raises the soft limit to the hard one, which takes no privilege.
void raise_limit(__rlimit_resource_t resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(resource, &limit);
}

// A late heartbeat on a busy machine would make starting programs consider the broker dead. It needs little processor
// time. Only root may raise its priority, and workers do not inherit it.
void come_first() { setpriority(PRIO_PROCESS, 0, -10); }

// When memory is short, the kernel must not kill the broker of all VMs for memory that one VM uses. Only root may ask
// for that.
void go_last_when_memory_is_short() { std::ofstream("/proc/self/oom_score_adj") << "-900"; }

// Blocks SIGHUP, from a closed terminal or a reload request, until the VMs exist and can handle it.
void hold_hangups() {
  sigset_t hangup;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  sigprocmask(SIG_BLOCK, &hangup, nullptr);
}

Result<void> make_runtime_dir(const std::string& path) {
  std::error_code failed, unknown;
  fs::create_directories(path, failed);
  if (fs::is_directory(path, unknown)) return {};
  return Error{fmt::format("[broker] runtime_dir = \"{}\" cannot be made: {}{}", path, failed.message(),
                           folder_remedy(fs::path(path).parent_path(), failed.value()))};
}

void notify_ready(int fd) {
  if (fd < 0) return;
  if (write(fd, "ready\n", 6) != 6) spdlog::warn("--ready-fd {}: {}", fd, std::strerror(errno));
  close(fd);
}

// Sends the last status after the status socket has gone and before the workers end.
void report_last_status(int fd, const BrokerStatus& status) {
  if (fd < 0) return;
  const std::string text = status_as_json(status);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return spdlog::warn("--last-status-fd {}: {}", fd, std::strerror(errno));
    at += static_cast<std::size_t>(n);
  }
}

fs::path own_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

using Hold = std::function<Result<void>(const Config&, const std::vector<VmGpus>& gpus)>;

// Sets who measures GPU memory, returns each VM's GPUs, and checks that the GPUs hold the quotas. `hold` locks GPUs as
// GpuHolds does; if it fails for VMs of the broker's own file, the start fails.
Result<std::vector<VmGpus>> look_at_memory(GpuAccounts& accounts, EventLoop& loop, Config& config,
                                           const std::vector<VmGpus>& gpus, const Hold& hold) {
  // Measured on an H200; other GPUs need less.
  const std::uint64_t first_context = config.gpu.library == "sim" ? simulated_context() : std::uint64_t{523} << 20;
  accounts.measure_by(make_gpu_usage(loop, config.gpu.library, own_folder()), first_context);
  accounts.look_first(config, gpus);
  const Possible fit = [&](Config& some) -> Result<std::vector<VmGpus>> {
    auto its = find_gpus(some);
    if (!its) return its.error();
    return place_gpus(some, accounts.all(), {}, *std::move(its));
  };
  const auto placed = take_possible(config, fit);
  if (!placed) return placed.error();
  const Possible all = [&](Config& some) -> Result<std::vector<VmGpus>> {
    auto its = fit(some);
    if (!its) return its.error();
    if (const auto held = hold(some, *its); !held) return held.error();
    return its;
  };
  const auto held = take_possible(config, all);
  return held ? held : placed;
}

int serve(const Arguments& arguments, Config config, const WorkerProgram& program, std::vector<VmGpus> gpus) {
  open_log(config.broker.log_level);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGIO, SIG_IGN);      // sent if a VM's memory is opened while the broker holds a file lease on it
  raise_limit(RLIMIT_NOFILE);  // three descriptors per connection, five per worker: 1024 are too few
  raise_limit(RLIMIT_FSIZE);   // a region counts as a file
  come_first();
  go_last_when_memory_is_short();
  for (const int fd : {arguments.ready_fd, arguments.stay_while_fd, arguments.last_status_fd})
    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
      return complain(exit_bad_configuration, fmt::format("descriptor {} is not open", fd));
    }
  if (const auto may = may_give_users(config.broker); !may) return complain(exit_failed, may.error().message);
  if (const auto made = make_runtime_dir(config.broker.runtime_dir); !made)
    return complain(exit_bad_configuration, made.error().message);
  hold_hangups();
  Daemon daemon(arguments.config, cores());
  const Hold hold = [&](const Config& some, const auto& its) { return daemon.services().hold_gpus(some, its); };
  auto placed = look_at_memory(daemon.services().accounts(), daemon.loop(), config, gpus, hold);
  if (!placed) return complain(exit_bad_configuration, arguments.config + ": " + placed.error().message);
  gpus = *std::move(placed);
  daemon.services().report_facts_by(make_gpu_usage(daemon.loop(), config.gpu.library, own_folder()));
  if (const auto started = daemon.start(config, program, gpus); !started)
    return complain(exit_failed, started.error().message);
  const std::string all = daemon.served() < config.vms.size() ? fmt::format(" of {}", config.vms.size()) : "";
  spdlog::info("serving {}{} VM(s) with {}", daemon.served(), all, program.library);
  spdlog::debug("waiting through {}", daemon.waiter());
  daemon.when_warm([&] { notify_ready(arguments.ready_fd); });
  daemon.run(arguments.stay_while_fd);
  report_last_status(arguments.last_status_fd, daemon.status());
  if (!daemon.leaves()) return 0;
  spdlog::shutdown();
  _exit(0);
}

int check_and_report(const std::string& file, Config config, const std::vector<VmGpus>& gpus,
                     const std::string& library) {
  EventLoop loop;
  GpuAccounts accounts(loop);
  const Hold all = [](const Config&, const auto&) { return Result<void>(); };
  if (const auto placed = look_at_memory(accounts, loop, config, gpus, all); !placed)
    return complain(exit_bad_configuration, file + ": " + placed.error().message);
  for (const RefusedFile& refused : config.refused) complain(exit_bad_configuration, refused.sentence);
  for (const std::string& remark : config.remarks) complain(0, "note: " + remark);
  const StartCheck found = check_start(config);
  for (const std::string& sentence : found.wrong) complain(exit_failed, file + ": " + sentence);
  for (const std::string& sentence : found.notes) complain(0, file + ": note: " + sentence);
  if (!config.refused.empty()) return exit_bad_configuration;
  if (!found.wrong.empty()) return exit_failed;
  fmt::print("{}: good: {} VM(s), {}\n", file, config.vms.size(), library);
  return 0;
}

int run(const Arguments& arguments) {
  if (arguments.print_config) {
    fmt::print("{}", default_config(cores()));
    return 0;
  }
  if (arguments.config.empty()) return complain(exit_bad_configuration, "--config FILE is needed; see --help");
  auto config = read_config(arguments.config, cores());
  if (!config) return complain(exit_bad_configuration, config.error().message);
  const auto wrong = [&](const std::string& why) {
    return complain(exit_bad_configuration, arguments.config + ": " + why);
  };
  const auto program = find_worker(*config, own_folder());
  if (!program) return wrong(program.error().message);
  const auto gpus = take_possible(*config, find_gpus);
  if (!gpus) return wrong(gpus.error().message);
  if (arguments.check) return check_and_report(arguments.config, *std::move(config), *gpus, program->library);
  return serve(arguments, *std::move(config), *program, *gpus);
}

int parse_and_run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("ivgpud gives VMs a virtual GPU over shared memory.", "ivgpud");
  app.add_option("--config", arguments.config, "The configuration, a TOML file; --print-config shows every key")
      ->type_name("FILE");
  app.add_option("--ready-fd", arguments.ready_fd,
                 "Write 'ready' and a newline to this descriptor when serving, with the first workers up");
  app.add_option("--stay-while-fd", arguments.stay_while_fd, "End when this descriptor reads end of file");
  app.add_option("--last-status-fd", arguments.last_status_fd,
                 "At the end, write the status as JSON to this descriptor: how every worker has ended");
  app.add_flag("--check", arguments.check, "Say whether this configuration is good and could be served here, and end");
  app.add_flag("--print-config", arguments.print_config, "Print every key with its default, and end");
  app.set_version_flag("--version", "ivgpud " IVGPU_VERSION);
  app.footer(
      "SIGTERM and SIGINT end it; SIGHUP has it read its configuration again.\n"
      "Exit codes: 0 it was asked to end; 1 it could serve no VM, or not go on; 2 the command line or the "
      "configuration\n"
      "makes no sense.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& failed) {
    if (failed.get_exit_code() == 0) return app.exit(failed);  // --help, --version
    const auto rest = app.remaining();
    return complain(exit_bad_configuration,
                    (rest.empty() ? failed.what() : "there is no option " + rest.front()) + "; see --help");
  }
  return run(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  ring::start_process();
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "ivgpud: %s\n", failed.what());
    return exit_failed;
  }
}
