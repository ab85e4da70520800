// A pending link: the added texts and the resulting image.
//
// As in a linker, separate inputs are linked as a whole, and members of libraries only if another text needs them.
// Duplicate definitions are detected when a text is added, missing definitions at the end. After either error the link
// stays failed: each later call returns the same error and adds nothing to the logs.
#pragma once

#include "host/simgpu/api/objects.h"
#include "ring/base/mutex.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "host/simgpu/api/module/jit_report.h"
#include "host/simgpu/image/image.h"
#include "host/simgpu/vm/link/relocatable.h"

namespace simgpu {

struct LinkState {
  explicit LinkState(const JitOptions& options) : report(options) {}

  // Adds the texts of an input. `name` is the name that the program gives the input, or empty.
  CUresult add(CUjitInputType type, const ImageTexts& texts, std::string name) REQUIRES(mutex);
  // Builds `image`. Call this function once. Afterwards, no input can be added.
  CUresult complete() REQUIRES(mutex);

  ring::Mutex mutex;
  const JitReport report;
  std::string info GUARDED_BY(mutex), error GUARDED_BY(mutex);  // the logs since the link's creation
  JitReport::Milliseconds took GUARDED_BY(mutex){0};
  std::vector<std::byte> image GUARDED_BY(mutex);  // empty until complete() has succeeded

 private:
  struct Text {
    std::string input;  // name of the input that contains the text
    std::string ptx;
    Relocatable names;
  };
  CUresult take(Text text) REQUIRES(mutex);
  bool is_defined(const std::string& name) const REQUIRES(mutex) {
    return defined_.contains(name) || weak_.contains(name);
  }
  bool is_wanted(const Text& text) const REQUIRES(mutex);
  CUresult take_from_libraries() REQUIRES(mutex);
  CUresult make_image() REQUIRES(mutex);
  CUresult fail(CUresult code, const std::string& why) REQUIRES(mutex);

  std::vector<Text> taken_ GUARDED_BY(mutex);                     // to be linked
  std::vector<Text> offered_ GUARDED_BY(mutex);                   // library texts that no other text needs
  std::map<std::string, std::string> defined_ GUARDED_BY(mutex);  // name, and the input that defines it
  std::set<std::string> weak_ GUARDED_BY(mutex);
  std::map<std::string, std::string> needed_ GUARDED_BY(mutex);  // name, and the first input that uses it
  unsigned inputs_ GUARDED_BY(mutex) = 0;
  bool closed_ GUARDED_BY(mutex) = false;  // complete() has been called
  CUresult failed_ GUARDED_BY(mutex) = CUDA_SUCCESS;
};

}  // namespace simgpu
