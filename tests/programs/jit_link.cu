// Code that the driver's linker combines at run time: two PTX inputs, one of which calls a function and reads a
// variable of the other, from memory and from a file; a missing input; and a link of many inputs, with large inputs and
// a large image.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "check.h"

namespace {

struct Linker {
  decltype(&::cuLinkCreate) create = DRIVER_ENTRY(cuLinkCreate);
  decltype(&::cuLinkAddData) add_data = DRIVER_ENTRY(cuLinkAddData);
  decltype(&::cuLinkAddFile) add_file = DRIVER_ENTRY(cuLinkAddFile);
  decltype(&::cuLinkComplete) complete = DRIVER_ENTRY(cuLinkComplete);
  decltype(&::cuLinkDestroy) destroy = DRIVER_ENTRY(cuLinkDestroy);
  decltype(&::cuModuleLoadData) load = DRIVER_ENTRY(cuModuleLoadData);
  decltype(&::cuModuleUnload) unload = DRIVER_ENTRY(cuModuleUnload);
  decltype(&::cuModuleGetFunction) function = DRIVER_ENTRY(cuModuleGetFunction);
  decltype(&::cuModuleGetGlobal) global = DRIVER_ENTRY(cuModuleGetGlobal);
  decltype(&::cuLaunchKernel) launch = DRIVER_ENTRY(cuLaunchKernel);
};

constexpr char head[] = ".version 7.0\n.target sm_70\n.address_size 64\n";

// out[i] = combined(i) + offset
constexpr char caller[] = R"(
.extern .func (.param .b32 result) combined(.param .b32 value);
.extern .global .align 4 .u32 offset;
.visible .entry apply(.param .u64 out)
{
  .reg .u32 %r<5>;
  .reg .u64 %rd<5>;
  .param .b32 argument;
  .param .b32 result;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  st.param.b32 [argument], %r1;
  call.uni (result), combined, (argument);
  ld.param.b32 %r2, [result];
  ld.global.u32 %r3, [offset];
  add.u32 %r4, %r2, %r3;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r4;
  ret;
}
)";
// 3 * value
constexpr char callee[] = R"(
.visible .global .align 4 .u32 offset = 7;
.visible .func (.param .b32 result) combined(.param .b32 value)
{
  .reg .u32 %r<3>;
  ld.param.b32 %r1, [value];
  mul.lo.u32 %r2, %r1, 3;
  st.param.b32 [result], %r2;
  ret;
}
)";

constexpr unsigned threads = 64;

std::string text(const std::string& body) { return head + body; }

void add(const Linker& linker, CUlinkState link, std::string ptx, const char* name) {
  CHECK_DRIVER(linker.add_data(link, CU_JIT_INPUT_PTX, ptx.data(), ptx.size() + 1, name, 0, nullptr, nullptr));
}

// Loads a link's image as a module. Destroying the link frees the image, but the module stays.
CUmodule finish(const Linker& linker, CUlinkState link) {
  void* image = nullptr;
  size_t size = 0;
  CUmodule module = nullptr;
  CHECK_DRIVER(linker.complete(link, &image, &size));
  CHECK_THAT(image != nullptr && size != 0, "The link has no image.");
  CHECK_DRIVER(linker.load(&module, image));
  CHECK_DRIVER(linker.destroy(link));
  return module;
}

