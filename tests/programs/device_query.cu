// All properties that a program can query of its device: cudaDeviceProp, the attributes, limits, names and versions.
//
// This program's output depends on the GPU. For one GPU, every backend must print the same output. The program does not
// print the attributes that the transport cannot preserve, nor the properties derived from them. It still reads them,
// since the two calls that read an attribute must agree.
#include <cstddef>
#include <type_traits>

#include "check.h"
#include "kept_attributes.h"

namespace {

struct Property {
  const char* name;
  size_t offset;
  size_t bytes;  // of one element: 4 or 8 bytes
  size_t count;
};

template <class T>
constexpr size_t element_size() {
  return sizeof(std::remove_all_extents_t<T>);
}

#define PROPERTY(member)                                                                           \
  {                                                                                                \
#member, offsetof(cudaDeviceProp, member), element_size < decltype(cudaDeviceProp::member)>(), \
        sizeof(cudaDeviceProp::member) / element_size < decltype(cudaDeviceProp::member)>()        \
  }

// All properties except texts, the LUID (undefined outside Windows), and the properties derived from the attributes
// above: managedMemory, pageableMemoryAccess, concurrentManagedAccess, pageableMemoryAccessUsesHostPageTables,
// directManagedMemAccessFromHost, hostRegisterSupported, hostRegisterReadOnlySupported, memoryPoolsSupported,
// gpuDirectRDMASupported, memoryPoolSupportedHandleTypes, ipcEventSupported, canUseHostPointerForRegisteredMem.
constexpr Property properties[] = {
    PROPERTY(totalGlobalMem),
    PROPERTY(sharedMemPerBlock),
    PROPERTY(regsPerBlock),
    PROPERTY(warpSize),
    PROPERTY(memPitch),
    PROPERTY(maxThreadsPerBlock),
    PROPERTY(maxThreadsDim),
    PROPERTY(maxGridSize),
    PROPERTY(totalConstMem),
    PROPERTY(major),
    PROPERTY(minor),
    PROPERTY(textureAlignment),
    PROPERTY(texturePitchAlignment),
    PROPERTY(multiProcessorCount),
    PROPERTY(integrated),
    PROPERTY(canMapHostMemory),
    PROPERTY(maxTexture1D),
    PROPERTY(maxTexture1DMipmap),
    PROPERTY(maxTexture2D),
    PROPERTY(maxTexture2DMipmap),
    PROPERTY(maxTexture2DLinear),
    PROPERTY(maxTexture2DGather),
    PROPERTY(maxTexture3D),
    PROPERTY(maxTexture3DAlt),
    PROPERTY(maxTextureCubemap),
    PROPERTY(maxTexture1DLayered),
    PROPERTY(maxTexture2DLayered),
    PROPERTY(maxTextureCubemapLayered),
    PROPERTY(maxSurface1D),
    PROPERTY(maxSurface2D),
    PROPERTY(maxSurface3D),
    PROPERTY(maxSurface1DLayered),
    PROPERTY(maxSurface2DLayered),
    PROPERTY(maxSurfaceCubemap),
    PROPERTY(maxSurfaceCubemapLayered),
    PROPERTY(surfaceAlignment),
    PROPERTY(concurrentKernels),
    PROPERTY(ECCEnabled),
    PROPERTY(pciBusID),
    PROPERTY(pciDeviceID),
    PROPERTY(pciDomainID),
    PROPERTY(tccDriver),
    PROPERTY(asyncEngineCount),
    PROPERTY(unifiedAddressing),
    PROPERTY(memoryBusWidth),
    PROPERTY(l2CacheSize),
    PROPERTY(persistingL2CacheMaxSize),
    PROPERTY(maxThreadsPerMultiProcessor),
    PROPERTY(streamPrioritiesSupported),
    PROPERTY(globalL1CacheSupported),
    PROPERTY(localL1CacheSupported),
    PROPERTY(sharedMemPerMultiprocessor),
    PROPERTY(regsPerMultiprocessor),
    PROPERTY(isMultiGpuBoard),
    PROPERTY(multiGpuBoardGroupID),
    PROPERTY(hostNativeAtomicSupported),
    PROPERTY(computePreemptionSupported),
    PROPERTY(cooperativeLaunch),
    PROPERTY(sharedMemPerBlockOptin),
    PROPERTY(maxBlocksPerMultiProcessor),
    PROPERTY(accessPolicyMaxWindowSize),
    PROPERTY(reservedSharedMemPerBlock),
    PROPERTY(sparseCudaArraySupported),
    PROPERTY(timelineSemaphoreInteropSupported),
    PROPERTY(gpuDirectRDMAFlushWritesOptions),
    PROPERTY(gpuDirectRDMAWritesOrdering),
    PROPERTY(deferredMappingCudaArraySupported),
    PROPERTY(clusterLaunch),
    PROPERTY(unifiedFunctionPointers),
    PROPERTY(deviceNumaConfig),
    PROPERTY(deviceNumaId),
    PROPERTY(mpsEnabled),
    PROPERTY(hostNumaId),
    PROPERTY(gpuPciDeviceID),
    PROPERTY(gpuPciSubsystemID),
    PROPERTY(hostNumaMultinodeIpcSupported),
};

void print_properties(const cudaDeviceProp& device) {
  std::printf("name: %s\nuuid: ", device.name);
  for (const char byte : device.uuid.bytes) std::printf("%02x", static_cast<unsigned char>(byte));
  std::printf("\n");
  for (const Property& property : properties) {
    std::printf("%s:", property.name);
    for (size_t i = 0; i < property.count; ++i) {
      const char* at = reinterpret_cast<const char*>(&device) + property.offset + i * property.bytes;
      long long wide = 0;
      int narrow = 0;
      std::memcpy(property.bytes == 8 ? static_cast<void*>(&wide) : &narrow, at, property.bytes);
      std::printf(" %lld", property.bytes == 8 ? wide : narrow);
    }
    std::printf("\n");
  }
}

bool is_kept_by_the_transport(int attribute) {
  for (const CUdevice_attribute kept : kept_by_the_transport) {
    if (attribute == kept) return true;
  }
  return false;
}

void print_attributes() {
  const auto get_attribute = DRIVER_ENTRY(cuDeviceGetAttribute);
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    int value = 0, again = 0;
    const CUresult result = get_attribute(&value, static_cast<CUdevice_attribute>(i), 0);
    if (result == CUDA_SUCCESS && cudaDeviceGetAttribute(&again, static_cast<cudaDeviceAttr>(i), 0) == cudaSuccess) {
      CHECK_THAT(value == again, "Attribute %d is %d by the driver's call and %d by the runtime's.", i, value, again);
    }
    (void)cudaGetLastError();
    if (is_kept_by_the_transport(i)) continue;
    if (result == CUDA_SUCCESS)
      std::printf("attribute %d: %d\n", i, value);
    else
      std::printf("attribute %d: %s\n", i, check::driver_error_name(result));
  }
}

