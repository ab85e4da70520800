// Tests the messages that the simulated GPU sends to callbacks registered for its log.
#include <string>
#include <vector>

#include "tests/unit/simgpu/api_fixture.h"

extern "C" const void* machine_code();  // defined in cubin_library.cc

namespace {

constexpr char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry write_far()
{
  .reg .u32 %r<2>;
  .reg .u64 %rd<2>;
  mov.u64 %rd1, 16;
  mov.u32 %r1, 1;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";
constexpr char no_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry f() { frobnicate; }\n";

struct Heard {
  std::vector<std::string> lines;
  CUcontext context = nullptr;
  CUresult seen = CUDA_ERROR_UNKNOWN;  // result of a call in that context while the callback ran
};

void hear(void* data, CUlogLevel level, char* message, std::size_t length) {
  EXPECT_EQ(level, CU_LOG_LEVEL_ERROR);
  static_cast<Heard*>(data)->lines.emplace_back(message, length);
}

void hear_and_ask(void* data, CUlogLevel level, char* message, std::size_t length) {
  hear(data, level, message, length);
  message[0] = '?';  // the other callbacks receive their own copies
  Heard& heard = *static_cast<Heard*>(data);
  std::size_t all = 0;
  EXPECT_EQ(cuCtxSetCurrent(heard.context), CUDA_SUCCESS);
  heard.seen = cuMemGetInfo(&all, &all);
}

class Log : public InContext {};

TEST_F(Log, tells_why_an_image_does_not_load) {
  Heard heard;
  CUlogsCallbackHandle handle = nullptr;
  OK(cuLogsRegisterCallback(hear, &heard, &handle));
  EXPECT_NE(handle, nullptr);
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, no_ptx), CUDA_ERROR_INVALID_PTX);
  ASSERT_EQ(heard.lines.size(), 1u);
  EXPECT_NE(heard.lines[0].find("frobnicate"), std::string::npos) << heard.lines[0];
  OK(cuModuleLoadData(&module, ptx));
  EXPECT_EQ(heard.lines.size(), 1u) << "what succeeds is not told";
  OK(cuLogsUnregisterCallback(handle));
  EXPECT_EQ(cuModuleLoadData(&module, no_ptx), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(heard.lines.size(), 1u) << "nobody listens any more";
}

// The user of a library cannot rebuild it, so the message names the library.
TEST_F(Log, names_the_library_whose_code_it_cannot_run) {
  Heard heard;
  CUlogsCallbackHandle handle = nullptr;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  OK(cuLogsRegisterCallback(hear, &heard, &handle));
  EXPECT_EQ(cuModuleLoadData(&module, machine_code()), CUDA_ERROR_NO_BINARY_FOR_GPU);
  CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
  void* yes = reinterpret_cast<void*>(1);
  EXPECT_EQ(cuLibraryLoadData(&library, machine_code(), nullptr, nullptr, 0, &preserved, &yes, 1),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  OK(cuLogsUnregisterCallback(handle));
  ASSERT_EQ(heard.lines.size(), 2u);
  for (const std::string& line : heard.lines) {
    const std::string wanted = "libsimgpu_cubin_library.so: the fat binary holds cubin sm_75, cubin sm_90; ";
    EXPECT_EQ(line.substr(0, wanted.size()), wanted);
    EXPECT_NE(line.find("needs a real GPU"), std::string::npos) << line;
  }
}

TEST_F(Log, tells_of_a_fault_before_any_call_returns_it) {
  Heard first{.lines = {}, .context = context_}, second;
  OK(cuLogsRegisterCallback(hear_and_ask, &first, nullptr));
  OK(cuLogsRegisterCallback(hear, &second, nullptr));
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  OK(cuModuleLoadData(&module, ptx));
  OK(cuModuleGetFunction(&function, module, "write_far"));
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  const std::string wanted = "kernel write_far, block (0,0,0), thread (0,0,0): access of 4 bytes at 0x10";
  ASSERT_EQ(second.lines.size(), 1u);
  EXPECT_EQ(second.lines[0].substr(0, wanted.size()), wanted);
  EXPECT_EQ(first.lines, second.lines);
  EXPECT_EQ(first.seen, CUDA_SUCCESS) << "a call knew of it before the words were there";
}

TEST_F(Log, refuses_bad_arguments) {
  CUlogsCallbackHandle handle = nullptr;
  EXPECT_EQ(cuLogsRegisterCallback(nullptr, nullptr, &handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(cuLogsUnregisterCallback(nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuLogsRegisterCallback(hear, nullptr, &handle));
  OK(cuLogsUnregisterCallback(handle));
  EXPECT_EQ(cuLogsUnregisterCallback(handle), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
