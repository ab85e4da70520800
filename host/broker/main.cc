// ivgpud: the host's part of every VM's virtual GPU, and the only part with privileges.
//
// Process model: one process, one thread, one event loop. For each VM of its configuration it makes a region (a sealed
// memfd), serves it over an ivshmem socket, and keeps workers: one process per guest process, started ahead, jailed,
// each with its own slot of the region. It reads region headers and slot directories as hints from a stranger, and
// never a ring, a slot's extent or a device page. It loads no driver. When it ends, so do its workers: by their socket,
// and by the kernel (PR_SET_PDEATHSIG) if it could not say so.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "host/broker/config.h"
#include "host/broker/event_loop.h"
#include "host/broker/gpu_library.h"
#include "host/broker/gpus.h"
#include "host/broker/plain_room.h"
#include "host/broker/start_check.h"
#include "host/broker/status.h"
#include "host/broker/status_server.h"
#include "host/broker/trace_server.h"
#include "host/broker/vm.h"
#include "host/broker/wiper.h"

namespace {

namespace fs = std::filesystem;
using namespace host::broker;

constexpr int exit_failed = 1, exit_bad_configuration = 2;
constexpr auto stop_patience = std::chrono::seconds(2);

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
  fmt::print(stderr, "ivgpud: {}\n", sentence);
  return code;
}

bool read_config(const std::string& path, Config& config, std::string& error) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || fs::is_directory(path) || !(text << file.rdbuf())) {
    error = fmt::format("{}: cannot be read{}", path, fs::exists(path) ? " or is empty" : ": there is no such file");
    return false;
  }
  return parse_config(text.str(), path, cores(), config, error);
}

void set_up_log(const std::string& level) {
  auto log = spdlog::stderr_color_mt("ivgpud");
  log->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  log->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(log);
}

// Three descriptors per connection, five per worker: the usual soft limit of 1024 is low for several VMs.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// The heartbeat must not wait its turn on a busy machine: guests would take the broker for dead. It needs next to no
// time of the processor. Only root may ask for this, and workers do not keep it.
void come_first() { setpriority(PRIO_PROCESS, 0, -10); }

// When memory is short, nothing that serves all VMs shall be ended for what one of them took. Only root may ask.
void go_last_when_memory_is_short() { std::ofstream("/proc/self/oom_score_adj") << "-900"; }

// A worker's environment, made from scratch: what it needs, and what the operator set for these and nothing else.
std::vector<std::string> worker_environment() {
  std::vector<std::string> environment = {
      "PATH=/usr/bin:/bin", "LANG=C",
      "CUDA_MODULE_LOADING=LAZY",  // what a guest does not call is not loaded
      "CUDA_CACHE_DISABLE=1",      // compiled code on disk would be shared between guests, and the jail refuses it
  };
  static constexpr std::string_view kept[] = {"CUDA_MPS_PIPE_DIRECTORY=",
                                              "CUDA_MPS_LOG_DIRECTORY=",
                                              "CUDA_VISIBLE_DEVICES=",
                                              "CUDA_DEVICE_ORDER=",
                                              "IVGPU_SIM_",
                                              "ASAN_OPTIONS=",
                                              "UBSAN_OPTIONS=",
                                              "TSAN_OPTIONS="};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto begins = [&](std::string_view prefix) { return text.starts_with(prefix); };
    if (std::any_of(std::begin(kept), std::end(kept), begins)) environment.emplace_back(text);
  }
  return environment;
}

bool find_worker(const Config& config, const fs::path& own_folder, WorkerProgram& program, std::string& error) {
  program.path = config.broker.worker.empty() ? (own_folder / "ivgpu-worker").string() : config.broker.worker;
  if (access(program.path.c_str(), X_OK) != 0) {
    error = fmt::format("[broker] worker: {}: {}", program.path, std::strerror(errno));
    return false;
  }
  program.library = find_gpu_library(config.gpu.library, own_folder, error);
  program.environment = worker_environment();
  program.priority = getpriority(PRIO_PROCESS, 0);
  return !program.library.empty();
}

// Those of each VM, in the order of `config.vms`.
bool find_gpus(const Config& config, std::vector<VmGpus>& all, std::string& error) {
  const std::vector<Gpu> host =
      config.gpu.library == "sim" ? simulated_gpus(std::getenv("IVGPU_SIM_DEVICES")) : gpus_of_machine();
  for (const VmOptions& vm : config.vms) {
    if (choose_gpus(vm.gpus, host, all.emplace_back(), error)) continue;
    error = fmt::format("[vm.{}] gpus: {}", vm.name, error);
    return false;
  }
  return true;
}

