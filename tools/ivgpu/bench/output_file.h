// A file that is written at the end of a long run: whether it can be is found out at the start, and if the run fails
// nothing is left behind, an older file of that name included.
#pragma once

#include <filesystem>
#include <string>

namespace ivgpu::bench {

class OutputFile {
 public:
  // An Error (usage) where `path` cannot be written. An empty path: no file, and write() does nothing.
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  explicit operator bool() const { return !path_.empty(); }
  void write(const std::string& text);

 private:
  std::filesystem::path path_;
  std::filesystem::path beside_;  // what is written, until it takes the name; the path itself where that is no file
};

}  // namespace ivgpu::bench
