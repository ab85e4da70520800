// Texture and surface references. CUDA 12 removed them from its compilers; the driver still has their calls.
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
  show("cuTexRefGetMipmappedArray null", CU(cuTexRefGetMipmappedArray)(nullptr, r));
  show("cuTexRefGetAddress null", CU(cuTexRefGetAddress_v2)(nullptr, r));
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

// Null references: a driver may follow them.
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