// Runs `apply` and compares each thread's result with factor * i + offset.
void check_apply(const Linker& linker, CUmodule module, unsigned factor, unsigned offset) {
  unsigned* out = nullptr;
  CUfunction function = nullptr;
  CHECK_CUDA(cudaMalloc(&out, threads * sizeof(unsigned)));
  CHECK_DRIVER(linker.function(&function, module, "apply"));
  void* parameters[] = {&out};
  CHECK_DRIVER(linker.launch(function, 1, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr));
  std::vector<unsigned> got(threads);
  CHECK_CUDA(cudaMemcpy(got.data(), out, threads * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (unsigned i = 0; i < threads; ++i) CHECK_THAT(got[i] == factor * i + offset, "Thread %u has %u.", i, got[i]);
  CHECK_CUDA(cudaFree(out));
}

void from_memory(const Linker& linker) {
  CUlinkState link = nullptr;
  CHECK_DRIVER(linker.create(0, nullptr, nullptr, &link));
  add(linker, link, text(caller), "caller.ptx");
  add(linker, link, text(callee), "callee.ptx");
  const CUmodule module = finish(linker, link);
  check_apply(linker, module, 3, 7);
  CUdeviceptr offset = 0;
  size_t size = 0;
  CHECK_DRIVER(linker.global(&offset, &size, module, "offset"));
  CHECK_THAT(size == sizeof(unsigned), "The variable has %zu bytes.", size);
  const unsigned changed = 1000;
  CHECK_CUDA(cudaMemcpy(reinterpret_cast<void*>(offset), &changed, sizeof changed, cudaMemcpyHostToDevice));
  check_apply(linker, module, 3, changed);
  CHECK_DRIVER(linker.unload(module));
  std::printf("two pieces of PTX are one module\n");
}

void from_files(const Linker& linker) {
  CUlinkState link = nullptr;
  CHECK_DRIVER(linker.create(0, nullptr, nullptr, &link));
  for (const char* body : {caller, callee}) {
    const std::string ptx = text(body);
    const int file = memfd_create("jit_link", 0);
    CHECK_THAT(file >= 0 && write(file, ptx.data(), ptx.size()) == static_cast<ssize_t>(ptx.size()), "No file.");
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    CHECK_DRIVER(linker.add_file(link, CU_JIT_INPUT_PTX, path.c_str(), 0, nullptr, nullptr));
    close(file);
  }
  CHECK_THAT(
      linker.add_file(link, CU_JIT_INPUT_PTX, "/nonexistent.ptx", 0, nullptr, nullptr) == CUDA_ERROR_FILE_NOT_FOUND,
      "A file that is not there was found.");
  const CUmodule module = finish(linker, link);
  check_apply(linker, module, 3, 7);
  CHECK_DRIVER(linker.unload(module));
  std::printf("and from files\n");
}

void without_a_piece(const Linker& linker) {
  char log[4096] = "";
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUlinkState link = nullptr;
  void* image = nullptr;
  size_t size = 0;
  CHECK_DRIVER(linker.create(2, names, values, &link));
  add(linker, link, text(caller), "caller.ptx");
  CHECK_THAT(linker.complete(link, &image, &size) != CUDA_SUCCESS, "A link without one of its pieces succeeded.");
  CHECK_THAT(std::strstr(log, "combined") != nullptr, "The log does not name the missing function: %s", log);
  CHECK_DRIVER(linker.destroy(link));
  std::printf("a missing piece is named in the log\n");
}

// combined(value) = sum of part_k(value) = (0 + 1 + ... + pieces - 1) * value
void of_many(const Linker& linker, unsigned pieces) {
  const std::string comment(1000, '-');  // makes the inputs large
  std::string sum =
      ".visible .global .align 4 .u32 offset = 0;\n"
      "%DECLARED%.visible .func (.param .b32 result) combined(.param .b32 value)\n{\n"
      "  .reg .u32 %r<4>;\n  .param .b32 given;\n  .param .b32 taken;\n"
      "  ld.param.b32 %r1, [value];\n  mov.u32 %r2, 0;\n";
  std::string declared;
  CUlinkState link = nullptr;
  CHECK_DRIVER(linker.create(0, nullptr, nullptr, &link));
  for (unsigned k = 0; k < pieces; ++k) {
    const std::string signature = ".func (.param .b32 result) part_" + std::to_string(k) + "(.param .b32 value)";
    declared += ".extern " + signature + ";\n";
    // A call consumes its arguments, so each call has its own store.
    sum += "  st.param.b32 [given], %r1;\n  call.uni (taken), part_" + std::to_string(k) +
           ", (given);\n  ld.param.b32 %r3, [taken];\n  add.u32 %r2, %r2, %r3;\n";
    add(linker, link,
        text("// " + comment + "\n.visible " + signature +
             "\n{\n  .reg .u32 %r<3>;\n  ld.param.b32 %r1, [value];\n  mul.lo.u32 %r2, %r1, " + std::to_string(k) +
             ";\n  st.param.b32 [result], %r2;\n  ret;\n}\n"),
        nullptr);
  }
  sum.replace(sum.find("%DECLARED%"), 10, declared);
  add(linker, link, text("// " + std::string(100000, '-') + "\n" + sum + "  st.param.b32 [result], %r2;\n  ret;\n}\n"),
      "sum.ptx");
  add(linker, link, text(caller), "caller.ptx");
  const CUmodule module = finish(linker, link);
  check_apply(linker, module, pieces * (pieces - 1) / 2, 0);
  CHECK_DRIVER(linker.unload(module));
  std::printf("%u pieces are one module\n", pieces + 2);
}

}  // namespace

int main(int argc, char** argv) {
  long pieces = 120;
  check::parse(argc, argv, "jit_link", "code that the driver's linker puts together",
               {{"--pieces", "functions of the largest link, each in a piece of its own", &pieces, 1, 2000}});
  CHECK_CUDA(cudaFree(nullptr));
  const Linker linker;
  from_memory(linker);
  from_files(linker);
  without_a_piece(linker);
  of_many(linker, static_cast<unsigned>(pieces));
  std::printf("pass\n");
}