// What an operator may not expect.
void tell_gpus(const std::string& vm, const VmGpus& gpus) {
  if (gpus.all) return;
  std::string list;
  for (const Gpu& gpu : gpus.list) list += (list.empty() ? "" : ", ") + in_words(gpu);
  spdlog::info("{}: its guests see {}", vm, list);
  if (std::getenv("CUDA_VISIBLE_DEVICES") != nullptr)
    spdlog::info("{}: the key gpus goes before CUDA_VISIBLE_DEVICES of the environment", vm);
  if (gpus.devices.empty())
    spdlog::warn("{}: the kernel does not say which device files a MIG device needs: its workers may open all", vm);
}

bool make_runtime_dir(const std::string& path, std::string& error) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (fs::is_directory(path)) return true;
  error = fmt::format("[broker] runtime_dir = \"{}\" cannot be made: {}", path, failed.message());
  return false;
}

class Daemon {
 public:
  // `gpus`: of each VM.
  bool start(const Config& config, const WorkerProgram& program, const std::vector<VmGpus>& gpus, std::string& error) {
    if (!make_groups(config.broker, error)) return false;
    if (!plain_files_fit(config.vms, error)) return false;
    for (std::size_t i = 0; i < config.vms.size(); ++i) {
      WorkerProgram own = program;
      own.groups = groups_.get();
      own.gpus = gpus[i];
      show_only(own.gpus, own.environment);
      tell_gpus(config.vms[i].name, own.gpus);
      auto vm = Vm::create(loop_, config.vms[i], config.broker, own, traces_, wipes_, error);
      if (!vm) return false;
      vms_.push_back(std::move(vm));
    }
    if (!open_status(config.broker, program, error) || !open_traces(config.broker, error) || !watch_signals(error))
      return false;
    tell_groups();
    return true;
  }

  // `ready` is called once every VM has its first worker, so that a program started then need not wait for a driver.
  void when_warm(const std::function<void()>& ready) {
    cold_ = vms_.size();
    if (cold_ == 0) ready();
    for (const auto& vm : vms_)
      vm->when_warm([this, ready] {
        if (--cold_ == 0) ready();
      });
  }

  const char* waiter() const { return loop_.waiter_name(); }

  BrokerStatus status(const std::string& library) const {
    BrokerStatus status{IVGPU_VERSION, library, Clock::now() - started_, loop_.turns(), {}};
    for (const auto& vm : vms_) status.vms.push_back(vm->status());
    return status;
  }

  // Until a signal, or until nobody holds the other end of `stay_fd` any more.
  void run(int stay_fd) {
    if (stay_fd >= 0) stay_watch_ = loop_.watch(stay_fd, POLLIN, [this, stay_fd](short) { on_stay(stay_fd); });
    loop_.run();
  }

 private:
  bool make_groups(const BrokerOptions& broker, std::string& error) {
    if (broker.cgroups == "off") return true;
    groups_ = std::make_unique<Groups>();
    if (groups_->missing().empty() || broker.cgroups != "required") return true;
    error = "VMs get no control groups: " + groups_->missing();
    return false;
  }

  // Once everything else is there: a broker that does not start says why, and nothing else.
  void tell_groups() const {
    if (groups_ == nullptr) return;
    if (groups_->missing().empty()) return spdlog::info("VMs have control groups below {}", groups_->path());
    spdlog::warn(
        "VMs get no control groups: {}; memory_max and cpu_max bind no worker, nor does pids_max where worker_uid is "
        "shared",
        groups_->missing());
  }

  bool open_status(const BrokerOptions& broker, const WorkerProgram& program, std::string& error) {
    const ListenerOptions socket{status_path(broker.runtime_dir),
                                 {static_cast<unsigned>(broker.socket_mode), broker.socket_owner, broker.socket_group}};
    status_ = StatusServer::listen(
        loop_, socket, [this, library = program.library] { return status_as_json(status(library)); }, error);
    return status_ != nullptr;
  }

  bool open_traces(const BrokerOptions& broker, std::string& error) {
    return traces_.listen({trace_path(broker.runtime_dir),
                           {static_cast<unsigned>(broker.trace_mode), broker.trace_owner, broker.trace_group},
                           "trace"},
                          error);
  }

