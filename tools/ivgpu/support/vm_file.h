// The file of a VM that is added while the machine runs: NAME.toml in vms.d of the broker's runtime_dir, with its table
// and, in its first line, whom it belongs to. The broker reads it at a reload (host/broker/config/drop_ins.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ivgpu {

class VmFile {
 public:
  // An Error where `vm` can be no VM's name.
  VmFile(const std::filesystem::path& runtime_dir, std::string vm);

  const std::filesystem::path& path() const { return path_; }
  bool exists() const;
  // "" where it says nobody.
  std::string owner() const;
  // In one step, so that nobody reads half of it. `lines`: of its table. Throws an Error.
  void write(const std::string& owner, const std::vector<std::string>& lines) const;
  // Throws an Error, unless it is not there.
  void remove() const;

 private:
  std::string vm_;
  std::filesystem::path path_;
};

// An Error of usage where the text would be more than one line, or hold what a terminal obeys.
void check_line(const std::string& what, const std::string& text);

}  // namespace ivgpu
