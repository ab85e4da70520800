// Asks a driver about CUDA_LAUNCH_BLOCKING: which values and which calls it affects, and what a launch returns for a
// kernel that faults. ring/abi/launch_blocking.h has the results of an H200.
// usage: probe_launch_blocking [LIBCUDA]
#include <cuda.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "tests/probes/probe.h"

namespace {

const char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry busy(.param .u64 rounds) {
  .reg .u64 %rd<3>; .reg .pred %p;
  ld.param.u64 %rd1, [rounds];
  mov.u64 %rd2, %clock64;
  add.u64 %rd1, %rd1, %rd2;
again:
  mov.u64 %rd2, %clock64;
  setp.lt.u64 %p, %rd2, %rd1;
  @%p bra again;
  ret;
}
.visible .entry faulty() {
  .reg .u64 %rd; .reg .u32 %r;
  mov.u64 %rd, 16;
  mov.u32 %r, 1;
  st.global.u32 [%rd], %r;
  ret;
}
)";

CUcontext context = nullptr;
CUfunction busy = nullptr, faulty = nullptr;
CUstream stream = nullptr;

using probe::text_of;

void start() {
  CUdevice device = 0;
  CUmodule module = nullptr;
  MUST(CU(cuInit)(0));
  MUST(CU(cuDeviceGet)(&device, 0));
  MUST(CU(cuDevicePrimaryCtxRetain)(&context, device));
  MUST(CU(cuCtxSetCurrent)(context));
  MUST(CU(cuModuleLoadData)(&module, ptx));
  MUST(CU(cuModuleGetFunction)(&busy, module, "busy"));
  MUST(CU(cuModuleGetFunction)(&faulty, module, "faulty"));
  MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
}

CUresult launch_busy(CUstream where) {
  unsigned long long rounds = 200000000;  // takes 0.1 s
  void* parameters[] = {&rounds};
  return CU(cuLaunchKernel)(busy, 1, 1, 1, 1, 1, 1, 0, where, parameters, nullptr);
}

CUresult launch_ex(CUfunction function, unsigned cooperative) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = static_cast<int>(cooperative);
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream, config.attrs = &attribute, config.numAttrs = 1;
  unsigned long long rounds = 200000000;
  void* parameters[] = {&rounds};
  return CU(cuLaunchKernelEx)(&config, function, parameters, nullptr);
}

CUresult launch_graph(CUfunction function) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  unsigned long long rounds = 200000000;
  void* parameters[] = {&rounds};
  CUDA_KERNEL_NODE_PARAMS p;
  std::memset(&p, 0, sizeof p);
  p.func = function, p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
  p.kernelParams = parameters;
  MUST(CU(cuGraphCreate)(&graph, 0));
  MUST(CU(cuGraphAddKernelNode_v2)(&node, graph, nullptr, 0, &p));
  MUST(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  return CU(cuGraphLaunch)(exec, stream);
}

// Prints the result of a call, and whether the stream was complete when the call returned.
void after(const std::string& value, const char* what, const std::function<CUresult()>& call) {
  start();
  const CUresult r = call();
  const CUresult query = CU(cuStreamQuery)(stream);
  std::printf("| %s | %s | %s | %s |\n", value.c_str(), what, text_of(r).c_str(), text_of(query).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (!probe::open_library(argc > 1 ? argv[1] : "libcuda.so.1")) return 1;
  std::printf("| value | call | returns | cuStreamQuery then |\n|---|---|---|---|\n");
  const std::pair<const char*, std::function<CUresult()>> calls[] = {
      {"cuLaunchKernel", [] { return launch_busy(stream); }},
      {"cuLaunchKernel, faulty",
       [] { return CU(cuLaunchKernel)(faulty, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr); }},
      {"cuLaunchKernel, faulty, legacy stream",
       [] { return CU(cuLaunchKernel)(faulty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr); }},
      {"cuLaunchKernelEx", [] { return launch_ex(busy, 0); }},
      {"cuLaunchKernelEx, faulty", [] { return launch_ex(faulty, 0); }},
      {"cuLaunchKernelEx, cooperative", [] { return launch_ex(busy, 1); }},
      {"cuLaunchCooperativeKernel, faulty",
       [] { return CU(cuLaunchCooperativeKernel)(faulty, 1, 1, 1, 1, 1, 1, 0, stream, nullptr); }},
      {"cuGraphLaunch", [] { return launch_graph(busy); }},
      {"cuGraphLaunch, faulty", [] { return launch_graph(faulty); }},
      {"cuMemsetD8Async of 1 GiB",
       [] {
         CUdeviceptr at = 0;
         MUST(CU(cuMemAlloc_v2)(&at, 1u << 30));
         return CU(cuMemsetD8Async)(at, 1, 1u << 30, stream);
       }},
      {"cuMemcpyDtoDAsync of 1 GiB",
       [] {
         CUdeviceptr at = 0, to = 0;
         MUST(CU(cuMemAlloc_v2)(&at, 1u << 30));
         MUST(CU(cuMemAlloc_v2)(&to, 1u << 30));
         return CU(cuMemcpyDtoDAsync_v2)(to, at, 1u << 30, stream);
       }},
      {"a kernel in the legacy stream while this one works",
       [] {
         unsigned long long rounds = 20000000;
         void* parameters[] = {&rounds};
         return CU(cuLaunchKernel)(busy, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
       }},
  };
  for (const char* value : {"", "0", "1", "2", "x", " 1", "01", "1x"}) {
    setenv("CUDA_LAUNCH_BLOCKING", value, 1);
    const bool all = std::strcmp(value, "1") == 0;
    for (const auto& asked : calls)
      if (all || std::strcmp(asked.first, "cuLaunchKernel") == 0)
        probe::ask_alone(asked.first, [&] { after('"' + std::string(value) + '"', asked.first, asked.second); });
  }
  unsetenv("CUDA_LAUNCH_BLOCKING");
  probe::ask_alone("set after cuInit", [] {
    start();
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    const CUresult r = launch_busy(stream);
    std::printf("| set after cuInit | cuLaunchKernel | %s | %s |\n", text_of(r).c_str(),
                text_of(CU(cuStreamQuery)(stream)).c_str());
  });
  return 0;
}
