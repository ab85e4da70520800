// A program that uses only the driver API: it opens libcuda itself and starts no runtime. It loads images in every form
// (PTX text with options and logs, PTX, fat binary and cubin as nvcc makes them) as modules and as libraries. It
// launches with an array of pointers and with a packed buffer, with 101 parameters and with 8 KB of parameters. It also
// tests attributes, occupancy and global variables.
#include <dlfcn.h>

#include <algorithm>
#include <string>

#include "check.h"
#include "driver_api_images.h"  // defines driver_api_fatbin, driver_api_ptx, driver_api_cubin

namespace {

decltype(&::cuGetProcAddress) get_proc_address = nullptr;

template <class Function>
Function find(const char* name) {
  void* entry = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result = get_proc_address(name, &entry, 12050, CU_GET_PROC_ADDRESS_DEFAULT, &status);
  CHECK_THAT(result == CUDA_SUCCESS && entry != nullptr && status == CU_GET_PROC_ADDRESS_SUCCESS,
             "cuGetProcAddress gave no %s: result %d, status %d.", name, static_cast<int>(result),
             static_cast<int>(status));
  return reinterpret_cast<Function>(entry);
}

// The caller stringifies the name, since macros in cuda.h rename calls to their newest version.
#define CALL_AS(Function, text, ...)                \
  ([&] {                                            \
    static const auto entry = find<Function>(text); \
    return entry(__VA_ARGS__);                      \
  }())

#define CALL(name, ...) CALL_AS(decltype(&::name), #name, __VA_ARGS__)

#define CHECK_CALL(name, ...)                                                                      \
  do {                                                                                             \
    const CUresult check_result = CALL_AS(decltype(&::name), #name, __VA_ARGS__);                  \
    CHECK_THAT(check_result == CUDA_SUCCESS, "%s:%d: " #name " gave %s.", __FILE_NAME__, __LINE__, \
               name_of(check_result));                                                             \
  } while (0)

const char* name_of(CUresult result);

const char* name_of(CUresult result) {
  const char* name = nullptr;
  return CALL(cuGetErrorName, result, &name) == CUDA_SUCCESS && name != nullptr ? name : "an unknown error";
}

void open_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK_THAT(library != nullptr, "%s", dlerror());
  get_proc_address = reinterpret_cast<decltype(get_proc_address)>(dlsym(library, "cuGetProcAddress_v2"));
  CHECK_THAT(get_proc_address != nullptr, "The driver has no cuGetProcAddress_v2.");
  void* entry = &library;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  (void)get_proc_address("cuNoSuchThing", &entry, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status);
  CHECK_THAT(entry == nullptr && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
             "cuGetProcAddress knows what is not there.");
  (void)get_proc_address("cuLibraryLoadData", &entry, 11000, CU_GET_PROC_ADDRESS_DEFAULT, &status);
  CHECK_THAT(entry == nullptr && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
             "cuGetProcAddress gives a call to a program that is older than it.");
}

CUcontext open_context() {
  int count = 0;
  CUdevice device = -1;
  CUcontext context = nullptr, current = nullptr;
  const CUresult before = CALL(cuDeviceGetCount, &count);
  CHECK_THAT(before == CUDA_ERROR_NOT_INITIALIZED, "cuDeviceGetCount before cuInit gave %s.", name_of(before));
  CHECK_CALL(cuInit, 0);
  CHECK_CALL(cuDeviceGetCount, &count);
  CHECK_CALL(cuDeviceGet, &device, 0);
  CHECK_CALL(cuCtxGetCurrent, &current);
  CHECK_THAT(count >= 1 && current == nullptr, "A context is current before there is one.");
  CUdeviceptr nothing = 0;
  const CUresult without = CALL(cuMemAlloc, &nothing, 64);
  CHECK_THAT(without == CUDA_ERROR_INVALID_CONTEXT, "cuMemAlloc without a context gave %s.", name_of(without));
  CHECK_CALL(cuDevicePrimaryCtxRetain, &context, device);
  CHECK_CALL(cuCtxSetCurrent, context);
  return context;
}

template <class T>
CUdeviceptr to_device(const std::vector<T>& values) {
  CUdeviceptr address = 0;
  CHECK_CALL(cuMemAlloc, &address, values.size() * sizeof(T));
  CHECK_CALL(cuMemcpyHtoD, address, values.data(), values.size() * sizeof(T));
  return address;
}

template <class T>
std::vector<T> from_device(CUdeviceptr address, size_t count) {
  std::vector<T> values(count);
  CHECK_CALL(cuMemcpyDtoH, values.data(), address, count * sizeof(T));
  return values;
}

CUresult launch(CUfunction function, unsigned block, unsigned shared, void** parameters, void** extra) {
  return CALL(cuLaunchKernel, function, 1, 1, 1, block, 1, 1, shared, nullptr, parameters, extra);
}

constexpr char text[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry triple(.param .u64 at)
{
  .reg .u32 %r<3>;
  .reg .u64 %rd<2>;
  ld.param.u64 %rd1, [at];
  ld.global.u32 %r1, [%rd1];
  mul.lo.u32 %r2, %r1, 3;
  st.global.u32 [%rd1], %r2;
  ret;
}
)";
constexpr char wrong_text[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry broken()
{
  .reg .u32 %r<2>;
  nonsense.u32 %r1, 3;
  ret;
}
)";

// A log buffer with guard bytes behind it, which detect a driver that writes too much.
struct Log {
  static constexpr size_t size = 4096;
  std::string bytes = std::string(size + 64, '#');
  void check() const {
    CHECK_THAT(bytes.find_first_not_of('#', size) == std::string::npos, "A log was written past its end.");
  }
};

void* option(size_t value) { return reinterpret_cast<void*>(value); }

CUresult load_with_logs(CUmodule* module, const char* image, size_t error_size, Log& info, Log& error,
                        size_t* written) {
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER,    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_ERROR_LOG_BUFFER,   CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_LOG_VERBOSE,        CU_JIT_OPTIMIZATION_LEVEL,
                            CU_JIT_MAX_REGISTERS,      CU_JIT_TARGET_FROM_CUCONTEXT,
                            CU_JIT_GENERATE_LINE_INFO, CU_JIT_WALL_TIME};
  void* values[] = {info.bytes.data(),  option(Log::size),
                    error.bytes.data(), option(error_size),
                    option(1),          option(3),
                    option(32),         nullptr,
                    option(1),          nullptr};
  const CUresult result = CALL(cuModuleLoadDataEx, module, image, std::size(options), options, values);
  info.check();
  error.check();
  *written = static_cast<unsigned>(reinterpret_cast<size_t>(values[3]));
  return result;
}

