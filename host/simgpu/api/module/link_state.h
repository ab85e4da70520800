// A pending link: the texts that were added, and the image that they become.
//
// As a linker does, it takes what is added by itself whole, and of a library only what the others need. Names are held
// against each other when a text comes (a second definition) and at the end (a missing one). A link in which that has
// failed stays so: it answers the same to whatever follows, and reports no more.
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

// Not safe for several threads at once; the calls hold `mutex`.
struct LinkState {
  explicit LinkState(const JitOptions& options) : report(options) {}

  // Adds the texts of an input. `name`: the program's for it, or empty.
  CUresult add(CUjitInputType type, const ImageTexts& texts, std::string name);
  // Makes `image`. Nothing can be added behind it, and there is no second time.
  CUresult complete();

  std::mutex mutex;
  const JitReport report;
  std::string info, error;  // the logs, from the beginning
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

  std::vector<Text> taken_, offered_;           // offered: a library's texts that nothing has needed yet
  std::map<std::string, std::string> defined_;  // names, and the input that defines each
  std::set<std::string> weak_;
  std::map<std::string, std::string> needed_;  // names, and the first input that uses each
  unsigned inputs_ = 0;
  bool closed_ = false;  // complete() was asked for
  CUresult failed_ = CUDA_SUCCESS;
};

}  // namespace simgpu
