#include "tests/fake/driver.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "ring/abi/image.h"
#include "ring/api/jit_options.h"
#include "ring/api/launch_attributes.h"
#include "ring/api/structs.h"
#include "ring/api/types.h"
#include "tests/fake/graph.h"

namespace fake {
namespace {

// ---- devices and contexts ------------------------------------------------------------------------------------------

void fill_devices(host::Driver& t) {
  t.cuInit = [](unsigned flags) { return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; };
  t.cuDriverGetVersion = [](int* version) { return *version = CUDA_VERSION, CUDA_SUCCESS; };
  t.cuDeviceGetCount = [](int* count) { return *count = 1, CUDA_SUCCESS; };
  t.cuDeviceGet = [](CUdevice* device, int ordinal) {
    if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
    return *device = 0, CUDA_SUCCESS;
  };
  t.cuDeviceGetName = [](char* name, int bytes, CUdevice device) {
    check_device_number("cuDeviceGetName", device);
    std::snprintf(name, static_cast<std::size_t>(bytes), "strict fake GPU");
    return CUDA_SUCCESS;
  };
  t.cuDeviceGetUuid = [](CUuuid* uuid, CUdevice) { return std::memset(uuid, 0x11, sizeof *uuid), CUDA_SUCCESS; };
  t.cuDeviceGetUuid_v2 = [](CUuuid* uuid, CUdevice) { return std::memset(uuid, 0x22, sizeof *uuid), CUDA_SUCCESS; };
  t.cuDeviceTotalMem_v2 = [](std::size_t* bytes, CUdevice) { return *bytes = device_memory, CUDA_SUCCESS; };
  t.cuDeviceGetPCIBusId = [](char* id, int bytes, CUdevice) {
    std::snprintf(id, static_cast<std::size_t>(bytes), "0000:01:00.0");
    return CUDA_SUCCESS;
  };
  t.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice device) {
    check_device_number("cuDeviceGetAttribute", device);
    switch (static_cast<int>(attribute)) {
      case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = max_threads_per_block; break;
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 1024; break;
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
      case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 0x7fffffff; break;
      case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
      case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
      case 0: return CUDA_ERROR_INVALID_VALUE;
      default: *value = 1; break;
    }
    return CUDA_SUCCESS;
  };
  t.cuCtxGetStreamPriorityRange = [](int* least, int* greatest) { return *least = 0, *greatest = -5, CUDA_SUCCESS; };
}

CUresult create_context(const char* name, CUcontext* context, unsigned flags, CUdevice device) {
  Entry entry(name, false, false);
  check_device_number(name, device);
  if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) die("%s: flags of %u", name, flags);
  if (entry.failed()) return entry.result;
  auto* created = new std::uint64_t[2]{};
  state->destroyed.push_back(created);  // freed at the end of the test
  state->contexts.insert(created);
  below = current, current = created;
  return *context = reinterpret_cast<CUcontext>(created), CUDA_SUCCESS;
}

CUresult with_context_and_event(const char* name, CUcontext context, CUevent event) {
  Entry entry(name);
  check_context(name, context);
  check(name, Handle::Event, event);
  return entry.result;
}

// A thread's stack has at most two contexts, so a caller that creates a context pops it.
void fill_created_contexts(host::Driver& t) {
  t.cuCtxCreate_v2 = [](CUcontext* context, unsigned flags, CUdevice device) {
    return create_context("cuCtxCreate_v2", context, flags, device);
  };
  t.cuCtxCreate_v3 = [](CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned flags, CUdevice device) {
    if (count != 1) die("cuCtxCreate_v3: %d affinities", count);
    touch(affinity, sizeof *affinity);
    return create_context("cuCtxCreate_v3", context, flags, device);
  };
  t.cuCtxPopCurrent_v2 = [](CUcontext* context) {
    if (below == nullptr && current == nullptr) die("cuCtxPopCurrent_v2: no context is current");
    *context = const_cast<CUcontext>(static_cast<const CUctx_st*>(current));
    return current = below, below = nullptr, CUDA_SUCCESS;
  };
  t.cuCtxDestroy_v2 = [](CUcontext context) {
    Entry entry("cuCtxDestroy_v2", false, false);
    if (!state->contexts.contains(context) || is_green(context))
      die("cuCtxDestroy_v2: context %p was never created", context);
    if (entry.failed()) return entry.result;
    end_what_lives_in("cuCtxDestroy_v2", context);
    state->contexts.erase(context);
    if (current == context) current = nullptr;
    return CUDA_SUCCESS;
  };
  t.cuCtxResetPersistingL2Cache = [] { return Entry("cuCtxResetPersistingL2Cache").result; };
  t.cuCtxGetExecAffinity = [](CUexecAffinityParam* affinity, CUexecAffinityType type) {
    const Entry entry("cuCtxGetExecAffinity");
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return affinity->type = type, affinity->param.smCount.val = 1, entry.result;
  };
  t.cuDeviceGetExecAffinitySupport = [](int* supported, CUexecAffinityType, CUdevice device) {
    check_device_number("cuDeviceGetExecAffinitySupport", device);
    return *supported = 0, CUDA_SUCCESS;
  };
  t.cuCtxRecordEvent = [](CUcontext c, CUevent e) { return with_context_and_event("cuCtxRecordEvent", c, e); };
  t.cuCtxWaitEvent = [](CUcontext c, CUevent e) { return with_context_and_event("cuCtxWaitEvent", c, e); };
  t.cuCtxGetSharedMemConfig = [](CUsharedconfig* config) {
    const Entry entry("cuCtxGetSharedMemConfig");
    return *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE, entry.result;
  };
  t.cuFlushGPUDirectRDMAWrites = [](CUflushGPUDirectRDMAWritesTarget, CUflushGPUDirectRDMAWritesScope) {
    return Entry("cuFlushGPUDirectRDMAWrites").result;
  };
  t.cuDeviceGetHostAtomicCapabilities = [](unsigned* able, const CUatomicOperation* operations, unsigned count,
                                           CUdevice device) {
    check_device_number("cuDeviceGetHostAtomicCapabilities", device);
    touch(operations, count * sizeof *operations);
    std::fill_n(able, count, 1U);
    return Entry("cuDeviceGetHostAtomicCapabilities").result;
  };
  t.cuCtxSetSharedMemConfig = [](CUsharedconfig) { return Entry("cuCtxSetSharedMemConfig").result; };
}

void fill_contexts(host::Driver& t) {
  t.cuDevicePrimaryCtxSetFlags_v2 = [](CUdevice device, unsigned flags) {
    Entry entry("cuDevicePrimaryCtxSetFlags_v2", false, false);
    check_device_number("cuDevicePrimaryCtxSetFlags_v2", device);
    if (flags != CU_CTX_SCHED_BLOCKING_SYNC) die("cuDevicePrimaryCtxSetFlags_v2: flags of %u", flags);
    return entry.result;
  };
  t.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    check_device_number("cuDevicePrimaryCtxRetain", device);
    return *context = reinterpret_cast<CUcontext>(&context_object), CUDA_SUCCESS;
  };
  t.cuCtxSetCurrent = [](CUcontext context) {
    const std::lock_guard lock(state->mutex);
    check_context("cuCtxSetCurrent", context);
    note_current(context);
    current = context;
    return CUDA_SUCCESS;
  };
  t.cuDevicePrimaryCtxReset_v2 = [](CUdevice device) {
    Entry entry("cuDevicePrimaryCtxReset_v2");
    check_device_number("cuDevicePrimaryCtxReset_v2", device);
    if (!state->greens.empty()) die("cuDevicePrimaryCtxReset_v2: green contexts are left");
    end_what_lives_in("cuDevicePrimaryCtxReset_v2", &context_object);
    for (const auto& [start, bytes] : state->pinned) end_range(reinterpret_cast<CUdeviceptr>(start), bytes);
    state->pinned.clear();
    state->sticky = CUDA_SUCCESS;
    return CUDA_SUCCESS;
  };
  fill_created_contexts(t);
  t.cuCtxSynchronize = [] {
    Entry::wait_for_work();
    return Entry("cuCtxSynchronize").result;
  };
  t.cuCtxSetLimit = [](CUlimit, std::size_t) { return Entry("cuCtxSetLimit").result; };
  t.cuCtxGetLimit = [](std::size_t* value, CUlimit limit) {
    if (static_cast<unsigned>(limit) > 4) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    return *value = 1024, CUDA_SUCCESS;
  };
  t.cuCtxGetCacheConfig = [](CUfunc_cache* config) { return *config = CU_FUNC_CACHE_PREFER_NONE, CUDA_SUCCESS; };
  t.cuCtxSetCacheConfig = [](CUfunc_cache) { return Entry("cuCtxSetCacheConfig").result; };
}

