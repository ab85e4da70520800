// The host under test: one ivgpud with a VM for programs of this machine and one for a QEMU, and what must not have
// grown when everybody has gone.
#pragma once

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/ivgpu/child.h"

namespace faults {

// A round that did not end as it must; the sentence says what was seen.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

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

  // kill -9, and a new one; checks that no worker outlives its broker by a second.
  long long kill_broker();
  void start();

  // A Failure where a worker has died by a signal that the broker did not send, an assertion's or a sanitizer's
  // included. Not for rounds in which the test itself kills workers.
  void expect_no_worker_died() const;

  // Waits until all slots are back and nothing of the last round is left; a Failure says what is.
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

  const Paths paths_;
  ivgpu::TempDir folder_;
  std::optional<ivgpu::Child> process_;
  std::optional<Held> before_;
};

}  // namespace faults
