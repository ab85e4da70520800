// Whether a process is alive, and its command line; for processes whose parent may not be the test.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace broker_test {

// A zombie counts as dead, even if its new parent has not reaped it.
inline bool lives(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  return !stat.empty() && stat.find(") Z ") == std::string::npos;
}

// The command line, each word followed by a blank.
inline std::string words_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline");
  std::string words;
  for (std::string word; std::getline(file, word, '\0');) words += word + ' ';
  return words;
}

}  // namespace broker_test