// ---- memory --------------------------------------------------------------------------------------------------------

// Checks the size first, since memmove() forbids null even for 0 bytes.
void move_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) std::memmove(to, from, bytes);
}

// A copy that adds a node to a capture. The addresses are checked first.
std::optional<CUresult> capture_copy(CUstream stream, bool per_thread, CUdeviceptr to, CUdeviceptr from,
                                     std::size_t bytes) {
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  work.copy.dstMemoryType = work.copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  work.copy.dstDevice = to, work.copy.srcDevice = from;
  work.copy.WidthInBytes = bytes, work.copy.Height = work.copy.Depth = 1;
  return capture_work(stream, per_thread, work);
}

template <bool per_thread>
CUresult to_device(const char* name, CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  ENTER(name);
  check_stream(name, stream);
  check_device(name, to, bytes);
  if (const auto captured = capture_copy(stream, per_thread, to, reinterpret_cast<CUdeviceptr>(from), bytes))
    return *captured;
  move_bytes(reinterpret_cast<void*>(to), from, bytes);  // both sides may be pinned memory
  return CUDA_SUCCESS;
}

template <bool per_thread>
CUresult from_device(const char* name, void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  ENTER(name);
  check_stream(name, stream);
  check_device(name, from, bytes);
  if (const auto captured = capture_copy(stream, per_thread, reinterpret_cast<CUdeviceptr>(to), from, bytes))
    return *captured;
  move_bytes(to, reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}

template <bool per_thread>
CUresult on_device(const char* name, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  ENTER(name);
  check_stream(name, stream);
  check_device(name, to, bytes);
  check_device(name, from, bytes);
  if (const auto captured = capture_copy(stream, per_thread, to, from, bytes)) return *captured;
  move_bytes(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}

template <bool per_thread, class T>
CUresult fill(const char* name, CUdeviceptr at, T value, std::size_t count, CUstream stream) {
  ENTER(name);
  check_stream(name, stream);
  if (at % sizeof(T) != 0) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEMSET;
  work.fill = {.dst = at,
               .pitch = 0,
               .value = static_cast<unsigned>(value),
               .elementSize = sizeof(T),
               .width = count,
               .height = 1};
  // A captured fill may have any address (see the golden lines of the group captured_fills_of_nothing).
  if (const auto captured = capture_work(stream, per_thread, work)) return *captured;
  check_device(name, at, count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) reinterpret_cast<T*>(at)[i] = value;
  return CUDA_SUCCESS;
}

template <class T>
CUresult fill_rows(const char* name, CUdeviceptr at, std::size_t pitch, T value, std::size_t width, std::size_t height,
                   CUstream stream) {
  for (std::size_t y = 0; y < height; ++y)
    if (const CUresult r = fill<false>(name, at + y * pitch, value, width, stream); r != CUDA_SUCCESS) return r;
  return CUDA_SUCCESS;
}

// One side of a copy of rows. Arrays have no content in this driver.
struct CopySide {
  CUmemorytype type;
  CUarray array;
  const void* host;
  CUdeviceptr device;
  std::size_t pitch, rows;

  CUdeviceptr start() const { return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device; }
  CUdeviceptr row(std::size_t y, std::size_t z) const { return start() + (z * rows + y) * pitch; }
};
CopySide to_of(const CUDA_MEMCPY3D& c) {
  return {c.dstMemoryType, c.dstArray, c.dstHost, c.dstDevice, c.dstPitch, c.dstHeight};
}
CopySide from_of(const CUDA_MEMCPY3D& c) {
  return {c.srcMemoryType, c.srcArray, c.srcHost, c.srcDevice, c.srcPitch, c.srcHeight};
}

// Returns whether the driver copies a row. Host memory must be registered, and device memory must be known. With
// UNIFIED a driver treats an unknown address as the caller's own memory, so a worker must never use UNIFIED.
bool copies_row(const char* name, CUmemorytype type, CUdeviceptr at, std::size_t bytes) {
  if (type == CU_MEMORYTYPE_HOST && !is_pinned(at, bytes)) {
    forgive_ended_range(at, bytes);
    die("%s: %zu bytes at %llx are not registered", name, bytes, at);
  }
  if (type == CU_MEMORYTYPE_UNIFIED && !state->freed_ranges_stay) die("%s: the driver has to guess", name);
  if (!state->freed_ranges_stay || is_live(at, bytes)) return check_device(name, at, bytes), true;
  return type == CU_MEMORYTYPE_UNIFIED;
}

bool copies_side(const char* name, const CopySide& side, const CUDA_MEMCPY3D& c) {
  if (side.type == CU_MEMORYTYPE_ARRAY) return check(name, Handle::Array, side.array), true;
  for (std::size_t z = 0; z < c.Depth; ++z)
    for (std::size_t y = 0; y < c.Height; ++y)
      if (!copies_row(name, side.type, side.row(y, z), c.WidthInBytes)) return false;
  return true;
}

}  // namespace

CUresult judge_copy(const char* name, const CUDA_MEMCPY3D& c) {
  const CopySide to = to_of(c), from = from_of(c);
  const bool texels = to.type == CU_MEMORYTYPE_ARRAY || from.type == CU_MEMORYTYPE_ARRAY;
  if (texels && (c.WidthInBytes > 4096 || c.Height > 4096 || c.Depth > 4096)) return CUDA_ERROR_INVALID_VALUE;
  if (!texels && c.srcXInBytes != 0) die("%s: an offset that the host never sends", name);
  return copies_side(name, to, c) && copies_side(name, from, c) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

namespace {

CUresult copy_rows(const char* name, const CUDA_MEMCPY3D* c, CUstream stream) {
  Entry entry(name);
  if (entry.failed()) return entry.result;
  check_stream(name, stream);
  touch(c, sizeof *c);
  if (const CUresult judged = judge_copy(name, *c); judged != CUDA_SUCCESS) return judged;
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  work.copy = *c;
  if (const auto captured = capture_work(stream, false, work)) return *captured;
  const CopySide to = to_of(*c), from = from_of(*c);
  const bool texels = to.type == CU_MEMORYTYPE_ARRAY || from.type == CU_MEMORYTYPE_ARRAY;
  for (std::size_t z = 0; !texels && z < c->Depth; ++z)
    for (std::size_t y = 0; y < c->Height; ++y)
      move_bytes(reinterpret_cast<void*>(to.row(y, z)), reinterpret_cast<const void*>(from.row(y, z)), c->WidthInBytes);
  return CUDA_SUCCESS;
}

void fill_memory(host::Driver& t) {
  t.cuPointerSetAttribute = [](const void* value, CUpointer_attribute attribute, CUdeviceptr at) {
    Entry entry("cuPointerSetAttribute", false, false);
    if (entry.failed()) return entry.result;
    if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) die("cuPointerSetAttribute: attribute %d", attribute);
    touch(value, sizeof(unsigned));
    check_device("cuPointerSetAttribute", at, 1);
    return CUDA_SUCCESS;
  };
  t.cuMemGetInfo_v2 = [](std::size_t* free, std::size_t* total) {
    Entry entry("cuMemGetInfo_v2");
    if (free != nullptr) *free = device_memory - state->allocated;
    if (total != nullptr) *total = device_memory;
    return entry.result;
  };
  t.cuMemAlloc_v2 = [](CUdeviceptr* address, std::size_t bytes) {
    Entry entry("cuMemAlloc_v2");
    return entry.failed() ? entry.result : allocate(address, bytes);
  };
  t.cuMemAllocPitch_v2 = [](CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height,
                            unsigned element) {
    Entry entry("cuMemAllocPitch_v2");
    if (entry.failed()) return entry.result;
    if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
    if (width == 0 || height == 0 || width > device_memory || height > device_memory / width)
      return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width + 255) / 256 * 256;
    return allocate(address, *pitch * height);
  };
  t.cuMemFree_v2 = [](CUdeviceptr address) {
    Entry entry("cuMemFree_v2");
    if (entry.failed()) return entry.result;
    if (address == 0) return CUDA_SUCCESS;
    give_back("cuMemFree", address);
    return CUDA_SUCCESS;
  };
  t.cuMemHostRegister_v2 = [](void* at, std::size_t bytes, unsigned) {
    Entry entry("cuMemHostRegister_v2");
    if (entry.failed()) return entry.result;
    if (at == nullptr || bytes == 0) die("cuMemHostRegister: %zu bytes at %p", bytes, at);
    for (std::size_t i = 0; i < bytes; i += 4096) touch(static_cast<std::byte*>(at) + i, 1);
    if (!state->pinned.emplace(static_cast<std::byte*>(at), bytes).second)
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return CUDA_SUCCESS;
  };
  t.cuMemHostUnregister = [](void* at) {
    Entry entry("cuMemHostUnregister");
    if (entry.failed()) return entry.result;
    if (state->pinned.erase(static_cast<std::byte*>(at)) == 0) die("cuMemHostUnregister: %p is not registered", at);
    return CUDA_SUCCESS;
  };
}

template <bool per_thread>
CUresult between_contexts(const char* name, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                          CUcontext from_context, std::size_t bytes, CUstream stream) {
  check_context(name, to_context);
  check_context(name, from_context);
  return on_device<per_thread>(name, to, from, bytes, stream);
}

void fill_peer_copies(host::Driver& t) {
  t.cuMemcpyPeer = [](CUdeviceptr to, CUcontext a, CUdeviceptr from, CUcontext b, std::size_t n) {
    return between_contexts<false>("cuMemcpyPeer", to, a, from, b, n, nullptr);
  };
  t.cuMemcpyPeer_ptds = [](CUdeviceptr to, CUcontext a, CUdeviceptr from, CUcontext b, std::size_t n) {
    return between_contexts<true>("cuMemcpyPeer", to, a, from, b, n, nullptr);
  };
  t.cuMemcpyPeerAsync = [](CUdeviceptr to, CUcontext a, CUdeviceptr from, CUcontext b, std::size_t n, CUstream s) {
    return between_contexts<false>("cuMemcpyPeerAsync", to, a, from, b, n, s);
  };
  t.cuMemcpyPeerAsync_ptsz = [](CUdeviceptr to, CUcontext a, CUdeviceptr from, CUcontext b, std::size_t n, CUstream s) {
    return between_contexts<true>("cuMemcpyPeerAsync", to, a, from, b, n, s);
  };
}

// ---- tensor maps ---------------------------------------------------------------------------------------------------

// Writes every byte of the map, so that a buffer which is too small or misaligned is detected.
CUresult make_map(const char* name, CUtensorMap* map, void* address) {
  Entry entry(name);
  if (entry.failed()) return entry.result;
  if (reinterpret_cast<std::uintptr_t>(map) % 64 != 0) die("%s: a map that is not aligned", name);
  check_device(name, reinterpret_cast<CUdeviceptr>(address), 1);
  std::memset(map, 0x5a, sizeof *map);
  return entry.result;
}

// Reads the arrays up to the tensor's rank.
void touch_tensor(cuuint32_t rank, const cuuint64_t* dimensions, const cuuint64_t* strides, const cuuint32_t* steps) {
  if (rank < 1 || rank > 5) die("a tensor of rank %u", rank);
  touch(dimensions, rank * sizeof *dimensions);
  touch(strides, (rank - 1) * sizeof *strides);
  touch(steps, rank * sizeof *steps);
}

void fill_tensor_maps(host::Driver& t) {
  t.cuTensorMapEncodeTiled = [](CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* address,
                                const cuuint64_t* dimensions, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave, CUtensorMapSwizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
    touch_tensor(rank, dimensions, strides, steps);
    touch(box, rank * sizeof *box);
    return make_map("cuTensorMapEncodeTiled", map, address);
  };
  t.cuTensorMapEncodeIm2col =
      [](CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* address, const cuuint64_t* dimensions,
         const cuuint64_t* strides, const int* lower, const int* upper, cuuint32_t, cuuint32_t, const cuuint32_t* steps,
         CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
        touch_tensor(rank, dimensions, strides, steps);
        if (rank > 2) touch(lower, (rank - 2) * sizeof *lower), touch(upper, (rank - 2) * sizeof *upper);
        return make_map("cuTensorMapEncodeIm2col", map, address);
      };
  t.cuTensorMapEncodeIm2colWide =
      [](CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* address, const cuuint64_t* dimensions,
         const cuuint64_t* strides, int, int, cuuint32_t, cuuint32_t, const cuuint32_t* steps, CUtensorMapInterleave,
         CUtensorMapIm2ColWideMode, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
        touch_tensor(rank, dimensions, strides, steps);
        return make_map("cuTensorMapEncodeIm2colWide", map, address);
      };
  t.cuTensorMapReplaceAddress = [](CUtensorMap* map, void* address) {
    touch(map, sizeof *map);
    return make_map("cuTensorMapReplaceAddress", map, address);
  };
}

void fill_copies(host::Driver& t) {
  t.cuMemcpyHtoD_v2 = [](CUdeviceptr to, const void* from, std::size_t n) {
    return to_device<false>("cuMemcpyHtoD_v2", to, from, n, nullptr);
  };
  t.cuMemcpyHtoD_v2_ptds = [](CUdeviceptr to, const void* from, std::size_t n) {
    return to_device<true>("cuMemcpyHtoD_v2", to, from, n, nullptr);
  };
  t.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr to, const void* from, std::size_t n, CUstream s) {
    return to_device<false>("cuMemcpyHtoDAsync_v2", to, from, n, s);
  };
  t.cuMemcpyHtoDAsync_v2_ptsz = [](CUdeviceptr to, const void* from, std::size_t n, CUstream s) {
    return to_device<true>("cuMemcpyHtoDAsync_v2", to, from, n, s);
  };
  t.cuMemcpyDtoH_v2 = [](void* to, CUdeviceptr from, std::size_t n) {
    return from_device<false>("cuMemcpyDtoH_v2", to, from, n, nullptr);
  };
  t.cuMemcpyDtoH_v2_ptds = [](void* to, CUdeviceptr from, std::size_t n) {
    return from_device<true>("cuMemcpyDtoH_v2", to, from, n, nullptr);
  };
  t.cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr from, std::size_t n, CUstream s) {
    return from_device<false>("cuMemcpyDtoHAsync_v2", to, from, n, s);
  };
  t.cuMemcpyDtoHAsync_v2_ptsz = [](void* to, CUdeviceptr from, std::size_t n, CUstream s) {
    return from_device<true>("cuMemcpyDtoHAsync_v2", to, from, n, s);
  };
  t.cuMemcpyDtoD_v2 = [](CUdeviceptr to, CUdeviceptr from, std::size_t n) {
    return on_device<false>("cuMemcpyDtoD_v2", to, from, n, nullptr);
  };
  t.cuMemcpyDtoD_v2_ptds = [](CUdeviceptr to, CUdeviceptr from, std::size_t n) {
    return on_device<true>("cuMemcpyDtoD_v2", to, from, n, nullptr);
  };
  t.cuMemcpyDtoDAsync_v2 = [](CUdeviceptr to, CUdeviceptr from, std::size_t n, CUstream s) {
    return on_device<false>("cuMemcpyDtoDAsync_v2", to, from, n, s);
  };
  t.cuMemcpyDtoDAsync_v2_ptsz = [](CUdeviceptr to, CUdeviceptr from, std::size_t n, CUstream s) {
    return on_device<true>("cuMemcpyDtoDAsync_v2", to, from, n, s);
  };
}

