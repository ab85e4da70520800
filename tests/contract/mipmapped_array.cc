// Cases for mipmapped arrays and their levels.
#include "tests/contract/arrays.h"

namespace contract {
namespace {

void show_size(const std::string& what, CUmipmappedArray array, unsigned level) {
  CUarray found = nullptr;
  const CUresult got = CU(cuMipmappedArrayGetLevel)(&found, array, level);
  show(what, got);
  auto d = zeroed<CUDA_ARRAY3D_DESCRIPTOR>();
  if (got == CUDA_SUCCESS) CU(cuArray3DGetDescriptor_v2)(&d, found);
  show(what + ", width", static_cast<long long>(d.Width));
  show(what + ", height", static_cast<long long>(d.Height));
  show(what + ", depth", static_cast<long long>(d.Depth));
  show(what + ", flags", d.Flags);
}

GROUP(mipmapped_arrays, InContext) {
  CUmipmappedArray array = nullptr;
  CUarray level = nullptr, again = nullptr;
  const auto d = described(64, 16);
  show("cuMipmappedArrayCreate", CU(cuMipmappedArrayCreate)(&array, &d, 4));
  for (unsigned i = 0; i < 5; ++i) show_size("level " + std::to_string(i), array, i);
  CU(cuMipmappedArrayGetLevel)(&level, array, 1);
  CU(cuMipmappedArrayGetLevel)(&again, array, 1);
  show_flag("a level is the same each time", level == again);
  show("cuMipmappedArrayGetLevel null", CU(cuMipmappedArrayGetLevel)(nullptr, array, 0));
  show("cuMipmappedArrayGetLevel 1 << 31", CU(cuMipmappedArrayGetLevel)(&level, array, 1U << 31));
  auto sparse = zeroed<CUDA_ARRAY_SPARSE_PROPERTIES>();
  auto needs = zeroed<CUDA_ARRAY_MEMORY_REQUIREMENTS>();
  show("cuMipmappedArrayGetSparseProperties", CU(cuMipmappedArrayGetSparseProperties)(&sparse, array));
  show("cuMipmappedArrayGetSparseProperties null", CU(cuMipmappedArrayGetSparseProperties)(nullptr, array));
  show("cuMipmappedArrayGetMemoryRequirements", CU(cuMipmappedArrayGetMemoryRequirements)(&needs, array, device));
  show("cuMipmappedArrayGetMemoryRequirements null", CU(cuMipmappedArrayGetMemoryRequirements)(nullptr, array, device));
  show("cuArrayGetSparseProperties of a level", CU(cuArrayGetSparseProperties)(&sparse, level));
  show("cuMipmappedArrayDestroy", CU(cuMipmappedArrayDestroy)(array));
}

GROUP(mipmapped_array_counts, InContext) {
  const auto count = [](const std::string& what, const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels) {
    CUmipmappedArray array = nullptr;
    CUarray level = nullptr;
    const CUresult created = CU(cuMipmappedArrayCreate)(&array, &d, levels);
    show(what, created);
    unsigned there = 0;
    while (created == CUDA_SUCCESS && CU(cuMipmappedArrayGetLevel)(&level, array, there) == CUDA_SUCCESS) ++there;
    show(what + ", its levels", there);
    if (created == CUDA_SUCCESS) CU(cuMipmappedArrayDestroy)(array);
  };
  count("none", described(64, 16), 0);
  count("one", described(64, 16), 1);
  count("all", described(64, 16), 7);
  count("more than all", described(64, 16), 8);
  count("many more than all", described(64, 16), 1000);
  count("of a size that is no power of two", described(100, 3), 100);
  count("of one dimension", described(32), 100);
  count("of three dimensions", described(4, 8, 64), 100);
  count("of layers", described(16, 8, 100, CUDA_ARRAY3D_LAYERED), 100);
  count("of a cube", described(16, 16, 6, CUDA_ARRAY3D_CUBEMAP), 100);
  count("of cubes", described(16, 16, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED), 100);
}

GROUP(mipmapped_array_sizes, InContext) {
  show_size("1D, level 2", make_mipmapped(described(33), 4), 2);
  show_size("2D, level 3", make_mipmapped(described(100, 3, 0, CUDA_ARRAY3D_SURFACE_LDST), 7), 3);
  show_size("3D, level 2", make_mipmapped(described(8, 32, 5), 6), 2);
  show_size("layers, level 2", make_mipmapped(described(16, 8, 5, CUDA_ARRAY3D_LAYERED), 5), 2);
  show_size("layers of one dimension, level 2", make_mipmapped(described(16, 0, 5, CUDA_ARRAY3D_LAYERED), 5), 2);
  show_size("cube, level 2", make_mipmapped(described(16, 16, 6, CUDA_ARRAY3D_CUBEMAP), 5), 2);
}

GROUP(mipmapped_array_errors, InContext) {
  CUmipmappedArray array = nullptr;
  auto d = described(64, 16);
  show("null", CU(cuMipmappedArrayCreate)(nullptr, &d, 3));
  show("no description", CU(cuMipmappedArrayCreate)(&array, nullptr, 3));
  d.Width = 0;
  show("width 0", CU(cuMipmappedArrayCreate)(&array, &d, 3));
  d = described(64, 16, 0, 0, CU_AD_FORMAT_FLOAT, 3);
  show("3 channels", CU(cuMipmappedArrayCreate)(&array, &d, 3));
  d = described(64, 16, 0, 0, odd<CUarray_format>(5));
  show("format 5", CU(cuMipmappedArrayCreate)(&array, &d, 3));
  d = described(64, 0, 16);
  show("depth without height", CU(cuMipmappedArrayCreate)(&array, &d, 3));
  d = described(65536, 1);
  show("wide", CU(cuMipmappedArrayCreate)(&array, &d, 3));
  d = described(64, 16, 0, 0x200);
  show("flag 512", CU(cuMipmappedArrayCreate)(&array, &d, 3));
}

GROUP(mipmapped_array_null_handles, InContext) {
  CUarray level = nullptr;
  auto sparse = zeroed<CUDA_ARRAY_SPARSE_PROPERTIES>();
  auto needs = zeroed<CUDA_ARRAY_MEMORY_REQUIREMENTS>();
  show_guarded("cuMipmappedArrayDestroy", [] { return CU(cuMipmappedArrayDestroy)(nullptr); });
  show_guarded("cuMipmappedArrayGetLevel", [&] { return CU(cuMipmappedArrayGetLevel)(&level, nullptr, 0); });
  show_guarded("cuMipmappedArrayGetSparseProperties",
               [&] { return CU(cuMipmappedArrayGetSparseProperties)(&sparse, nullptr); });
  show_guarded("cuMipmappedArrayGetMemoryRequirements",
               [&] { return CU(cuMipmappedArrayGetMemoryRequirements)(&needs, nullptr, device); });
}

// This is the last group of its process: a level belongs to its mipmapped array, and destroying a level may break the
// driver.
GROUP(mipmapped_array_level_destroyed, InContext) {
  CUarray level = nullptr;
  CU(cuMipmappedArrayGetLevel)(&level, make_mipmapped(described(64, 16), 3), 1);
  show_guarded("cuArrayDestroy of a level", [&] { return CU(cuArrayDestroy)(level); });
}

}  // namespace
}  // namespace contract
