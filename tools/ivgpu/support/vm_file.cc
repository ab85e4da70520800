#include "tools/ivgpu/support/vm_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "tools/ivgpu/support/error.h"

namespace ivgpu {
namespace {

constexpr const char* owners = "# for ";

// Applies the rule of host/broker/config/config.h here as well, since the name becomes part of a path.
bool is_vm_name(const std::string& name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  if (name.empty() || name.size() > 63 || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

void check_line(const std::string& what, const std::string& text) {
  const auto strange = [](char c) { return c < ' ' || c > '~'; };
  if (text.empty() || text.size() > 1000 || std::any_of(text.begin(), text.end(), strange))
    throw Error(exit_code::usage, what + " takes one line of ASCII");
}

VmFile::VmFile(const std::filesystem::path& runtime_dir, std::string vm) : vm_(std::move(vm)) {
  if (!is_vm_name(vm_))
    throw Error(exit_code::usage,
                "a VM's name has 1 to 63 letters, digits, '-', '_' and '.', and begins with a letter or digit");
  path_ = runtime_dir / "vms.d" / (vm_ + ".toml");
}

bool VmFile::exists() const {
  std::error_code failed;
  return std::filesystem::symlink_status(path_, failed).type() != std::filesystem::file_type::not_found;
}

std::string VmFile::owner() const {
  std::ifstream file(path_);
  std::string line;
  std::getline(file, line);
  return line.starts_with(owners) ? line.substr(std::strlen(owners)) : "";
}

void VmFile::write(const std::string& owner, const std::vector<std::string>& lines) const {
  std::error_code failed;
  std::filesystem::create_directories(path_.parent_path(), failed);
  const std::filesystem::path hidden = path_.parent_path() / ("." + vm_ + "." + std::to_string(getpid()));
  std::ofstream file(hidden);
  if (!owner.empty()) file << owners << owner << '\n';
  file << "[vm." << (vm_.find('.') == std::string::npos ? vm_ : '"' + vm_ + '"') << "]\n";
  for (const std::string& line : lines) file << line << '\n';
  file.close();
  const bool written = file.good();
  if (written && std::rename(hidden.c_str(), path_.c_str()) == 0) return;
  const int why = errno;
  std::filesystem::remove(hidden, failed);
  throw Error(exit_code::missing, path_.string() + " cannot be written: " + std::strerror(why));
}

void VmFile::remove() const {
  std::error_code failed;
  std::filesystem::remove(path_, failed);
  if (failed) throw Error(exit_code::missing, path_.string() + " cannot be removed: " + failed.message());
}

}  // namespace ivgpu
