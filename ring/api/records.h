// The records of calls that are no plain row of parameters: CUSTOM lines and the session's own. Plain bytes, 8-aligned;
// what follows a record in its payload is said beside it. The host copies a record out and then checks every field.
#pragma once

#include <cstdint>
#include <optional>

namespace api {

// First record of a session, on channel 0. The reply is a HelloReply.
struct HelloRecord {
  std::uint64_t window;     // index of the arena window that the guest has mapped; window_count: none fitted
  std::uint64_t pin_bytes;  // how much of the arena's start is to be registered with the GPU at once
};
struct HelloReply {
  std::uint64_t arena_address;  // where the worker, and so the GPU, sees the arena
};

// Registers [offset, offset + bytes) of the arena with the GPU. Multiples of ring::huge_page. join_arena: by one
// registration in place of all that lie inside; when it fails, none of these is left.
struct PinArenaRecord {
  std::uint64_t offset, bytes;
};

// What kernels have printed, from the oldest on. The reply is a length (u64), at most `room`, and so much text; 0: no
// more. Where the simulated GPU has something to say of a fault or of an image, a second length follows, at most
// max_diagnosis, and so much text: lines for the guest's log.
struct TakeOutputRecord {
  std::uint64_t room;
};
inline constexpr std::uint64_t max_output = 32 << 10;  // of one reply
inline constexpr std::uint64_t max_diagnosis = 4 << 10;

// cuMemAlloc, cuMemAllocPitch. Reply: AllocateReply.
struct AllocateRecord {
  std::uint64_t bytes;               // cuMemAlloc; or width, when height is not 0
  std::uint64_t height;              // 0: cuMemAlloc
  std::uint32_t element_bytes, pad;  // cuMemAllocPitch
};
struct AllocateReply {
  std::uint64_t address, pitch, bytes;
};

struct FreeRecord {
  std::uint64_t address;
};

// All copies between host and device. `arena` is an offset in the arena, or ring::absent: then the bytes follow the
// record (to the device) or stand in the reply (from the device). `then_wait` is 1 where an asynchronous copy counts as
// executed only when the stream has got there, for staging chunks; else 0.
struct CopyRecord {
  std::uint64_t device, arena, bytes, stream;
  std::uint64_t then_wait = 0;
};

// cuMemsetD2D*: `height` rows of `width` elements.
struct FillRowsRecord {
  std::uint64_t at, pitch, width, height, value, stream;
};

// cuMemcpy2D, cuMemcpy3D and their asynchronous forms: `depth` slices of `height` rows of `width` bytes. Both sides by
// their device address, which pinned memory and staging chunks have, too.
struct RowsSide {
  std::uint64_t address, pitch, rows;  // a slice is `rows` times `pitch`
};
struct CopyRowsRecord {
  RowsSide to, from;
  std::uint64_t width, height, depth, stream;
};

// For both sides of the boundary: nothing when the number is too large for 64 bits.
constexpr std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t all = 0;
  return __builtin_mul_overflow(a, b, &all) ? std::nullopt : std::optional(all);
}
// From the first byte of such rows to behind their last.
constexpr std::optional<std::uint64_t> span_of_rows(std::uint64_t width, std::uint64_t height, std::uint64_t pitch,
                                                    std::uint64_t depth = 1, std::uint64_t slice = 0) {
  if (width == 0 || height == 0 || depth == 0) return 0;
  const auto rows = product(height - 1, pitch), slices = product(depth - 1, slice);
  std::uint64_t all = 0;
  if (!rows || !slices || __builtin_add_overflow(*rows, *slices, &all) || __builtin_add_overflow(all, width, &all))
    return std::nullopt;
  return all;
}

// cuLaunchKernel, cuLaunchKernelEx, cuLaunchCooperativeKernel. After it: `attributes` CUlaunchAttribute, then
// `param_bytes` of packed parameters, as CU_LAUNCH_PARAM_BUFFER_POINTER takes them.
struct LaunchRecord {
  std::uint64_t function, stream;
  std::uint32_t grid[3], block[3];
  std::uint32_t shared, param_bytes, attributes, pad;
};

// cuOccupancyMaxActiveClusters. The launch that is asked about, without parameters; the reply is a number (u64).
using ClustersRecord = LaunchRecord;

// cuModuleLoadData(Ex), cuLibraryLoadData. The image is in the arena, or follows the record: `parts` runs of bytes,
// each padded to 8. Before it: `parts` sizes (u64), `options` JIT options (u64 each) and as many values (u64 each).
struct LoadRecord {
  std::uint64_t id;     // the guest's choice for what is loaded
  std::uint64_t arena;  // offset in the arena, or ring::absent
  std::uint32_t form;   // ImageForm
  std::uint32_t parts;
  std::uint32_t options, pad;
};
// How the parts make an image again.
enum class ImageForm : std::uint32_t {
  Plain,     // one part: PTX text with its NUL, a cubin or a fat binary container
  Wrapper,   // one part: the container of a version-1 wrapper
  Prelinked  // the device-linked container of a version-2 wrapper, then its relocatable containers
};
// Reply, also of a load that failed: the options' values (u64 each), then for the info and the error log its length
// (u64) and its characters.

// cuModuleGetFunction, cuLibraryGetKernel, cuKernelGetFunction: `from` names the owner, the name follows (not for the
// last).
struct LookupRecord {
  std::uint64_t from, id;
  std::uint64_t name_bytes;
};
// What the guest needs so that launches are checked and packed there. Then `params` pairs of u32 offset and size, then
// the name, `name_bytes` long.
struct FunctionReply {
  std::uint64_t id;  // the one proposed, or that of an earlier lookup: one function has one handle
  std::uint32_t params, param_bytes;
  std::uint32_t max_threads, static_shared, max_dynamic_shared, name_bytes;
};

// cuModuleGetGlobal, cuLibraryGetGlobal: the name follows. Reply: GlobalReply.
struct GlobalRecord {
  std::uint64_t from, name_bytes;
};
struct GlobalReply {
  std::uint64_t address, bytes;
};

struct CloseRecord {
  std::uint64_t id;
};

// cuLibraryGetModule. Reply: the module's id (u64), the one proposed or an earlier one.
struct DeriveRecord {
  std::uint64_t from, id;
};

// cuCtxCreate in all forms: the context gets the number that the guest has chosen (ring/wire/record.h).
struct CreateContextRecord {
  std::uint32_t number, device;  // the device: as the host counts
  std::uint32_t flags;
  std::uint32_t affinities;  // 0 or 1: so many multiprocessors are asked for
  std::uint32_t sm_count, pad;
};

// cuCtxDestroy, cuDevicePrimaryCtxReset.
struct EndContextRecord {
  std::uint64_t number;
};

}  // namespace api
