// The driver's error log, and the driver's notifications about a device. The guest writes a log of its own
// (docs/troubleshooting.md) instead of NVIDIA's. The functions that a program registers are therefore never called, and
// the log that a program reads is empty.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>

#include "guest/calls/calls.h"
#include "guest/process/process.h"
#include "ring/abi/descriptor.h"

namespace guest::calls {
namespace {

// Creates the numbers of registered functions, which the program uses as handles.
template <class Handle>
Handle next_handle() {
  static std::atomic<std::uint64_t> last{0};
  return reinterpret_cast<Handle>(++last);
}

}  // namespace

CUresult cuLogsRegisterCallback(CUlogsCallback function, void*, CUlogsCallbackHandle* handle) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (handle != nullptr) *handle = next_handle<CUlogsCallbackHandle>();
  return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
  return handle == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// The driver accepts any flags in cuLogsCurrent, cuLogsDumpToFile and cuLogsDumpToMemory.
CUresult cuLogsCurrent(CUlogIterator* place, unsigned) {
  if (place == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *place = 0;
  return CUDA_SUCCESS;
}

CUresult cuLogsDumpToMemory(CUlogIterator*, char* buffer, std::size_t* size, unsigned) {
  if (buffer == nullptr || size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (*size != 0) *buffer = '\0';
  *size = 0;
  return CUDA_SUCCESS;
}

CUresult cuLogsDumpToFile(CUlogIterator*, const char* path, unsigned) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int fd = cuabi::open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd < 0) return CUDA_ERROR_INVALID_VALUE;
  close(fd);
  return CUDA_SUCCESS;
}

CUresult cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback function, void*,
                                           CUasyncCallbackHandle* handle) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  if (function == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = next_handle<CUasyncCallbackHandle>();
  return CUDA_SUCCESS;
}

CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle handle) {
  if (const CUresult r = check_device(device); r != CUDA_SUCCESS) return r;
  return handle == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace guest::calls
