#include "host/session/output.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "ring/api/records.h"
#include "ring/base/mutex.h"

namespace host {
namespace {

constexpr std::size_t capacity = 4 << 20;  // bytes; the driver's own buffer has 1 MiB by default

// Never destroyed: the driver's threads may print until the process ends.
struct Caught {
  ring::Mutex mutex;
  std::string text GUARDED_BY(mutex);
  std::string diagnosis GUARDED_BY(mutex);
  std::atomic<bool> waiting{false};

  void look() REQUIRES(mutex) { waiting.store(!text.empty() || !diagnosis.empty(), std::memory_order_relaxed); }
};

Caught& caught() {
  static Caught* const c = new Caught;
  return *c;
}

void append(const char* from, std::size_t bytes) {
  Caught& c = caught();
  ring::MutexLock lock(c.mutex);
  c.text.append(from, bytes);
  if (c.text.size() > capacity) c.text.erase(0, c.text.size() - capacity);
  c.look();
}

void diagnose(void*, CUlogLevel, char* line, std::size_t bytes) {
  Caught& c = caught();
  ring::MutexLock lock(c.mutex);
  const std::size_t room = api::max_diagnosis - c.diagnosis.size();
  if (room < 2) return;
  c.diagnosis.append(line, std::min(bytes, room - 1)).push_back('\n');
  c.look();
}

std::size_t take(std::string Caught::*text, std::span<std::byte> room) {
  Caught& c = caught();
  ring::MutexLock lock(c.mutex);
  std::string& from = c.*text;
  const std::size_t n = std::min(room.size(), from.size());
  if (n != 0) std::memcpy(room.data(), from.data(), n);
  from.erase(0, n);
  c.look();
  return n;
}

ssize_t write_cookie(void*, const char* from, std::size_t bytes) {
  append(from, bytes);
  return static_cast<ssize_t>(bytes);
}

}  // namespace

bool catch_output() {
  FILE* stream = fopencookie(nullptr, "w", {.read = nullptr, .write = write_cookie, .seek = nullptr, .close = nullptr});
  if (stream == nullptr) return false;
  // unbuffered, so that the text has arrived when the call that prints has returned
  setvbuf(stream, nullptr, _IONBF, 0);
  std::fflush(stdout);
  stdout = stream;
  return true;
}

bool catch_diagnosis(const Driver& driver) {
  return driver.cuLogsRegisterCallback != nullptr &&
         driver.cuLogsRegisterCallback(diagnose, nullptr, nullptr) == CUDA_SUCCESS;
}

bool output_waiting() { return caught().waiting.load(std::memory_order_relaxed); }

std::size_t take_output(std::span<std::byte> room) { return take(&Caught::text, room); }
std::size_t take_diagnosis(std::span<std::byte> room) { return take(&Caught::diagnosis, room); }

}  // namespace host