void compare_with_attributes(const cudaDeviceProp& device) {
  const struct {
    cudaDeviceAttr attribute;
    long long value;
  } pairs[] = {
      {cudaDevAttrMultiProcessorCount, device.multiProcessorCount},
      {cudaDevAttrComputeCapabilityMajor, device.major},
      {cudaDevAttrComputeCapabilityMinor, device.minor},
      {cudaDevAttrWarpSize, device.warpSize},
      {cudaDevAttrMaxThreadsPerBlock, device.maxThreadsPerBlock},
      {cudaDevAttrMaxSharedMemoryPerBlock, static_cast<long long>(device.sharedMemPerBlock)},
      {cudaDevAttrL2CacheSize, device.l2CacheSize},
      {cudaDevAttrManagedMemory, device.managedMemory},
      {cudaDevAttrPageableMemoryAccess, device.pageableMemoryAccess},
      {cudaDevAttrConcurrentManagedAccess, device.concurrentManagedAccess},
      {cudaDevAttrHostRegisterSupported, device.hostRegisterSupported},
      {cudaDevAttrMemoryPoolsSupported, device.memoryPoolsSupported},
      {cudaDevAttrMemoryPoolSupportedHandleTypes, device.memoryPoolSupportedHandleTypes},
      {cudaDevAttrGPUDirectRDMASupported, device.gpuDirectRDMASupported},
      {cudaDevAttrIpcEventSupport, device.ipcEventSupported},
  };
  for (const auto& pair : pairs) {
    int value = 0;
    CHECK_CUDA(cudaDeviceGetAttribute(&value, pair.attribute, 0));
    CHECK_THAT(value == pair.value, "Attribute %d is %d, the property made from it %lld.",
               static_cast<int>(pair.attribute), value, pair.value);
  }
}