void ptx_with_logs() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  Log info, error;
  size_t written = 0;
  CUresult result = load_with_logs(&module, text, Log::size, info, error, &written);
  CHECK_THAT(result == CUDA_SUCCESS, "PTX with options gave %s: %s", name_of(result), error.bytes.c_str());
  CHECK_CALL(cuModuleGetFunction, &function, module, "triple");
  CUdeviceptr number = to_device(std::vector<unsigned>{14});
  void* parameters[] = {&number};
  CHECK_THAT(launch(function, 1, 0, parameters, nullptr) == CUDA_SUCCESS, "A kernel from PTX text cannot be launched.");
  CHECK_THAT(from_device<unsigned>(number, 1)[0] == 42, "A kernel from PTX text gives a wrong number.");
  CHECK_CALL(cuMemFree, number);
  CHECK_CALL(cuModuleUnload, module);

  result = load_with_logs(&module, wrong_text, Log::size, info, error, &written);
  CHECK_THAT(result == CUDA_ERROR_INVALID_PTX, "Wrong PTX gave %s.", name_of(result));
  const size_t length = error.bytes.find('\0');
  CHECK_THAT(length > 0 && length < Log::size, "The error log of wrong PTX has no end, or no text.");
  CHECK_THAT(error.bytes.substr(0, length).find("nonsense") != std::string::npos,
             "The error log does not name what is wrong: %s", error.bytes.c_str());
  CHECK_THAT(written >= length && written <= length + 1, "The error log has %zu bytes and says %zu.", length, written);
  Log small_info, small_error;
  result = load_with_logs(&module, wrong_text, 8, small_info, small_error, &written);
  CHECK_THAT(result == CUDA_ERROR_INVALID_PTX, "Wrong PTX gave %s.", name_of(result));
  CHECK_THAT(small_error.bytes.find_first_not_of('#', 8) == std::string::npos, "A log of 8 bytes was written past.");
  std::printf("driver_api: PTX with logs: ok\n");
}

