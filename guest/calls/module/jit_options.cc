#include "guest/calls/module/jit_options.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "guest/base/log.h"
#include "ring/api/jit_options.h"
#include "ring/layout/layout.h"

namespace guest {
namespace {

void* value_of(const JitOptions& o, void* const* values, CUjit_option name) {
  for (unsigned i = 0; i < o.count; ++i)
    if (o.names[i] == name) return values[i];
  return nullptr;
}

// A log from the driver. If the log was not written, the driver has changed neither the buffer nor its size.
struct Log {
  std::string text;
  bool written = true;
};

Log take_log(ring::SharedReader& r) {
  const std::uint64_t length = r.slot();
  if (length > ring::reply_bytes) {
    r.fail();
    return Log{};
  }
  Log log{std::string(length, '\0')};
  r.copy(log.text.data(), length);
  return log;
}

void fill_log(const JitOptions& o, void* const* asked, CUjit_option buffer, CUjit_option size, const Log& log) {
  const auto room = reinterpret_cast<std::size_t>(value_of(o, asked, size));
  auto* into = static_cast<char*>(value_of(o, asked, buffer));
  if (!log.written || into == nullptr || room == 0) return;
  const std::size_t n = std::min<std::size_t>(log.text.size(), room - 1);
  std::memcpy(into, log.text.data(), n);
  into[n] = '\0';
}

// Finds out whether the driver has written a log. The worker's buffer has at most max_jit_log bytes. A driver that
// wrote no log leaves this size, or the program's size, unchanged.
void see_whether_written(Log& log, const JitOptions& o, void* const* asked, const std::uint64_t* values,
                         CUjit_option size) {
  for (unsigned i = 0; i < o.count; ++i)
    if (o.names[i] == size)
      log.written = !log.text.empty() ||
                    values[i] != std::min<std::uint64_t>(reinterpret_cast<std::uint64_t>(asked[i]), api::max_jit_log);
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
    words.push_back(api::is_log_buffer(o.names[i]) ? 0 : reinterpret_cast<std::uint64_t>(o.values[i]));
}

void take(const JitOptions& o, ring::SharedReader& r) {
  std::array<void*, api::max_jit_options> asked{};
  std::copy(o.values, o.values + o.count, asked.begin());
  take(o, asked.data(), r);
}

// The driver overwrites some option values: the wall time and the lengths of logs.
void take(const JitOptions& o, void* const* asked, ring::SharedReader& r) {
  std::array<std::uint64_t, api::max_jit_options> values{};
  for (unsigned i = 0; i < o.count; ++i) values[i] = r.slot();
  Log info = take_log(r), error = take_log(r);
  if (!r.ok()) return;
  see_whether_written(info, o, asked, values.data(), CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
  see_whether_written(error, o, asked, values.data(), CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  fill_log(o, asked, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, info);
  fill_log(o, asked, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error);
  for (unsigned i = 0; i < o.count; ++i) {
    const bool untouched = (o.names[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES && !info.written) ||
                           (o.names[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES && !error.written);
    if (!untouched && !api::is_log_buffer(o.names[i])) o.values[i] = reinterpret_cast<void*>(values[i]);
  }
}

}  // namespace guest
