// Passes tools/test --seed N and --executions N to the random tests.
#pragma once

#include <cstdio>
#include <cstdlib>

// The environment variable's value, or `usual`.
inline unsigned long search_option(const char* variable, unsigned long usual) {
  const char* value = std::getenv(variable);
  return value != nullptr ? std::strtoul(value, nullptr, 10) : usual;
}

// The seed of a test's random numbers; prints it.
inline unsigned test_seed(unsigned usual) {
  const auto seed = static_cast<unsigned>(search_option("IVGPU_TEST_SEED", usual));
  std::printf("seed %u\n", seed);
  return seed;
}