void compare(const char* what, CUdeviceptr out, long long expected) {
  const long long got = from_device<long long>(out, 1)[0];
  CHECK_THAT(got == expected, "%s: the sum is %lld, the CPU says %lld.", what, got, expected);
  std::printf("driver_api: %s: %lld\n", what, got);
}

// Packs the parameters at the offsets of cuFuncGetParamInfo, and launches in both ways.
void launch_in_both_ways(const char* what, CUfunction function, const std::vector<void*>& values, CUdeviceptr out,
                         long long expected) {
  std::vector<char> packed;
  size_t offset = 0, size = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    CHECK_CALL(cuFuncGetParamInfo, function, i, &offset, &size);
    CHECK_THAT(offset >= packed.size(), "%s: parameter %zu is in the one before it.", what, i);
    packed.resize(offset + size);
    std::memcpy(packed.data() + offset, values[i], size);
  }
  const CUresult past = CALL(cuFuncGetParamInfo, function, values.size(), &offset, &size);
  CHECK_THAT(past == CUDA_ERROR_INVALID_VALUE, "%s: a parameter too many gave %s.", what, name_of(past));

  std::vector<void*> pointers = values;
  CHECK_CALL(cuMemsetD8, out, 0xff, sizeof(long long));
  CUresult result = launch(function, 1, 0, pointers.data(), nullptr);
  CHECK_THAT(result == CUDA_SUCCESS, "%s: the launch by pointers gave %s.", what, name_of(result));
  compare(what, out, expected);

  size_t total = packed.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &total,
                   CU_LAUNCH_PARAM_END};
  CHECK_CALL(cuMemsetD8, out, 0xff, sizeof(long long));
  result = launch(function, 1, 0, nullptr, extra);
  CHECK_THAT(result == CUDA_SUCCESS, "%s: the launch by a buffer gave %s.", what, name_of(result));
  compare(what, out, expected);
  result = launch(function, 1, 0, pointers.data(), extra);
  CHECK_THAT(result == CUDA_ERROR_INVALID_VALUE, "%s: pointers and a buffer at once gave %s.", what, name_of(result));
}

void many_parameters(CUfunction function) {
  constexpr int fours = 25;
  signed char a[fours];
  int b[fours];
  short c[fours];
  double d[fours];
  std::vector<void*> values;
  unsigned long long sum = 0;
  for (int i = 0; i < fours; ++i) {
    a[i] = static_cast<signed char>(i * 5 - 60);
    b[i] = i * 1000003 - 7;
    c[i] = static_cast<short>(i * 1234 - 15000);
    d[i] = i * 4096.0 - 1;
    for (void* value :
         {static_cast<void*>(a + i), static_cast<void*>(b + i), static_cast<void*>(c + i), static_cast<void*>(d + i)}) {
      values.push_back(value);
    }
    for (const long long value : {static_cast<long long>(d[i]), static_cast<long long>(c[i]),
                                  static_cast<long long>(b[i]), static_cast<long long>(a[i])}) {
      sum = sum * 31 + value;
    }
  }
  CUdeviceptr out = to_device(std::vector<long long>{0});
  values.push_back(&out);
  launch_in_both_ways("101 parameters", function, values, out, static_cast<long long>(sum));
  CHECK_CALL(cuMemFree, out);
}

