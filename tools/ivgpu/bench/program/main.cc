// ivgpu-measure: an ordinary program on CUDA's driver API that times its own calls. `ivgpu bench` runs it natively and
// through ivgpu; only the name of the driver library differs.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/ivgpu/bench/program/load.h"
#include "tools/ivgpu/bench/program/parts.h"
#include "tools/ivgpu/bench/program/timing.h"

namespace {

using namespace measure;

int usage() {
  std::fprintf(
      stderr,
      "usage: ivgpu-measure [--library PATH] [--quick] [--only NAME,...] "
      "latency|copy|memory|kernels|start|session SECONDS|launches COUNT|load KIND SECONDS SPEED|speed|idle|about\n"
      "Started by `ivgpu bench`, which puts what it prints beside each other, and by tools/compare-builds.\n"
      "--only: of the figures of latency or kernels only these.\n");
  return 2;
}

void about() {
  char name[256] = "";
  int version = 0;
  const Device device = open_device();
  CHECK(cuDeviceGetName(name, sizeof name, device.device));
  CHECK(cuDriverGetVersion(&version));
  std::printf("about %d %s\n", version, name);
}

std::size_t words_behind(const std::string& part) {
  return part == "load" ? 3 : part == "session" || part == "launches" ? 1 : 0;
}

int run(const std::string& part, const std::vector<std::string>& more, const char* library, bool quick) {
  if (more.size() != words_behind(part)) return usage();
  if (part == "start") {
    start(library);
    return 0;
  }
  open_driver(library);
  if (part == "latency") {
    latency(quick);
    return 0;
  }
  if (part == "copy") {
    copy(quick);
    return 0;
  }
  if (part == "memory") {
    memory(quick);
    return 0;
  }
  if (part == "kernels") {
    small_kernels(quick);
    return 0;
  }
  if (part == "launches") {
    const int count = std::atoi(more[0].c_str());
    if (count < 1) return usage();
    launches(count);
    return 0;
  }
  if (part == "idle") {
    idle();
    return 0;
  }
  if (part == "about") {
    about();
    return 0;
  }
  if (part == "load") {
    load(more[0], std::atof(more[1].c_str()), std::atof(more[2].c_str()));
    return 0;
  }
  if (part == "speed") {
    speed();
    return 0;
  }
  if (part == "session") {
    session(std::atof(more[0].c_str()));
    return 0;
  }
  return usage();
}

}  // namespace

int main(int argc, char** argv) {
  const char* library = "libcuda.so.1";
  bool quick = false;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--library" && i + 1 < argc)
      library = argv[++i];
    else if (word == "--only" && i + 1 < argc)
      measure_only(argv[++i]);
    else if (word == "--quick")
      quick = true;
    else
      words.push_back(word);
  }
  if (words.empty()) return usage();
  const std::string part = words.front();
  words.erase(words.begin());
  return run(part, words, library, quick);
}
