// Texture and surface references, which CUDA 12 removed from its compilers. A module in PTX may still contain them.
// Kernels read an array, linear memory and rows with a pitch through references, and write an array. The bindings
// change between launches.
#include "check.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // all of these calls are deprecated

namespace {

struct Driver {
  decltype(&::cuModuleLoadData) load = DRIVER_ENTRY(cuModuleLoadData);
  decltype(&::cuModuleUnload) unload = DRIVER_ENTRY(cuModuleUnload);
  decltype(&::cuModuleGetFunction) function = DRIVER_ENTRY(cuModuleGetFunction);
  decltype(&::cuModuleGetTexRef) texture = DRIVER_ENTRY(cuModuleGetTexRef);
  decltype(&::cuModuleGetSurfRef) surface = DRIVER_ENTRY(cuModuleGetSurfRef);
  decltype(&::cuLaunchKernel) launch = DRIVER_ENTRY(cuLaunchKernel);
  decltype(&::cuCtxSynchronize) synchronize = DRIVER_ENTRY(cuCtxSynchronize);
  decltype(&::cuArrayCreate) create_array = DRIVER_ENTRY(cuArrayCreate);
  decltype(&::cuArray3DCreate) create_surface = DRIVER_ENTRY(cuArray3DCreate);
  decltype(&::cuArrayDestroy) destroy_array = DRIVER_ENTRY(cuArrayDestroy);
  decltype(&::cuMemcpyHtoA) to_array = DRIVER_ENTRY(cuMemcpyHtoA);
  decltype(&::cuMemcpyAtoH) from_array = DRIVER_ENTRY(cuMemcpyAtoH);
  decltype(&::cuTexRefSetFlags) set_flags = DRIVER_ENTRY(cuTexRefSetFlags);
  decltype(&::cuTexRefSetFormat) set_format = DRIVER_ENTRY(cuTexRefSetFormat);
  decltype(&::cuTexRefSetArray) set_array = DRIVER_ENTRY(cuTexRefSetArray);
  decltype(&::cuTexRefGetArray) get_array = DRIVER_ENTRY(cuTexRefGetArray);
  decltype(&::cuTexRefSetAddress) set_address = DRIVER_ENTRY(cuTexRefSetAddress);
  decltype(&::cuTexRefSetAddress2D) set_rows = DRIVER_ENTRY(cuTexRefSetAddress2D);
  decltype(&::cuSurfRefSetArray) set_surface = DRIVER_ENTRY(cuSurfRefSetArray);
};

// The kernels: look: out[x] = picture[x], by coordinate, as for an array; look_at_memory: by index, as for linear
// memory; look_at_rows: out[y * 64 + x] = rows[y][x]; draw: board[x] = x + first
constexpr char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.global .texref picture;
.global .texref rows;
.global .surfref board;
.visible .entry look(.param .u64 out)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<8>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  cvt.rn.f32.u32 %f1, %r1;
  add.f32 %f1, %f1, 0f3F000000;
  tex.1d.v4.u32.f32 {%r2, %r3, %r4, %r5}, [picture, {%f1}];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry look_at_memory(.param .u64 out)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<8>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [picture, {%r1}];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry look_at_rows(.param .u64 out)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<8>;
  .reg .f32 %f<8>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  cvt.rn.f32.u32 %f1, %r1;
  cvt.rn.f32.u32 %f2, %r2;
  tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [rows, {%f1, %f2}];
  mad.lo.u32 %r3, %r2, 64, %r1;
  mul.wide.u32 %rd2, %r3, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.f32 [%rd1], %f3;
  ret;
}
.visible .entry draw(.param .u32 first)
{
  .reg .b32 %r<5>;
  ld.param.u32 %r1, [first];
  mov.u32 %r2, %tid.x;
  add.u32 %r3, %r1, %r2;
  shl.b32 %r4, %r2, 2;
  sust.b.1d.b32.trap [board, {%r4}], {%r3};
  ret;
}
)";

constexpr unsigned width = 64, height = 16;
constexpr size_t pitch = 512;

void launch(const Driver& driver, CUmodule module, const char* name, unsigned blocks, void* parameter) {
  CUfunction function = nullptr;
  void* parameters[] = {parameter};
  CHECK_DRIVER(driver.function(&function, module, name));
  CHECK_DRIVER(driver.launch(function, blocks, 1, 1, width, 1, 1, 0, nullptr, parameters, nullptr));
  CHECK_DRIVER(driver.synchronize());
}