void large_parameters(CUfunction function) {
  std::vector<int> numbers(2000);
  int factor = 7;
  long long expected = 0;
  for (int i = 0; i < 2000; ++i) {
    numbers[i] = check::small_number(i, 11) * 100000 - i;
    expected += static_cast<long long>(numbers[i]) * (i % factor);
  }
  CUdeviceptr out = to_device(std::vector<long long>{0});
  launch_in_both_ways("8 KB of parameters", function, {numbers.data(), &factor, &out}, out, expected);
  CHECK_CALL(cuMemFree, out);
}

int attribute_of(CUfunction function, CUfunction_attribute attribute) {
  int value = -1;
  CHECK_CALL(cuFuncGetAttribute, &value, attribute, function);
  return value;
}

void attributes_and_occupancy(CUfunction work) {
  CHECK_THAT(attribute_of(work, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 256, "The launch bound is lost.");
  CHECK_THAT(attribute_of(work, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 1024, "The size of shared memory is lost.");
  CHECK_THAT(attribute_of(work, CU_FUNC_ATTRIBUTE_NUM_REGS) > 0, "The kernel has no registers.");
  CHECK_THAT(attribute_of(work, CU_FUNC_ATTRIBUTE_PTX_VERSION) >= 75, "The kernel's PTX version is too low.");
  CHECK_THAT(attribute_of(work, CU_FUNC_ATTRIBUTE_BINARY_VERSION) >= 75, "The kernel's binary version is too low.");
  CHECK_CALL(cuFuncSetAttribute, work, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000);
  CHECK_THAT(attribute_of(work, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == 60000, "A set attribute is lost.");
  CHECK_CALL(cuFuncSetCacheConfig, work, CU_FUNC_CACHE_PREFER_SHARED);
  const char* name = nullptr;
  CUmodule module = nullptr;
  CHECK_CALL(cuFuncGetName, &name, work);
  CHECK_CALL(cuFuncGetModule, &module, work);
  CHECK_THAT(module != nullptr && std::strcmp(name, "work") == 0, "The kernel is called %s.", name);

  int small = 0, large = 0, bounded = 0;
  size_t available = 0;
  CHECK_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &small, work, 32, 0);
  CHECK_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &large, work, 256, 0);
  CHECK_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &bounded, work, 32, 60000, CU_OCCUPANCY_DEFAULT);
  CHECK_CALL(cuOccupancyAvailableDynamicSMemPerBlock, &available, work, 1, 32);
  CHECK_THAT(small >= large && large >= 1 && bounded >= 1 && bounded <= small,
             "%d blocks of 32 fit, %d of 256, and %d with shared memory.", small, large, bounded);
  CHECK_THAT(available >= 16384, "One block may have %zu bytes of shared memory.", available);
  std::printf("driver_api: attributes and occupancy: ok\n");
}

constexpr int n = 200;
constexpr int block = 256;

std::vector<int> work_on_the_cpu(const std::vector<int>& in, int scale, const std::vector<int>& table) {
  std::vector<int> sum(block);
  for (int i = 0; i < n; ++i) sum[block - 1 - i] = in[i] * scale + table[i % 64];
  for (int i = 1; i < block; ++i) sum[i] += sum[i - 1];
  sum.resize(n);
  return sum;
}

