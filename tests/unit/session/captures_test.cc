// Captures and graphs of a session on the strict fake driver: the calls that run in the program's capture mode, and
// objects that must end with their owner.
#include <gtest/gtest.h>

#include "host/session/graphs/captures.h"
#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;

constexpr std::uint16_t globally = ring::capture_mode_flags(CU_STREAM_CAPTURE_MODE_GLOBAL);

// Grants 64 MiB; a pool reserves 32 MiB.
class Purse : public host::MemoryReserver {
 public:
  std::uint64_t reserve(unsigned, std::uint64_t bytes) override {
    if (bytes > left_) return 0;
    return left_ -= bytes, bytes;
  }
  std::optional<Headroom> headroom(unsigned) override { return Headroom{left_, 64 << 20}; }

 private:
  std::uint64_t left_ = 64 << 20;
};

class Captures : public testing::Test {
 protected:
  static host::ServeOptions lending(host::MemoryReserver& purse) {
    host::ServeOptions options;
    options.reserver = &purse;
    return options;
  }
  Captures() { host::become_relaxed(world.driver.table()); }
  ~Captures() override { fake::programs_call = std::nullopt; }

  // Sends a record from a program whose capture mode is GLOBAL.
  Answer ask(int call, const char* name, const Payload& payload) {
    fake::programs_call = name;
    const Answer answer = world.send(call, payload, globally);
    fake::programs_call = std::nullopt;
    return answer;
  }
  std::uint64_t begin(std::uint64_t stream) {
    EXPECT_EQ(
        ask(ids::cuStreamBeginCapture_v2, "cuStreamBeginCapture_v2", Payload::of(stream, CU_STREAM_CAPTURE_MODE_GLOBAL))
            .result,
        CUDA_SUCCESS);
    return stream;
  }
  CUresult end(std::uint64_t stream) {
    return ask(ids::cuStreamEndCapture, "cuStreamEndCapture", Payload::record(api::EndCaptureRecord{stream})).result;
  }
  api::CaptureInfoReply info(std::uint64_t stream) {
    const Answer answer = ask(ids::cuStreamGetCaptureInfo_v3, "cuStreamGetCaptureInfo_v3",
                              Payload::record(api::CaptureInfoRecord{stream}));
    EXPECT_EQ(answer.result, CUDA_SUCCESS);
    return answer.read<api::CaptureInfoReply>();
  }
  CUresult free(std::uint64_t at) {
    return ask(ids::cuMemFree_v2, "cuMemFree_v2", Payload::record(api::FreeRecord{at})).result;
  }
  CUresult count_nodes(std::uint64_t graph) {
    return ask(ids::cuGraphGetNodes, "cuGraphGetNodes", Payload::record(api::GraphListRecord{graph, 0})).result;
  }
  std::uint64_t graph() {
    const std::uint64_t id = world.next(Handle::Graph);
    EXPECT_EQ(world.send(ids::cuGraphCreate, Payload::of(id, 0)).result, CUDA_SUCCESS);
    return id;
  }

  Purse purse;
  World world{lending(purse)};
};

using CapturesDeathTest = Captures;

