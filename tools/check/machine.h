// The machine under test, as files below a folder. "" is this machine; a test passes a folder with one fault. Access
// rights are computed from file modes and /proc/self/status, so that a test that runs as root sees the same rights as a
// user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace check {

class Machine {
 public:
  explicit Machine(std::string root);

  bool real() const { return root_.empty(); }
  std::string at(const std::string& path) const { return root_ + path; }
  bool has(const std::string& path) const;
  // The beginning of the file, or nullopt if it cannot be read.
  std::optional<std::string> text(const std::string& path) const;
  std::optional<long long> number(const std::string& path) const;   // decimal, or hexadecimal with 0x
  std::vector<std::string> names(const std::string& folder) const;  // sorted
  std::string target(const std::string& link) const;                // "" if the path is not a link
  // Whether this process, a member of the file's group, or any user may read and write the file.
  bool may_use(const std::string& path) const;
  bool a_group_may_use(const std::string& path) const;
  bool anybody_may_use(const std::string& path) const;
  bool is_root() const { return user_ == 0; }

 private:
  std::string root_;
  unsigned user_ = 0;
  std::vector<unsigned> groups_;
};

enum class State : std::uint8_t { Ok, Warning, Wrong };

struct Finding {
  std::string about;  // the subject, such as "kvm"
  State state;
  std::string what;    // one sentence
  std::string remedy;  // one sentence; "" if no action is needed
};
using Findings = std::vector<Finding>;

// The sysfs folders of the PCI devices 1af4:1110.
std::vector<std::string> ivshmem_devices(const Machine& machine);

struct HostOptions {
  std::string runtime_dir = "/run/ivgpu";
};
Findings check_host(const Machine& machine, const HostOptions& options);
Findings check_guest(const Machine& machine);

std::string as_text(const Findings& findings);
std::string as_json(const Findings& findings, const char* side);
bool anything_wrong(const Findings& findings);

}  // namespace check
