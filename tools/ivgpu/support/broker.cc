// Starts and ends the private ivgpud.
#include "tools/ivgpu/support/broker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "ring/layout/layout.h"
#include "tools/ivgpu/support/deaths.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/size.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// A worker is ready once it has initialised the driver: a fraction of a second, or several on a busy machine.
constexpr milliseconds start_patience{60'000};
// The broker kills workers that do not exit by themselves, in less than this time.
constexpr milliseconds end_patience{10'000};

constexpr std::uint64_t default_slots = 8;  // the default of ivgpud's configuration

constexpr const char* default_socket = "/run/ivgpu/local.sock";

std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string toml_string(const std::string& value) {
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

bool answers(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// Raises the soft file size limit (`ulimit -f`) to the hard limit during its lifetime. ivgpu writes files for the
// broker, and the broker inherits the limit for its region's file. The user's program keeps the user's limit.
class RaisedFileLimit {
 public:
  RaisedFileLimit() : known_(getrlimit(RLIMIT_FSIZE, &before_) == 0) {
    const rlimit raised{before_.rlim_max, before_.rlim_max};
    if (known_) setrlimit(RLIMIT_FSIZE, &raised);
  }
  ~RaisedFileLimit() {
    if (known_) setrlimit(RLIMIT_FSIZE, &before_);
  }
  RaisedFileLimit(const RaisedFileLimit&) = delete;
  RaisedFileLimit& operator=(const RaisedFileLimit&) = delete;

 private:
  rlimit before_{};
  const bool known_;
};

void write_config(const fs::path& path, const std::string& text) {
  errno = 0;
  std::ofstream out(path);
  if (out << text && out.flush()) return;
  const int why = errno;
  throw Error(exit_code::missing, std::string("ivgpud's configuration cannot be written: ") + std::strerror(why) +
                                      (why == EFBIG ? "; `ulimit -f` bounds the size of files" : ""));
}

// Returns true if ivgpud writes a byte into `ready`; false if it ends or the patience runs out.
bool became_ready(const Child& process, int ready, const SignalGate& gate) {
  std::array<pollfd, 3> events = {pollfd{ready, POLLIN, 0}, pollfd{process.pidfd(), POLLIN, 0},
                                  pollfd{gate.fd(), POLLIN, 0}};
  while (events[0].revents == 0 && events[1].revents == 0) {
    const int arrivals = poll(events.data(), events.size(), static_cast<int>(start_patience.count()));
    if (arrivals == 0 || (arrivals < 0 && errno != EINTR)) return false;
    if (const auto arrived = gate.take()) throw Error(exit_code::signal_base + arrived->number, "interrupted");
  }
  char byte = 0;
  return (events[0].revents & POLLIN) && read(ready, &byte, 1) == 1;
}

// Why ivgpud did not start: the last message of its log, or the whole log if it has none. Replaces the configuration's
// path, since the file is deleted before the user reads the message.
std::string last_words(const std::string& log, const std::string& config) {
  constexpr std::string_view head = "ivgpud: ";
  std::istringstream lines(log);
  std::string words;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(head)) words = line.substr(head.size());
  if (words.empty()) return log.empty() ? "" : ":\n" + log.substr(0, log.find_last_not_of('\n') + 1);
  if (const std::size_t at = words.find(config); at != std::string::npos)
    words.replace(at, config.size(), "its configuration");
  return ": " + words;
}

// The first `most` errors of a broker's log, without times. Later errors mostly repeat the first.
std::vector<std::string> errors_in(const std::string& log, std::size_t most) {
  constexpr std::string_view head = " error ";
  std::istringstream lines(log);
  std::vector<std::string> errors;
  for (std::string line; errors.size() < most && std::getline(lines, line);)
    if (const std::size_t at = line.find(head); at != std::string::npos)
      errors.push_back(line.substr(at + head.size()));
  return errors;
}

}  // namespace

std::string resolved_gpu(const std::string& gpu, bool machine_has_gpu) {
  return gpu == "auto" && !machine_has_gpu ? "sim" : gpu;
}

BrokerOptions for_this_machine(BrokerOptions options) {
  // NVIDIA's kernel driver, on Linux or behind WSL.
  const bool has_gpu = fs::exists("/dev/nvidiactl") || fs::exists("/dev/dxg");
  const std::string wanted = std::exchange(options.gpu, resolved_gpu(options.gpu, has_gpu));
  if (options.gpu != wanted) std::fprintf(stderr, "ivgpu: this machine has no NVIDIA GPU; taking the simulated one\n");
  return options;
}

std::uint64_t memory_of_machine() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string roomy_region(std::uint64_t memory_bytes, bool own_slots) {
  const std::uint64_t least_slots = own_slots ? 1 : default_slots;
  return std::to_string(std::bit_floor(std::min(memory_bytes, least_slots * ring::window_bytes)) >> 20) + "MiB";
}

BrokerOptions for_a_program_here(BrokerOptions options) {
  options.program_chooses_gpus = true;
  if (options.region_size.empty())
    options.region_size = roomy_region(memory_of_machine(), !options.extra_config.empty());
  return for_this_machine(std::move(options));
}

std::optional<std::uint32_t> extra_vectors(const BrokerOptions& options) {
  if (options.extra_config.empty()) return std::nullopt;
  std::istringstream lines(read_file(options.extra_config));
  for (std::string line; std::getline(lines, line) && line.find('[') != 0;) {
    unsigned vectors = 0;
    if (std::sscanf(line.c_str(), " vectors = %u", &vectors) == 1) return vectors;
  }
  return std::nullopt;
}

std::string broker_config(const BrokerOptions& options, const fs::path& runtime_dir) {
  const bool named = options.gpu == "auto" || options.gpu == "sim";
  const std::string library = named ? options.gpu : fs::absolute(options.gpu).string();
  // Setting a key twice is an error.
  const bool has_vectors = options.vectors != 1 && !extra_vectors(options);
  const auto& weights = options.sharing.weights;
  const std::string vsock = std::to_string(options.vsock);
  const auto vm_table = [&](const std::string& vm) {
    return "\n[vm." + vm + "]\nregion_size = " + toml_string(size_for_config(options.region_size)) + "\n" +
           (options.transport != "doorbell" ? "transport = " + toml_string(options.transport) + "\n" : "") +
           (options.vsock != 0 && vm == options.vm ? "vsock_cid = " + vsock + "\nvsock_port = " + vsock + "\n" : "") +
           (has_vectors ? "vectors = " + std::to_string(options.vectors) + "\n" : "") +
           (std::ranges::count(options.sharing.latency_vms, vm) ? "latency = true\n" : "") +
           (weights.contains(vm) ? "weight = " + std::to_string(weights.at(vm)) + "\n" : "");
  };
  // The private broker sets no control groups.
  std::string text = "[broker]\ncgroups = \"off\"\nruntime_dir = " + toml_string(runtime_dir.string()) +
                     (options.verbose ? "\nlog_level = \"debug\"" : "") +
                     "\n\n[gpu]\nlibrary = " + toml_string(library) +
                     "\npolicy = " + toml_string(options.sharing.policy) + "\n" + vm_table(options.vm);
  for (const std::string& name : options.more_vms) text += vm_table(name);
  return options.extra_config.empty() ? text : text + read_file(options.extra_config);
}

PrivateBroker::PrivateBroker(const Install& install, const BrokerOptions& options, const fs::path& folder,
                             const SignalGate& gate)
    : socket_(folder / (options.vm + ".sock")),
      log_(folder / "ivgpud.log"),
      last_status_(folder / "last-status"),
      config_(folder / "ivgpud.toml"),
      options_(options) {
  require(install.broker, "the broker ivgpud");
  if (options.gpu != "auto" && options.gpu != "sim") require(options.gpu, "the GPU's libcuda");
  const fs::path& config = config_;
  const RaisedFileLimit raised;
  write_config(config, broker_config(options, folder));

  FdPair ready = make_pipe_to_us();
  FdPair alive = make_pipe_from_us();
  const Fd log_file(open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const Fd last(open(last_status_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int output = options.verbose ? STDERR_FILENO : log_file.get();
  const std::vector<std::string> choosing = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"};
  process_.emplace(Command{
      .argv = {install.broker.string(), "--config", config.string(), "--ready-fd", std::to_string(ready.theirs.get()),
               "--stay-while-fd", std::to_string(alive.theirs.get()), "--last-status-fd", std::to_string(last.get())},
      .without = options.program_chooses_gpus ? choosing : std::vector<std::string>(),
      .keep = {ready.theirs.get(), alive.theirs.get(), last.get()},
      .in = nothing.get(),
      .out = output,
      .err = output,
      .own_group = true});
  ready.theirs.reset();
  alive_ = std::move(alive.ours);
  if (!became_ready(*process_, ready.ours.get(), gate)) {
    const std::string death = death_of("ivgpud", process_->wait_for(milliseconds(100)).value_or(0));
    throw Error(exit_code::missing,
                !death.empty() ? death : "ivgpud did not start" + last_words(read_file(log_), config.string()));
  }
  // The broker runs even with such an error, and retries. The program, however, would wait in vain for a worker.
  if (const auto errors = errors_in(read_file(log_), 1); !errors.empty()) {
    const std::string& why = errors.front();
    throw Error(exit_code::missing, "no worker starts: " + why.substr(0, why.rfind("; the next is started in ")));
  }
}

// Without a call of end(), the command has already reported another failure. The destructor then reports deaths in
// addition.
PrivateBroker::~PrivateBroker() {
  if (process_) report_deaths(0, stop());
}

std::vector<std::string> PrivateBroker::stop() {
  alive_.reset();
  std::optional<int> code = process_->wait_for(end_patience);
  if (!code) process_->signal(SIGTERM);
  if (!code) code = process_->wait_for(end_patience);
  process_.reset();
  if (!code) return {"ivgpud did not end when asked to"};
  if (const std::string death = death_of("ivgpud", *code); !death.empty()) return {death};
  return deaths_of_workers(read_file(last_status_));
}

void PrivateBroker::take_sharing(const Sharing& sharing) {
  constexpr milliseconds reads_within{200};
  options_.sharing = sharing;
  const RaisedFileLimit raised;
  write_config(config_, broker_config(options_, config_.parent_path()));
  process_->signal(SIGHUP);
  std::this_thread::sleep_for(reads_within);
}

void PrivateBroker::explain(int code) const {
  if (code == 0) return;
  for (const std::string& error : errors_in(read_file(log_), 3)) std::fprintf(stderr, "ivgpud: %s\n", error.c_str());
}

int PrivateBroker::end(int code) {
  explain(code);
  return report_deaths(code, stop());
}

std::optional<std::string> running_broker() {
  if (const char* region = std::getenv("IVGPU_REGION"); region && *region) return region;
  if (answers(default_socket)) return default_socket;
  return std::nullopt;
}

}  // namespace ivgpu