Work batch_node() {
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  return work;
}

template <class Word>
CUresult wait_for_word(const char* name, CUstream stream, CUdeviceptr at) {
  Entry entry(name);
  if (entry.failed()) return entry.result;
  check_stream(name, stream);
  check_device(name, at, sizeof(Word));
  if (const auto captured = capture_work(stream, false, batch_node())) return *captured;
  if (Entry::are_values_missing()) state->standing.insert(stream);
  return CUDA_SUCCESS;
}

// Checks an operation of a batch: its word must belong to the session, and unused bytes must be 0.
void check_operation(const char* name, const CUstreamBatchMemOpParams& op) {
  struct {
    const char* name;
    void word(CUdeviceptr& at, std::size_t bytes) {
      if (at % bytes != 0) die("%s: a word at %llx", name, at);
      check_device(name, at, bytes);
    }
    void unknown() { die("%s: an operation of no kind", name); }
  } visitor{name};
  CUstreamBatchMemOpParams used = op;
  api::visit(used, visitor);
  if (std::memcmp(&used, &op, sizeof op) != 0) die("%s: bytes that no operation has", name);
}

CUresult batch_of_words(const char* name, CUstream stream, unsigned count, const CUstreamBatchMemOpParams* ops,
                        unsigned flags) {
  Entry entry(name);
  if (entry.failed()) return entry.result;
  check_stream(name, stream);
  touch(ops, count * sizeof *ops);
  if (count > 255 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) check_operation(name, ops[i]);
  return capture_work(stream, false, batch_node()).value_or(CUDA_SUCCESS);
}

