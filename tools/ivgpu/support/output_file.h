// A file that a long run writes. An unwritable path fails at the start. The file gets its name when it is complete. If
// the run fails, no new file remains, and an older file of that name stays unchanged.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

namespace ivgpu {

class OutputFile {
 public:
  // Throws an Error (usage) if `path` cannot be written. With an empty path, all functions do nothing.
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  explicit operator bool() const { return file_ != nullptr; }
  void write(const std::string& text);
  // for a child that writes in our place; precondition: `path` is not empty
  int descriptor() const { return fileno(file_); }
  // Gives the complete file its name. Throws an Error if a write has failed.
  void finish();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // the path until finish(); empty for a device or a pipe
  std::FILE* file_ = nullptr;
  int failed_ = 0;  // errno of the first write that failed
};

}  // namespace ivgpu
