// A pending link: the added texts and the resulting image.
//
// As in a linker, separate inputs are included whole, and library members only if needed. Duplicate definitions are
// found when a text is added, missing ones at the end. After such an error the link stays failed: each later call
// returns the same error and reports nothing.
#pragma once

#include "host/simgpu/api/objects.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "host/simgpu/api/module/jit_report.h"
#include "host/simgpu/image/image.h"
#include "host/simgpu/vm/link/relocatable.h"

namespace simgpu {

// Not thread-safe; callers hold `mutex`.
struct LinkState {
  explicit LinkState(const JitOptions& options) : report(options) {}

  // Adds the texts of an input. `name` is the program's name for it, or empty.
  CUresult add(CUjitInputType type, const ImageTexts& texts, std::string name);
  // Builds `image`. Call it once; nothing can be added afterwards.
  CUresult complete();

  std::mutex mutex;
  const JitReport report;
  std::string info, error;  // the logs from the beginning
  JitReport::Milliseconds took{0};
  std::vector<std::byte> image;  // empty: not complete

 private:
  struct Text {
    std::string input;  // its name
    std::string ptx;
    Relocatable names;
  };
  CUresult take(Text text);
  bool is_defined(const std::string& name) const { return defined_.contains(name) || weak_.contains(name); }
  bool is_wanted(const Text& text) const;
  CUresult take_from_libraries();
  CUresult make_image();
  CUresult fail(CUresult code, const std::string& why);

  std::vector<Text> taken_, offered_;           // offered: unneeded library texts
  std::map<std::string, std::string> defined_;  // name, and the input that defines it
  std::set<std::string> weak_;
  std::map<std::string, std::string> needed_;  // name, and the first input that uses it
  unsigned inputs_ = 0;
  bool closed_ = false;  // complete() was called
  CUresult failed_ = CUDA_SUCCESS;
};

}  // namespace simgpu
