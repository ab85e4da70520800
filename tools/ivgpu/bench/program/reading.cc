// Measures kernels that read host memory, and a kernel that samples a texture.
#include <cstdint>
#include <cstring>
#include <numeric>

#include "tools/ivgpu/bench/program/memory.h"
#include "tools/ivgpu/bench/program/memory_kernels.h"

namespace measure {
namespace {

CUfunction memory_kernel(const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(cuModuleLoadData(&module, memory_kernels));
  CHECK(cuModuleGetFunction(&function, module, name));
  return function;
}

// An array with one number per thread of a grid. Kernels write the numbers.
template <class T>
class Sums {
 public:
  explicit Sums(const Grid& grid) : of_threads_(grid.all()) {
    CHECK(cuMemAlloc(&device_, bytes()));
    clear();
  }
  void clear() { CHECK(cuMemsetD8(device_, 0, bytes())); }
  // Returns the sum of all numbers as type S: words wrap around, floats must not overflow.
  template <class S>
  S all() {
    CHECK(cuMemcpyDtoH(of_threads_.data(), device_, bytes()));
    return std::accumulate(of_threads_.begin(), of_threads_.end(), S{0});
  }
  void free() { CHECK(cuMemFree(device_)); }
  CUdeviceptr* address() { return &device_; }

