// A MPS control daemon for as long as one run takes: a plain process in a folder of its own, ended by its own quit
// command. Programs that start meanwhile, natively or as workers, find it through the environment.
#pragma once

#include <filesystem>
#include <optional>

#include "tools/ivgpu/support/child.h"

namespace ivgpu::bench {

class MpsDaemon {
 public:
  // Returns when it listens. An Error where it is not installed or does not start.
  explicit MpsDaemon(const SignalGate& gate);
  ~MpsDaemon();
  MpsDaemon(const MpsDaemon&) = delete;
  MpsDaemon& operator=(const MpsDaemon&) = delete;

 private:
  void wait_until_it_listens(const SignalGate& gate);
  std::string last_words() const;

  std::filesystem::path folder_;
  std::optional<Child> process_;
};

}  // namespace ivgpu::bench
