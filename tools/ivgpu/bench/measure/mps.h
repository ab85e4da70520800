// An MPS control daemon for the duration of one run. It is a plain process in its own folder and ends by its own quit
// command. Programs that start during the run, natively or as workers, find the daemon through the environment.
#pragma once

#include <filesystem>
#include <optional>

#include "tools/ivgpu/support/child.h"

namespace ivgpu::bench {

class MpsDaemon {
 public:
  // Returns when the daemon listens. Throws an Error if the daemon is not installed or does not start.
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
