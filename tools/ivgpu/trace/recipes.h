// What the records of CUSTOM and SESSION lines hold, for `ivgpu trace` to say: ring/api/records.h as words. A CALL line
// needs nothing here, its words and its declaration tell.
//
//   NAME:n u64   NAME:u u32   NAME:x an address   NAME:h an id   NAME:f a kernel's id, by its name where that is known
//   NAME:i an id that the guest proposes          NAME:a a place in the arena, or none: with the record
//   NAME:3 three u32          NAME:s a length and so many characters
//   NAME:p what ends a launch: its parameters' length, attributes, padding, and both of them
//   _ a u64 that says nothing to a reader         - a u32 of that kind
#pragma once

#include <string_view>

namespace ivgpu::trace {

struct Recipe {
  std::string_view call, record, reply;
};

inline constexpr Recipe recipes[] = {
    {"hello", "window:n pin_bytes:n", "arena:x"},
    {"pin_arena", "offset:x bytes:n", ""},
    {"join_arena", "offset:x bytes:n", ""},
    {"take_output", "room:n", "text:s"},
    {"cuDevicePrimaryCtxReset_v2", "number:n", ""},
    {"cuCtxCreate_v4", "number:u device:u flags:u affinities:u sm_count:u pad:u", ""},
    {"cuCtxDestroy_v2", "number:n", ""},
    {"cuMemAlloc_v2", "bytes:n", "address:x"},
    {"cuMemAllocPitch_v2", "width:n height:n element_bytes:u", "address:x pitch:n"},
    {"cuMemFree_v2", "address:x", ""},
    {"cuMemcpyHtoD_v2", "to:x from:a bytes:n", ""},
    {"cuMemcpyDtoH_v2", "from:x to:a bytes:n", ""},
    {"cuMemcpyHtoDAsync_v2", "to:x from:a bytes:n stream:h", ""},
    {"cuMemcpyDtoHAsync_v2", "from:x to:a bytes:n stream:h", ""},
    {"cuMemcpy3D_v2", "to:x to_pitch:n to_rows:n from:x from_pitch:n from_rows:n width:n height:n depth:n", ""},
    {"cuMemcpy3DAsync_v2",
     "to:x to_pitch:n to_rows:n from:x from_pitch:n from_rows:n width:n height:n depth:n stream:h", ""},
    {"cuMemsetD2D8_v2", "at:x pitch:n width:n height:n value:n", ""},
    {"cuMemsetD2D16_v2", "at:x pitch:n width:n height:n value:n", ""},
    {"cuMemsetD2D32_v2", "at:x pitch:n width:n height:n value:n", ""},
    {"cuMemsetD2D8Async", "at:x pitch:n width:n height:n value:n stream:h", ""},
    {"cuMemsetD2D16Async", "at:x pitch:n width:n height:n value:n stream:h", ""},
    {"cuMemsetD2D32Async", "at:x pitch:n width:n height:n value:n stream:h", ""},
    {"cuModuleLoadData", "module:i image:a - parts:u options:u - bytes:n", ""},
    {"cuModuleLoadDataEx", "module:i image:a - parts:u options:u - bytes:n", ""},
    {"cuLibraryLoadData", "library:i image:a - parts:u options:u - bytes:n", ""},
    {"cuModuleUnload", "module:h", ""},
    {"cuLibraryUnload", "library:h", ""},
    {"cuModuleGetFunction", "module:h function:i name:s", "function:h parameters:u"},
    {"cuLibraryGetKernel", "library:h kernel:i name:s", "kernel:h parameters:u"},
    {"cuKernelGetFunction", "kernel:f function:i", "function:h parameters:u"},
    {"cuLibraryGetModule", "library:h module:i", "module:h"},
    {"cuModuleGetGlobal_v2", "module:h name:s", "address:x bytes:n"},
    {"cuLibraryGetGlobal", "library:h name:s", "address:x bytes:n"},
    {"cuLaunchKernel", "function:f stream:h grid:3 block:3 shared:u parameters:p", ""},
    {"cuLaunchKernelEx", "function:f stream:h grid:3 block:3 shared:u parameters:p", ""},
    {"cuOccupancyMaxActiveClusters", "function:f stream:h grid:3 block:3 shared:u parameters:p", "clusters:n"},
};

// Null where there is none: the call is told without its arguments.
constexpr const Recipe* recipe_of(std::string_view call) {
  for (const Recipe& recipe : recipes)
    if (recipe.call == call) return &recipe;
  return nullptr;
}

}  // namespace ivgpu::trace
