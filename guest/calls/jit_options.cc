#include "guest/calls/jit_options.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "guest/log.h"
#include "ring/api/jit_options.h"
#include "ring/layout.h"

namespace guest {
namespace {

bool is_buffer(CUjit_option name) { return name == CU_JIT_INFO_LOG_BUFFER || name == CU_JIT_ERROR_LOG_BUFFER; }

void* value_of(const JitOptions& o, CUjit_option name) {
  for (unsigned i = 0; i < o.count; ++i)
    if (o.names[i] == name) return o.values[i];
  return nullptr;
}

void fill_log(const JitOptions& o, CUjit_option buffer, CUjit_option size, ring::SharedReader& r) {
  const std::uint64_t length = r.slot();
  const auto room = reinterpret_cast<std::size_t>(value_of(o, size));
  auto* into = static_cast<char*>(value_of(o, buffer));
  if (length > ring::reply_bytes) return r.fail();
  std::string text(length, '\0');
  if (!r.copy(text.data(), length) || into == nullptr || room == 0) return;
  const std::size_t n = std::min<std::size_t>(length, room - 1);
  std::memcpy(into, text.data(), n);
  into[n] = '\0';
}

}  // namespace

bool are_served(const JitOptions& o) {
  for (unsigned i = 0; i < o.count; ++i)
    if (!api::crosses_boundary(o.names[i])) {
      log(Level::Warn, "JIT option %d is not served yet", static_cast<int>(o.names[i]));
      return false;
    }
  return o.count <= api::max_jit_options;
}

void append(const JitOptions& o, std::vector<std::uint64_t>& words) {
  for (unsigned i = 0; i < o.count; ++i) words.push_back(static_cast<std::uint64_t>(o.names[i]));
  for (unsigned i = 0; i < o.count; ++i)
    words.push_back(is_buffer(o.names[i]) ? 0 : reinterpret_cast<std::uint64_t>(o.values[i]));
}

// The driver rewrites some values in place: the wall time and the logs' lengths.
void take(const JitOptions& o, ring::SharedReader& r) {
  std::array<std::uint64_t, api::max_jit_options> values{};
  for (unsigned i = 0; i < o.count; ++i) values[i] = r.slot();
  fill_log(o, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, r);
  fill_log(o, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, r);
  for (unsigned i = 0; r.ok() && i < o.count; ++i)
    if (!is_buffer(o.names[i])) o.values[i] = reinterpret_cast<void*>(values[i]);
}

}  // namespace guest