  bool watch_signals(std::string& error) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, nullptr);
    signals_.reset(signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) {
      error = fmt::format("signalfd: {}", std::strerror(errno));
      return false;
    }
    signal_watch_ = loop_.watch(signals_.get(), POLLIN, [this](short) {
      signalfd_siginfo info;
      if (read(signals_.get(), &info, sizeof info) == sizeof info) stop("asked to end");
    });
    return true;
  }

  void on_stay(int fd) {
    char bytes[64];
    const ssize_t length = read(fd, bytes, sizeof bytes);
    if (length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR))) return;
    loop_.forget(stay_watch_);
    stop("who started it has ended");
  }

  void stop(const char* why) {
    if (stopping_) return;
    stopping_ = true;
    spdlog::info("ending: {}", why);
    status_.reset();
    running_ = vms_.size();
    for (const auto& vm : vms_) {
      vm->stop(stop_patience, [this] {
        if (--running_ == 0) loop_.stop();
      });
    }
  }

  EventLoop loop_;
  std::unique_ptr<Groups> groups_;  // before the VMs, whose groups lie in it
  TraceServer traces_{loop_};       // before the VMs: they tell it of their workers
  WipeQueue wipes_{loop_};          // and their slots are wiped by this
  std::vector<std::unique_ptr<Vm>> vms_;
  std::unique_ptr<StatusServer> status_;  // after the VMs: it asks them
  const Clock::time_point started_ = Clock::now();
  Fd signals_;
  EventLoop::Id signal_watch_ = 0, stay_watch_ = 0;
  std::size_t running_ = 0, cold_ = 0;
  bool stopping_ = false;
};

void tell_ready(int fd) {
  if (fd < 0) return;
  if (write(fd, "ready\n", 6) != 6) spdlog::warn("--ready-fd {}: {}", fd, std::strerror(errno));
  close(fd);
}

// Its socket has gone by now, and workers end after that.
void tell_last_status(int fd, const BrokerStatus& status) {
  if (fd < 0) return;
  const std::string text = status_as_json(status);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return spdlog::warn("--last-status-fd {}: {}", fd, std::strerror(errno));
    at += static_cast<std::size_t>(n);
  }
}

int serve(const Arguments& arguments, const Config& config, const WorkerProgram& program,
          const std::vector<VmGpus>& gpus) {
  set_up_log(config.broker.log_level);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGIO, SIG_IGN);    // somebody opens a VM's memory just while the kernel is asked whether somebody does
  signal(SIGXFSZ, SIG_IGN);  // a region beyond RLIMIT_FSIZE: an error to be told
  raise_descriptor_limit();
  come_first();
  go_last_when_memory_is_short();
  for (const int fd : {arguments.ready_fd, arguments.stay_while_fd, arguments.last_status_fd})
    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
      return complain(exit_bad_configuration, fmt::format("descriptor {} is not open", fd));
    }
  std::string error;
  if (!config.broker.worker_uids.empty() && geteuid() != 0) {
    return complain(exit_failed,
                    "[broker] worker_uids: only root can give workers users of their own; start ivgpud as "
                    "root or leave worker_uids out");
  }
  if (!make_runtime_dir(config.broker.runtime_dir, error)) return complain(exit_bad_configuration, error);
  Daemon daemon;
  if (!daemon.start(config, program, gpus, error)) return complain(exit_failed, error);
  spdlog::info("serving {} VM(s) with {}", config.vms.size(), program.library);
  spdlog::debug("waiting through {}", daemon.waiter());
  daemon.when_warm([&] { tell_ready(arguments.ready_fd); });
  daemon.run(arguments.stay_while_fd);
  tell_last_status(arguments.last_status_fd, daemon.status(program.library));
  return 0;
}

int check_and_tell(const std::string& file, const Config& config, const std::string& library) {
  const StartCheck found = check_start(config);
  for (const std::string& sentence : found.wrong) complain(exit_failed, file + ": " + sentence);
  for (const std::string& sentence : found.notes) complain(0, file + ": note: " + sentence);
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
  Config config;
  std::string error;
  if (!read_config(arguments.config, config, error)) return complain(exit_bad_configuration, error);
  WorkerProgram program;
  const fs::path own_folder = fs::read_symlink("/proc/self/exe").parent_path();
  std::vector<VmGpus> gpus;
  if (!find_worker(config, own_folder, program, error) || !find_gpus(config, gpus, error)) {
    return complain(exit_bad_configuration, arguments.config + ": " + error);
  }
  if (arguments.check) return check_and_tell(arguments.config, config, program.library);
  return serve(arguments, config, program, gpus);
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
      "Exit codes: 0 it was asked to end; 1 it could not start or go on; 2 the command line or the configuration\n"
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
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "ivgpud: %s\n", failed.what());
    return exit_failed;
  }
}
