// Cases for texture and surface references. CUDA 12 removed them from its compilers, but the driver still has their
// calls.
#include "tests/contract/arrays.h"

namespace contract {
namespace {

CUtexref make_reference() {
  CUtexref reference = nullptr;
  CU(cuTexRefCreate)(&reference);
  return reference;
}

GROUP(texture_references, InContext) {
  CUtexref r = nullptr;
  CUarray_format format{};
  CUaddress_mode mode{};
  CUfilter_mode filter{};
  int channels = 0, anisotropy = 0;
  float bias = 0, least = 0, most = 0, border[4] = {};
  unsigned flags = 0;
  show("cuTexRefCreate", CU(cuTexRefCreate)(&r));
  show("cuTexRefGetFormat", CU(cuTexRefGetFormat)(&format, &channels, r));
  show("cuTexRefGetAddressMode", CU(cuTexRefGetAddressMode)(&mode, r, 0));
  show("its address mode", mode);
  show("cuTexRefGetFilterMode", CU(cuTexRefGetFilterMode)(&filter, r));
  show("its filter mode", filter);
  show("cuTexRefGetMipmapFilterMode", CU(cuTexRefGetMipmapFilterMode)(&filter, r));
  show("its mipmap filter mode", filter);
  show("cuTexRefGetMaxAnisotropy", CU(cuTexRefGetMaxAnisotropy)(&anisotropy, r));
  show("its anisotropy", anisotropy);
  show("cuTexRefGetMipmapLevelBias", CU(cuTexRefGetMipmapLevelBias)(&bias, r));
  show("cuTexRefGetMipmapLevelClamp", CU(cuTexRefGetMipmapLevelClamp)(&least, &most, r));
  show("cuTexRefGetBorderColor", CU(cuTexRefGetBorderColor)(border, r));
  show("cuTexRefGetFlags", CU(cuTexRefGetFlags)(&flags, r));
  show("its flags", flags);
  show("cuTexRefDestroy", CU(cuTexRefDestroy)(r));
}

GROUP(texture_references_set, InContext) {
  const CUtexref r = make_reference();
  CUarray_format format{};
  CUaddress_mode mode{};
  CUfilter_mode filter{};
  int channels = 0, anisotropy = 0;
  float bias = 0, least = 0, most = 0, border[4] = {0, 0.25f, 0.5f, 1}, found[4] = {};
  unsigned flags = 0;
  show("cuTexRefSetFormat", CU(cuTexRefSetFormat)(r, CU_AD_FORMAT_HALF, 2));
  CU(cuTexRefGetFormat)(&format, &channels, r);
  show("its format", format);
  show("its channels", channels);
  show("cuTexRefSetAddressMode", CU(cuTexRefSetAddressMode)(r, 1, CU_TR_ADDRESS_MODE_BORDER));
  CU(cuTexRefGetAddressMode)(&mode, r, 1);
  show("its second address mode", mode);
  show("cuTexRefSetFilterMode", CU(cuTexRefSetFilterMode)(r, CU_TR_FILTER_MODE_LINEAR));
  CU(cuTexRefGetFilterMode)(&filter, r);
  show("its filter mode", filter);
  show("cuTexRefSetMipmapFilterMode", CU(cuTexRefSetMipmapFilterMode)(r, CU_TR_FILTER_MODE_LINEAR));
  show("cuTexRefSetMipmapLevelBias", CU(cuTexRefSetMipmapLevelBias)(r, 1.5f));
  CU(cuTexRefGetMipmapLevelBias)(&bias, r);
  show("ten times its bias", static_cast<long long>(bias * 10));
  show("cuTexRefSetMipmapLevelClamp", CU(cuTexRefSetMipmapLevelClamp)(r, 1, 4));
  CU(cuTexRefGetMipmapLevelClamp)(&least, &most, r);
  show("its levels", static_cast<long long>(least * 10 + most));
  show("cuTexRefSetMaxAnisotropy", CU(cuTexRefSetMaxAnisotropy)(r, 8));
  CU(cuTexRefGetMaxAnisotropy)(&anisotropy, r);
  show("its anisotropy", anisotropy);
  show("cuTexRefSetMaxAnisotropy 100", CU(cuTexRefSetMaxAnisotropy)(r, 100));
  show("cuTexRefSetBorderColor", CU(cuTexRefSetBorderColor)(r, border));
  CU(cuTexRefGetBorderColor)(found, r);
  show_flag("its border", std::memcmp(found, border, sizeof border) == 0);
  show("cuTexRefSetFlags", CU(cuTexRefSetFlags)(r, CU_TRSF_NORMALIZED_COORDINATES));
  CU(cuTexRefGetFlags)(&flags, r);
  show("its flags", flags);
}

GROUP(texture_references_bound, InContext) {
  const CUtexref r = make_reference();
  const CUarray array = make_array(described(64, 16));
  const CUmipmappedArray levels = make_mipmapped(described(64, 16), 3);
  CUarray found = nullptr;
  CUmipmappedArray found_levels = nullptr;
  CUdeviceptr a = 0, address = 0;
  std::size_t offset = 99;
  CU(cuMemAlloc_v2)(&a, 1 << 16);
  show("cuTexRefGetArray of none", CU(cuTexRefGetArray)(&found, r));
  show("cuTexRefGetMipmappedArray of none", CU(cuTexRefGetMipmappedArray)(&found_levels, r));
  show("cuTexRefGetAddress of none", CU(cuTexRefGetAddress_v2)(&address, r));
  show("cuTexRefSetArray", CU(cuTexRefSetArray)(r, array, CU_TRSA_OVERRIDE_FORMAT));
  show("cuTexRefGetArray", CU(cuTexRefGetArray)(&found, r));
  show_flag("its array", found == array);
  show("cuTexRefGetAddress of an array", CU(cuTexRefGetAddress_v2)(&address, r));
  show("cuTexRefSetMipmappedArray", CU(cuTexRefSetMipmappedArray)(r, levels, CU_TRSA_OVERRIDE_FORMAT));
  show("cuTexRefGetMipmappedArray", CU(cuTexRefGetMipmappedArray)(&found_levels, r));
  show_flag("its mipmapped array", found_levels == levels);
  show("cuTexRefSetFormat", CU(cuTexRefSetFormat)(r, CU_AD_FORMAT_FLOAT, 1));
  show("cuTexRefSetAddress", CU(cuTexRefSetAddress_v2)(&offset, r, a, 4096));
  show("its offset", static_cast<long long>(offset));
  show("cuTexRefGetAddress", CU(cuTexRefGetAddress_v2)(&address, r));
  show_flag("its address", address == a);
  show("cuTexRefSetAddress of a middle", CU(cuTexRefSetAddress_v2)(&offset, r, a + 16, 4096));
  show("cuTexRefSetAddress of a middle, no offset", CU(cuTexRefSetAddress_v2)(nullptr, r, a + 16, 4096));
  const CUDA_ARRAY_DESCRIPTOR d{.Width = 64, .Height = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  show("cuTexRefSetAddress2D", CU(cuTexRefSetAddress2D_v3)(r, &d, a, 512));
  show("cuTexRefSetAddress2D, the form before", CU(cuTexRefSetAddress2D_v2)(r, &d, a, 512));
}

GROUP(texture_reference_errors, InContext) {
  const CUtexref r = make_reference();
  const CUarray array = make_array(described(64, 16));
  const CUmipmappedArray levels = make_mipmapped(described(64, 16), 3);
  CUdeviceptr a = 0;
  int value = 0;
  float number = 0;
  CU(cuMemAlloc_v2)(&a, 1 << 16);
  show("cuTexRefCreate null", CU(cuTexRefCreate)(nullptr));
  show("cuTexRefSetArray flags 0", CU(cuTexRefSetArray)(r, array, 0));
  show("cuTexRefSetArray flags 2", CU(cuTexRefSetArray)(r, array, 2));
  show("cuTexRefSetMipmappedArray flags 0", CU(cuTexRefSetMipmappedArray)(r, levels, 0));
  show("cuTexRefSetFormat 5", CU(cuTexRefSetFormat)(r, odd<CUarray_format>(5), 1));
  show("cuTexRefSetFormat 3 channels", CU(cuTexRefSetFormat)(r, CU_AD_FORMAT_FLOAT, 3));
  show("cuTexRefSetFormat -1 channels", CU(cuTexRefSetFormat)(r, CU_AD_FORMAT_FLOAT, -1));
  show("cuTexRefSetAddressMode 3", CU(cuTexRefSetAddressMode)(r, 3, CU_TR_ADDRESS_MODE_WRAP));
  show("cuTexRefSetAddressMode -1", CU(cuTexRefSetAddressMode)(r, -1, CU_TR_ADDRESS_MODE_WRAP));
  show("cuTexRefSetAddressMode of mode 4", CU(cuTexRefSetAddressMode)(r, 0, odd<CUaddress_mode>(4)));
  show("cuTexRefSetFilterMode 2", CU(cuTexRefSetFilterMode)(r, odd<CUfilter_mode>(2)));
  show("cuTexRefSetMipmapFilterMode 2", CU(cuTexRefSetMipmapFilterMode)(r, odd<CUfilter_mode>(2)));
  show("cuTexRefSetFlags 4", CU(cuTexRefSetFlags)(r, 4));
  show("cuTexRefSetBorderColor null", CU(cuTexRefSetBorderColor)(r, nullptr));
  show("cuTexRefGetBorderColor null", CU(cuTexRefGetBorderColor)(nullptr, r));
  show("cuTexRefGetFormat null", CU(cuTexRefGetFormat)(nullptr, nullptr, r));
  show("cuTexRefGetFormat no format", CU(cuTexRefGetFormat)(nullptr, &value, r));
  show("cuTexRefGetAddressMode null", CU(cuTexRefGetAddressMode)(nullptr, r, 0));
  show("cuTexRefGetFilterMode null", CU(cuTexRefGetFilterMode)(nullptr, r));
  show("cuTexRefGetMipmapFilterMode null", CU(cuTexRefGetMipmapFilterMode)(nullptr, r));
  show("cuTexRefGetMipmapLevelBias null", CU(cuTexRefGetMipmapLevelBias)(nullptr, r));
  show("cuTexRefGetMipmapLevelClamp null", CU(cuTexRefGetMipmapLevelClamp)(nullptr, nullptr, r));
  show("cuTexRefGetMipmapLevelClamp no maximum", CU(cuTexRefGetMipmapLevelClamp)(&number, nullptr, r));
  show("cuTexRefGetMaxAnisotropy null", CU(cuTexRefGetMaxAnisotropy)(nullptr, r));
  show("cuTexRefGetFlags null", CU(cuTexRefGetFlags)(nullptr, r));
  show("cuTexRefGetArray null", CU(cuTexRefGetArray)(nullptr, r));
  show_guarded("cuTexRefGetMipmappedArray null", [&] { return CU(cuTexRefGetMipmappedArray)(nullptr, r); });
}

GROUP(texture_reference_no_address, InContext) {
  const CUtexref r = make_reference();
  show_guarded("cuTexRefGetAddress null", [&] { return CU(cuTexRefGetAddress_v2)(nullptr, r); });
}

// Shows the effect of invalid values on the setters.
GROUP(texture_references_odd, InContext) {
  const CUtexref r = make_reference();
  CUarray_format format{};
  CUaddress_mode mode{};
  CUfilter_mode filter{};
  int channels = 0, anisotropy = 0;
  unsigned flags = 0;
  for (const int n : {0, 2, 4, 5, 8, -1}) {
    const std::string of = " of " + std::to_string(n) + " channels";
    show("cuTexRefSetFormat" + of, CU(cuTexRefSetFormat)(r, CU_AD_FORMAT_FLOAT, n));
    show("cuTexRefGetFormat" + of, CU(cuTexRefGetFormat)(&format, &channels, r));
    show("channels" + of, channels);
  }
  show("cuTexRefSetFormat 5", CU(cuTexRefSetFormat)(r, odd<CUarray_format>(5), 1));
  CU(cuTexRefGetFormat)(&format, &channels, r);
  show("its format", format);
  show("cuTexRefSetAddressMode of mode 4", CU(cuTexRefSetAddressMode)(r, 2, odd<CUaddress_mode>(4)));
  show("cuTexRefGetAddressMode", CU(cuTexRefGetAddressMode)(&mode, r, 2));
  show("its third address mode", mode);
  show("cuTexRefGetAddressMode 3", CU(cuTexRefGetAddressMode)(&mode, r, 3));
  show("cuTexRefGetAddressMode -1", CU(cuTexRefGetAddressMode)(&mode, r, -1));
  show("cuTexRefSetFilterMode 2", CU(cuTexRefSetFilterMode)(r, odd<CUfilter_mode>(2)));
  CU(cuTexRefGetFilterMode)(&filter, r);
  show("its filter mode", filter);
  show("cuTexRefSetMaxAnisotropy 100", CU(cuTexRefSetMaxAnisotropy)(r, 100));
  CU(cuTexRefGetMaxAnisotropy)(&anisotropy, r);
  show("its anisotropy", anisotropy);
  show("cuTexRefSetMaxAnisotropy 0", CU(cuTexRefSetMaxAnisotropy)(r, 0));
  CU(cuTexRefGetMaxAnisotropy)(&anisotropy, r);
  show("its least anisotropy", anisotropy);
  show("cuTexRefSetFlags 4", CU(cuTexRefSetFlags)(r, 4));
  CU(cuTexRefGetFlags)(&flags, r);
  show("its flags", flags);
  show("cuTexRefSetFlags of all", CU(cuTexRefSetFlags)(r, ~0u));
  CU(cuTexRefGetFlags)(&flags, r);
  show("all its flags", flags);
}

GROUP(texture_references_of_what_has_ended, InContext) {
  const CUtexref r = make_reference();
  const CUarray array = make_array(described(64, 16));
  const CUmipmappedArray levels = make_mipmapped(described(64, 16), 3);
  CUarray found = nullptr;
  CUmipmappedArray found_levels = nullptr;
  CUdeviceptr a = 0, address = 0;
  CU(cuMemAlloc_v2)(&a, 1 << 16);
  CU(cuTexRefSetAddress_v2)(nullptr, r, a, 4096);
  CU(cuMemFree_v2)(a);
  show_guarded("cuTexRefGetAddress", [&] { return CU(cuTexRefGetAddress_v2)(&address, r); });
  CU(cuTexRefSetArray)(r, array, CU_TRSA_OVERRIDE_FORMAT);
  CU(cuArrayDestroy)(array);
  show_guarded("cuTexRefGetArray", [&] { return CU(cuTexRefGetArray)(&found, r); });
  CU(cuTexRefSetMipmappedArray)(r, levels, CU_TRSA_OVERRIDE_FORMAT);
  CU(cuMipmappedArrayDestroy)(levels);
  show_guarded("cuTexRefGetMipmappedArray", [&] { return CU(cuTexRefGetMipmappedArray)(&found_levels, r); });
  show_guarded("cuTexRefDestroy", [&] { return CU(cuTexRefDestroy)(r); });
}

GROUP(texture_reference_memory_errors, InContext) {
  const CUtexref r = make_reference();
  CUdeviceptr a = 0;
  std::size_t offset = 0;
  CU(cuMemAlloc_v2)(&a, 1 << 16);
  CU(cuTexRefSetFormat)(r, CU_AD_FORMAT_FLOAT, 1);
  show("cuTexRefSetAddress of too much", CU(cuTexRefSetAddress_v2)(&offset, r, a, (1 << 16) + 4));
  show("cuTexRefSetAddress of nothing", CU(cuTexRefSetAddress_v2)(&offset, r, 0, 0));
  show("cuTexRefSetAddress of null", CU(cuTexRefSetAddress_v2)(&offset, r, 0, 64));
  CUDA_ARRAY_DESCRIPTOR d{.Width = 64, .Height = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  show("cuTexRefSetAddress2D no description", CU(cuTexRefSetAddress2D_v3)(r, nullptr, a, 512));
  show("cuTexRefSetAddress2D pitch 100", CU(cuTexRefSetAddress2D_v3)(r, &d, a, 100));
  show("cuTexRefSetAddress2D pitch 260", CU(cuTexRefSetAddress2D_v3)(r, &d, a, 260));
  show("cuTexRefSetAddress2D of a middle", CU(cuTexRefSetAddress2D_v3)(r, &d, a + 4, 512));
  d.NumChannels = 3;
  show("cuTexRefSetAddress2D 3 channels", CU(cuTexRefSetAddress2D_v3)(r, &d, a, 1024));
  d.NumChannels = 1, d.Width = 0;
  show("cuTexRefSetAddress2D width 0", CU(cuTexRefSetAddress2D_v3)(r, &d, a, 512));
}

GROUP(references_of_a_module, InContext) {
  const CUmodule module = load_module();
  CUtexref texture = nullptr;
  CUsurfref surface = nullptr;
  show("cuModuleGetTexRef", CU(cuModuleGetTexRef)(&texture, module, "texture"));
  show("cuModuleGetTexRef of a global", CU(cuModuleGetTexRef)(&texture, module, "answer"));
  show("cuModuleGetTexRef null", CU(cuModuleGetTexRef)(nullptr, module, "texture"));
  show("cuModuleGetTexRef no name", CU(cuModuleGetTexRef)(&texture, module, nullptr));
  show("cuModuleGetSurfRef", CU(cuModuleGetSurfRef)(&surface, module, "surface"));
  show("cuModuleGetSurfRef null", CU(cuModuleGetSurfRef)(nullptr, module, "surface"));
  show("cuModuleGetSurfRef no name", CU(cuModuleGetSurfRef)(&surface, module, nullptr));
  show_guarded("cuModuleGetTexRef of no module", [&] { return CU(cuModuleGetTexRef)(&texture, nullptr, "texture"); });
  show_guarded("cuModuleGetSurfRef of no module", [&] { return CU(cuModuleGetSurfRef)(&surface, nullptr, "surface"); });
}

// ---- references that kernels read ----------------------------------------------------------------------------------

constexpr char with_references[] = R"(
.version 7.0
.target sm_70
.address_size 64
.global .texref picture;
.global .texref rows;
.global .surfref board;
.visible .entry look(.param .u64 out) {
  .reg .b64 %rd<4>; .reg .b32 %r<8>;
  ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [picture, {%r1}];
  mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry look_at_rows(.param .u64 out) {
  .reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .f32 %f<8>;
  ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;
  cvt.rn.f32.u32 %f1, %r1; cvt.rn.f32.u32 %f2, %r2;
  tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [rows, {%f1, %f2}];
  mad.lo.u32 %r3, %r2, 8, %r1;
  mul.wide.u32 %rd2, %r3, 4; add.u64 %rd1, %rd1, %rd2;
  st.global.f32 [%rd1], %f3;
  ret;
}
.visible .entry draw() {
  .reg .b32 %r<4>;
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; add.u32 %r3, %r1, 7;
  sust.b.1d.b32.trap [board, {%r2}], {%r3};
  ret;
}
)";

CUmodule module_with_references() {
  CUmodule module = nullptr;
  show("cuModuleLoadData", CU(cuModuleLoadData)(&module, with_references));
  return module;
}

void launch(CUmodule module, const char* name, unsigned x, unsigned y, void** parameters) {
  show(std::string("cuLaunchKernel ") + name,
       CU(cuLaunchKernel)(function_of(module, name), 1, 1, 1, x, y, 1, 0, nullptr, parameters, nullptr));
  show(std::string("cuCtxSynchronize after ") + name, CU(cuCtxSynchronize)());
}

void show_words(const std::string& what, CUdeviceptr at) {
  unsigned words[8] = {};
  CU(cuMemcpyDtoH_v2)(words, at, sizeof words);
  for (int i = 0; i < 8; ++i) show(what + ", word " + std::to_string(i), words[i]);
}

GROUP(references_have_one_handle, InContext) {
  const CUmodule module = module_with_references();
  CUtexref first = nullptr, second = nullptr;
  CUsurfref surface = nullptr;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  show("cuModuleGetTexRef", CU(cuModuleGetTexRef)(&first, module, "picture"));
  show("cuModuleGetTexRef again", CU(cuModuleGetTexRef)(&second, module, "picture"));
  show_flag("the same", first == second);
  show("cuModuleGetTexRef of another", CU(cuModuleGetTexRef)(&second, module, "rows"));
  show_flag("not the same", first != second);
  show("cuModuleGetTexRef of a surface", CU(cuModuleGetTexRef)(&second, module, "board"));
  show("cuModuleGetTexRef of a kernel", CU(cuModuleGetTexRef)(&second, module, "look"));
  show("cuModuleGetTexRef of an empty name", CU(cuModuleGetTexRef)(&second, module, ""));
  show("cuModuleGetSurfRef", CU(cuModuleGetSurfRef)(&surface, module, "board"));
  show("cuModuleGetSurfRef of a texture", CU(cuModuleGetSurfRef)(&surface, module, "picture"));
  show("cuModuleGetGlobal of a texture", CU(cuModuleGetGlobal_v2)(&address, &bytes, module, "picture"));
  show("cuTexRefSetFilterMode", CU(cuTexRefSetFilterMode)(first, CU_TR_FILTER_MODE_POINT));
  show("cuModuleUnload", CU(cuModuleUnload)(module));
}

GROUP(texture_references_read, InContext) {
  const CUmodule module = module_with_references();
  const CUarray array = make_array(described(8));
  const unsigned words[8] = {3, 1, 4, 1, 5, 9, 2, 6};
  CUtexref picture = nullptr;
  CUdeviceptr out = 0, memory = 0;
  void* parameters[] = {&out};
  CU(cuMemAlloc_v2)(&out, sizeof words);
  CU(cuMemAlloc_v2)(&memory, sizeof words);
  CU(cuMemcpyHtoA_v2)(array, 0, words, sizeof words);
  show("cuModuleGetTexRef", CU(cuModuleGetTexRef)(&picture, module, "picture"));
  show("cuTexRefSetFlags", CU(cuTexRefSetFlags)(picture, CU_TRSF_READ_AS_INTEGER));
  show("cuTexRefSetArray", CU(cuTexRefSetArray)(picture, array, CU_TRSA_OVERRIDE_FORMAT));
  launch(module, "look", 8, 1, parameters);
  show_words("of an array", out);
  CU(cuMemsetD32_v2)(memory, 77, 8);
  show("cuTexRefSetFormat", CU(cuTexRefSetFormat)(picture, CU_AD_FORMAT_UNSIGNED_INT32, 1));
  show("cuTexRefSetAddress", CU(cuTexRefSetAddress_v2)(nullptr, picture, memory, sizeof words));
  launch(module, "look", 8, 1, parameters);
  show_words("of memory", out);
}

GROUP(texture_references_of_rows_read, InContext) {
  const CUmodule module = module_with_references();
  CUtexref rows = nullptr;
  CUdeviceptr out = 0, memory = 0;
  void* parameters[] = {&out};
  const CUDA_ARRAY_DESCRIPTOR d{.Width = 8, .Height = 2, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  CU(cuMemAlloc_v2)(&out, 64);
  CU(cuMemAlloc_v2)(&memory, 1024);
  CU(cuMemsetD32_v2)(memory, 0x3f800000, 8);
  CU(cuMemsetD32_v2)(memory + 512, 0x40000000, 8);
  show("cuModuleGetTexRef", CU(cuModuleGetTexRef)(&rows, module, "rows"));
  show("cuTexRefSetAddress2D", CU(cuTexRefSetAddress2D_v3)(rows, &d, memory, 512));
  launch(module, "look_at_rows", 8, 2, parameters);
  show_words("of the first row", out);
  show_words("of the second row", out + 32);
}

GROUP(surface_references_written, InContext) {
  const CUmodule module = module_with_references();
  const CUarray array = make_array(described(8, 0, 0, CUDA_ARRAY3D_SURFACE_LDST)), plain = make_array(described(8));
  CUsurfref board = nullptr;
  CUarray found = nullptr;
  unsigned words[8] = {};
  show("cuModuleGetSurfRef", CU(cuModuleGetSurfRef)(&board, module, "board"));
  show("cuSurfRefGetArray of none", CU(cuSurfRefGetArray)(&found, board));
  show("cuSurfRefSetArray", CU(cuSurfRefSetArray)(board, array, 0));
  show("cuSurfRefGetArray", CU(cuSurfRefGetArray)(&found, board));
  show_flag("its array", found == array);
  launch(module, "draw", 8, 1, nullptr);
  CU(cuMemcpyAtoH_v2)(words, array, 0, sizeof words);
  for (int i = 0; i < 8; ++i) show("word " + std::to_string(i), words[i]);
  show("cuSurfRefSetArray flags 1", CU(cuSurfRefSetArray)(board, array, 1));
  show("cuSurfRefSetArray of a plain array", CU(cuSurfRefSetArray)(board, plain, 0));
  show_guarded("cuSurfRefSetArray of no array", [&] { return CU(cuSurfRefSetArray)(board, nullptr, 0); });
  show_guarded("cuSurfRefGetArray null", [&] { return CU(cuSurfRefGetArray)(nullptr, board); });
}

GROUP(texture_references_as_parameters, InContext) {
  const CUmodule module = module_with_references();
  const CUfunction look = function_of(module, "look");
  CUtexref picture = nullptr;
  CU(cuModuleGetTexRef)(&picture, module, "picture");
  show("cuParamSetTexRef", CU(cuParamSetTexRef)(look, CU_PARAM_TR_DEFAULT, picture));
  show("cuParamSetTexRef unit 0", CU(cuParamSetTexRef)(look, 0, picture));
  show_guarded("cuParamSetTexRef of no reference",
               [&] { return CU(cuParamSetTexRef)(look, CU_PARAM_TR_DEFAULT, nullptr); });
  show_guarded("cuParamSetTexRef of no function",
               [&] { return CU(cuParamSetTexRef)(nullptr, CU_PARAM_TR_DEFAULT, picture); });
}

GROUP(texture_references_unbound_read, InContext) {
  const CUmodule module = module_with_references();
  CUdeviceptr out = 0;
  void* parameters[] = {&out};
  CU(cuMemAlloc_v2)(&out, 32);
  show("cuLaunchKernel",
       CU(cuLaunchKernel)(function_of(module, "look"), 1, 1, 1, 8, 1, 1, 0, nullptr, parameters, nullptr));
}

// This is the last group, since a driver may have destroyed the module's references.
GROUP(texture_references_of_a_module_destroyed, InContext) {
  const CUmodule module = module_with_references();
  CUtexref picture = nullptr;
  CU(cuModuleGetTexRef)(&picture, module, "picture");
  show_guarded("cuTexRefDestroy", [&] { return CU(cuTexRefDestroy)(picture); });
}

// Calls with null references, which a driver may dereference.
GROUP(texture_references_null, InContext) {
  CUarray_format format{};
  int channels = 0;
  show_guarded("cuTexRefDestroy", [] { return CU(cuTexRefDestroy)(nullptr); });
  show_guarded("cuTexRefSetFlags", [] { return CU(cuTexRefSetFlags)(nullptr, 0); });
  show_guarded("cuTexRefGetFormat", [&] { return CU(cuTexRefGetFormat)(&format, &channels, nullptr); });
  show_guarded("cuTexRefSetArray", [] { return CU(cuTexRefSetArray)(nullptr, nullptr, CU_TRSA_OVERRIDE_FORMAT); });
}

GROUP(texture_reference_to_null_array, InContext) {
  const CUtexref r = make_reference();
  show_guarded("cuTexRefSetArray", [&] { return CU(cuTexRefSetArray)(r, nullptr, CU_TRSA_OVERRIDE_FORMAT); });
}

GROUP(surface_references_null, InContext) {
  CUarray found = nullptr;
  const CUarray array = make_array(described(64, 16, 0, CUDA_ARRAY3D_SURFACE_LDST));
  show_guarded("cuSurfRefSetArray", [&] { return CU(cuSurfRefSetArray)(nullptr, array, 0); });
  show_guarded("cuSurfRefGetArray", [&] { return CU(cuSurfRefGetArray)(&found, nullptr); });
}

}  // namespace
}  // namespace contract