// Runs the kernel `work` with the variables that `set` found in the image.
void run_work(const char* what, CUfunction function, CUdeviceptr scale, CUdeviceptr table, unsigned shared) {
  std::vector<int> in(n), entries(64);
  for (int i = 0; i < n; ++i) in[i] = check::small_number(i, 2) - 4;
  for (int i = 0; i < 64; ++i) entries[i] = i * i;
  CHECK_THAT(from_device<int>(scale, 1)[0] == 3, "%s: a variable's initial value is lost.", what);
  const int new_scale = 17;
  CHECK_CALL(cuMemcpyHtoD, scale, &new_scale, sizeof(int));
  CHECK_CALL(cuMemcpyHtoD, table, entries.data(), entries.size() * sizeof(int));
  CUdeviceptr device_in = to_device(in), out = to_device(std::vector<int>(n, -1));
  int count = n;
  void* parameters[] = {&device_in, &out, &count};
  const CUresult result = launch(function, block, shared, parameters, nullptr);
  CHECK_THAT(result == CUDA_SUCCESS, "%s: the launch gave %s.", what, name_of(result));
  const std::vector<int> sums = from_device<int>(out, n);
  check::compare(what, sums, work_on_the_cpu(in, new_scale, entries));
  std::printf("driver_api: %s, checksum %016llx\n", what, static_cast<unsigned long long>(check::checksum(sums)));
  CHECK_CALL(cuMemFree, device_in);
  CHECK_CALL(cuMemFree, out);
}

void run_module(const char* what, CUmodule module) {
  CUfunction function = nullptr;
  CUdeviceptr scale = 0, table = 0;
  size_t scale_size = 0, table_size = 0;
  CHECK_CALL(cuModuleGetFunction, &function, module, "work");
  CHECK_CALL(cuModuleGetGlobal, &scale, &scale_size, module, "scale");
  CHECK_CALL(cuModuleGetGlobal, &table, &table_size, module, "table");
  CHECK_THAT(scale_size == 4 && table_size == 256, "%s: the variables have %zu and %zu bytes.", what, scale_size,
             table_size);
  run_work(what, function, scale, table, block * sizeof(int));
}

void fat_binary() {
  CUmodule module = nullptr;
  CUfunction many = nullptr, large = nullptr, work = nullptr;
  CHECK_CALL(cuModuleLoadFatBinary, &module, driver_api_fatbin);
  run_module("fat binary", module);
  CHECK_CALL(cuModuleGetFunction, &many, module, "many_parameters");
  CHECK_CALL(cuModuleGetFunction, &large, module, "large_parameters");
  CHECK_CALL(cuModuleGetFunction, &work, module, "work");
  many_parameters(many);
  large_parameters(large);
  attributes_and_occupancy(work);
  unsigned kernels = 0;
  CHECK_CALL(cuModuleGetFunctionCount, &kernels, module);
  CHECK_THAT(kernels == 3, "The fat binary has %u kernels.", kernels);

  CUmodule second = nullptr;  // the same image again, which has its own variables
  CHECK_CALL(cuModuleLoadData, &second, driver_api_fatbin);
  run_module("fat binary, twice", second);
  CHECK_CALL(cuModuleUnload, second);
  CHECK_CALL(cuModuleUnload, module);
}

void ptx_of_the_compiler() {
  CUmodule module = nullptr;
  const std::string image(reinterpret_cast<const char*>(driver_api_ptx), sizeof(driver_api_ptx));
  CHECK_CALL(cuModuleLoadData, &module, image.c_str());
  run_module("PTX", module);
  CHECK_CALL(cuModuleUnload, module);
}