void fill_words(host::Driver& t) {
  t.cuStreamBatchMemOp_v2 = [](CUstream s, unsigned count, CUstreamBatchMemOpParams* ops, unsigned flags) {
    return batch_of_words("cuStreamBatchMemOp_v2", s, count, ops, flags);
  };
  t.cuStreamWriteValue32_v2 = [](CUstream s, CUdeviceptr at, cuuint32_t value, unsigned) {
    return fill<false>("cuStreamWriteValue32_v2", at, value, 1, s);
  };
  t.cuStreamWriteValue64_v2 = [](CUstream s, CUdeviceptr at, cuuint64_t value, unsigned) {
    return fill<false>("cuStreamWriteValue64_v2", at, value, 1, s);
  };
  t.cuStreamWaitValue32_v2 = [](CUstream s, CUdeviceptr at, cuuint32_t, unsigned) {
    return wait_for_word<cuuint32_t>("cuStreamWaitValue32_v2", s, at);
  };
  t.cuStreamWaitValue64_v2 = [](CUstream s, CUdeviceptr at, cuuint64_t, unsigned) {
    return wait_for_word<cuuint64_t>("cuStreamWaitValue64_v2", s, at);
  };
}

void fill_copies_of_rows(host::Driver& t) {
  t.cuMemcpy3D_v2 = [](const CUDA_MEMCPY3D* c) { return copy_rows("cuMemcpy3D_v2", c, nullptr); };
  t.cuMemcpy3DAsync_v2 = [](const CUDA_MEMCPY3D* c, CUstream s) { return copy_rows("cuMemcpy3DAsync_v2", c, s); };
}

void fill_fills(host::Driver& t) {
  t.cuMemsetD8_v2 = [](CUdeviceptr at, unsigned char v, std::size_t n) {
    return fill<false>("cuMemsetD8_v2", at, v, n, nullptr);
  };
  t.cuMemsetD16_v2 = [](CUdeviceptr at, unsigned short v, std::size_t n) {
    return fill<false>("cuMemsetD16_v2", at, v, n, nullptr);
  };
  t.cuMemsetD32_v2 = [](CUdeviceptr at, unsigned v, std::size_t n) {
    return fill<false>("cuMemsetD32_v2", at, v, n, nullptr);
  };
  t.cuMemsetD2D8_v2 = [](CUdeviceptr at, std::size_t pitch, unsigned char v, std::size_t w, std::size_t h) {
    return fill_rows("cuMemsetD2D8_v2", at, pitch, v, w, h, nullptr);
  };
  t.cuMemsetD2D32Async = [](CUdeviceptr at, std::size_t pitch, unsigned v, std::size_t w, std::size_t h, CUstream s) {
    return fill_rows("cuMemsetD2D32Async", at, pitch, v, w, h, s);
  };
  t.cuMemsetD8Async = [](CUdeviceptr at, unsigned char v, std::size_t n, CUstream s) {
    Entry::wait_at_gate();
    return fill<false>("cuMemsetD8Async", at, v, n, s);
  };
  t.cuMemsetD16Async = [](CUdeviceptr at, unsigned short v, std::size_t n, CUstream s) {
    return fill<false>("cuMemsetD16Async", at, v, n, s);
  };
  t.cuMemsetD32Async = [](CUdeviceptr at, unsigned v, std::size_t n, CUstream s) {
    return fill<false>("cuMemsetD32Async", at, v, n, s);
  };
  t.cuMemsetD32Async_ptsz = [](CUdeviceptr at, unsigned v, std::size_t n, CUstream s) {
    return fill<true>("cuMemsetD32Async", at, v, n, s);
  };
}

// ---- streams and events --------------------------------------------------------------------------------------------

template <bool per_thread>
CUresult record(const char* name, CUevent event, CUstream stream) {
  ENTER(name);
  check(name, Handle::Event, event);
  check_stream(name, stream);
  if (const auto captured = capture_record(event, stream, per_thread)) return *captured;
  ++state->recorded[event];
  state->not_passed.erase(event), state->beside_work.erase(event);
  if (state->standing.contains(stream)) state->not_passed.insert(event);
  if (Entry::is_working()) state->beside_work.insert(event);
  return CUDA_SUCCESS;
}

