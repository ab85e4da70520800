#include "ring/abi/coredump.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

#include "ring/base/mutex.h"

namespace cuabi {
namespace {

constexpr std::size_t most_text = 1024;  // bytes, NUL included

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

struct Settings {
  bool host = true, lightweight = false;
  int flags = CU_COREDUMP_DEFAULT_FLAGS;
  char file[most_text], pipe[most_text];

  Settings() {
    const std::string name = host_name();
    std::snprintf(file, sizeof file, "core.cuda.%s.%d", name.c_str(), static_cast<int>(getpid()));
    std::snprintf(pipe, sizeof pipe, "corepipe.cuda.%s.%d", name.c_str(), static_cast<int>(getpid()));
  }
};

ring::Mutex mutex;
Settings& settings() REQUIRES(mutex) {
  static Settings all;
  return all;
}

// Returns the size of a setting's value, or 0 if there is no such setting.
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

// Writes a text with its NUL. For any other value, the caller must pass exactly the value's size.
CUresult put_text(void* value, std::size_t room, const char* text) {
  const std::size_t bytes = std::strlen(text) + 1;
  if (room < bytes) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(value, text, bytes);
  return CUDA_SUCCESS;
}
template <class T>
CUresult put(void* value, std::size_t room, const T& from) {
  if (room != sizeof from) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(value, &from, sizeof from);
  return CUDA_SUCCESS;
}

// Replaces %h, %p and %t in a name by host, process and time. Leaves % with any other letter as it is.
std::string filled_in(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char what = name[i] == '%' && i + 1 < name.size() ? name[i + 1] : '\0';
    switch (what) {
      case 'h': out += host_name(); break;
      case 'p': out += std::to_string(getpid()); break;
      case 't': out += std::to_string(std::time(nullptr)); break;
      default: out += name[i]; continue;
    }
    ++i;
  }
  return out;
}

CUresult take_text(char (&to)[most_text], const void* value, std::size_t bytes) {
  const auto* const text = static_cast<const char*>(value);
  const std::string name = filled_in({text, strnlen(text, bytes)});
  if (name.empty() || name.size() >= most_text) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(to, name.c_str(), name.size() + 1);
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
    default: return truth(value) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;  // the two settings that request dumps
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
  const ring::MutexLock lock(mutex);
  const Settings& now = settings();
  const bool off = false;
  switch (which) {
    case CU_COREDUMP_TRIGGER_HOST: return put(value, *size, now.host);
    case CU_COREDUMP_LIGHTWEIGHT: return put(value, *size, now.lightweight);
    case CU_COREDUMP_FILE: return put_text(value, *size, now.file);
    case CU_COREDUMP_PIPE: return put_text(value, *size, now.pipe);
    case CU_COREDUMP_GENERATION_FLAGS: return put(value, *size, now.flags);
    default: return put(value, *size, off);
  }
}

CUresult coredump_set(CUcoredumpSettings which, const void* value, const std::size_t* size) {
  const std::size_t bytes = size_of(which);
  const bool text = which == CU_COREDUMP_FILE || which == CU_COREDUMP_PIPE;
  if (size == nullptr || bytes == 0 || (text ? *size == 0 : *size < bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (value == nullptr) return CUDA_SUCCESS;  // changes nothing
  const ring::MutexLock lock(mutex);
  return set(settings(), which, value, *size);
}

CUresult coredump_set_of_context(CUcoredumpSettings which, const void* value, const std::size_t* size) {
  return which == CU_COREDUMP_ENABLE_USER_TRIGGER ? CUDA_ERROR_INVALID_VALUE : coredump_set(which, value, size);
}

}  // namespace cuabi
