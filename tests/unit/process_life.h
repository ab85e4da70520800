// Whether a process lives, for tests whose processes may have another parent by then.
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

}  // namespace broker_test
