// The host under test: one ivgpud with a VM for programs of this machine and one for a QEMU; what must not have grown
// when everybody has gone, and what none of its processes may have ended by.
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

// A round that did not end as it must; the sentence says what was seen.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A Failure where a process ended by a signal other than `sent`, the one that the test sent it (0: none). `code` is a
// Child's. It may have ended by itself before the signal came.
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
  // The worker that serves a program; 0 when there is none.
  pid_t worker_of(const std::string& vm, pid_t program) const;
  // Workers of claimed slots, or of ready ones.
  std::vector<pid_t> workers(const std::string& vm, const std::string& state) const;

  // kill -9, of a worker that may have ended already.
  void kill_worker(pid_t worker) { oracle_.kill(worker); }
  // kill -9, after a last look at its workers; checks that none outlives its broker. Then start() a new one. Returns the
  // time of the kill, as now_ns().
  long long kill_broker();
  void start();
  // Asks the broker to end, which it must do in order, and so must its workers.
  void end();

  // A Failure where a worker has ended by a signal that neither kill_worker() nor the broker sent, an assertion's or a
  // sanitizer's included, or with a code of its own. Of this broker's workers that no earlier call has told.
  void expect_no_worker_died();

  // Waits until all slots are back and nothing of the last round is left; a Failure says what is, or which worker died.
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
