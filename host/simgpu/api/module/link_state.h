// A pending link: the added texts and the resulting image.
//
// As in a linker, separate inputs are linked as a whole, and members of libraries only if another text needs them.
// Duplicate definitions are detected when a text is added, missing definitions at the end. After either error the link
// stays failed: each later call returns the same error and adds nothing to the logs.
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

// Not thread-safe: the caller holds `mutex`.
struct LinkState {
  explicit LinkState(const JitOptions& options) : report(options) {}

  // Adds the texts of an input. `name` is the name that the program gives the input, or empty.
  CUresult add(CUjitInputType type, const ImageTexts& texts, std::string name);
  // Builds `image`. Call this function once. Afterwards, no input can be added.
  CUresult complete();

  std::mutex mutex;
  const JitReport report;
  std::string info, error;  // the logs since the link's creation
  JitReport::Milliseconds took{0};
  std::vector<std::byte> image;  // empty until complete() has succeeded

 private:
  struct Text {
    std::string input;  // name of the input that contains the text
    std::string ptx;
    Relocatable names;
  };
  CUresult take(Text text);
  bool is_defined(const std::string& name) const { return defined_.contains(name) || weak_.contains(name); }
  bool is_wanted(const Text& text) const;
  CUresult take_from_libraries();
  CUresult make_image();
  CUresult fail(CUresult code, const std::string& why);

  std::vector<Text> taken_, offered_;           // taken: to be linked; offered: library texts that no other text needs
  std::map<std::string, std::string> defined_;  // name, and the input that defines it
  std::set<std::string> weak_;
  std::map<std::string, std::string> needed_;  // name, and the first input that uses it
  unsigned inputs_ = 0;
  bool closed_ = false;  // complete() has been called
  CUresult failed_ = CUDA_SUCCESS;
};

}  // namespace simgpu
