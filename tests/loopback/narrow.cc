// CUDA 3's forms of calls: how numbers are widened and narrowed (ring/abi/narrow.h), and in which contexts the guest's
// forms work. On the strict fake driver, whose memory lies beyond 4 GiB.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "ring/abi/narrow.h"
#include "tests/loopback/backend_fake.h"
#include "tests/loopback/in_process.h"

namespace {

using cuabi::call_newer;
using loopback::fake_driver, loopback::InProcess;

constexpr std::size_t gib = std::size_t{1} << 30;

// ---- numbers -------------------------------------------------------------------------------------------------------

TEST(NarrowForm, WidensNumbersAndPassesOnTheRest) {
  static CUdeviceptr to = 0;
  static const void* from = nullptr;
  static std::size_t bytes = 0;
  CUresult (*newer)(CUdeviceptr, const void*, std::size_t) = [](CUdeviceptr a, const void* p, std::size_t n) {
    to = a, from = p, bytes = n;
    return CUDA_ERROR_NOT_READY;
  };
  const void* const host = &bytes;
  EXPECT_EQ(call_newer(newer, nullptr, 0xfffffff0u, host, 0x80000000u), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(to, 0xfffffff0u);
  EXPECT_EQ(from, host);
  EXPECT_EQ(bytes, 0x80000000u);
}

TEST(NarrowForm, GivesASizeAsAllThat32BitsHold) {
  CUresult (*newer)(std::size_t*, std::size_t*) = [](std::size_t* free, std::size_t* total) {
    if (free != nullptr) *free = 3 * gib;
    if (total != nullptr) *total = 4 * gib;
    return CUDA_SUCCESS;
  };
  unsigned free = 0, total = 0, *const none = nullptr;
  EXPECT_EQ(call_newer(newer, nullptr, &free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, 3 * gib);
  EXPECT_EQ(total, 0xffffffffu);
  free = 0;
  EXPECT_EQ(call_newer(newer, nullptr, &free, none), CUDA_SUCCESS) << "null stays null";
  EXPECT_EQ(free, 3 * gib);
}

TEST(NarrowForm, WritesNothingWhereTheCallFails) {
  CUresult (*newer)(std::size_t*, CUdeviceptr*) = [](std::size_t* size, CUdeviceptr* address) {
    *size = 1, *address = 1;
    return CUDA_ERROR_NOT_FOUND;
  };
  unsigned size = 7, address = 8;
  EXPECT_EQ(call_newer(newer, nullptr, &size, &address), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(size, 7u);
  EXPECT_EQ(address, 8u);
}

CUdeviceptr next = 0, freed = 0;
CUresult find(CUdeviceptr* address, std::size_t* size) {
  *address = next, *size = 5;
  return CUDA_SUCCESS;
}
CUresult free_at(CUdeviceptr address) {
  freed = address;
  return CUDA_SUCCESS;
}

TEST(NarrowForm, RefusesAnAddressThatDoesNotFit) {
  unsigned address = 7, size = 8;
  next = 4 * gib;
  EXPECT_EQ(call_newer(find, nullptr, &address, &size), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(address, 7u);
  EXPECT_EQ(size, 8u) << "nor is the size given";
  next = 4 * gib - 1;
  EXPECT_EQ(call_newer(find, nullptr, &address, &size), CUDA_SUCCESS);
  EXPECT_EQ(address, 0xffffffffu);
  EXPECT_EQ(size, 5u);
}

TEST(NarrowForm, FreesAnAllocationThatDoesNotFit) {
  unsigned address = 7, size = 8;
  next = 4 * gib + 512, freed = 0;
  EXPECT_EQ(call_newer(find, free_at, &address, &size), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(freed, next);
  EXPECT_EQ(address, 7u);
  next = 512, freed = 0;
  EXPECT_EQ(call_newer(find, free_at, &address, &size), CUDA_SUCCESS);
  EXPECT_EQ(freed, 0u);
  EXPECT_EQ(address, 512u);
}

// ---- structs -------------------------------------------------------------------------------------------------------

template <class T>
T* at(std::uintptr_t number) {
  return reinterpret_cast<T*>(number);
}

std::uint64_t number_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

// The fields that the structs of both kinds of copies have, of both widths.
template <class Copy>
std::vector<std::uint64_t> fields_of(const Copy& c) {
  return {c.srcXInBytes, c.srcY,     c.srcMemoryType, number_of(c.srcHost),
          c.srcDevice,   c.srcPitch, c.dstXInBytes,   number_of(c.srcArray),
          c.dstY,        c.dstPitch, c.dstMemoryType, number_of(c.dstHost),
          c.dstDevice,   c.Height,   c.WidthInBytes,  number_of(c.dstArray)};
}
// Those of copies of slices alone.
template <class Copy>
std::vector<std::uint64_t> more_fields_of(const Copy& c) {
  return {c.srcZ,
          c.srcLOD,
          c.srcHeight,
          c.dstZ,
          c.dstLOD,
          c.Depth,
          c.dstHeight,
          number_of(c.reserved0),
          number_of(c.reserved1)};
}

TEST(NarrowForm, WidensEachFieldOfACopyOfRows) {
  static CUDA_MEMCPY2D seen;
  CUresult (*newer)(const CUDA_MEMCPY2D*) = [](const CUDA_MEMCPY2D* copy) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    seen = *copy;
    return CUDA_SUCCESS;
  };
  const CUDA_MEMCPY2D_v1 given{21, 22,        CU_MEMORYTYPE_HOST,  at<void>(24), 25, at<CUarray_st>(26), 27,
                               28, 29,        CU_MEMORYTYPE_ARRAY, at<void>(31), 32, at<CUarray_st>(33), 34,
                               35, 0xffffffff};
  EXPECT_EQ(call_newer(newer, nullptr, &given), CUDA_SUCCESS);
  EXPECT_EQ(fields_of(seen), fields_of(given));
  EXPECT_EQ(seen.Height, 0xffffffffu);
  const CUDA_MEMCPY2D_v1* none = nullptr;
  EXPECT_EQ(call_newer(newer, nullptr, none), CUDA_ERROR_INVALID_VALUE);
}

TEST(NarrowForm, WidensEachFieldOfACopyOfSlices) {
  static CUDA_MEMCPY3D seen;
  CUresult (*newer)(const CUDA_MEMCPY3D*, CUstream) = [](const CUDA_MEMCPY3D* copy, CUstream) {
    seen = *copy;
    return CUDA_SUCCESS;
  };
  const CUDA_MEMCPY3D_v1 given{
      21, 22, 23, 24, CU_MEMORYTYPE_DEVICE,  at<void>(26), 27, at<CUarray_st>(28), at<void>(29), 30, 31,
      32, 33, 34, 35, CU_MEMORYTYPE_UNIFIED, at<void>(37), 38, at<CUarray_st>(39), at<void>(40), 41, 42,
      43, 44, 45};
  EXPECT_EQ(call_newer(newer, nullptr, &given, CUstream{}), CUDA_SUCCESS);
  EXPECT_EQ(fields_of(seen), fields_of(given));
  EXPECT_EQ(more_fields_of(seen), more_fields_of(given));
}

TEST(NarrowForm, ConvertsDescriptionsOfArraysBothWays) {
  static CUDA_ARRAY_DESCRIPTOR flat;
  static CUDA_ARRAY3D_DESCRIPTOR deep;
  CUresult (*set)(const CUDA_ARRAY_DESCRIPTOR*, const CUDA_ARRAY3D_DESCRIPTOR*) = [](const CUDA_ARRAY_DESCRIPTOR* a,
                                                                                     const CUDA_ARRAY3D_DESCRIPTOR* b) {
    flat = *a, deep = *b;
    return CUDA_SUCCESS;
  };
  CUresult (*get)(CUDA_ARRAY_DESCRIPTOR*, CUDA_ARRAY3D_DESCRIPTOR*) = [](CUDA_ARRAY_DESCRIPTOR* a,
                                                                         CUDA_ARRAY3D_DESCRIPTOR* b) {
    *a = flat, *b = deep;
    return CUDA_SUCCESS;
  };
  const CUDA_ARRAY_DESCRIPTOR_v1 a{1, 2, CU_AD_FORMAT_HALF, 4};
  const CUDA_ARRAY3D_DESCRIPTOR_v1 b{5, 6, 7, CU_AD_FORMAT_FLOAT, 8, 9};
  EXPECT_EQ(call_newer(set, nullptr, &a, &b), CUDA_SUCCESS);
  EXPECT_EQ(flat.Width + flat.Height * 10 + flat.NumChannels * 100, 421u);
  EXPECT_EQ(deep.Width + deep.Height * 10 + deep.Depth * 100 + deep.NumChannels * 1000 + deep.Flags * 10000, 98765u);
  EXPECT_EQ(flat.Format, CU_AD_FORMAT_HALF);
  EXPECT_EQ(deep.Format, CU_AD_FORMAT_FLOAT);
  CUDA_ARRAY_DESCRIPTOR_v1 a_again{};
  CUDA_ARRAY3D_DESCRIPTOR_v1 b_again{};
  EXPECT_EQ(call_newer(get, nullptr, &a_again, &b_again), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(&a, &a_again, sizeof a), 0);
  EXPECT_EQ(std::memcmp(&b, &b_again, sizeof b), 0);
}

// ---- the guest's forms ---------------------------------------------------------------------------------------------

class NarrowCalls : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(loopback_.ok()); }
  static void expect_invalid_context() {
    unsigned a = 0, b = 0;
    void* p = nullptr;
    EXPECT_EQ(cu::cuMemAlloc(&a, 64), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cu::cuMemAlloc(nullptr, 0), CUDA_ERROR_INVALID_CONTEXT) << "before the arguments are looked at";
    EXPECT_EQ(cu::cuMemGetInfo(&a, &b), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cu::cuMemAllocHost(&p, 64), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cu::cuMemcpyHtoDAsync(0, &a, 4, nullptr), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cu::cuGraphicsResourceGetMappedPointer(&a, &b, nullptr), CUDA_ERROR_INVALID_HANDLE)
        << "before the context";
    EXPECT_EQ(cu::cuDeviceTotalMem(&a, 0), CUDA_SUCCESS) << "which needs no context";
    EXPECT_EQ(a, fake::device_memory);
  }
  static void make_old_context() {
    CUcontext context = nullptr;
    ASSERT_EQ(cu::cuCtxCreate(&context, 0, 0), CUDA_SUCCESS);
  }

  InProcess loopback_{loopback::backend()};
};

TEST_F(NarrowCalls, WorkInNoNewerContext) {
  expect_invalid_context();
  CUcontext context = nullptr;
  ASSERT_EQ(cu::cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  expect_invalid_context();
  ASSERT_EQ(cu::cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  expect_invalid_context();
}

TEST_F(NarrowCalls, GoOnToTheirNewerFormsInAnOldContext) {
  make_old_context();
  unsigned available = 0, total = 0, word = 0;
  EXPECT_EQ(cu::cuMemGetInfo(&available, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, fake::device_memory);
  EXPECT_EQ(cu::cuMemFree(0), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemFree(16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemAlloc(nullptr, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemcpyHtoD(16, &word, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemGetAddressRange(nullptr, nullptr, 16), CUDA_SUCCESS);
  void* p = nullptr;
  EXPECT_EQ(cu::cuMemAllocHost(&p, 64), CUDA_SUCCESS);
  EXPECT_NE(p, nullptr);
  EXPECT_EQ(cu::cuMemHostGetDevicePointer(&word, p, 0), CUDA_ERROR_INVALID_VALUE) << "it lies beyond 4 GiB";
}

TEST_F(NarrowCalls, FreeWhatTheyCannotName) {
  make_old_context();
  const std::size_t before = fake_driver().live_allocations();
  unsigned a = 7, pitch = 8;
  EXPECT_EQ(cu::cuMemAlloc(&a, 64), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cu::cuMemAllocPitch(&a, &pitch, 64, 4, 4), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(a, 7u);
  EXPECT_EQ(pitch, 8u);
  EXPECT_EQ(fake_driver().calls("cuMemAlloc_v2"), 1u);
  EXPECT_EQ(fake_driver().calls("cuMemAllocPitch_v2"), 1u);
  EXPECT_EQ(fake_driver().calls("cuMemFree_v2"), 2u);
  EXPECT_EQ(fake_driver().live_allocations(), before);
}

TEST_F(NarrowCalls, RefuseAsTheirNewerFormsDo) {
  make_old_context();
  unsigned a = 0, bytes = 0;
  const auto some = reinterpret_cast<CUgraphicsResource>(std::uintptr_t{64});
  EXPECT_EQ(cu::cuGraphicsResourceGetMappedPointer(&a, &bytes, some), CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace
