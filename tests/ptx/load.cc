// Loads what nvcc made of the kernels beside this file, for each of its architectures: everything it emits is served.
//
// usage: ptx_load LIBRARY FILE.ptx...
// Exit codes: 0 all could be loaded, 1 one could not, 2 there is no driver or the command line is wrong.
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