template <bool per_thread>
CUresult query_stream(CUstream stream) {
  ENTER("cuStreamQuery");
  check_stream("cuStreamQuery", stream);
  if (const auto refused = refuse_captured(stream, per_thread)) return *refused;
  return Entry::is_working() || state->standing.contains(stream) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

template <bool per_thread>
CUresult synchronize(CUstream stream) {
  ENTER("cuStreamSynchronize");
  check_stream("cuStreamSynchronize", stream);
  return refuse_captured(stream, per_thread).value_or(CUDA_SUCCESS);
}

// Calls the function on another thread, as NVIDIA's driver does. Streams have no queued work in this driver, so the
// function runs at once.
template <bool per_thread>
CUresult launch_host_function(CUstream stream, CUhostFn function, void* data) {
  ENTER("cuLaunchHostFunc");
  check_stream("cuLaunchHostFunc", stream);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_HOST;
  work.function = {.fn = function, .userData = data};
  if (const auto captured = capture_work(stream, per_thread, work)) return *captured;
  entry.lock.unlock();
  std::thread(function, data).join();
  return CUDA_SUCCESS;
}
template <bool per_thread>
CUresult add_callback(CUstream stream, CUstreamCallback function, void* data, unsigned flags) {
  ENTER("cuStreamAddCallback");
  check_stream("cuStreamAddCallback", stream);
  if (const auto refused = refuse_captured(stream, per_thread)) return *refused;
  if (function == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  entry.lock.unlock();
  std::thread(function, stream, CUDA_SUCCESS, data).join();
  return CUDA_SUCCESS;
}

template <bool per_thread>
CUresult wait_event(CUstream stream, CUevent event, unsigned flags) {
  ENTER("cuStreamWaitEvent");
  check_stream("cuStreamWaitEvent", stream);
  check("cuStreamWaitEvent", Handle::Event, event);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return capture_wait(stream, per_thread, event).value_or(CUDA_SUCCESS);
}

CUresult wait_for_event(CUevent event) {
  Entry entry("cuEventSynchronize");
  if (entry.failed()) return entry.result;
  check("cuEventSynchronize", Handle::Event, event);
  return refuse_captured(event).value_or(CUDA_SUCCESS);
}

CUresult query_event(CUevent event) {
  Entry entry("cuEventQuery");
  if (entry.failed()) return entry.result;
  check("cuEventQuery", Handle::Event, event);
  if (const auto refused = refuse_captured(event)) return *refused;
  const bool beside_work = Entry::is_working() && state->beside_work.contains(event);
  return beside_work || state->not_passed.contains(event) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult elapsed(const char* name, float* milliseconds, CUevent a, CUevent b) {
  Entry entry(name);
  if (entry.failed()) return entry.result;
  check(name, Handle::Event, a);
  check(name, Handle::Event, b);
  for (const CUevent event : {a, b})
    if (graphs().events.contains(event)) return CUDA_ERROR_INVALID_VALUE;
  if (state->recorded[a] == 0 || state->recorded[b] == 0) return CUDA_ERROR_INVALID_HANDLE;
  return *milliseconds = 1.5F, CUDA_SUCCESS;
}

// Checks both streams of a copy of attributes.
template <bool per_thread>
CUresult copy_attributes(CUstream to, CUstream from) {
  ENTER("cuStreamCopyAttributes");
  check_stream("cuStreamCopyAttributes", to);
  check_stream("cuStreamCopyAttributes", from);
  return CUDA_SUCCESS;
}

template <bool per_thread>
CUresult set_stream_attribute(CUstream stream, CUstreamAttrID tag, const CUstreamAttrValue* value) {
  ENTER("cuStreamSetAttribute");
  check_stream("cuStreamSetAttribute", stream);
  touch(value, sizeof *value);
  CUlaunchAttribute attribute{};
  attribute.id = tag;
  attribute.value = *value;
  demand_described("cuStreamSetAttribute", attribute);
  return CUDA_SUCCESS;
}

template <bool per_thread>
CUresult get_stream_attribute(CUstream stream, CUstreamAttrID, CUstreamAttrValue* value) {
  ENTER("cuStreamGetAttribute");
  check_stream("cuStreamGetAttribute", stream);
  std::memset(value, 1, sizeof *value);
  return CUDA_SUCCESS;
}

CUresult create_stream(const char* name, CUstream* stream, unsigned flags) {
  Entry entry(name);
  if (entry.failed()) return entry.result;
  *stream = issue<CUstream>(Handle::Stream);
  if ((flags & CU_STREAM_NON_BLOCKING) != 0) graphs().non_blocking.insert(*stream);
  return CUDA_SUCCESS;
}
CUresult destroy_stream(CUstream stream) {
  Entry entry("cuStreamDestroy_v2");
  if (entry.failed()) return entry.result;
  check("cuStreamDestroy_v2", Handle::Stream, stream);
  end_captured("cuStreamDestroy_v2", stream);
  destroy("cuStreamDestroy_v2", Handle::Stream, stream);
  return CUDA_SUCCESS;
}

void fill_streams(host::Driver& t) {
  t.cuStreamCopyAttributes = copy_attributes<false>;
  t.cuStreamCopyAttributes_ptsz = copy_attributes<true>;
  t.cuStreamSetAttribute = set_stream_attribute<false>;
  t.cuStreamSetAttribute_ptsz = set_stream_attribute<true>;
  t.cuStreamGetAttribute = get_stream_attribute<false>;
  t.cuStreamGetAttribute_ptsz = get_stream_attribute<true>;
  t.cuStreamCreate = [](CUstream* s, unsigned flags) { return create_stream("cuStreamCreate", s, flags); };
  t.cuStreamCreateWithPriority = [](CUstream* s, unsigned flags, int) {
    return create_stream("cuStreamCreateWithPriority", s, flags);
  };
  t.cuStreamDestroy_v2 = destroy_stream;
  t.cuStreamWaitEvent = wait_event<false>;
  t.cuStreamWaitEvent_ptsz = wait_event<true>;
  t.cuStreamQuery = [](CUstream s) { return query_stream<false>(s); };
  t.cuStreamQuery_ptsz = [](CUstream s) { return query_stream<true>(s); };
  t.cuStreamSynchronize = synchronize<false>;
  t.cuStreamSynchronize_ptsz = synchronize<true>;
  t.cuLaunchHostFunc = launch_host_function<false>;
  t.cuLaunchHostFunc_ptsz = launch_host_function<true>;
  t.cuStreamAddCallback = add_callback<false>;
  t.cuStreamAddCallback_ptsz = add_callback<true>;
  t.cuEventCreate = [](CUevent* e, unsigned) { return create("cuEventCreate", e, Handle::Event); };
  t.cuEventDestroy_v2 = [](CUevent e) { return close("cuEventDestroy_v2", Handle::Event, e); };
  t.cuEventRecord = [](CUevent e, CUstream s) {
    Entry::wait_at_gate();
    return record<false>("cuEventRecord", e, s);
  };
  t.cuEventRecord_ptsz = [](CUevent e, CUstream s) { return record<true>("cuEventRecord", e, s); };
  t.cuEventRecordWithFlags = [](CUevent e, CUstream s, unsigned) {
    return record<false>("cuEventRecordWithFlags", e, s);
  };
  t.cuEventQuery = [](CUevent e) { return query_event(e); };
  t.cuEventSynchronize = [](CUevent e) { return wait_for_event(e); };
  t.cuEventElapsedTime = [](float* ms, CUevent a, CUevent b) { return elapsed("cuEventElapsedTime", ms, a, b); };
  t.cuEventElapsedTime_v2 = [](float* ms, CUevent a, CUevent b) { return elapsed("cuEventElapsedTime_v2", ms, a, b); };
}

// ---- modules and launches ------------------------------------------------------------------------------------------

}  // namespace

// The value of an option; 0 if the option is absent.
std::uint64_t option(CUjit_option name, unsigned count, const CUjit_option* names, void** values) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < count; ++i)
    if (names[i] == name) value = reinterpret_cast<std::uint64_t>(values[i]);
  return value;
}

void write_log(CUjit_option buffer, CUjit_option size, unsigned count, const CUjit_option* names, void** values) {
  const std::uint64_t room = option(size, count, names, values);
  auto* to = reinterpret_cast<char*>(option(buffer, count, names, values));
  if (to == nullptr || room == 0) return;
  std::memset(to, 'x', room);
  to[room - 1] = '\0';
  std::snprintf(to, room, "a log of the fake driver");
}