TEST_F(CapturesDeathTest, TheStrictDriverEndsTheProcessAtAnInternalCallInTheProgramsMode) {
  begin(world.stream());
  const host::Driver& driver = world.driver.table();
  auto mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  driver.cuThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  fake::programs_call = "cuGraphCreate";
  CUgraph graph = nullptr;
  EXPECT_EQ(driver.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  EXPECT_DEATH(driver.cuGraphDestroy(graph), "cuGraphDestroy: an internal call in the program's capture mode");
  driver.cuThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(driver.cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(CapturesDeathTest, TheStrictDriverEndsTheProcessWhereACapturedStreamIsDestroyed) {
  begin(world.stream());
  const host::Driver& driver = world.driver.table();
  CUstream stream = nullptr;
  ASSERT_EQ(driver.cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_DEATH(driver.cuStreamDestroy_v2(stream), "cuStreamDestroy_v2: the capture of stream");
}

TEST_F(Captures, OnlyTheProgramsCallIsMadeInItsMode) {
  const std::uint64_t stream = begin(world.stream());
  const std::uint64_t made = graph();
  const std::uint64_t exec = world.next(Handle::GraphExec);
  EXPECT_EQ(ask(ids::cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", Payload::of(exec, made, 0)).result,
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(end(stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  const std::uint64_t again = begin(world.stream());
  EXPECT_EQ(ask(ids::cuStreamDestroy_v2, "cuStreamDestroy_v2", Payload::of(again)).result, CUDA_SUCCESS);
  EXPECT_FALSE(world.session->graphs.captures.any());
}

TEST_F(Captures, WhatGivesMemoryBackDoesNotEndThem) {
  ASSERT_EQ(ask(ids::cuMemAllocAsync, "cuMemAllocAsync", Payload::of(8, 100, 0)).result, CUDA_SUCCESS);
  const std::uint64_t stream = begin(world.stream());
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const Payload record =
      Payload::of(world.next(Handle::Allocation), 64 << 20, sizeof properties, 0).bytes(&properties, sizeof properties);
  EXPECT_EQ(ask(ids::cuMemCreate, "cuMemCreate", record).result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(world.driver.calls("cuMemPoolTrimTo"), 0u);
  EXPECT_EQ(info(stream).status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

TEST_F(Captures, MemoryWhoseEndTheyProhibitIsTheSessionsAsBefore) {
  const std::uint64_t at = world.memory(4096);
  const std::uint64_t taken = world.session->memory.device.taken(0);
  const std::uint64_t stream = begin(world.stream());
  EXPECT_EQ(free(at), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(world.session->memory.device.taken(0), taken);
  EXPECT_EQ(end(stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(free(at), CUDA_SUCCESS);
  EXPECT_LT(world.session->memory.device.taken(0), taken);
  EXPECT_EQ(free(at), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Captures, GetNoNodesThatTakeOrFreeMemory) {
  const std::uint64_t stream = world.stream();
  const Answer made = ask(ids::cuMemAllocAsync, "cuMemAllocAsync", Payload::of(8, 100, stream));
  const auto at = made.read<std::uint64_t>();
  begin(stream);
  EXPECT_EQ(ask(ids::cuMemAllocAsync, "cuMemAllocAsync", Payload::of(8, 100, stream)).result, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(ask(ids::cuMemFreeAsync, "cuMemFreeAsync", Payload::of(at, stream)).result, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(end(stream), CUDA_SUCCESS);
  EXPECT_EQ(ask(ids::cuMemFreeAsync, "cuMemFreeAsync", Payload::of(at, stream)).result, CUDA_SUCCESS);
}

TEST_F(Captures, EndWithTheContextOfTheirStream) {
  const std::uint64_t stream = begin(world.stream());
  const std::uint64_t captured = info(stream).graph;
  EXPECT_EQ(count_nodes(captured), CUDA_SUCCESS);
  EXPECT_EQ(world.send(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0)).result, CUDA_SUCCESS);
  EXPECT_FALSE(world.session->graphs.captures.any());
  EXPECT_EQ(count_nodes(captured), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Captures, EndWithTheirStream) {
  const std::uint64_t stream = begin(world.stream());
  const std::uint64_t captured = info(stream).graph;
  EXPECT_EQ(world.send(ids::cuStreamDestroy_v2, Payload::of(stream)).result, CUDA_SUCCESS);
  EXPECT_EQ(count_nodes(captured), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Captures, AKernelNodeDoesNotNameAFunctionThatHasEnded) {
  const std::uint64_t module = world.module(), made = graph();
  api::AddKernelNodeRecord record{};
  record.function = world.function(module, "fill");
  for (std::uint32_t& size : record.grid) size = 1;
  for (std::uint32_t& size : record.block) size = 1;
  record.param_bytes = 16;
  record.graph = made;
  const auto node = world.send(ids::cuGraphAddKernelNode_v2, Payload::record(record).slot(1).slot(2));
  ASSERT_EQ(node.result, CUDA_SUCCESS);
  const Payload get = Payload::record(api::GetNodeRecord{node.read<api::NodeReply>().node});
  const auto before = world.send(ids::cuGraphKernelNodeGetParams_v2, get).read<api::KernelNodeReply>();
  EXPECT_EQ(before.function, record.function);
  EXPECT_EQ(before.param_bytes, 16u);
  const Payload unload = Payload::of(module);
  ASSERT_EQ(world.send(ids::cuModuleUnload, unload).result, CUDA_SUCCESS);
  const auto after = world.send(ids::cuGraphKernelNodeGetParams_v2, get);
  EXPECT_EQ(after.result, CUDA_SUCCESS);
  EXPECT_EQ(after.read<api::KernelNodeReply>().function, 0u);
  EXPECT_EQ(after.read<api::KernelNodeReply>().param_bytes, 0u);
}

// In a capture, the driver accepts a fill of any address. Outside a capture, the worker refuses such a fill, and a fill
// of memory that only partly belongs to the session.
TEST_F(Captures, TakeFillsOfAnyAddress) {
  const std::uint64_t at = world.memory(4096), stream = world.stream();
  const auto fill = [&](std::uint64_t to) {
    return ask(ids::cuMemsetD32Async, "cuMemsetD32Async", Payload::of(to, 7, 16, stream)).result;
  };
  const std::uint64_t elsewhere[] = {0, 4096, at + 4092, reinterpret_cast<std::uint64_t>(&world) & ~std::uint64_t{3}};
  for (const std::uint64_t to : elsewhere) EXPECT_EQ(fill(to), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(world.driver.calls("cuMemsetD32Async"), 0u);
  for (const std::uint64_t to : elsewhere) {
    begin(stream);
    EXPECT_EQ(fill(to), CUDA_SUCCESS);
    const std::uint64_t graph = info(stream).graph;
    EXPECT_EQ(end(stream), CUDA_SUCCESS);
    const auto exec = Payload::of(world.next(Handle::GraphExec), graph, 0);
    EXPECT_EQ(world.send(ids::cuGraphInstantiateWithFlags, exec).result, CUDA_ERROR_INVALID_VALUE);
  }
  for (const std::uint64_t to : elsewhere) EXPECT_EQ(fill(to), CUDA_ERROR_INVALID_VALUE) << "the capture is over";
}

}  // namespace
