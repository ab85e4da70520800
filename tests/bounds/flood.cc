// A program that makes its worker hold as much as possible: images, objects, or streams that each keep a thread of the
// simulated GPU waiting. The program's own memory stays small.
//
// usage: flood LIBCUDA images|objects|waits MOST [MIB]. MIB is the size of an image.
//        flood LIBCUDA works
// The first form prints one line with the number of objects and the first error, such as "images 15
// CUDA_ERROR_OUT_OF_MEMORY". The second form prints whether a copy to the device and back is right, and again for each
// line of its standard input. Both forms run until standard input ends. Exit code 2: the program could not begin.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/named_driver.h"

namespace {

struct Outcome {
  long made = 0;
  CUresult error = CUDA_SUCCESS;
};

// Calls `make` until it fails, at most `most` times.
template <class F>
Outcome repeat(long most, F make) {
  Outcome outcome;
  while (outcome.made < most && (outcome.error = make()) == CUDA_SUCCESS) ++outcome.made;
  return outcome;
}

Outcome images(long most, std::size_t bytes) {
  std::string text = ".version 7.5\n.target sm_75\n.address_size 64\n//";
  text.resize(bytes - 2, ' ');
  text += '\n';
  return repeat(most, [&] {
    CUmodule module = nullptr;
    return CU(cuModuleLoadData)(&module, text.c_str());
  });
}

// A posted call returns its error with a later call.
Outcome objects(long most) {
  return repeat(most, [] {
    CUevent event = nullptr;
    return CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
  });
}

Outcome waits(long most) {
  CUdeviceptr word = 0;
  if (const CUresult r = CU(cuMemAlloc_v2)(&word, 4); r != CUDA_SUCCESS) return {0, r};
  if (const CUresult r = CU(cuMemsetD32_v2)(word, 0, 1); r != CUDA_SUCCESS) return {0, r};
  Outcome outcome = repeat(most, [&] {
    CUstream stream = nullptr;
    const CUresult made = CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    return made != CUDA_SUCCESS ? made : CU(cuStreamWaitValue32_v2)(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ);
  });
  std::size_t free = 0, total = 0;  // a waited call after the posted ones
  if (outcome.error == CUDA_SUCCESS) outcome.error = CU(cuMemGetInfo_v2)(&free, &total);
  return outcome;
}

void works() {
  std::vector<unsigned> there(1 << 16), back(there.size());
  for (std::size_t i = 0; i < there.size(); ++i) there[i] = static_cast<unsigned>(i * 2654435761u);
  CUdeviceptr at = 0;
  const std::size_t bytes = there.size() * sizeof there[0];
  CUresult r = CU(cuMemAlloc_v2)(&at, bytes);
  if (r == CUDA_SUCCESS) r = CU(cuMemcpyHtoD_v2)(at, there.data(), bytes);
  if (r == CUDA_SUCCESS) r = CU(cuMemcpyDtoH_v2)(back.data(), at, bytes);
  std::puts(r == CUDA_SUCCESS && there == back ? "works" : "does not work");
  std::fflush(stdout);
}

bool begin(const char* path) {
  CUcontext context = nullptr;
  return open_library(path) != nullptr && CU(cuInit)(0) == CUDA_SUCCESS &&
         CU(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_SUCCESS && CU(cuCtxSetCurrent)(context) == CUDA_SUCCESS;
}

void tell(const std::string& what, const Outcome& outcome) {
  const char* name = "no error's";
  CU(cuGetErrorName)(outcome.error, &name);
  std::printf("%s %ld %s\n", what.c_str(), outcome.made, name);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc >= 3 ? argv[2] : "";
  if (argc < (what == "works" ? 3 : what == "images" ? 5 : 4) || !begin(argv[1])) return 2;
  const long most = argc >= 4 ? std::atol(argv[3]) : 0;
  if (what == "images")
    tell(what, images(most, static_cast<std::size_t>(std::atol(argv[4])) << 20));
  else if (what == "objects")
    tell(what, objects(most));
  else if (what == "waits")
    tell(what, waits(most));
  else
    works();
  std::fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0)
    if (what == "works") works();
  _exit(0);  // exits without exit handlers, which might wait for the endless work
}
