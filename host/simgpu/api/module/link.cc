// Calls for the JIT linker.
#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <optional>
#include <sstream>
#include <string>

#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/log.h"
#include "host/simgpu/api/module/link_state.h"
#include "host/simgpu/api/module/owned_image.h"
#include "host/simgpu/image/link_input.h"

using namespace simgpu;

namespace {

bool are_known(const JitOptions& options) {
  for (unsigned i = 0; i < options.count; ++i)
    if (options.names[i] < 0 || options.names[i] >= CU_JIT_NUM_OPTIONS) return false;
  return true;
}

// Refuses options that are valid only for a whole link: a link has one report and one target.
bool are_for_an_input(const JitOptions& options) {
  for (unsigned i = 0; i < options.count; ++i) {
    switch (options.names[i]) {
      case CU_JIT_WALL_TIME:
      case CU_JIT_INFO_LOG_BUFFER:
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
      case CU_JIT_ERROR_LOG_BUFFER:
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
      case CU_JIT_TARGET_FROM_CUCONTEXT:
      case CU_JIT_TARGET: return false;
      default: break;
    }
  }
  return are_known(options);
}

bool is_known(CUjitInputType type) { return type >= 0 && type < CU_JIT_NUM_INPUT_TYPES; }

// Wraps a call on a link state. A link state belongs to no context: the device at its creation determines its target.
template <class F>
CUresult with_link(CUlinkState handle, F&& call) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<LinkState> state = driver.links.find(handle);
    return state == nullptr ? CUDA_ERROR_INVALID_HANDLE : call(driver, *state);
  });
}

// Executes a step of the link. The step's additions to the logs are written before the call returns.
template <class F>
CUresult step(LinkState& state, F&& call) {
  const ring::MutexLock lock(state.mutex);
  const auto start = std::chrono::steady_clock::now();
  const std::size_t reported = state.error.size();
  const CUresult result = call();
  state.took += std::chrono::steady_clock::now() - start;
  state.report.write(state.info, state.error, state.took);
  std::istringstream lines(state.error.substr(reported));
  for (std::string line; std::getline(lines, line);) log_error(line);
  return result;
}

CUresult add(LinkState& state, CUjitInputType type, std::span<const std::byte> data, const char* name) {
  return step(state, [&] {
    state.mutex.assume_held();
    return state.add(type, read_link_input(type, data), name == nullptr ? std::string() : name);
  });
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned numOptions, CUjit_option* options, void** optionValues, CUlinkState* stateOut) {
  return with_context([&](Driver& driver, Context&) {
    const JitOptions jit{numOptions, options, optionValues};
    if (stateOut == nullptr || !are_there(jit) || !are_known(jit)) return CUDA_ERROR_INVALID_VALUE;
    const auto state = std::make_shared<LinkState>(jit);
    state->report.write({}, {}, {});  // from this call on, the program's log buffers are valid and empty
    *stateOut = driver.links.insert(state);
    return CUDA_SUCCESS;
  });
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, std::size_t size, const char* name,
                          unsigned numOptions, CUjit_option* options, void** optionValues) {
  return with_link(state, [&](Driver&, LinkState& link) {
    const JitOptions jit{numOptions, options, optionValues};
    if (data == nullptr || size == 0 || !is_known(type) || !are_there(jit) || !are_for_an_input(jit))
      return CUDA_ERROR_INVALID_VALUE;
    return add(link, type, {static_cast<const std::byte*>(data), size}, name);
  });
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned numOptions,
                          CUjit_option* options, void** optionValues) {
  return with_link(state, [&](Driver&, LinkState& link) {
    const JitOptions jit{numOptions, options, optionValues};
    if (path == nullptr || *path == '\0' || !is_known(type) || !are_there(jit) || !are_for_an_input(jit))
      return CUDA_ERROR_INVALID_VALUE;
    const std::optional<std::string> bytes = bytes_of_file(path);
    if (!bytes) return CUDA_ERROR_FILE_NOT_FOUND;
    return add(link, type, std::as_bytes(std::span(*bytes)), path);
  });
}

// The link state owns the returned image.
CUresult cuLinkComplete(CUlinkState state, void** cubinOut, std::size_t* sizeOut) {
  return with_link(state, [&](Driver&, LinkState& link) {
    if (cubinOut == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return step(link, [&] {
      link.mutex.assume_held();
      if (const CUresult result = link.complete(); result != CUDA_SUCCESS) return result;
      *cubinOut = link.image.data();
      if (sizeOut != nullptr) *sizeOut = link.image.size();
      return CUDA_SUCCESS;
    });
  });
}

CUresult cuLinkDestroy(CUlinkState state) {
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_driver(
      [&](Driver& driver) { return driver.links.remove(state) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS; });
}

// The versions of these calls from CUDA 5.5.
CUresult cuLinkCreate(unsigned numOptions, CUjit_option* options, void** optionValues, CUlinkState* stateOut) {
  return cuLinkCreate_v2(numOptions, options, optionValues, stateOut);
}
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, std::size_t size, const char* name,
                       unsigned numOptions, CUjit_option* options, void** optionValues) {
  return cuLinkAddData_v2(state, type, data, size, name, numOptions, options, optionValues);
}
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned numOptions,
                       CUjit_option* options, void** optionValues) {
  return cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}
