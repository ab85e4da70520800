// A traced call as words: its name, its arguments and what came of it, from the one table (ring/api/driver.def).
//
// Trust: an entry holds what a guest sent, and may be anything. Nothing is read beyond what the entry keeps, text is
// escaped, and what does not fit its call is a question mark.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ring/ops/telemetry.h"

namespace ivgpu::trace {

// What a session's kernels are called, learnt from the lookups that were seen.
class KernelNames {
 public:
  void learn(const ring::TraceEntry& entry);
  // Null where no lookup was seen.
  const std::string* find(std::uint64_t id) const;

 private:
  void add(std::uint64_t id, const std::string& name);
  std::unordered_map<std::uint64_t, std::string> names_;
};

struct Argument {
  std::string name, value;
};

struct CallText {
  std::string name;             // as in cuda.h, with the thread's own stream's ending where it is that form
  std::vector<Argument> given;  // in the order of cuda.h, or of the record
  std::vector<Argument> got;    // of a call that succeeded and was waited for
  std::string result;
  bool failed = false;
  bool waited = false;
};

CallText describe(const ring::TraceEntry& entry, const KernelNames& names);

// "cuMemAlloc_v2(bytes=4096) = CUDA_SUCCESS, address=0x7ee000000000"
std::string as_line(const CallText& call);

}  // namespace ivgpu::trace
