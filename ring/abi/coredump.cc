#include "ring/abi/coredump.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>

namespace cuabi {
namespace {

constexpr std::size_t most_text = 1024;  // with its NUL

struct Settings {
  bool host = true, lightweight = false;
  int flags = CU_COREDUMP_DEFAULT_FLAGS;
  char file[most_text], pipe[most_text];

  Settings() {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    std::snprintf(file, sizeof file, "core.cuda.%s.%d", name, static_cast<int>(getpid()));
    std::snprintf(pipe, sizeof pipe, "corepipe.cuda.%s.%d", name, static_cast<int>(getpid()));
  }
};

std::mutex mutex;
Settings& settings() {
  static Settings all;
  return all;
}

// How many bytes a value has; 0: there is no such setting.
std::size_t size_of(CUcoredumpSettings which) {
  switch (which) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
    case CU_COREDUMP_TRIGGER_HOST:
    case CU_COREDUMP_LIGHTWEIGHT:
    case CU_COREDUMP_ENABLE_USER_TRIGGER: return sizeof(bool);
    case CU_COREDUMP_FILE:
    case CU_COREDUMP_PIPE: return most_text;
    case CU_COREDUMP_GENERATION_FLAGS: return sizeof(int);
    default: return 0;
  }
}

CUresult put(void* value, std::size_t room, const void* from, std::size_t bytes) {
  if (room < bytes) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(value, from, bytes);
  return CUDA_SUCCESS;
}

CUresult take_text(char (&to)[most_text], const void* value, std::size_t bytes) {
  const std::size_t length = strnlen(static_cast<const char*>(value), bytes);
  if (length == 0 || length >= most_text) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(to, value, length);
  to[length] = '\0';
  return CUDA_SUCCESS;
}

bool truth(const void* value) { return *static_cast<const unsigned char*>(value) != 0; }

CUresult set(Settings& now, CUcoredumpSettings which, const void* value, std::size_t bytes) {
  switch (which) {
    case CU_COREDUMP_TRIGGER_HOST: now.host = truth(value); return CUDA_SUCCESS;
    case CU_COREDUMP_LIGHTWEIGHT:
      now.lightweight = truth(value);
      now.flags = now.lightweight ? CU_COREDUMP_LIGHTWEIGHT_FLAGS : CU_COREDUMP_DEFAULT_FLAGS;
      return CUDA_SUCCESS;
    case CU_COREDUMP_FILE: return take_text(now.file, value, bytes);
    case CU_COREDUMP_PIPE: return take_text(now.pipe, value, bytes);
    case CU_COREDUMP_GENERATION_FLAGS: std::memcpy(&now.flags, value, sizeof now.flags); return CUDA_SUCCESS;
    default: return truth(value) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;  // the two that ask for dumps
  }
}

}  // namespace

CUresult coredump_get(CUcoredumpSettings which, void* value, std::size_t* size) {
  const std::size_t bytes = size_of(which);
  if (size == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (value == nullptr) {
    *size = bytes;
    return CUDA_SUCCESS;
  }
  const std::lock_guard lock(mutex);
  const Settings& now = settings();
  const bool off = false;
  switch (which) {
    case CU_COREDUMP_TRIGGER_HOST: return put(value, *size, &now.host, sizeof now.host);
    case CU_COREDUMP_LIGHTWEIGHT: return put(value, *size, &now.lightweight, sizeof now.lightweight);
    case CU_COREDUMP_FILE: return put(value, *size, now.file, std::strlen(now.file) + 1);
    case CU_COREDUMP_PIPE: return put(value, *size, now.pipe, std::strlen(now.pipe) + 1);
    case CU_COREDUMP_GENERATION_FLAGS: return put(value, *size, &now.flags, sizeof now.flags);
    default: return put(value, *size, &off, sizeof off);
  }
}

CUresult coredump_set(CUcoredumpSettings which, const void* value, const std::size_t* size) {
  const std::size_t bytes = size_of(which);
  const bool text = which == CU_COREDUMP_FILE || which == CU_COREDUMP_PIPE;
  if (size == nullptr || value == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (text ? *size == 0 : *size < bytes) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(mutex);
  return set(settings(), which, value, *size);
}

}  // namespace cuabi