namespace {

// Reads as many bytes as the image's headers claim, like a driver, which gets no length.
CUresult read_image(const char* call, const void* image) {
  if (cuabi::image_kind(image) != cuabi::ImageKind::Wrapper) {
    touch(image, cuabi::image_size(image));
    return std::strncmp(static_cast<const char*>(image), ".version", 8) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
  }
  cuabi::ImageWrapper wrapper;
  std::memcpy(&wrapper, image, sizeof wrapper);
  if (wrapper.data == nullptr) die("%s: a wrapper of nothing", call);
  for (const void* const* more = wrapper.more; wrapper.version == 2 && *more != nullptr; ++more)
    if (cuabi::image_kind(*more) == cuabi::ImageKind::Wrapper || read_image(call, *more) != CUDA_SUCCESS)
      return CUDA_ERROR_INVALID_IMAGE;
  return cuabi::image_kind(wrapper.data) == cuabi::ImageKind::Wrapper ? CUDA_ERROR_INVALID_IMAGE
                                                                      : read_image(call, wrapper.data);
}

CUresult check_image(const char* call, const void* image, unsigned count, CUjit_option* names, void** values) {
  if (image == nullptr) die("%s: no image", call);
  for (unsigned i = 0; i < count; ++i)
    if (!api::crosses_boundary(names[i])) die("%s: JIT option %d", call, static_cast<int>(names[i]));
  write_log(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, count, names, values);
  write_log(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, count, names, values);
  return read_image(call, image);
}

template <class T>
CUresult load(const char* call, T* made, Handle kind, const void* image, unsigned count, CUjit_option* names,
              void** values) {
  Entry entry(call, false, kind == Handle::Module);
  if (entry.failed()) return entry.result;
  const CUresult result = check_image(call, image, count, names, values);
  if (result == CUDA_SUCCESS) *made = issue<T>(kind);
  return result;
}

template <class T>
CUresult unload(const char* call, Handle kind, T handle) {
  Entry entry(call, false, kind == Handle::Module);
  if (entry.failed()) return entry.result;
  destroy(call, kind, handle);
  return CUDA_SUCCESS;
}

// The kernels of each module and library, in the order in which lists return them.
constexpr const char* kernels_there[] = {"fill", "fault", "nothing"};

template <class T, class Owner>
CUresult look_up(const char* call, T* made, Handle made_kind, Owner owner, Handle owner_kind, const char* name) {
  Entry entry(call, false, owner_kind == Handle::Module);
  if (entry.failed()) return entry.result;
  check(call, owner_kind, owner);
  touch(name, std::strlen(name));
  std::string wanted = name;
  if (wanted.starts_with("fill")) wanted = "fill";
  if (std::find(std::begin(kernels_there), std::end(kernels_there), wanted) == std::end(kernels_there))
    return CUDA_ERROR_NOT_FOUND;
  *made = issue_once<T>(made_kind, owner, wanted);
  state->kernels[*made] = wanted;
  return CUDA_SUCCESS;
}

template <class T, class Owner>
CUresult list_all(const char* call, T* list, Handle kind, unsigned room, Owner owner, Handle owner_kind) {
  Entry entry(call, false, owner_kind == Handle::Module);
  if (entry.failed()) return entry.result;
  check(call, owner_kind, owner);
  if (room > std::size(kernels_there)) die("%s: a list of %u", call, room);
  for (unsigned i = 0; i < room; ++i) {
    touch(list + i, sizeof list[i]);
    list[i] = issue_once<T>(kind, owner, kernels_there[i]);
    state->kernels[list[i]] = kernels_there[i];
  }
  return CUDA_SUCCESS;
}

template <class T>
CUresult name_of(const char* call, Handle kind, const char** name, T handle) {
  Entry entry(call);
  if (entry.failed()) return entry.result;
  check(call, kind, handle);
  return *name = state->kernels[handle].c_str(), CUDA_SUCCESS;
}

// A library's managed variable also belongs to the library's module. For any other global, a library has one instance
// per context.
Global* global_of(const void* owner, const char* name, bool only_managed) {
  const bool managed = std::strcmp(name, "shared") == 0;
  if (!managed && (only_managed || std::strcmp(name, "counter") != 0)) return nullptr;
  if (const auto library = state->owners.find(owner); managed && library != state->owners.end())
    owner = library->second;
  Global& global = state->globals[{owner, managed ? nullptr : context_of(owner), name}];
  if (global.memory == nullptr) {
    global.bytes = managed ? 24 : 16, global.managed = managed;
    global.memory = std::make_unique<std::byte[]>(global.bytes);
    state->ranges[reinterpret_cast<CUdeviceptr>(global.memory.get())] = global.bytes;
  }
  return &global;
}

template <class Owner>
CUresult find_global(const char* call, CUdeviceptr* address, std::size_t* bytes, Owner owner, Handle kind,
                     const char* name, bool only_managed = false) {
  Entry entry(call, false, !only_managed);
  if (entry.failed()) return entry.result;
  check(call, kind, owner);
  touch(name, std::strlen(name));
  const Global* global = global_of(owner, name, only_managed);
  if (global == nullptr) return CUDA_ERROR_NOT_FOUND;
  *address = reinterpret_cast<CUdeviceptr>(global->memory.get()), *bytes = global->bytes;
  return CUDA_SUCCESS;
}

// Returns whether a global that a call has named is managed.
CUresult is_managed(unsigned* answer, CUpointer_attribute attribute, CUdeviceptr at) {
  Entry entry("cuPointerGetAttribute", false, false);
  if (entry.failed()) return entry.result;
  if (attribute != CU_POINTER_ATTRIBUTE_IS_MANAGED) die("cuPointerGetAttribute: attribute %d", attribute);
  check_device("cuPointerGetAttribute", at, 1);
  *answer = 0;
  for (const auto& [place, global] : state->globals)
    if (reinterpret_cast<CUdeviceptr>(global.memory.get()) == at) *answer = global.managed ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult owner_of_memory(void* answer, CUpointer_attribute attribute, CUdeviceptr at) {
  Entry entry("cuPointerGetAttribute", false, false);
  if (entry.failed()) return entry.result;
  const void* const pool = pool_of("cuPointerGetAttribute", at);
  if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    *static_cast<int*>(answer) = 0;
  else
    *static_cast<const void**>(answer) = pool;
  return CUDA_SUCCESS;
}

CUresult param_info(const char* call, Handle kind, const void* f, std::size_t index, std::size_t* offset,
                    std::size_t* size) {
  Entry entry(call, false, false);
  if (f == nullptr) return CUDA_ERROR_INVALID_VALUE;
  check(call, kind, f);
  const std::vector<ParameterPlace> places = parameters_of(f);
  if (index >= places.size()) return CUDA_ERROR_INVALID_VALUE;
  return *offset = places[index].offset, *size = places[index].bytes, CUDA_SUCCESS;
}

CUresult function_attribute(const char* call, int* value, CUfunction_attribute attribute, Handle kind, const void* f) {
  Entry entry(call, false, false);
  check(call, kind, f);
  switch (static_cast<int>(attribute)) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = max_threads_per_block; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = max_dynamic_shared; break;
    default: *value = 0; break;
  }
  return CUDA_SUCCESS;
}

CUresult with_function(const char* call, CUfunction f) {
  Entry entry(call);
  if (!entry.failed()) check(call, Handle::Function, f);
  return entry.result;
}

void run_fill(const std::byte* params) {
  std::uint64_t address;
  std::uint32_t count, value;
  std::memcpy(&address, params, 8), std::memcpy(&count, params + 8, 4), std::memcpy(&value, params + 12, 4);
  if (address % sizeof value != 0) {
    state->sticky = CUDA_ERROR_MISALIGNED_ADDRESS;
    return;
  }
  if (!is_live(address, std::size_t{count} * 4)) {
    state->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i) reinterpret_cast<std::uint32_t*>(address)[i] = value;
}

}  // namespace