void print_versions_and_names() {
  int count = 0, driver = 0, runtime = 0, device = -1;
  CHECK_CUDA(cudaGetDeviceCount(&count));  // not printed: a session has only one of the machine's GPUs
  CHECK_CUDA(cudaDriverGetVersion(&driver));
  CHECK_CUDA(cudaRuntimeGetVersion(&runtime));
  CHECK_THAT(count >= 1, "There are %d devices.", count);
  std::printf("driver: %d\nruntime: %d\n", driver, runtime);
  char name[256] = "", bus[32] = "";
  CHECK_DRIVER(DRIVER_ENTRY(cuDeviceGetName)(name, sizeof(name), 0));
  CHECK_CUDA(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
  CHECK_CUDA(cudaDeviceGetByPCIBusId(&device, bus));
  CHECK_THAT(device == 0, "The device with the bus id %s is number %d.", bus, device);
  size_t bytes = 0;
  CHECK_DRIVER(DRIVER_ENTRY(cuDeviceTotalMem)(&bytes, 0));
  std::printf("driver's name: %s\nbus: %s\nmemory: %zu\n", name, bus, bytes);
}

void print_limits() {
  const struct {
    const char* name;
    cudaLimit limit;
  } limits[] = {{"stack", cudaLimitStackSize},
                {"printf", cudaLimitPrintfFifoSize},
                {"heap", cudaLimitMallocHeapSize},
                {"L2 fetch", cudaLimitMaxL2FetchGranularity}};
  for (const auto& limit : limits) {
    size_t value = 0;
    CHECK_CUDA(cudaDeviceGetLimit(&value, limit.limit));
    std::printf("limit, %s: %zu\n", limit.name, value);
  }
  int least = 0, greatest = 0;
  CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  std::printf("stream priorities: %d to %d\n", least, greatest);
  cudaFuncCache cache = cudaFuncCachePreferEqual;
  CHECK_CUDA(cudaDeviceGetCacheConfig(&cache));
  std::printf("cache: %d\n", static_cast<int>(cache));
}

void check_memory(const cudaDeviceProp& device) {
  size_t free_before = 0, free_after = 0, total = 0;
  constexpr size_t size = 16 << 20;
  CHECK_CUDA(cudaMemGetInfo(&free_before, &total));
  CHECK_THAT(free_before <= total && total <= device.totalGlobalMem && total > size, "%zu bytes of %zu are free.",
             free_before, total);
  void* buffer = nullptr;
  CHECK_CUDA(cudaMalloc(&buffer, size));
  CHECK_CUDA(cudaMemGetInfo(&free_after, &total));
  CHECK_THAT(free_after <= total, "%zu bytes of %zu are free.", free_after, total);
  CHECK_CUDA(cudaFree(buffer));
}

}  // namespace

int main(int argc, char** argv) {
  long device = 0;
  check::parse(argc, argv, "device_query", "prints what can be asked about a device",
               {{"--device", "the device", &device, 0, 0}});
  cudaDeviceProp found = {};
  CHECK_CUDA(cudaGetDeviceProperties(&found, 0));
  print_versions_and_names();
  print_properties(found);
  print_attributes();
  compare_with_attributes(found);
  CHECK_CUDA(cudaSetDevice(0));
  CHECK_CUDA(cudaFree(nullptr));
  print_limits();
  check_memory(found);
  return 0;
}