// The cubin is for compute capability 9.x; any other device must refuse it.
void cubin() {
  CUmodule module = nullptr;
  int major = 0;
  CHECK_CALL(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  const CUresult result = CALL(cuModuleLoadData, &module, driver_api_cubin);
  if (result == CUDA_SUCCESS) {
    CHECK_THAT(major == 9, "A cubin for 9.0 was loaded on a device of %d.x.", major);
    CUfunction function = nullptr;
    CHECK_CALL(cuModuleGetFunction, &function, module, "large_parameters");
    large_parameters(function);
    CHECK_CALL(cuModuleUnload, module);
  } else {
    CHECK_THAT(result == CUDA_ERROR_NO_BINARY_FOR_GPU, "A cubin gave %s.", name_of(result));
  }
}

void library() {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUmodule module = nullptr;
  CUdeviceptr scale = 0, table = 0;
  size_t size = 0, offset = 0;
  unsigned kernels = 0;
  CHECK_CALL(cuLibraryLoadData, &library, driver_api_fatbin, nullptr, nullptr, 0, nullptr, nullptr, 0);
  CHECK_CALL(cuLibraryGetKernelCount, &kernels, library);
  CHECK_CALL(cuLibraryGetKernel, &kernel, library, "work");
  CHECK_CALL(cuLibraryGetGlobal, &scale, &size, library, "scale");
  CHECK_CALL(cuLibraryGetGlobal, &table, &size, library, "table");
  CHECK_CALL(cuLibraryGetModule, &module, library);
  const char* name = nullptr;
  CUlibrary owner = nullptr;
  CHECK_CALL(cuKernelGetName, &name, kernel);
  CHECK_CALL(cuKernelGetLibrary, &owner, kernel);
  CHECK_THAT(kernels == 3 && size == 256 && owner == library && std::strcmp(name, "work") == 0,
             "The library has %u kernels, a table of %zu bytes, and calls `work` %s.", kernels, size, name);
  CHECK_CALL(cuKernelGetParamInfo, kernel, 2, &offset, &size);
  CHECK_THAT(offset == 16 && size == 4, "The third parameter has %zu bytes at %zu.", size, offset);
  int bound = 0, shared = 0;
  CHECK_CALL(cuKernelGetAttribute, &bound, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0);
  CHECK_CALL(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 62000, kernel, 0);
  CHECK_CALL(cuKernelGetAttribute, &shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0);
  CHECK_THAT(bound == 256 && shared == 62000, "The kernel's attributes are %d and %d.", bound, shared);
  CHECK_CALL(cuKernelGetFunction, &function, kernel);
  run_work("library, as a function", function, scale, table, 62000);
  const int old_scale = 3;
  CHECK_CALL(cuMemcpyHtoD, scale, &old_scale, sizeof(int));
  run_work("library, as a kernel", reinterpret_cast<CUfunction>(kernel), scale, table, 62000);
  CHECK_CALL(cuLibraryUnload, library);
}

// Calls cuLaunchKernelEx with attributes, on a stream created for this test.
void launch_with_attributes() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  CHECK_CALL(cuModuleLoadData, &module, text);
  CHECK_CALL(cuModuleGetFunction, &function, module, "triple");
  CHECK_CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  CUdeviceptr number = to_device(std::vector<unsigned>{5});
  void* parameters[] = {&number};
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[0].value.cooperative = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  CHECK_CALL(cuLaunchKernelEx, &config, function, parameters, nullptr);
  CHECK_CALL(cuLaunchCooperativeKernel, function, 1, 1, 1, 1, 1, 1, 0, stream, parameters);
  CHECK_CALL(cuStreamSynchronize, stream);
  CHECK_THAT(from_device<unsigned>(number, 1)[0] == 45, "Two launches with attributes give a wrong number.");
  CHECK_CALL(cuMemFree, number);
  CHECK_CALL(cuStreamDestroy, stream);
  CHECK_CALL(cuModuleUnload, module);
  std::printf("driver_api: launches with attributes: ok\n");
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = 1;
  check::parse(argc, argv, "driver_api", "uses the driver API alone, with images of every form",
               {{"--rounds", "times that all is done", &rounds, 1, 1000}});
  open_driver();
  open_context();
  for (long round = 0; round < rounds; ++round) {
    ptx_with_logs();
    fat_binary();
    ptx_of_the_compiler();
    cubin();
    library();
    launch_with_attributes();
  }
  CHECK_CALL(cuDevicePrimaryCtxRelease, 0);
  return 0;
}