void run_kernel(const Work& work) {
  const std::string& kernel = state->kernels[work.kernel.func];
  if (kernel == "fill") run_fill(work.block.data());
  if (kernel == "fault") state->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
}

namespace {

// Only captured launches distinguish how parameters are passed: the worker passes them one by one only during a
// capture.
CUresult launch(const char* call, CUfunction f, const CUlaunchConfig& config, bool per_thread, void** params,
                void** extra) {
  check(call, Handle::Function, f);
  check_stream(call, config.hStream);
  if (params != nullptr ? graphs().captures.empty() : extra == nullptr) die("%s: parameters in another form", call);
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_KERNEL;
  const bool are_all = read_parameters(work, f, params, extra);
  if (config.sharedMemBytes > max_dynamic_shared || !are_all) return CUDA_ERROR_INVALID_VALUE;
  work.kernel.func = f;
  work.kernel.gridDimX = config.gridDimX, work.kernel.gridDimY = config.gridDimY,
  work.kernel.gridDimZ = config.gridDimZ;
  work.kernel.blockDimX = config.blockDimX, work.kernel.blockDimY = config.blockDimY;
  work.kernel.blockDimZ = config.blockDimZ, work.kernel.sharedMemBytes = config.sharedMemBytes;
  if (const auto captured = capture_work(config.hStream, per_thread, work)) return *captured;
  run_kernel(work);
  return CUDA_SUCCESS;
}

template <bool per_thread>
CUresult launch_plain(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, CUstream stream, void** params, void** extra) {
  ENTER("cuLaunchKernel");
  if (gx == 0 || gy == 0 || gz == 0 || bx == 0 || by == 0 || bz == 0) return CUDA_ERROR_INVALID_VALUE;
  CUlaunchConfig config{};
  config.gridDimX = gx, config.gridDimY = gy, config.gridDimZ = gz;
  config.blockDimX = bx, config.blockDimY = by, config.blockDimZ = bz;
  config.sharedMemBytes = shared, config.hStream = stream;
  return launch("cuLaunchKernel", f, config, per_thread, params, extra);
}

}  // namespace

void demand_described(const char* call, const CUlaunchAttribute& attribute) {
  const auto* value = reinterpret_cast<const char*>(&attribute.value);
  const bool known = api::with_attribute<api::LaunchAttributes>(attribute.id, [&](const auto& line) {
    if (std::any_of(value + line.bytes, value + sizeof attribute.value, [](char c) { return c != 0; }))
      die("%s: %s holds more than its value", call, line.name);
  });
  if (!known) die("%s: attribute %d", call, static_cast<int>(attribute.id));
}

std::vector<ParameterPlace> parameters_of(const void* function) {
  if (state->kernels[function] != "fill") return {};
  return {{0, 8}, {8, 4}, {12, 4}};
}

namespace {

template <bool per_thread>
CUresult launch_ex(const CUlaunchConfig* config, CUfunction f, void** params, void** extra) {
  ENTER("cuLaunchKernelEx");
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    touch(&config->attrs[i], sizeof config->attrs[i]);
    demand_described("cuLaunchKernelEx", config->attrs[i]);
  }
  return launch("cuLaunchKernelEx", f, *config, per_thread, params, extra);
}

void fill_modules(host::Driver& t) {
  t.cuModuleLoadDataEx = [](CUmodule* m, const void* image, unsigned n, CUjit_option* names, void** values) {
    return load("cuModuleLoadDataEx", m, Handle::Module, image, n, names, values);
  };
  t.cuLibraryLoadData = [](CUlibrary* l, const void* image, CUjit_option* names, void** values, unsigned n,
                           CUlibraryOption*, void**, unsigned options) {
    if (options != 0) die("cuLibraryLoadData: library options");
    return load("cuLibraryLoadData", l, Handle::Library, image, n, names, values);
  };
  t.cuModuleUnload = [](CUmodule m) { return unload("cuModuleUnload", Handle::Module, m); };
  t.cuLibraryUnload = [](CUlibrary l) { return unload("cuLibraryUnload", Handle::Library, l); };
  t.cuModuleGetFunction = [](CUfunction* f, CUmodule m, const char* name) {
    return look_up("cuModuleGetFunction", f, Handle::Function, m, Handle::Module, name);
  };
  t.cuLibraryGetKernel = [](CUkernel* k, CUlibrary l, const char* name) {
    return look_up("cuLibraryGetKernel", k, Handle::Kernel, l, Handle::Library, name);
  };
  t.cuModuleEnumerateFunctions = [](CUfunction* list, unsigned room, CUmodule m) {
    return list_all("cuModuleEnumerateFunctions", list, Handle::Function, room, m, Handle::Module);
  };
  t.cuLibraryEnumerateKernels = [](CUkernel* list, unsigned room, CUlibrary l) {
    return list_all("cuLibraryEnumerateKernels", list, Handle::Kernel, room, l, Handle::Library);
  };
  t.cuFuncGetName = [](const char** name, CUfunction f) { return name_of("cuFuncGetName", Handle::Function, name, f); };
  t.cuKernelGetName = [](const char** name, CUkernel k) { return name_of("cuKernelGetName", Handle::Kernel, name, k); };
  t.cuModuleGetGlobal_v2 = [](CUdeviceptr* at, std::size_t* bytes, CUmodule m, const char* name) {
    return find_global("cuModuleGetGlobal_v2", at, bytes, m, Handle::Module, name);
  };
  t.cuLibraryGetGlobal = [](CUdeviceptr* at, std::size_t* bytes, CUlibrary l, const char* name) {
    return find_global("cuLibraryGetGlobal", at, bytes, l, Handle::Library, name);
  };
  t.cuLibraryGetManaged = [](CUdeviceptr* at, std::size_t* bytes, CUlibrary l, const char* name) {
    return find_global("cuLibraryGetManaged", at, bytes, l, Handle::Library, name, true);
  };
  t.cuPointerGetAttribute = [](void* answer, CUpointer_attribute attribute, CUdeviceptr at) {
    if (attribute == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE || attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
      return owner_of_memory(answer, attribute, at);
    return is_managed(static_cast<unsigned*>(answer), attribute, at);
  };
  t.cuKernelGetFunction = [](CUfunction* f, CUkernel k) {
    Entry entry("cuKernelGetFunction");
    if (entry.failed()) return entry.result;
    check("cuKernelGetFunction", Handle::Kernel, k);
    *f = issue_once<CUfunction>(Handle::Function, k, "");
    state->kernels[*f] = std::string(state->kernels[k]);
    return entry.result;
  };
  t.cuLibraryGetModule = [](CUmodule* m, CUlibrary l) {
    Entry entry("cuLibraryGetModule");
    if (entry.failed()) return entry.result;
    check("cuLibraryGetModule", Handle::Library, l);
    return *m = issue_once<CUmodule>(Handle::Module, l, ""), entry.result;
  };
  t.cuModuleGetFunctionCount = [](unsigned* count, CUmodule m) {
    Entry entry("cuModuleGetFunctionCount");
    check("cuModuleGetFunctionCount", Handle::Module, m);
    return *count = std::size(kernels_there), entry.result;
  };
  t.cuLibraryGetKernelCount = [](unsigned* count, CUlibrary l) {
    Entry entry("cuLibraryGetKernelCount");
    check("cuLibraryGetKernelCount", Handle::Library, l);
    return *count = std::size(kernels_there), entry.result;
  };
}

void fill_functions(host::Driver& t) {
  t.cuFuncGetParamInfo = [](CUfunction f, std::size_t i, std::size_t* offset, std::size_t* size) {
    return param_info("cuFuncGetParamInfo", Handle::Function, f, i, offset, size);
  };
  t.cuKernelGetParamInfo = [](CUkernel k, std::size_t i, std::size_t* offset, std::size_t* size) {
    return param_info("cuKernelGetParamInfo", Handle::Kernel, k, i, offset, size);
  };
  t.cuFuncGetAttribute = [](int* value, CUfunction_attribute a, CUfunction f) {
    return function_attribute("cuFuncGetAttribute", value, a, Handle::Function, f);
  };
  t.cuKernelGetAttribute = [](int* value, CUfunction_attribute a, CUkernel k, CUdevice) {
    return function_attribute("cuKernelGetAttribute", value, a, Handle::Kernel, k);
  };
  t.cuFuncSetAttribute = [](CUfunction f, CUfunction_attribute, int) { return with_function("cuFuncSetAttribute", f); };
  t.cuFuncSetCacheConfig = [](CUfunction f, CUfunc_cache) { return with_function("cuFuncSetCacheConfig", f); };
  t.cuFuncLoad = [](CUfunction f) { return with_function("cuFuncLoad", f); };
  t.cuFuncIsLoaded = [](CUfunctionLoadingState* s, CUfunction f) {
    return *s = CU_FUNCTION_LOADING_STATE_LOADED, with_function("cuFuncIsLoaded", f);
  };
  t.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction f, int, std::size_t) {
    return *blocks = 2, with_function("cuOccupancyMaxActiveBlocksPerMultiprocessor", f);
  };
  t.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags = [](int* blocks, CUfunction f, int, std::size_t, unsigned) {
    return *blocks = 2, with_function("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", f);
  };
  t.cuOccupancyAvailableDynamicSMemPerBlock = [](std::size_t* bytes, CUfunction f, int, int) {
    return *bytes = 48 << 10, with_function("cuOccupancyAvailableDynamicSMemPerBlock", f);
  };
  t.cuOccupancyMaxActiveClusters = [](int* clusters, CUfunction f, const CUlaunchConfig* config) {
    for (unsigned i = 0; i < config->numAttrs; ++i) touch(&config->attrs[i], sizeof config->attrs[i]);
    for (unsigned i = 0; i < config->numAttrs; ++i) demand_described("cuOccupancyMaxActiveClusters", config->attrs[i]);
    return *clusters = 3, with_function("cuOccupancyMaxActiveClusters", f);
  };
  t.cuOccupancyMaxPotentialClusterSize = [](int* blocks, CUfunction f, const CUlaunchConfig* config) {
    constexpr const char* call = "cuOccupancyMaxPotentialClusterSize";
    for (unsigned i = 0; i < config->numAttrs; ++i) demand_described(call, config->attrs[i]);
    return *blocks = 4, with_function(call, f);
  };
  t.cuFuncSetSharedMemConfig = [](CUfunction f, CUsharedconfig) {
    return with_function("cuFuncSetSharedMemConfig", f);
  };
  t.cuKernelSetAttribute = [](CUfunction_attribute, int, CUkernel k, CUdevice) {
    return with_function("cuKernelSetAttribute", reinterpret_cast<CUfunction>(k));
  };
  t.cuKernelSetCacheConfig = [](CUkernel k, CUfunc_cache, CUdevice) {
    return with_function("cuKernelSetCacheConfig", reinterpret_cast<CUfunction>(k));
  };
  t.cuLaunchKernel = launch_plain<false>;
  t.cuLaunchKernel_ptsz = launch_plain<true>;
  t.cuLaunchKernelEx = launch_ex<false>;
  t.cuLaunchKernelEx_ptsz = launch_ex<true>;
}

}  // namespace

