// The host under test: an ivgpud with a VM for programs of this machine and one for a QEMU. Checks that no resource has
// grown after all have left, and how each process ended.
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

// A failed round; the message says what was seen.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws a Failure if a process ended by a signal other than `sent`, the test's own (0: none). `code` is a Child's. The
// process may have exited before the signal came.
void expect_no_other_signal(const std::string& who, int code, int sent);

long long now_ns();  // CLOCK_MONOTONIC, as the programs print it

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
  // The worker that serves a program, or 0.
  pid_t worker_of(const std::string& vm, pid_t program) const;
  // The workers of slots in this state: claimed or ready.
  std::vector<pid_t> workers(const std::string& vm, const std::string& state) const;

  // kill -9 of a worker, which may already have exited.
  void kill_worker(pid_t worker) { oracle_.kill(worker); }
  // kill -9 of the broker after a last check of its workers; expects that no worker outlives it. Call start() next.
  // Returns the time of the kill, as now_ns().
  long long kill_broker();
  void start();
  // Asks the broker to exit, which it and its workers must do in order.
  void end();

  // Throws a Failure if a worker ended by a signal from neither kill_worker() nor the broker, such as an assertion's or
  // a sanitizer's, or with a code of its own. Covers this broker's workers since the last call.
  void expect_no_worker_died();

  // Waits until all slots are free and nothing of the last round is left; a Failure names the rest, or a dead worker.
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
  oracle::Workers oracle_;  // of this broker
};

}  // namespace faults
