#include "host/session/output.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

namespace host {
namespace {

constexpr std::size_t capacity = 4 << 20;  // the driver's own buffer holds 1 MiB by default

// Leaked: the driver's threads may print until the process's end.
struct Caught {
  std::mutex mutex;
  std::string text;
  std::atomic<bool> waiting{false};
};

Caught& caught() {
  static Caught* const c = new Caught;
  return *c;
}

void append(const char* from, std::size_t bytes) {
  Caught& c = caught();
  std::lock_guard lock(c.mutex);
  c.text.append(from, bytes);
  if (c.text.size() > capacity) c.text.erase(0, c.text.size() - capacity);
  c.waiting.store(!c.text.empty(), std::memory_order_relaxed);
}

ssize_t write_cookie(void*, const char* from, std::size_t bytes) {
  append(from, bytes);
  return static_cast<ssize_t>(bytes);
}

}  // namespace

bool catch_output() {
  FILE* stream = fopencookie(nullptr, "w", {.read = nullptr, .write = write_cookie, .seek = nullptr, .close = nullptr});
  if (stream == nullptr) return false;
  setvbuf(stream, nullptr, _IONBF, 0);  // text is there when the call that prints has returned
  std::fflush(stdout);
  stdout = stream;
  return true;
}

bool output_waiting() { return caught().waiting.load(std::memory_order_relaxed); }

std::size_t take_output(std::span<std::byte> room) {
  Caught& c = caught();
  std::lock_guard lock(c.mutex);
  const std::size_t n = std::min(room.size(), c.text.size());
  if (n != 0) std::memcpy(room.data(), c.text.data(), n);
  c.text.erase(0, n);
  c.waiting.store(!c.text.empty(), std::memory_order_relaxed);
  return n;
}

}  // namespace host