Driver::Driver() {
  if (the_driver != nullptr) die("two at a time");
  the_driver = this;
  state = new State;
  fill_devices(table_);
  fill_contexts(table_);
  fill_memory(table_);
  fill_copies(table_);
  fill_peer_copies(table_);
  fill_tensor_maps(table_);
  fill_fills(table_);
  fill_copies_of_rows(table_);
  fill_words(table_);
  fill_streams(table_);
  fill_modules(table_);
  fill_functions(table_);
  fill_arrays(table_);
  fill_textures(table_);
  fill_references(table_);
  fill_links(table_);
  fill_pools(table_);
  fill_virtual_memory(table_);
  fill_green_contexts(table_);
  fill_graphs(table_);
  fill_graph_nodes(table_);
  fill_captures(table_);
}

Driver::~Driver() {
  for (const auto& [handle, kind] : state->handles) state->destroyed.push_back(handle);
  for (const void* handle : state->destroyed) delete[] static_cast<const std::uint64_t*>(handle);
  for (const auto* ranges : {&state->reserved, &state->freed})
    for (const auto& [start, bytes] : *ranges) munmap(reinterpret_cast<void*>(start), bytes);
  delete state;
  state = nullptr;
  the_driver = nullptr;
  current = nullptr;
}

void Driver::fail_next(const std::string& call, CUresult result) {
  std::lock_guard lock(state->mutex);
  state->failures[call] = result;
}

void Driver::keep_values_back(bool missing) {
  std::lock_guard lock(state->mutex);
  values_missing_ = missing;
  if (!missing) state->standing.clear(), state->not_passed.clear();
}

void Driver::let_freed_ranges_stay() {
  std::lock_guard lock(state->mutex);
  state->freed_ranges_stay = true;
}

void Driver::let_race(const Races& races) {
  std::lock_guard lock(state->mutex);
  state->races = races;
}

std::uint64_t Driver::calls(const std::string& name) {
  std::lock_guard lock(state->mutex);
  return state->calls[name];
}

std::uint64_t Driver::per_thread_calls(const std::string& name) {
  std::lock_guard lock(state->mutex);
  return state->per_thread[name];
}

const void* Driver::own_pool() {
  const std::lock_guard lock(state->mutex);
  return state->default_pool;
}

std::size_t Driver::live_handles() {
  std::lock_guard lock(state->mutex);
  return static_cast<std::size_t>(std::count_if(state->handles.begin(), state->handles.end(), [](const auto& handle) {
    return handle.second != Handle::Graph && handle.second != Handle::GraphNode && handle.second != Handle::UserObject;
  }));
}

std::set<const void*> Driver::live_graphs() {
  std::lock_guard lock(state->mutex);
  std::set<const void*> live;
  for (const auto& [handle, graph] : graphs().graphs)
    if (graph.node == nullptr) live.insert(handle);
  for (const auto& capture : graphs().captures)
    if (capture->owns_graph) live.erase(capture->graph);
  return live;
}

bool Driver::issued(const void* address) {
  std::lock_guard lock(state->mutex);
  return state->handles.count(address) != 0 ||
         std::find(state->destroyed.begin(), state->destroyed.end(), address) != state->destroyed.end();
}

std::size_t Driver::live_allocations() {
  std::lock_guard lock(state->mutex);
  return state->memory.size();
}

bool Driver::is_live(const void* handle) {
  std::lock_guard lock(state->mutex);
  return state->handles.count(handle) != 0;
}

std::vector<std::pair<CUdeviceptr, std::size_t>> Driver::live_ranges() {
  std::lock_guard lock(state->mutex);
  return {state->ranges.begin(), state->ranges.end()};
}

std::size_t Driver::registered_bytes() {
  std::lock_guard lock(state->mutex);
  std::size_t sum = 0;
  for (const auto& [at, bytes] : state->pinned) sum += bytes;
  return sum;
}

}  // namespace fake
