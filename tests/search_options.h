// What tools/test --seed N and --executions N say to the tests that search at random.
#pragma once

#include <cstdlib>

// The number in the environment variable, or `usual`.
inline unsigned long search_option(const char* variable, unsigned long usual) {
  const char* value = std::getenv(variable);
  return value != nullptr ? std::strtoul(value, nullptr, 10) : usual;
}
