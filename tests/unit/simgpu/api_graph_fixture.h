// A fixture for tests of graphs: kernels, words of pinned memory that kernels and the host share, and a log of the host
// functions that ran.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/unit/simgpu/api_fixture.h"
#include "tests/unit/simgpu/api_notes.h"

namespace graph_test {

inline constexpr char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 at, .param .u32 value) {
  .reg .u64 %p; .reg .u32 %v, %w;
  ld.param.u64 %p, [at]; ld.param.u32 %v, [value];
  ld.global.u32 %w, [%p]; add.u32 %w, %w, %v; st.global.u32 [%p], %w;
  ret;
}
.visible .entry multiply(.param .u64 at, .param .u32 value) {
  .reg .u64 %p; .reg .u32 %v, %w;
  ld.param.u64 %p, [at]; ld.param.u32 %v, [value];
  ld.global.u32 %w, [%p]; mul.lo.u32 %w, %w, %v; st.global.u32 [%p], %w;
  ret;
}
.visible .entry meet(.param .u64 mine, .param .u64 theirs) {
  .reg .u64 %p, %q; .reg .u32 %w; .reg .pred %there;
  ld.param.u64 %p, [mine]; ld.param.u64 %q, [theirs];
  st.volatile.global.u32 [%p], 1;
again:
  ld.volatile.global.u32 %w, [%q]; setp.eq.u32 %there, %w, 0; @%there bra again;
  ret;
}
.visible .entry nothing() { ret; }
)";

class GraphTest : public InContext {
 protected:
  static constexpr std::size_t words = 64;

  void SetUp() override {
    InContext::SetUp();
    void* memory = nullptr;
    OK(cuMemHostAlloc(&memory, words * sizeof *word_, 0));
    word_ = static_cast<std::uint32_t*>(memory);
    for (std::size_t i = 0; i < words; ++i) word_[i] = 0;
    OK(cuMemAlloc(&device_, words * sizeof *word_));
    OK(cuMemsetD32(device_, 0, words));
    OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    OK(cuModuleLoadData(&module_, ptx));
    OK(cuModuleGetFunction(&add_, module_, "add"));
    OK(cuModuleGetFunction(&multiply_, module_, "multiply"));
    OK(cuModuleGetFunction(&meet_, module_, "meet"));
    OK(cuModuleGetFunction(&nothing_, module_, "nothing"));
    OK(cuGraphCreate(&graph_, 0));
    OK(cuCtxSynchronize());
  }
  void TearDown() override {
    let_go();
    if (graph_ != nullptr) {
      EXPECT_EQ(cuGraphDestroy(graph_), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuStreamDestroy(stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(other_), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleUnload(module_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(device_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeHost(word_), CUDA_SUCCESS);
    InContext::TearDown();
  }

  CUdeviceptr word_at(std::size_t i) const { return reinterpret_cast<CUdeviceptr>(word_ + i); }
  CUdeviceptr device_at(std::size_t i) const { return device_ + i * sizeof *word_; }

  // Blocks the stream until let_go() is called.
  void hold(CUstream stream) { OK(cuStreamWaitValue32(stream, word_at(words - 1), 1, CU_STREAM_WAIT_VALUE_EQ)); }
  void let_go() { std::atomic_ref(word_[words - 1]).store(1); }

  Note* note(int number) {
    kept_.push_back(std::make_unique<Note>(Note{&notes_, number}));
    return kept_.back().get();
  }

  // The parameters of a kernel of one thread that takes an address and a value.
  struct Kernel {
    CUDA_KERNEL_NODE_PARAMS params{};
    CUdeviceptr at;
    std::uint64_t value;
    void* list[2];
    Kernel(CUfunction function, CUdeviceptr at_, std::uint64_t value_) : at(at_), value(value_), list{&at, &value} {
      params.func = function;
      params.gridDimX = params.gridDimY = params.gridDimZ = 1;
      params.blockDimX = params.blockDimY = params.blockDimZ = 1;
      params.kernelParams = list;
    }
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;
  };

  using Nodes = std::vector<CUgraphNode>;
  CUgraphNode add_kernel(CUgraph graph, const Nodes& after, CUfunction function, CUdeviceptr at, std::uint64_t value) {
    const Kernel kernel(function, at, value);
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &kernel.params), CUDA_SUCCESS);
    return node;
  }
  CUgraphNode add_note(CUgraph graph, const Nodes& after, int number) {
    const CUDA_HOST_NODE_PARAMS params{.fn = write_note, .userData = note(number)};
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddHostNode(&node, graph, after.data(), after.size(), &params), CUDA_SUCCESS);
    return node;
  }
  CUgraphNode add_empty(CUgraph graph, const Nodes& after) {
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddEmptyNode(&node, graph, after.data(), after.size()), CUDA_SUCCESS);
    return node;
  }
  static CUDA_MEMCPY3D row(CUmemorytype to_type, std::uint64_t to, CUmemorytype from_type, std::uint64_t from,
                           std::size_t bytes) {
    CUDA_MEMCPY3D copy{};
    copy.dstMemoryType = to_type;
    copy.srcMemoryType = from_type;
    if (to_type == CU_MEMORYTYPE_HOST)
      copy.dstHost = reinterpret_cast<void*>(to);
    else
      copy.dstDevice = to;
    if (from_type == CU_MEMORYTYPE_HOST)
      copy.srcHost = reinterpret_cast<void*>(from);
    else
      copy.srcDevice = from;
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return copy;
  }
  CUgraphNode add_copy(CUgraph graph, const Nodes& after, const CUDA_MEMCPY3D& copy) {
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddMemcpyNode(&node, graph, after.data(), after.size(), &copy, context_), CUDA_SUCCESS);
    return node;
  }
  CUgraphNode add_fill(CUgraph graph, const Nodes& after, CUdeviceptr at, unsigned value, std::size_t count) {
    const CUDA_MEMSET_NODE_PARAMS fill{
        .dst = at, .pitch = 0, .value = value, .elementSize = 4, .width = count, .height = 1};
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddMemsetNode(&node, graph, after.data(), after.size(), &fill, context_), CUDA_SUCCESS);
    return node;
  }
  CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    return exec;
  }
  void run(CUgraphExec exec) {
    OK(cuGraphLaunch(exec, stream_));
    OK(cuStreamSynchronize(stream_));
  }
  void run_once(CUgraph graph) {
    CUgraphExec exec = instantiate(graph);
    run(exec);
    OK(cuGraphExecDestroy(exec));
  }
  std::uint32_t on_device(std::size_t i) {
    std::uint32_t value = 0;
    EXPECT_EQ(cuMemcpyDtoHAsync(&value, device_at(i), sizeof value, other_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(other_), CUDA_SUCCESS);
    return value;
  }
  std::size_t count_nodes(CUgraph graph) {
    std::size_t count = 0;
    EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
    return count;
  }

  std::uint32_t* word_ = nullptr;  // pinned memory
  CUdeviceptr device_ = 0;
  CUstream stream_ = nullptr, other_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction add_ = nullptr, multiply_ = nullptr, meet_ = nullptr, nothing_ = nullptr;
  CUgraph graph_ = nullptr;
  Notes notes_;
  std::vector<std::unique_ptr<Note>> kept_;
};

using Numbers = std::vector<int>;

}  // namespace graph_test
