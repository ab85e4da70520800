// The file of a VM added at run time: vms.d/NAME.toml in the broker's runtime_dir. The first line names the owner; the
// VM's table follows. The broker reads the file at a reload (host/broker/config/drop_ins.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ivgpu {

class VmFile {
 public:
  // Throws an Error if `vm` is no valid VM name.
  VmFile(const std::filesystem::path& runtime_dir, std::string vm);

  const std::filesystem::path& path() const { return path_; }
  bool exists() const;
  // "" if the file names no owner.
  std::string owner() const;
  // Replaces the file atomically. `lines`: the lines of the VM's table. Throws an Error.
  void write(const std::string& owner, const std::vector<std::string>& lines) const;
  // Throws an Error if the file exists and cannot be removed.
  void remove() const;

 private:
  std::string vm_;
  std::filesystem::path path_;
};

// Throws an Error (usage) unless the text is one line without control characters.
void check_line(const std::string& what, const std::string& text);

}  // namespace ivgpu
