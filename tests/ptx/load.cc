// Loads the output of nvcc for the kernels in kernels/, for each architecture. The test fails if nvcc emits an
// instruction that the driver does not support.
//
// usage: ptx_load LIBRARY FILE.ptx...
// Exit codes: 0 all files could be loaded, 1 a file could not be loaded, 2 no driver or wrong command line.
#include <fstream>
#include <iostream>
#include <sstream>

#include "tests/ptx/driver.h"

int main(int count, char** words) {
  if (count < 3) {
    std::cerr << "usage: ptx_load LIBRARY FILE.ptx...\n";
    return 2;
  }
  ptx_forms::Driver driver(words[1]);
  bool failed = false;
  for (int k = 2; k < count; ++k) {
    std::ostringstream text;
    text << std::ifstream(words[k]).rdbuf();
    const ptx_forms::Loaded loaded = driver.load(text.str());
    if (loaded.code == CUDA_SUCCESS) {
      driver.unload(loaded.module);
      continue;
    }
    failed = true;
    std::cout << "FAIL " << words[k] << ": error " << loaded.code << ", " << loaded.log << "\n";
  }
  return failed ? 1 : 0;
}
