// Tests the limits of a context: the sizes of the printf buffer, the heap of device malloc and the stack, and until
// when these sizes may be set.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/unit/simgpu/api_fixture.h"

namespace {

constexpr char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.extern .func (.param .b64 result) malloc(.param .b64 size);
.extern .func free(.param .b64 address);
.global .align 1 .b8 format[6] = {37, 48, 53, 100, 10};

// Prints its number, five digits and an end of line, `count` times.
.visible .entry count_up(.param .u32 count)
{
  .local .align 8 .b8 arguments[8];
  .reg .pred %p<2>;
  .reg .u32 %r<4>;
  .reg .u64 %rd<4>;
  ld.param.u32 %r2, [count];
  mov.u32 %r1, 0;
NEXT:
  setp.ge.u32 %p1, %r1, %r2;
  @%p1 bra DONE;
  mov.u64 %rd1, arguments;
  cvta.local.u64 %rd2, %rd1;
  st.local.u32 [arguments], %r1;
  mov.u64 %rd3, format;
  { .param .b64 a; .param .b64 b; .param .b32 c;
    st.param.b64 [a], %rd3; st.param.b64 [b], %rd2;
    call.uni (c), vprintf, (a, b); }
  add.u32 %r1, %r1, 1;
  bra NEXT;
DONE:
  ret;
}

// out[0] = the number of blocks of 64 KiB that malloc gives before it has no more, at most `most`.
.visible .entry take_all(.param .u64 out, .param .u32 most)
{
  .reg .pred %p<3>;
  .reg .u32 %r<4>;
  .reg .u64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r2, [most];
  mov.u32 %r1, 0;
NEXT:
  { .param .b64 a; .param .b64 b;
    st.param.b64 [a], 65536;
    call.uni (b), malloc, (a);
    ld.param.b64 %rd2, [b]; }
  setp.eq.u64 %p1, %rd2, 0;
  @%p1 bra DONE;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p2, %r1, %r2;
  @%p2 bra NEXT;
DONE:
  st.global.u32 [%rd1], %r1;
  ret;
}

.func (.param .b32 result) depth(.param .b32 n)
{
  .local .align 8 .b8 room[1024];
  .reg .pred %p<2>;
  .reg .u32 %r<5>;
  ld.param.u32 %r1, [n];
  st.local.u32 [room], %r1;
  mov.u32 %r4, 0;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  sub.u32 %r2, %r1, 1;
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r2;
    call.uni (b), depth, (a);
    ld.param.b32 %r3, [b]; }
  add.u32 %r4, %r3, 1;
DONE:
  st.param.b32 [result], %r4;
  ret;
}

.visible .entry recurse(.param .u64 out, .param .u32 n)
{
  .reg .u32 %r<3>;
  .reg .u64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call.uni (b), depth, (a);
    ld.param.b32 %r2, [b]; }
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry empty() { ret; }
)";

// Each test has a context of its own, because some limits can be set only once.
class Limits : public testing::Test {
 protected:
  void SetUp() override {
    OK(cuInit(0));
    OK(cuCtxCreate(&context_, nullptr, 0, 0));
    OK(cuModuleLoadData(&module_, ptx));
    OK(cuMemAlloc(&out_, 4));
  }
  void TearDown() override { EXPECT_EQ(cuCtxDestroy(context_), CUDA_SUCCESS); }

  void launch(const char* name, std::vector<void*> parameters) {
    CUfunction function = nullptr;
    OK(cuModuleGetFunction(&function, module_, name));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters.data(), nullptr));
  }
  unsigned result() {
    unsigned value = 0;
    EXPECT_EQ(cuMemcpyDtoH(&value, out_, 4), CUDA_SUCCESS);
    return value;
  }
  // Returns the text of a kernel that prints `count` numbers.
  std::string printed(unsigned count) {
    std::fflush(stdout);
    std::FILE* const file = std::tmpfile();
    const int before = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    launch("count_up", {&count});
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    std::fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    std::string text(static_cast<std::size_t>(std::ftell(file)) + (std::size_t{1} << 20), '\0');
    std::rewind(file);
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    return text;
  }

  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUdeviceptr out_ = 0;
};

std::string numbers(unsigned from, unsigned to) {
  std::string all;
  char line[16];
  for (unsigned k = from; k < to; ++k) {
    std::snprintf(line, sizeof line, "%05u\n", k);
    all += line;
  }
  return all;
}

TEST_F(Limits, ThePrintfBufferKeepsTheNewestLinesThatFit) {
  OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 4096));
  EXPECT_EQ(printed(600), numbers(0, 600));
  EXPECT_EQ(printed(2000), numbers(2000 - 4096 / 6, 2000));
}

TEST_F(Limits, TheHeapGivesWhatItHolds) {
  unsigned most = 1000;
  OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20));
  launch("take_all", {&out_, &most});
  EXPECT_EQ(result(), 16U);
}

TEST_F(Limits, ALargerHeapGivesMore) {
  unsigned most = 1000;
  OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20));
  launch("take_all", {&out_, &most});
  EXPECT_EQ(result(), 512U);
}

TEST_F(Limits, EachContextHasAHeapOfItsOwn) {
  unsigned most = 1000;
  launch("take_all", {&out_, &most});
  EXPECT_EQ(result(), 128U);  // 8 MiB in total
  CUcontext other = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr out = 0;
  OK(cuCtxCreate(&other, nullptr, 0, 0));
  OK(cuModuleLoadData(&module, ptx));
  OK(cuModuleGetFunction(&function, module, "take_all"));
  OK(cuMemAlloc(&out, 4));
  void* parameters[] = {&out, &most};
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  unsigned value = 0;
  OK(cuMemcpyDtoH(&value, out, 4));
  EXPECT_EQ(value, 128U);
  OK(cuCtxDestroy(other));
  OK(cuCtxSetCurrent(context_));
}

TEST_F(Limits, BufferAndHeapAreSetBeforeTheFirstKernelThatUsesThem) {
  const auto set = [](CUlimit limit) { return cuCtxSetLimit(limit, 2 << 20); };
  launch("empty", {});
  OK(set(CU_LIMIT_PRINTF_FIFO_SIZE));
  OK(set(CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(printed(1), numbers(0, 1));
  EXPECT_EQ(set(CU_LIMIT_PRINTF_FIFO_SIZE), CUDA_ERROR_INVALID_VALUE);
  OK(set(CU_LIMIT_MALLOC_HEAP_SIZE));
  unsigned most = 1;
  launch("take_all", {&out_, &most});
  EXPECT_EQ(set(CU_LIMIT_MALLOC_HEAP_SIZE), CUDA_ERROR_INVALID_VALUE);
  OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  std::size_t value = 0;
  OK(cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
  EXPECT_EQ(value, std::size_t{2} << 20);
}

TEST_F(Limits, AKernelMayRecurseAsFarAsTheStackReaches) {
  unsigned n = 100;  // each level of the recursion needs 1 KiB
  OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 128 << 10));
  launch("recurse", {&out_, &n});
  EXPECT_EQ(result(), 100U);
}

}  // namespace
