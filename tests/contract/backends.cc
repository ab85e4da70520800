#include "tests/contract/backends.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include "host/broker/gpu/gpu_library.h"
#include "tests/oracle.h"

namespace contract {
namespace {

namespace fs = std::filesystem;

std::string chosen_gpu = SIMULATED_GPU, chosen_worker = WORKER;

// An ivgpud with one VM, in a folder of its own. tools/gpu-check runs eight tests at once, but only one test at a time
// may use a real GPU.
class Broker {
 public:
  Broker() {
    char name[] = "/tmp/ivgpu-contract-XXXXXX";
    if (mkdtemp(name) == nullptr) return;
    folder_ = name;
    fs::permissions(folder_, fs::perms::all);  // workers run as another user
    const std::string policy = chosen_gpu == SIMULATED_GPU ? "" : "policy = \"time-slice\"\n";
    std::ofstream(folder_ / "c.toml") << "[broker]\nruntime_dir = \"" << folder_.string() << "\"\nworker = \""
                                      << chosen_worker << "\"\n[gpu]\n"
                                      << policy << "library = \"" << chosen_gpu
                                      << "\"\n[vm.t]\nregion_size = \"1GiB\"\nslots = 4\nspare = 2\n";
    start();
  }
  ~Broker() { fs::remove_all(folder_); }
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  bool ready() const { return ready_; }
  std::string socket() const { return (folder_ / "t.sock").string(); }
  std::string log() const { return text_of("log"); }
  // Ends the broker. Returns a description of what went wrong at its end; "" if nothing did.
  std::string end() const {
    if (process_ <= 0 || !ready_) return {};  // the failure was already reported
    return oracle::Workers().end_broker(process_, [this] { return text_of("last-status"); });
  }

 private:
  std::string text_of(const std::string& name) const {
    std::ifstream in(folder_ / name);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  void start() {
    int ends[2];
    if (pipe(ends) != 0) return;
    const std::string config = (folder_ / "c.toml").string(), log = (folder_ / "log").string();
    const int last = open((folder_ / "last-status").c_str(), O_CREAT | O_WRONLY, 0600);
    process_ = fork();
    if (process_ == 0) {
      close(ends[0]);
      if (freopen(log.c_str(), "w", stderr) == nullptr) _exit(126);
      execl(IVGPUD, "ivgpud", "--config", config.c_str(), "--ready-fd", std::to_string(ends[1]).c_str(),
            "--last-status-fd", std::to_string(last).c_str(), nullptr);
      _exit(126);
    }
    close(ends[1]);
    close(last);
    char byte = 0;
    ready_ = process_ > 0 && read(ends[0], &byte, 1) == 1;
    close(ends[0]);
  }

  fs::path folder_;
  pid_t process_ = -1;
  bool ready_ = false;
};

std::optional<Broker>& broker() {
  static std::optional<Broker> the_broker;
  return the_broker;
}

Backend::Library through_broker() {
  if (!broker()) broker().emplace();
  if (!broker()->ready()) return {"", {}, "ivgpud did not start:\n" + broker()->log()};
  return {GUEST_CUDA, {{"IVGPU_REGION", broker()->socket()}}, ""};
}

}  // namespace

const Backend simulated{"simulated", [] { return Backend::Library{SIMULATED_GPU, {}, ""}; }};
const Backend loopback{"loopback", through_broker};
const Backend real{"real", [] { return Backend::Library{real_library(), {}, ""}; }};

std::string real_library() {
  const bool has_gpu = fs::exists("/dev/nvidiactl") || fs::exists("/dev/dxg");
  const auto library = host::broker::find_gpu_library("auto", "");
  return has_gpu && library ? *library : "";
}

void set_gpu(const std::string& gpu) { chosen_gpu = gpu == "sim" ? SIMULATED_GPU : gpu; }
void set_worker(const std::string& program) { chosen_worker = program; }
bool end_broker() {
  if (!broker()) return true;
  std::istringstream log(broker()->log());
  for (std::string line; std::getline(log, line);)
    if (line.find("the jail refused ioctl") != std::string::npos) std::cout << line << '\n';
  const std::string complaint = broker()->end();
  broker().reset();
  if (!complaint.empty()) std::cout << complaint << '\n';
  return complaint.empty();
}

}  // namespace contract
