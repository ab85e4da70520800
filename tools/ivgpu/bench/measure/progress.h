// Shows the present step on one line of the terminal and erases the line afterwards. Prints nothing if standard error
// is no terminal.
#pragma once

#include <string>

namespace ivgpu::bench {

class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(const std::string& text) const;

 private:
  bool on_;
};

}  // namespace ivgpu::bench
