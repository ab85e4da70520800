#include "tools/ivgpu/bench/measure/mps.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/temp_dir.h"

namespace ivgpu::bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr const char* control = "nvidia-cuda-mps-control";
constexpr milliseconds start_patience{10'000}, quit_patience{15'000}, look_again{20};

// A root's broker runs its workers as another user, and the MPS daemon starts its server as that user. All users can
// therefore enter the folder, but its name cannot be guessed.
fs::path make_folder() {
  std::string name = (shared_folder() / "ivgpu-mps-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw Error(exit_code::missing, "no folder for MPS can be made in " + name);
  chmod(name.c_str(), 0711);
  for (const char* below : {"pipe", "log"}) {
    fs::create_directory(fs::path(name) / below);
    chmod((fs::path(name) / below).c_str(), 01777);
  }
  return name;
}

void send_quit() {
  FdPair input = make_pipe_from_us();
  const Fd nothing(open("/dev/null", O_WRONLY | O_CLOEXEC));
  Child client({.argv = {control}, .in = input.theirs.get(), .out = nothing.get(), .err = nothing.get()});
  input.theirs.reset();
  [[maybe_unused]] const ssize_t written = write(input.ours.get(), "quit\n", 5);
  input.ours.reset();
  client.wait_for(quit_patience);
}

}  // namespace

MpsDaemon::MpsDaemon(const SignalGate& gate) : folder_(make_folder()) {
  setenv("CUDA_MPS_PIPE_DIRECTORY", (folder_ / "pipe").c_str(), 1);
  setenv("CUDA_MPS_LOG_DIRECTORY", (folder_ / "log").c_str(), 1);
  const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd said(open((folder_ / "said").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  try {
    process_.emplace(
        Command{.argv = {control, "-f"}, .in = nothing.get(), .out = said.get(), .err = said.get(), .own_group = true});
    wait_until_it_listens(gate);
  } catch (const Error& failed) {
    process_.reset();
    fs::remove_all(folder_);
    if (failed.code != exit_code::not_found) throw;
    throw Error(exit_code::missing, std::string("--mps needs ") + control + ", which is not in the PATH");
  }
}

void MpsDaemon::wait_until_it_listens(const SignalGate& gate) {
  const auto end = std::chrono::steady_clock::now() + start_patience;
  while (!fs::exists(folder_ / "pipe/control")) {
    if (const auto arrived = gate.take()) throw Error(exit_code::signal_base + arrived->number, "interrupted");
    if (process_->wait_for(look_again) || std::chrono::steady_clock::now() > end)
      throw Error(exit_code::missing, std::string(control) + " did not start" + last_words());
  }
}

std::string MpsDaemon::last_words() const {
  std::ifstream said(folder_ / "said");
  std::string line;
  std::getline(said, line);
  return line.empty() ? "" : ": " + line;
}

MpsDaemon::~MpsDaemon() {
  try {
    send_quit();
  } catch (const std::exception&) {
    process_->signal(SIGTERM);  // the daemon still obeys SIGTERM if its client failed
  }
  if (!process_->wait_for(quit_patience)) process_->signal(SIGTERM);
  process_->wait_for(quit_patience);
  process_.reset();
  unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  unsetenv("CUDA_MPS_LOG_DIRECTORY");
  std::error_code ignored;  // a server that is still ending may write to its log
  fs::remove_all(folder_, ignored);
}

}  // namespace ivgpu::bench