CUarray array_of(const Driver& driver, const std::vector<unsigned>& texels) {
  const CUDA_ARRAY_DESCRIPTOR d{width, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray array = nullptr;
  CHECK_DRIVER(driver.create_array(&array, &d));
  CHECK_DRIVER(driver.to_array(array, 0, texels.data(), width * sizeof(unsigned)));
  return array;
}

std::vector<unsigned> numbers(unsigned salt) {
  std::vector<unsigned> out(width);
  for (unsigned i = 0; i < width; ++i) out[i] = static_cast<unsigned>(check::small_number(i, salt)) + 1000 * salt;
  return out;
}

void expect_seen(const Driver& driver, CUmodule module, const char* kernel, const std::vector<unsigned>& texels,
                 const char* where) {
  unsigned* out = nullptr;
  std::vector<unsigned> seen(width);
  CHECK_CUDA(cudaMalloc(&out, width * sizeof(unsigned)));
  launch(driver, module, kernel, 1, &out);
  CHECK_CUDA(cudaMemcpy(seen.data(), out, width * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK_THAT(seen == texels, "%s: the kernel sees other texels.", where);
  CHECK_CUDA(cudaFree(out));
}

void read_array_and_memory(const Driver& driver, CUmodule module) {
  CUtexref picture = nullptr;
  CUarray found = nullptr;
  const CUarray first = array_of(driver, numbers(1)), second = array_of(driver, numbers(2));
  CHECK_DRIVER(driver.texture(&picture, module, "picture"));
  CHECK_DRIVER(driver.set_flags(picture, CU_TRSF_READ_AS_INTEGER));
  CHECK_DRIVER(driver.set_array(picture, first, CU_TRSA_OVERRIDE_FORMAT));
  expect_seen(driver, module, "look", numbers(1), "the first array");
  CHECK_DRIVER(driver.set_array(picture, second, CU_TRSA_OVERRIDE_FORMAT));
  expect_seen(driver, module, "look", numbers(2), "the second array");
  CHECK_DRIVER(driver.get_array(&found, picture));
  CHECK_THAT(found == second, "The reference has another array.");
  std::printf("two arrays through one reference\n");

  unsigned* memory = nullptr;
  size_t offset = 1;
  CHECK_CUDA(cudaMalloc(&memory, width * sizeof(unsigned)));
  CHECK_CUDA(cudaMemcpy(memory, numbers(3).data(), width * sizeof(unsigned), cudaMemcpyHostToDevice));
  CHECK_DRIVER(driver.set_format(picture, CU_AD_FORMAT_UNSIGNED_INT32, 1));
  CHECK_DRIVER(driver.set_address(&offset, picture, reinterpret_cast<CUdeviceptr>(memory), width * sizeof(unsigned)));
  CHECK_THAT(offset == 0, "The memory begins %zu bytes before its texels.", offset);
  expect_seen(driver, module, "look_at_memory", numbers(3), "linear memory");
  std::printf("and linear memory\n");
  CHECK_DRIVER(driver.destroy_array(first));
  CHECK_DRIVER(driver.destroy_array(second));
  CHECK_CUDA(cudaFree(memory));
}

void read_rows(const Driver& driver, CUmodule module) {
  CUtexref rows = nullptr;
  float *memory = nullptr, *out = nullptr;
  const CUDA_ARRAY_DESCRIPTOR d{width, height, CU_AD_FORMAT_FLOAT, 1};
  std::vector<float> texels(height * pitch / sizeof(float)), seen(height * width);
  for (size_t i = 0; i < texels.size(); ++i) texels[i] = static_cast<float>(check::small_number(i, 4));
  CHECK_CUDA(cudaMalloc(&memory, height * pitch));
  CHECK_CUDA(cudaMalloc(&out, seen.size() * sizeof(float)));
  CHECK_CUDA(cudaMemcpy(memory, texels.data(), height * pitch, cudaMemcpyHostToDevice));
  CHECK_DRIVER(driver.texture(&rows, module, "rows"));
  CHECK_DRIVER(driver.set_rows(rows, &d, reinterpret_cast<CUdeviceptr>(memory), pitch));
  launch(driver, module, "look_at_rows", height, &out);
  CHECK_CUDA(cudaMemcpy(seen.data(), out, seen.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (unsigned y = 0; y < height; ++y)
    for (unsigned x = 0; x < width; ++x)
      CHECK_THAT(seen[y * width + x] == texels[y * pitch / sizeof(float) + x], "Row %u, texel %u: another.", y, x);
  CHECK_CUDA(cudaFree(out));
  CHECK_CUDA(cudaFree(memory));
  std::printf("rows with a pitch\n");
}

void write_array(const Driver& driver, CUmodule module) {
  CUsurfref board = nullptr;
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR d{width, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST};
  std::vector<unsigned> drawn(width);
  unsigned first = 70;
  CHECK_DRIVER(driver.create_surface(&array, &d));
  CHECK_DRIVER(driver.surface(&board, module, "board"));
  CHECK_DRIVER(driver.set_surface(board, array, 0));
  launch(driver, module, "draw", 1, &first);
  CHECK_DRIVER(driver.from_array(drawn.data(), array, 0, width * sizeof(unsigned)));
  for (unsigned i = 0; i < width; ++i) CHECK_THAT(drawn[i] == i + first, "Texel %u has %u.", i, drawn[i]);
  CHECK_DRIVER(driver.destroy_array(array));
  std::printf("an array written through a surface reference\n");
}

}  // namespace

int main(int argc, char** argv) {
  check::parse(argc, argv, "texture_references", "reads and writes through texture and surface references", {});
  CHECK_CUDA(cudaFree(nullptr));
  const Driver driver;
  CUmodule module = nullptr;
  CHECK_DRIVER(driver.load(&module, ptx));
  read_array_and_memory(driver, module);
  read_rows(driver, module);
  write_array(driver, module);
  CHECK_DRIVER(driver.unload(module));
  std::printf("pass\n");
}
