// A traced call as text: name, arguments and result, formatted by the call table (ring/api/driver.def).
//
// Trust: an entry holds arbitrary bytes from a guest. Nothing is read beyond the entry, text is escaped, and values
// that do not fit the call appear as a question mark.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ring/ops/telemetry.h"

namespace ivgpu::trace {

// The names of a session's kernels, learnt from lookups in the trace.
class KernelNames {
 public:
  void learn(const ring::TraceEntry& entry);
  // Null if the trace had no lookup of this kernel.
  const std::string* find(std::uint64_t id) const;

 private:
  void add(std::uint64_t id, const std::string& name);
  std::unordered_map<std::uint64_t, std::string> names_;
};

struct Argument {
  std::string name, value;
};

struct CallText {
  // as in cuda.h, with _ptsz or _ptds for the form that uses the per-thread default stream
  std::string name;
  std::vector<Argument> given;  // in the order of cuda.h or of the record
  std::vector<Argument> got;    // only of a waited call that succeeded
  std::string result;
  bool failed = false;
  bool waited = false;
};

CallText describe(const ring::TraceEntry& entry, const KernelNames& names);

// Text such as "cuMemAlloc_v2(bytes=4096) = CUDA_SUCCESS, address=0x7ee000000000".
std::string as_line(const CallText& call);

}  // namespace ivgpu::trace
