// Whether a process lives, for tests whose processes may have another parent by then; and what it was started with.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace broker_test {

// One whose new parent has not asked after it yet has ended all the same.
inline bool lives(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  return !stat.empty() && stat.find(") Z ") == std::string::npos;
}

// Its command line, each word ended by a blank.
inline std::string words_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline");
  std::string words;
  for (std::string word; std::getline(file, word, '\0');) words += word + ' ';
  return words;
}

}  // namespace broker_test
