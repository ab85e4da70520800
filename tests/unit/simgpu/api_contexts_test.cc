// Tests contexts and memory of the simulated GPU: which objects end with a context.
#include <cstring>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/unit/simgpu/api_fixture.h"

namespace {

using Destructor = void (*)(CUcontext, void*, void*);

// The export table through which the runtime attaches data to a context.
struct ContextStorage {
  CUresult (*put)(CUcontext, void*, void*, Destructor);
  CUresult (*remove)(CUcontext, void*);
  CUresult (*get)(void**, CUcontext, void*);
};

const ContextStorage& context_storage() {
  const unsigned char id[16] = {0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11,
                                0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93};
  CUuuid uuid;
  std::memcpy(&uuid, id, sizeof id);
  const void* table = nullptr;
  EXPECT_EQ(cuGetExportTable(&table, &uuid), CUDA_SUCCESS);
  return *static_cast<const ContextStorage*>(table);
}

std::vector<std::tuple<CUcontext, void*, void*>> destroyed;
void note_destruction(CUcontext context, void* key, void* value) { destroyed.emplace_back(context, key, value); }

class Contexts : public InContext {
 protected:
  void SetUp() override {
    InContext::SetUp();
    destroyed.clear();
  }
  int key_ = 0, value_ = 0;
};

TEST_F(Contexts, reset_runs_the_destructors_and_drops_what_belongs_to_the_context) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
  std::size_t free_before = 0, free_after = 0, total = 0;
  OK(cuMemGetInfo(&free_before, &total));
  OK(context_storage().put(nullptr, &key_, &value_, note_destruction));
  OK(cuStreamCreate(&stream, 0));
  OK(cuEventCreate(&event, 0));
  OK(cuMemAlloc(&memory, 1 << 20));

  OK(cuDevicePrimaryCtxReset(0));
  ASSERT_EQ(destroyed.size(), 1U);
  EXPECT_EQ(destroyed[0], std::make_tuple(context_, static_cast<void*>(&key_), static_cast<void*>(&value_)));

  CUcontext again = nullptr;
  OK(cuDevicePrimaryCtxRetain(&again, 0));
  EXPECT_EQ(again, context_);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemGetInfo(&free_after, &total));
  EXPECT_EQ(free_after, free_before);
  void* found = nullptr;
  EXPECT_EQ(context_storage().get(&found, nullptr, &key_), CUDA_ERROR_INVALID_HANDLE);
  OK(cuDevicePrimaryCtxRelease(0));
}

TEST_F(Contexts, the_last_release_ends_the_primary_context) {
  OK(context_storage().put(nullptr, &key_, &value_, note_destruction));
  CUcontext again = nullptr;
  OK(cuDevicePrimaryCtxRetain(&again, 0));
  OK(cuDevicePrimaryCtxRelease(0));
  EXPECT_TRUE(destroyed.empty());
  OK(cuDevicePrimaryCtxRelease(0));
  EXPECT_EQ(destroyed.size(), 1U);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  OK(cuDevicePrimaryCtxRetain(&again, 0));  // TearDown releases it
}

TEST_F(Contexts, handles_of_streams_and_events_belong_to_their_context) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  OK(cuStreamCreate(&stream, 0));
  OK(cuEventCreate(&event, 0));
  CUcontext other = nullptr;
  OK(cuCtxCreate(&other, nullptr, 0, 0));
  EXPECT_EQ(cuEventRecord(event, nullptr), CUDA_ERROR_INVALID_HANDLE);
  OK(cuEventRecord(event, stream));  // event and stream have the same context, which need not be the current one
  OK(cuMemsetD8Async(0, 0, 0, stream));
  OK(cuCtxDestroy(other));
  CUcontext current = nullptr;
  OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context_);
  EXPECT_EQ(cuCtxDestroy(other), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  OK(cuCtxPushCurrent(other));  // as in NVIDIA's driver, which refuses calls in that context
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  OK(cuCtxPopCurrent(&other));
  OK(cuEventDestroy(event));
  OK(cuStreamDestroy(stream));
}

TEST_F(Contexts, a_wait_in_a_stream_does_not_outlive_its_context) {
  CUcontext other = nullptr;
  OK(cuCtxCreate(&other, nullptr, 0, 0));
  void* word = nullptr;
  OK(cuMemHostAlloc(&word, 4, 0));
  *static_cast<int*>(word) = 0;
  OK(cuStreamWaitValue32(nullptr, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuCtxDestroy(other));  // would hang if it waited for the blocked stream
}

TEST_F(Contexts, threads_have_their_own_stacks) {
  CUcontext there = context_, here = nullptr;
  std::thread([&] { OK(cuCtxGetCurrent(&there)); }).join();
  EXPECT_EQ(there, nullptr);
  OK(cuCtxPushCurrent(context_));
  OK(cuCtxPopCurrent(&here));
  EXPECT_EQ(here, context_);
  OK(cuCtxGetCurrent(&here));
  EXPECT_EQ(here, context_);
}

TEST_F(Contexts, memory_is_reached_from_both_sides) {
  CUdeviceptr managed = 0;
  OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  auto* words = reinterpret_cast<unsigned*>(managed);
  words[5] = 17;
  OK(cuMemsetD32(managed, 3, 2));
  OK(cuCtxSynchronize());
  EXPECT_EQ(words[1], 3U);
  EXPECT_EQ(words[5], 17U);
  OK(cuMemFree(managed));

  void* pinned = nullptr;
  CUdeviceptr device = 0;
  OK(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  OK(cuMemHostGetDevicePointer(&device, pinned, 0));
  OK(cuMemsetD32(device, 9, 4));  // returns after the fill, so that the host may read the memory
  EXPECT_EQ(static_cast<unsigned*>(pinned)[3], 9U);
  OK(cuMemFreeHost(pinned));
  EXPECT_EQ(cuMemsetD32(device, 9, 4), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Contexts, copies_by_rows) {
  constexpr std::size_t pitch = 16, rows = 4;
  CUdeviceptr device = 0;
  OK(cuMemAlloc(&device, pitch * rows));
  OK(cuMemsetD8(device, 0xee, pitch * rows));
  const char text[] = "abcdefghijkl";  // 3 rows of 4 bytes
  CUDA_MEMCPY2D copy;
  std::memset(&copy, 0, sizeof copy);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = text;
  copy.srcPitch = 4;
  copy.srcXInBytes = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = pitch;
  copy.dstXInBytes = 2;
  copy.dstY = 1;
  copy.WidthInBytes = 3;
  copy.Height = 3;
  OK(cuMemcpy2D(&copy));
  unsigned char back[pitch * rows];
  OK(cuMemcpyDtoH(back, device, sizeof back));
  EXPECT_EQ(std::memcmp(back + pitch + 2, "bcd", 3), 0);
  EXPECT_EQ(std::memcmp(back + 3 * pitch + 2, "jkl", 3), 0);
  EXPECT_EQ(back[pitch + 1], 0xee);
  EXPECT_EQ(back[pitch + 5], 0xee);
  copy.Height = 4;  // the fourth row would begin past the end
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(device));
}

}  // namespace
