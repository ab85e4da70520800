// Starts a program in its own terminal.
#pragma once

#include <pty.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

namespace broker_test {

// `terminal`: the test's end of the terminal. `size`: null for the kernel's default.
inline pid_t in_a_terminal(const std::vector<std::string>& command, int& terminal, const winsize* size = nullptr) {
  const pid_t child = forkpty(&terminal, nullptr, nullptr, size);
  if (child != 0) return child;
  std::signal(SIGHUP, SIG_DFL);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(126);
}

}  // namespace broker_test
