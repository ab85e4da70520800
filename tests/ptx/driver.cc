#include "tests/ptx/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace ptx_forms {
namespace {

constexpr unsigned block = 128;
constexpr std::size_t memory_of_thread = 64;

struct Input {
  std::array<Bits, 8> words;
};

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "ptx_forms: %s\n", why.c_str());
  std::exit(2);
}

}  // namespace

const std::array<unsigned char, 32>& extra_parameter() {
  static const std::array<unsigned char, 32> bytes = [] {
    std::array<unsigned char, 32> all{};
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<unsigned char>(37 * k + 211);
    return all;
  }();
  return bytes;
}

template <class F>
void Driver::find(F& function, const char* symbol) {
  function = reinterpret_cast<F>(dlsym(library_, symbol));
  if (function == nullptr) give_up(std::string("the driver has no ") + symbol);
}

Driver::Driver(const std::string& path) {
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) give_up(std::string("no driver: ") + dlerror());
  find(init_, "cuInit");
  find(device_, "cuDeviceGet");
  find(device_name_, "cuDeviceGetName");
  find(attribute_, "cuDeviceGetAttribute");
  find(retain_, "cuDevicePrimaryCtxRetain");
  find(set_current_, "cuCtxSetCurrent");
  find(synchronize_, "cuCtxSynchronize");
  find(load_, "cuModuleLoadDataEx");
  find(unload_, "cuModuleUnload");
  find(function_, "cuModuleGetFunction");
  find(allocate_, "cuMemAlloc_v2");
  find(free_, "cuMemFree_v2");
  find(to_device_, "cuMemcpyHtoD_v2");
  find(to_host_, "cuMemcpyDtoH_v2");
  find(fill_, "cuMemsetD8_v2");
  find(launch_, "cuLaunchKernel");
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (init_(0) != CUDA_SUCCESS || device_(&device, 0) != CUDA_SUCCESS) give_up("no device");
  if (retain_(&context, device) != CUDA_SUCCESS || set_current_(context) != CUDA_SUCCESS) give_up("no context");
  char text[256] = {};
  int major = 0;
  int minor = 0;
  device_name_(text, sizeof text, device);
  attribute_(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  attribute_(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  name_ = text;
  capability_ = static_cast<unsigned>(10 * major + minor);
}

Loaded Driver::load(const std::string& text) {
  Loaded loaded;
  std::vector<char> log(8192);
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  loaded.code = load_(&loaded.module, text.c_str(), 2, options, values);
  loaded.log = log.data();
  return loaded;
}

void Driver::unload(CUmodule module) { unload_(module); }

void Driver::room_for(std::size_t rows) {
  if (rows <= capacity_) return;
  for (const CUdeviceptr at : {in_, out_, memory_}) {
    if (at != 0) free_(at);
  }
  capacity_ = rows;
  if (allocate_(&in_, rows * sizeof(Input)) != CUDA_SUCCESS ||
      allocate_(&out_, rows * sizeof(Result)) != CUDA_SUCCESS ||
      allocate_(&memory_, rows * memory_of_thread) != CUDA_SUCCESS) {
    give_up("no device memory");
  }
}

std::vector<Result> Driver::run(CUmodule module, const std::string& kernel, const std::vector<Row>& rows,
                                std::string& why) {
  room_for(rows.size());
  std::vector<Input> inputs(rows.size());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto end = std::copy(rows[k].in.begin(), rows[k].in.end(), inputs[k].words.begin());
    std::copy(rows[k].more.begin(), rows[k].more.end(), end);
  }
  std::vector<Result> results(rows.size());
  CUfunction function = nullptr;
  std::array<unsigned char, 32> extra = extra_parameter();
  void* params[] = {&out_, &in_, &memory_, extra.data()};
  const auto step = [&why](const char* what, CUresult code) {
    if (code != CUDA_SUCCESS) why = std::string(what) + " gives error " + std::to_string(code);
    return code == CUDA_SUCCESS;
  };
  const bool launched = step("cuModuleGetFunction", function_(&function, module, kernel.c_str())) &&
                        step("cuMemcpyHtoD", to_device_(in_, inputs.data(), inputs.size() * sizeof(Input))) &&
                        step("cuMemsetD8", fill_(memory_, 0, rows.size() * memory_of_thread)) &&
                        step("cuMemsetD8", fill_(out_, 0xa5, rows.size() * sizeof(Result))) &&
                        step("cuLaunchKernel", launch_(function, static_cast<unsigned>(rows.size() / block), 1, 1,
                                                       block, 1, 1, 0, nullptr, params, nullptr));
  faulted_ = launched && !step("the kernel", synchronize_());
  const bool done =
      launched && !faulted_ && step("cuMemcpyDtoH", to_host_(results.data(), out_, results.size() * sizeof(Result)));
  return done ? results : std::vector<Result>();
}

}  // namespace ptx_forms
