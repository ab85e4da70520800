// Texture and surface references: their bindings. Like a real driver, this one does not check whether a bound object
// has ended.
#include <cstring>

#include "tests/fake/state.h"

namespace fake {
namespace {

template <class Reference>
CUresult find_reference(const char* name, Reference* found, Handle kind, CUmodule module, const char* of) {
  Entry entry(name);
  touch(of, std::strlen(of) + 1);
  if (entry.failed()) return entry.result;
  check(name, Handle::Module, module);
  if (std::string(of) == "none") return CUDA_ERROR_NOT_FOUND;
  return *found = issue_once<Reference>(kind, module, std::string(name) + of), CUDA_SUCCESS;
}

// Checks the texture reference, then runs `rest`.
template <class F>
CUresult with(const char* name, CUtexref reference, F&& rest) {
  Entry entry(name);
  check(name, Handle::TextureReference, reference);
  if (!entry.failed()) rest();
  return entry.result;
}
CUresult with(const char* name, CUtexref reference) {
  return with(name, reference, [] {});
}

void bind(const void* reference, const void* array, CUdeviceptr address) {
  state->bound[reference] = {.array = array, .address = address};
}

CUresult bind_memory(const char* name, CUtexref reference, CUdeviceptr at) {
  return with(name, reference, [&] {
    if (at != 0) check_device(name, at, 1);
    bind(reference, nullptr, at);
  });
}

CUresult bind_rows(const char* name, CUtexref reference, const CUDA_ARRAY_DESCRIPTOR* d, CUdeviceptr at) {
  touch(d, sizeof *d);
  return bind_memory(name, reference, at);
}

template <class Array>
CUresult bound_array(const char* name, Array* array, const void* reference, Handle kind, Handle of) {
  Entry entry(name);
  check(name, kind, reference);
  if (entry.failed()) return entry.result;
  const auto at = state->bound.find(reference);
  if (at == state->bound.end() || at->second.array == nullptr || at->second.kind != of) return CUDA_ERROR_INVALID_VALUE;
  *array = static_cast<Array>(const_cast<void*>(at->second.array));
  return CUDA_SUCCESS;
}

CUresult bind_array(const char* name, const void* reference, Handle kind, const void* array, Handle of) {
  Entry entry(name);
  check(name, kind, reference);
  check(name, of, array);
  if (entry.failed()) return entry.result;
  state->bound[reference] = {.array = array, .kind = of};
  return CUDA_SUCCESS;
}

void fill_setters(host::Driver& t) {
  t.cuTexRefSetFormat = [](CUtexref r, CUarray_format, int) { return with("cuTexRefSetFormat", r); };
  t.cuTexRefSetAddressMode = [](CUtexref r, int, CUaddress_mode) { return with("cuTexRefSetAddressMode", r); };
  t.cuTexRefSetFilterMode = [](CUtexref r, CUfilter_mode) { return with("cuTexRefSetFilterMode", r); };
  t.cuTexRefSetMipmapFilterMode = [](CUtexref r, CUfilter_mode) { return with("cuTexRefSetMipmapFilterMode", r); };
  t.cuTexRefSetMipmapLevelBias = [](CUtexref r, float bias) {
    return with("cuTexRefSetMipmapLevelBias", r, [&] { state->bound[r].bias = bias; });
  };
  t.cuTexRefSetMipmapLevelClamp = [](CUtexref r, float, float) { return with("cuTexRefSetMipmapLevelClamp", r); };
  t.cuTexRefSetMaxAnisotropy = [](CUtexref r, unsigned) { return with("cuTexRefSetMaxAnisotropy", r); };
  t.cuTexRefSetFlags = [](CUtexref r, unsigned) { return with("cuTexRefSetFlags", r); };
  t.cuTexRefSetBorderColor = [](CUtexref r, float* color) {
    touch(color, 4 * sizeof *color);
    return with("cuTexRefSetBorderColor", r);
  };
}

void fill_getters(host::Driver& t) {
  t.cuTexRefGetAddressMode = [](CUaddress_mode* mode, CUtexref r, int) {
    return with("cuTexRefGetAddressMode", r, [&] { *mode = CU_TR_ADDRESS_MODE_CLAMP; });
  };
  t.cuTexRefGetFilterMode = [](CUfilter_mode* mode, CUtexref r) {
    return with("cuTexRefGetFilterMode", r, [&] { *mode = CU_TR_FILTER_MODE_LINEAR; });
  };
  t.cuTexRefGetMipmapFilterMode = [](CUfilter_mode* mode, CUtexref r) {
    return with("cuTexRefGetMipmapFilterMode", r, [&] { *mode = CU_TR_FILTER_MODE_LINEAR; });
  };
  t.cuTexRefGetFormat = [](CUarray_format* format, int* channels, CUtexref r) {
    return with("cuTexRefGetFormat", r, [&] {
      if (format != nullptr) *format = CU_AD_FORMAT_FLOAT;
      if (channels != nullptr) *channels = 1;
    });
  };
  t.cuTexRefGetMipmapLevelBias = [](float* bias, CUtexref r) {
    return with("cuTexRefGetMipmapLevelBias", r, [&] { *bias = state->bound[r].bias; });
  };
  t.cuTexRefGetMipmapLevelClamp = [](float* least, float* most, CUtexref r) {
    return with("cuTexRefGetMipmapLevelClamp", r, [&] { *least = *most = 1; });
  };
  t.cuTexRefGetMaxAnisotropy = [](int* most, CUtexref r) {
    return with("cuTexRefGetMaxAnisotropy", r, [&] { *most = 1; });
  };
  t.cuTexRefGetBorderColor = [](float* color, CUtexref r) {
    return with("cuTexRefGetBorderColor", r, [&] {
      for (int i = 0; i < 4; ++i) color[i] = 0.25f;
    });
  };
  t.cuTexRefGetFlags = [](unsigned* flags, CUtexref r) { return with("cuTexRefGetFlags", r, [&] { *flags = 0; }); };
}

void fill_bindings(host::Driver& t) {
  t.cuTexRefSetArray = [](CUtexref r, CUarray array, unsigned) {
    return bind_array("cuTexRefSetArray", r, Handle::TextureReference, array, Handle::Array);
  };
  t.cuTexRefSetMipmappedArray = [](CUtexref r, CUmipmappedArray array, unsigned) {
    return bind_array("cuTexRefSetMipmappedArray", r, Handle::TextureReference, array, Handle::MipmappedArray);
  };
  t.cuSurfRefSetArray = [](CUsurfref r, CUarray array, unsigned) {
    return bind_array("cuSurfRefSetArray", r, Handle::SurfaceReference, array, Handle::Array);
  };
  t.cuTexRefSetAddress_v2 = [](std::size_t* offset, CUtexref r, CUdeviceptr at, std::size_t) {
    if (offset != nullptr) *offset = 0;
    return bind_memory("cuTexRefSetAddress_v2", r, at);
  };
  t.cuTexRefSetAddress2D_v2 = [](CUtexref r, const CUDA_ARRAY_DESCRIPTOR* d, CUdeviceptr at, std::size_t) {
    return bind_rows("cuTexRefSetAddress2D_v2", r, d, at);
  };
  t.cuTexRefSetAddress2D_v3 = [](CUtexref r, const CUDA_ARRAY_DESCRIPTOR* d, CUdeviceptr at, std::size_t) {
    return bind_rows("cuTexRefSetAddress2D_v3", r, d, at);
  };
  t.cuTexRefGetArray = [](CUarray* array, CUtexref r) {
    return bound_array("cuTexRefGetArray", array, r, Handle::TextureReference, Handle::Array);
  };
  t.cuTexRefGetMipmappedArray = [](CUmipmappedArray* array, CUtexref r) {
    return bound_array("cuTexRefGetMipmappedArray", array, r, Handle::TextureReference, Handle::MipmappedArray);
  };
  t.cuSurfRefGetArray = [](CUarray* array, CUsurfref r) {
    return bound_array("cuSurfRefGetArray", array, r, Handle::SurfaceReference, Handle::Array);
  };
  t.cuTexRefGetAddress_v2 = [](CUdeviceptr* at, CUtexref r) {
    return with("cuTexRefGetAddress_v2", r, [&] { *at = state->bound[r].address; });
  };
}

}  // namespace

void fill_references(host::Driver& t) {
  t.cuTexRefCreate = [](CUtexref* r) { return create("cuTexRefCreate", r, Handle::TextureReference); };
  t.cuTexRefDestroy = [](CUtexref r) {
    Entry entry("cuTexRefDestroy");
    if (entry.failed()) return entry.result;
    if (state->owners.contains(r)) die("cuTexRefDestroy: a module's reference");
    state->bound.erase(r);
    return destroy("cuTexRefDestroy", Handle::TextureReference, r), CUDA_SUCCESS;
  };
  t.cuModuleGetTexRef = [](CUtexref* r, CUmodule m, const char* name) {
    return find_reference("cuModuleGetTexRef", r, Handle::TextureReference, m, name);
  };
  t.cuModuleGetSurfRef = [](CUsurfref* r, CUmodule m, const char* name) {
    return find_reference("cuModuleGetSurfRef", r, Handle::SurfaceReference, m, name);
  };
  t.cuParamSetTexRef = [](CUfunction f, int, CUtexref r) {
    return with("cuParamSetTexRef", r, [&] { check("cuParamSetTexRef", Handle::Function, f); });
  };
  fill_setters(t);
  fill_getters(t);
  fill_bindings(t);
}

}  // namespace fake
