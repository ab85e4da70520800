// The log: messages go to standard error and to the callbacks of cuLogsRegisterCallback.
#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "host/simgpu/api/log.h"

namespace simgpu {
namespace {

struct Listener {
  CUlogsCallback function;
  void* data;
};

// Never freed: streams report errors until the process ends.
struct Listeners {
  ring::Mutex mutex;  // held during the callbacks: after unregistering, no callback is running
  std::uint64_t last GUARDED_BY(mutex) = 0;
  std::map<std::uint64_t, Listener> by_number GUARDED_BY(mutex);
};

Listeners& listeners() {
  static Listeners* const all = new Listeners;
  return *all;
}

}  // namespace

void report(const std::string& line) { std::fprintf(stderr, "ivgpu simulated GPU: %s\n", line.c_str()); }

bool warnings_wanted() {
  static const bool set = [] {
    const char* value = std::getenv("IVGPU_SIM_WARN");
    return value != nullptr && std::strcmp(value, "1") == 0;
  }();
  return set;
}

void log_error(const std::string& line) {
  report(line);
  Listeners& all = listeners();
  const ring::MutexLock lock(all.mutex);
  for (const auto& [number, listener] : all.by_number) {
    std::string message = line;  // a copy, because a callback may modify its argument
    listener.function(listener.data, CU_LOG_LEVEL_ERROR, message.data(), message.size());
  }
}

}  // namespace simgpu

using namespace simgpu;

// These two calls work before cuInit. A handle is a number that is never reused.
CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void* userData, CUlogsCallbackHandle* callback_out) {
  if (callbackFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Listeners& all = listeners();
  const ring::MutexLock lock(all.mutex);
  all.by_number.emplace(++all.last, Listener{callbackFunc, userData});
  if (callback_out != nullptr) *callback_out = reinterpret_cast<CUlogsCallbackHandle>(all.last);
  return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback) {
  Listeners& all = listeners();
  const ring::MutexLock lock(all.mutex);
  return all.by_number.erase(reinterpret_cast<std::uint64_t>(callback)) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The log is not stored: messages go only to stderr and to the callbacks, so the iterator is always 0.
CUresult cuLogsCurrent(CUlogIterator* iterator_out, unsigned) {
  if (iterator_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *iterator_out = 0;
  return CUDA_SUCCESS;
}

CUresult cuLogsDumpToFile(CUlogIterator*, const char* pathToFile, unsigned) {
  std::FILE* const file = pathToFile != nullptr ? std::fopen(pathToFile, "w") : nullptr;
  if (file == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::fclose(file);
  return CUDA_SUCCESS;
}

CUresult cuLogsDumpToMemory(CUlogIterator*, char* buffer, std::size_t* size, unsigned) {
  if (buffer == nullptr || size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (*size != 0) *buffer = '\0';
  *size = 0;
  return CUDA_SUCCESS;
}