 private:
  std::size_t bytes() const { return of_threads_.size() * sizeof(T); }
  CUdeviceptr device_ = 0;
  std::vector<T> of_threads_;
};

// Times kernels on the GPU between two events, which excludes the time of the call that waits for the kernel.
class Timed {
 public:
  Timed() {
    CHECK(cuEventCreate(&before_, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&after_, CU_EVENT_DEFAULT));
  }
  double microseconds(CUfunction kernel, const Grid& grid, void** parameters) {
    CHECK(cuEventRecord(before_, nullptr));
    CHECK(cuLaunchKernel(kernel, grid.blocks, 1, 1, grid.threads, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cuEventRecord(after_, nullptr));
    CHECK(cuCtxSynchronize());
    float milliseconds = 0;
    CHECK(cuEventElapsedTime(&milliseconds, before_, after_));
    return static_cast<double>(milliseconds) * 1000;
  }

 private:
  CUevent before_ = nullptr, after_ = nullptr;
};

// ---- memory of the host --------------------------------------------------------------------------------------------

struct Source {
  const char* name;
  void* host;
  CUdeviceptr device;
};

std::vector<Source> sources_of(CUdevice device, std::size_t bytes) {
  std::vector<Source> sources;
  void* pinned = nullptr;
  if (GIVEN(cuMemHostAlloc(&pinned, bytes, CU_MEMHOSTALLOC_DEVICEMAP), {"zero_copy_read"}, bytes))
    sources.push_back({"zero_copy_read", pinned, address_on_device(pinned)});
  void* const own = touched_memory(bytes);
  if (GIVEN(cuMemHostRegister(own, bytes, CU_MEMHOSTREGISTER_DEVICEMAP), {"registered_read"}, bytes))
    sources.push_back({"registered_read", own, address_on_device(own)});
  else
    unmap(own, bytes);
  CUdeviceptr managed = 0;
  if (has(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, "managed memory", {"managed_read"}, bytes) &&
      GIVEN(cuMemAllocManaged(&managed, bytes, CU_MEM_ATTACH_GLOBAL), {"managed_read"}, bytes))
    sources.push_back({"managed_read", reinterpret_cast<void*>(managed), managed});
  return sources;
}

void free_sources(const std::vector<Source>& sources, std::size_t bytes) {
  for (const Source& source : sources) {
    const std::string name = source.name;
    if (name == "zero_copy_read") CHECK(cuMemFreeHost(source.host));
    if (name == "managed_read") CHECK(cuMemFree(source.device));
    if (name != "registered_read") continue;
    CHECK(cuMemHostUnregister(source.host));
    unmap(source.host, bytes);
  }
}

// Writes distinct words and returns their sum.
std::uint32_t fill(const Source& source, std::size_t bytes) {
  std::uint32_t sum = 0;
  for (std::uint32_t k = 0; k < bytes / sizeof k; ++k) {
    const std::uint32_t word = k * 2654435761U + 1;
    std::memcpy(static_cast<char*>(source.host) + k * sizeof word, &word, sizeof word);
    sum += word;
  }
  return sum;
}

// ---- the texture ---------------------------------------------------------------------------------------------------

CUarray image_of(const std::vector<float>& texels, std::size_t edge) {
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR form{.Width = edge, .Height = edge, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  if (!GIVEN(cuArrayCreate(&array, &form), {"texture_kernel"})) return nullptr;
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = texels.data();
  copy.srcPitch = copy.WidthInBytes = edge * sizeof(float);
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.Height = edge;
  CHECK(cuMemcpy2D(&copy));
  return array;
}

// A texture that interpolates linearly and clamps at the edges. Returns 0 if the device has no textures.
CUtexObject texture_of(CUarray array) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC sampling{};
  sampling.filterMode = CU_TR_FILTER_MODE_LINEAR;
  for (CUaddress_mode& mode : sampling.addressMode) mode = CU_TR_ADDRESS_MODE_CLAMP;
  CUtexObject texture = 0;
  return GIVEN(cuTexObjectCreate(&texture, &resource, &sampling, nullptr), {"texture_kernel"}) ? texture : 0;
}

// The first row and column are 0 and the last ones are not, so that a wrong sample position changes the total sum.
std::vector<float> small_numbers(std::size_t edge) {
  std::vector<float> texels(edge * edge);
  for (std::size_t y = 0; y < edge; ++y)
    for (std::size_t x = 0; x < edge; ++x) texels[y * edge + x] = static_cast<float>(x * y % 8);
  return texels;
}

// Exact, as are the threads' sums: all numbers are small multiples of a half.
double sum_between(const std::vector<float>& texels, std::size_t edge) {
  double sum = 0;
  for (std::size_t k = 0; k < texels.size(); ++k) {
    const std::size_t right = k % edge == edge - 1 ? k : k + 1;
    sum += (static_cast<double>(texels[k]) + static_cast<double>(texels[right])) / 2;
  }
  return sum;
}

void time_texture(CUtexObject texture, const MemoryEffort& effort, double expected) {
  constexpr int warm_up = 2;
  Sums<float> sums(effort.grid);
  unsigned edge_bits = effort.edge_bits, passes = effort.passes;
  void* parameters[] = {&texture, &edge_bits, &passes, sums.address()};
  const CUfunction kernel = memory_kernel("sample_texture");
  Timed timed;
  Series series("texture_kernel", 0, warm_up);
  for (int i = 0; i < effort.textures + warm_up; ++i) series.took(timed.microseconds(kernel, effort.grid, parameters));
  if (sums.all<double>() != expected * passes) fail("texture_kernel", "it has sampled something else");
  series.report();
  sums.free();
}

}  // namespace

void reading_kernels(const Device& device, const MemoryEffort& effort) {
  constexpr int warm_up = 3;
  const std::vector<Source> sources = sources_of(device.device, effort.read);
  const CUfunction kernel = memory_kernel("read_words");
  std::uint32_t expected = 0;
  std::vector<Series> all_series;
  std::vector<Sums<std::uint32_t>> sums;
  for (const Source& source : sources) {
    expected = fill(source, effort.read);
    all_series.emplace_back(source.name, effort.read, warm_up);
    sums.emplace_back(effort.grid);
  }
  Timed timed;
  std::uint64_t vectors = effort.read / 16;
  for (int i = 0; i < effort.kernels + warm_up; ++i) {
    for (std::size_t k = 0; k < sources.size(); ++k) {
      CUdeviceptr from = sources[k].device;
      void* parameters[] = {&from, &vectors, sums[k].address()};
      all_series[k].took(timed.microseconds(kernel, effort.grid, parameters));
    }
  }
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (sums[k].all<std::uint32_t>() != expected) fail(sources[k].name, "the sum is wrong");
    all_series[k].report();
    sums[k].free();
  }
  free_sources(sources, effort.read);
}

void texture_kernel(const MemoryEffort& effort) {
  const std::size_t edge = std::size_t{1} << effort.edge_bits;
  const std::vector<float> texels = small_numbers(edge);
  const CUarray array = image_of(texels, edge);
  if (array == nullptr) return;
  if (const CUtexObject texture = texture_of(array); texture != 0) {
    time_texture(texture, effort, sum_between(texels, edge));
    CHECK(cuTexObjectDestroy(texture));
  }
  CHECK(cuArrayDestroy(array));
}

}  // namespace measure
