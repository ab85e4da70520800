// The host under test: an ivgpud with a VM for programs of this machine and a VM for a QEMU. Checks how each process
// ended, and that no resource has grown once all programs have ended.
#pragma once

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/oracle.h"
#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/temp_dir.h"

namespace faults {

// A failed round. The message describes the observation.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws a Failure if a process ended by a signal other than `sent`, which the test itself sent (0: none). `code` is a
// Child's exit code. The process may have exited before the signal arrived.
void expect_no_other_signal(const std::string& who, int code, int sent);

long long now_ns();  // CLOCK_MONOTONIC, the clock of the programs' output

struct Paths {
  std::filesystem::path build;
  std::filesystem::path ivgpud, program, guest_library;
};

inline constexpr const char* local_vm = "local";
inline constexpr const char* guest_vm = "guest";

class Host {
 public:
  explicit Host(const Paths& paths);
  ~Host();

  const std::filesystem::path& folder() const { return folder_.path(); }
  std::string socket(const std::string& vm) const { return (folder_.path() / (vm + ".sock")).string(); }
  std::string log() const;

  nlohmann::json status() const;
  bool running() const { return kill(process_->pid(), 0) == 0; }
  pid_t broker() const { return process_->pid(); }
  // The worker that serves a program; 0 if there is none.
  pid_t worker_of(const std::string& vm, pid_t program) const;
  // The workers of the slots in this state, claimed or ready.
  std::vector<pid_t> workers(const std::string& vm, const std::string& state) const;

  // Sends kill -9 to a worker, which may already have exited.
  void kill_worker(pid_t worker) { oracle_.kill(worker); }
  // Checks the workers, then sends kill -9 to the broker. Expects that no worker outlives the broker. Call start()
  // next. Returns the time of the kill, as now_ns().
  long long kill_broker();
  void start();
  // Asks the broker to exit. The broker and its workers must exit without a signal.
  void end();

  // Throws a Failure if a worker ended with an unexpected exit code, or by a signal that neither kill_worker() nor the
  // broker sent, such as that of an assertion or a sanitizer. Covers this broker's workers since the last call.
  void expect_no_worker_died();

  // Waits until all slots are free and no resource of the last round remains. Throws a Failure that names remaining
  // resources or a dead worker.
  void expect_settled(std::size_t connections);

 private:
  struct Held {
    std::size_t descriptors = 0, region_blocks = 0, memory_kib = 0;
    std::set<std::string> shared, files;
  };
  Held held() const;
  std::string not_settled(std::size_t connections) const;
  std::string leak(std::size_t connections) const;
  std::set<pid_t> children() const;
  std::filesystem::path last_status() const { return folder_.path() / "last-status"; }

  const Paths paths_;
  ivgpu::TempDir folder_;
  std::optional<ivgpu::Child> process_;
  std::optional<Held> before_;
  oracle::Workers oracle_;  // of the present broker
};

}  // namespace faults
