// A backend for tests of ring/abi/. Each result of the backend is a variable that the test sets.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "ring/abi/backend.h"

namespace fake {

inline CUresult ready = CUDA_SUCCESS;
inline thread_local CUcontext current = nullptr;
inline std::vector<CUcontext> contexts;
inline std::vector<std::string> lines;
inline std::vector<CUfunction> functions;
inline const void* loaded_image = nullptr;

template <class T>
T handle(std::uintptr_t number) {
  return reinterpret_cast<T>(number);
}

inline const CUcontext primary = handle<CUcontext>(0x1000);

inline bool exists(CUcontext context) {
  for (CUcontext known : contexts)
    if (known == context) return true;
  return false;
}

inline constexpr cuabi::Backend backend{.ready = [] { return ready; },
                                        .driver_version = [] { return 13000; },
                                        .device_count = [] { return 1; },
                                        .device_identity =
                                            [](int, cuabi::DeviceIdentity* out) {
                                              std::memset(out, 7, sizeof *out);
                                              return CUDA_SUCCESS;
                                            },
                                        .primary_context =
                                            [](CUcontext* out, CUdevice device) {
                                              if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
                                              *out = primary;
                                              return CUDA_SUCCESS;
                                            },
                                        .current_context = [] { return current; },
                                        .context_exists = exists,
                                        .context_id =
                                            [](CUcontext context, std::uint64_t* id) {
                                              *id = reinterpret_cast<std::uint64_t>(context) + 1;
                                              return CUDA_SUCCESS;
                                            },
                                        .stream_id =
                                            [](CUcontext, CUstream stream, std::uint64_t* id) {
                                              if (stream == handle<CUstream>(99)) return CUDA_ERROR_INVALID_HANDLE;
                                              *id = reinterpret_cast<std::uint64_t>(stream) + 40;
                                              return CUDA_SUCCESS;
                                            },
                                        .load_module =
                                            [](CUmodule* out, const void* image) {
                                              loaded_image = image;
                                              *out = handle<CUmodule>(0x77);
                                              return CUDA_SUCCESS;
                                            },
                                        .module_functions =
                                            [](CUmodule, CUfunction* out, std::size_t room) {
                                              for (std::size_t i = 0; i < room && i < functions.size(); ++i)
                                                out[i] = functions[i];
                                              return functions.size();
                                            },
                                        .log = [](const char* line) { lines.emplace_back(line); }};

// Resets the backend to a new program with one context, which is current.
inline void reset() {
  ready = CUDA_SUCCESS;
  contexts = {primary};
  current = primary;
  lines.clear();
  functions.clear();
  cuabi::install(&backend);
}

}  // namespace fake
