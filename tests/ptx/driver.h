// A libcuda that is loaded by path, with the operations that the forms need: running kernels from PTX text on rows of
// values.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "tests/ptx/form.h"

namespace ptx_forms {

struct Entry {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
};

struct Loaded {
  CUresult code = CUDA_SUCCESS;
  std::string log;
  CUmodule module = nullptr;
};

// The bytes that every kernel receives as its fourth parameter.
const std::array<unsigned char, 32>& extra_parameter();

class Driver {
 public:
  // Ends the process with a message if the path has no usable driver or the driver has no device.
  explicit Driver(const std::string& path);

  const std::string& name() const { return name_; }  // name of the device
  unsigned capability() const { return capability_; }
  bool simulated() const { return name_.find("simulated") != std::string::npos; }

  Loaded load(const std::string& text);
  void unload(CUmodule module);
  // Returns an empty list and sets `why` if the kernel did not run. After a fault of a kernel, this process cannot use
  // the driver any more.
  std::vector<Result> run(CUmodule module, const std::string& kernel, const std::vector<Row>& rows, std::string& why);
  bool faulted() const { return faulted_; }

 private:
  template <class F>
  void find(F& function, const char* symbol);
  void room_for(std::size_t rows);

  void* library_ = nullptr;
  std::string name_;
  unsigned capability_ = 0;
  bool faulted_ = false;
  std::size_t capacity_ = 0;
  CUdeviceptr in_ = 0, out_ = 0, memory_ = 0;

  decltype(&::cuInit) init_ = nullptr;
  decltype(&::cuDeviceGet) device_ = nullptr;
  decltype(&::cuDeviceGetName) device_name_ = nullptr;
  decltype(&::cuDeviceGetAttribute) attribute_ = nullptr;
  decltype(&::cuDevicePrimaryCtxRetain) retain_ = nullptr;
  decltype(&::cuCtxSetCurrent) set_current_ = nullptr;
  decltype(&::cuCtxSynchronize) synchronize_ = nullptr;
  decltype(&::cuModuleLoadDataEx) load_ = nullptr;
  decltype(&::cuModuleUnload) unload_ = nullptr;
  decltype(&::cuModuleGetFunction) function_ = nullptr;
  decltype(&::cuMemAlloc) allocate_ = nullptr;
  decltype(&::cuMemFree) free_ = nullptr;
  decltype(&::cuMemcpyHtoD) to_device_ = nullptr;
  decltype(&::cuMemcpyDtoH) to_host_ = nullptr;
  decltype(&::cuMemsetD8) fill_ = nullptr;
  decltype(&::cuLaunchKernel) launch_ = nullptr;
};

}  // namespace ptx_forms
