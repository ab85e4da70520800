// A file that is written by a long run: a file that cannot be written is found out at the start, it gets its name when
// it is whole, and if the run fails nothing is left behind and an older file of that name stays as it was.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

namespace ivgpu {

class OutputFile {
 public:
  // An Error (usage) where `path` cannot be written. An empty path: no file, and nothing else does anything.
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  explicit operator bool() const { return file_ != nullptr; }
  void write(const std::string& text);
  int descriptor() const { return fileno(file_); }  // for a child that writes instead; precondition: there is a file
  // Nothing more will come: the file takes its name. An Error if the written text did not get there.
  void finish();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // the file until it takes the name; empty for a device or a pipe
  std::FILE* file_ = nullptr;
  int failed_ = 0;  // errno of the first write that failed
};

}  // namespace ivgpu
