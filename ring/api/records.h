// The records of CUSTOM lines and SESSION lines: calls that need more than a list of parameters.
//
// Records are plain bytes, 8-aligned, in the sender's memory or in a private copy. Each record has a list of fields
// (ring/api/fields.h), which also describes the rest of the payload and the reply. The host copies a record out and
// then checks every field by that list. If calls share a struct but not the meaning of the fields, each call has a type
// of its own without further members.
//
// ```cpp
// void write_pin(ring::Writer& writer, std::uint64_t offset, std::uint64_t bytes) {
//   const api::PinArenaRecord record{offset, bytes};  // multiples of ring::huge_page
//   writer.bytes(&record, sizeof record);
// }
// ```
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>

#include "ring/api/field_list.h"
#include "ring/api/graph_records.h"
#include "ring/api/jit_options.h"
#include "ring/api/launch_attributes.h"
#include "ring/api/pointer_records.h"
#include "ring/api/stream_records.h"
#include "ring/api/tensor_map_records.h"
#include "ring/layout/layout.h"
#include "ring/wire/record.h"
#include "ring/wire/worker_switches.h"

namespace api {

struct HelloReply {
  std::uint64_t arena_address;  // the arena's address in the worker, and hence on the GPU

  static constexpr std::tuple fields{field::Arena{"arena", &HelloReply::arena_address}};
};
// The first record of a session, on channel 0.
struct HelloRecord {
  std::uint64_t window;     // index of the arena window that the guest has mapped; window_count: no window was free
  std::uint64_t pin_bytes;  // bytes at the arena's start to register with the GPU at once

  static constexpr std::tuple fields{field::Between{"window", &HelloRecord::window, 0, ring::window_count},
                                     field::Pages{"pin_bytes", &HelloRecord::pin_bytes}};
  using Reply = HelloReply;
};

// switch_off: the session does without these optimisations of its worker (ring/wire/worker_switches.h).
struct SwitchOffRecord {
  std::uint64_t switches;

  static constexpr std::tuple fields{field::Bits{"switches", &SwitchOffRecord::switches, ring::known_switches}};
};

// Registers [offset, offset + bytes) of the arena with the GPU; both numbers are multiples of ring::huge_page.
// join_arena replaces all registrations inside the range by one registration; if this fails, none of them is left.
struct PinArenaRecord {
  std::uint64_t offset, bytes;

  static constexpr std::tuple fields{field::Pages{"offset", &PinArenaRecord::offset, true},
                                     field::Pages{"bytes", &PinArenaRecord::bytes}};
};

// disturb: for a call that the guest serves itself, but that a driver refuses while a stream is being captured. The
// worker makes a driver call in the thread's capture mode. The driver refuses this call and ends the same captures.
// await_context: waits for all work of the record's context, except work of captured streams.
struct PlainRecord {
  std::uint64_t pad;

  static constexpr std::tuple fields{field::Zero{&PlainRecord::pad}};
};

// avoid: the guest's process has mappings in [start, start + bytes), so the driver must place no memory there from now
// on. Both numbers are multiples of ring::huge_page, and the range ends at end_of_addresses at the latest
// (docs/design/004-reservation.md).
struct ExcludeRecord {
  std::uint64_t start, bytes;

  static constexpr std::tuple fields{field::Pages{"start", &ExcludeRecord::start},
                                     field::Pages{"bytes", &ExcludeRecord::bytes}};
};
inline constexpr std::uint64_t end_of_addresses = std::uint64_t{1} << 47;
inline constexpr std::uint64_t max_excluded_range = std::uint64_t{1} << 36;
inline constexpr std::uint64_t max_excluded_bytes = std::uint64_t{1} << 40;  // the sum of all ranges of a session
inline constexpr std::size_t max_excluded_ranges = 64;

inline constexpr std::uint64_t max_output = 32 << 10;  // the most bytes of text in one reply
inline constexpr std::uint64_t max_diagnosis = 4 << 10;

// The length of the text that follows; 0: no text is left. After a fault or a bad image on the simulated GPU, a second
// length (u64, at most max_diagnosis) and a second text follow, with lines for the guest's log.
struct TakeOutputReply {
  std::uint64_t length;

  static constexpr std::tuple fields{field::Characters{"text", &TakeOutputReply::length}};
};
// Fetches output of kernels, oldest first, at most `room` bytes.
struct TakeOutputRecord {
  std::uint64_t room;

  static constexpr std::tuple fields{field::Between{"room", &TakeOutputRecord::room, 0, max_output}};
  using Reply = TakeOutputReply;
};

struct AllocateReply {
  std::uint64_t address, pitch, bytes;

  static constexpr std::tuple fields{field::Memory{"address", &AllocateReply::address, &AllocateReply::bytes},
                                     field::Number{"", &AllocateReply::pitch},
                                     field::Number{"", &AllocateReply::bytes}};
};
// For cuMemAlloc.
struct AllocateRecord {
  std::uint64_t bytes;               // for rows, the width of a row
  std::uint64_t height;              // 0 if there are no rows
  std::uint32_t element_bytes, pad;  // 0 if there are no rows

  static constexpr std::tuple fields{field::Number{"bytes", &AllocateRecord::bytes},
                                     field::Zero{&AllocateRecord::height}, field::Zero{&AllocateRecord::element_bytes},
                                     field::Zero{&AllocateRecord::pad}};
  using Reply = AllocateReply;
};

struct AllocateRowsReply : AllocateReply {
  static constexpr std::tuple fields{field::Memory{"address", &AllocateReply::address, &AllocateReply::bytes},
                                     field::Number{"pitch", &AllocateReply::pitch},
                                     field::Number{"", &AllocateReply::bytes}};
};
// For cuMemAllocPitch.
struct AllocateRowsRecord : AllocateRecord {
  static constexpr std::tuple fields{
      field::Number{"width", &AllocateRecord::bytes}, field::Number{"height", &AllocateRecord::height},
      field::Number{"element_bytes", &AllocateRecord::element_bytes}, field::Zero{&AllocateRecord::pad}};
  using Reply = AllocateRowsReply;
};

struct FreeRecord {
  std::uint64_t address;

  static constexpr std::tuple fields{field::Frees{"address", &FreeRecord::address}};
};

// For all copies between host and device. `arena` is an offset in the arena, or ring::absent: then the bytes follow the
// record (to the device) or are in the reply (from the device). `then_wait` is 1 for an asynchronous copy from or to a
// staging chunk, whose record counts as executed only when the stream has made the copy; else 0.
struct CopyRecord {
  std::uint64_t device, arena, bytes, stream;
  std::uint64_t then_wait = 0;

  static constexpr auto fields_of_copy(const char* device, const char* host, field::Otherwise otherwise,
                                       const char* stream) {
    return std::tuple{field::Address{device, &CopyRecord::device, &CopyRecord::bytes},
                      field::Place{host, &CopyRecord::arena, &CopyRecord::bytes, otherwise},
                      field::Number{"bytes", &CopyRecord::bytes}, field::Stream{&CopyRecord::stream, stream},
                      field::Flag{&CopyRecord::then_wait}};
  }
};
// The copies of both directions. An asynchronous copy from the device must go through the arena, since its reply would
// arrive before the bytes.
struct CopyToDeviceRecord : CopyRecord {
  static constexpr auto fields = fields_of_copy("to", "from", field::Otherwise::InRecord, "");
};
struct CopyToDeviceAsyncRecord : CopyRecord {
  static constexpr auto fields = fields_of_copy("to", "from", field::Otherwise::InRecord, "stream");
};
struct CopyFromDeviceRecord : CopyRecord {
  static constexpr auto fields = fields_of_copy("from", "to", field::Otherwise::InReply, "");
};
struct CopyFromDeviceAsyncRecord : CopyRecord {
  static constexpr auto fields = fields_of_copy("from", "to", field::Otherwise::Nowhere, "stream");
};

// Returns the product, which both sides compute equally. Returns nothing if the product does not fit into 64 bits.
constexpr std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t all = 0;
  return __builtin_mul_overflow(a, b, &all) ? std::nullopt : std::optional(all);
}
// Returns the number of bytes from the first row's start to the last row's end.
constexpr std::optional<std::uint64_t> span_of_rows(std::uint64_t width, std::uint64_t height, std::uint64_t pitch,
                                                    std::uint64_t depth = 1, std::uint64_t slice = 0) {
  if (width == 0 || height == 0 || depth == 0) return 0;
  const auto rows = product(height - 1, pitch), slices = product(depth - 1, slice);
  std::uint64_t all = 0;
  if (!rows || !slices || __builtin_add_overflow(*rows, *slices, &all) || __builtin_add_overflow(all, width, &all))
    return std::nullopt;
  return all;
}

// For cuMemcpy2D, cuMemcpy3D and their asynchronous variants: `depth` slices of `height` rows of `width` bytes. Both
// sides are device addresses; pinned memory and staging chunks have device addresses, too.
struct RowsSide {
  std::uint64_t address, pitch, rows;  // the distance between two slices is `rows` times `pitch`
};
struct CopyRowsRecord {
  RowsSide to, from;
  std::uint64_t width, height, depth, stream;
};
template <bool asynchronous>
struct CopyRowsOf : CopyRowsRecord {
  // Returns the number of bytes of a side. Returns nothing if there are no rows, or more bytes than memory can have.
  static constexpr std::optional<std::uint64_t> span(const CopyRowsRecord& r, const RowsSide& side) {
    const auto slice = product(side.pitch, side.rows);
    const auto all = slice ? span_of_rows(r.width, r.height, side.pitch, r.depth, *slice) : std::nullopt;
    return all != std::uint64_t{0} ? all : std::nullopt;
  }
  static constexpr std::optional<std::uint64_t> span_of_to(const CopyRowsRecord& r) { return span(r, r.to); }
  static constexpr std::optional<std::uint64_t> span_of_from(const CopyRowsRecord& r) { return span(r, r.from); }
  // Rows and slices may not overlap. The driver would treat a pitch or height of 0 as the pitch or height of the copied
  // rows.
  static constexpr std::uint64_t least_pitch(const CopyRowsRecord& r) { return r.width; }
  static constexpr std::uint64_t least_rows(const CopyRowsRecord& r) { return r.depth > 1 ? r.height : 0; }

  static constexpr auto to_side = &CopyRowsRecord::to, from_side = &CopyRowsRecord::from;
  static constexpr std::tuple fields{field::Address{"to", field::of(to_side, &RowsSide::address), span_of_to},
                                     field::AtLeast{"to_pitch", field::of(to_side, &RowsSide::pitch), least_pitch},
                                     field::AtLeast{"to_rows", field::of(to_side, &RowsSide::rows), least_rows},
                                     field::Address{"from", field::of(from_side, &RowsSide::address), span_of_from},
                                     field::AtLeast{"from_pitch", field::of(from_side, &RowsSide::pitch), least_pitch},
                                     field::AtLeast{"from_rows", field::of(from_side, &RowsSide::rows), least_rows},
                                     field::Number{"width", &CopyRowsRecord::width},
                                     field::Number{"height", &CopyRowsRecord::height},
                                     field::Number{"depth", &CopyRowsRecord::depth},
                                     field::Stream{&CopyRowsRecord::stream, asynchronous ? "stream" : ""}};
};

// For cuLaunchKernel, cuLaunchKernelEx, cuLaunchCooperativeKernel. `attributes` values of CUlaunchAttribute follow,
// then `param_bytes` of packed parameters, in the form of CU_LAUNCH_PARAM_BUFFER_POINTER.
struct LaunchRecord {
  std::uint64_t function, stream;
  std::uint32_t grid[3], block[3];
  std::uint32_t shared, param_bytes, attributes;
  std::uint32_t used_extra;  // 1: the program passed its parameters by `extra`; a captured launch keeps this choice

  static constexpr std::tuple fields{field::Id{Handle::Function, &LaunchRecord::function},
                                     field::Stream{&LaunchRecord::stream},
                                     field::Triple{"grid", &LaunchRecord::grid},
                                     field::Triple{"block", &LaunchRecord::block},
                                     field::Number{"shared", &LaunchRecord::shared},
                                     field::Flag{&LaunchRecord::used_extra},
                                     field::Attributes{&LaunchRecord::attributes},
                                     field::Parameters{"parameters", &LaunchRecord::param_bytes}};
};

struct ClustersReply {
  std::uint64_t clusters;

  static constexpr std::tuple fields{field::Number{"clusters", &ClustersReply::clusters}};
};
// For cuOccupancyMaxActiveClusters: a launch without parameters.
struct ClustersRecord : LaunchRecord {
  static constexpr std::tuple fields{field::Id{Handle::Function, &LaunchRecord::function},
                                     field::Stream{&LaunchRecord::stream},
                                     field::Triple{"grid", &LaunchRecord::grid},
                                     field::Triple{"block", &LaunchRecord::block},
                                     field::Number{"shared", &LaunchRecord::shared},
                                     field::Zero{&LaunchRecord::param_bytes},
                                     field::Zero{&LaunchRecord::used_extra},
                                     field::Attributes{&LaunchRecord::attributes}};
  using Reply = ClustersReply;
};

// How the worker builds an image from its sections.
enum class ImageForm : std::uint32_t {
  Plain,     // one section: PTX text with its NUL, a cubin or a fat binary container
  Wrapper,   // one section: the container of a version-1 wrapper
  Prelinked  // the device-linked container of a version-2 wrapper, then the wrapper's relocatable containers
};
inline constexpr std::uint32_t max_image_parts = 4096;
inline constexpr std::uint64_t max_image_bytes = 1ULL << 30;  // the largest image seen in NVIDIA's libraries has 59 MB

// For cuModuleLoadData(Ex) and cuLibraryLoadData. `parts` sizes (u64) follow, `options` JIT options (u64 each) and as
// many values (u64 each). Then follows the image, unless it is in the arena: `parts` sections, each padded to 8 bytes.
// The reply, even of a failed load: the options' values (u64 each), then the info log and the error log, each as a
// length (u64) and its characters.
struct LoadRecord {
  std::uint64_t id;     // the guest's id for the loaded object
  std::uint64_t arena;  // the image's offset in the arena, or ring::absent
  std::uint32_t form;   // an ImageForm
  std::uint32_t parts;
  std::uint32_t options, pad;
};
template <Handle kind>
struct LoadOf : LoadRecord {
  // The image's length is the sum of the sizes that follow the record.
  static constexpr std::optional<std::uint64_t> not_yet(const LoadRecord&) { return 0; }
  static constexpr std::tuple fields{field::Proposed{kind, &LoadRecord::id},
                                     field::Place{"image", &LoadRecord::arena, not_yet, field::Otherwise::InRecord},
                                     field::Between{"", &LoadRecord::form, 0, std::uint64_t(ImageForm::Prelinked)},
                                     field::Between{"parts", &LoadRecord::parts, 1, max_image_parts},
                                     field::Between{"options", &LoadRecord::options, 0, max_jit_options},
                                     field::Zero{&LoadRecord::pad},
                                     field::PartSizes{"bytes", &LoadRecord::parts},
                                     field::JitOptions{&LoadRecord::options},
                                     field::Parts{&LoadRecord::arena, &LoadRecord::parts}};
};

struct CloseRecord {
  std::uint64_t id;
};
template <Handle kind>
struct CloseOf : CloseRecord {
  static constexpr std::tuple fields{field::Closes{kind, &CloseRecord::id}};
};

// For cuCtxCreate in all versions. The guest chooses the context's number (ring/wire/record.h).
struct CreateContextRecord {
  std::uint32_t number, device;  // device: the host's ordinal
  std::uint32_t flags;
  std::uint32_t affinities;  // 1: the program requests sm_count multiprocessors
  std::uint32_t sm_count, pad;

  static constexpr std::tuple fields{
      field::NewContext{"number", &CreateContextRecord::number},
      field::Ordinal{"device", &CreateContextRecord::device},
      field::Bits{"flags", &CreateContextRecord::flags, CU_CTX_FLAGS_MASK},
      field::Between{"affinities", &CreateContextRecord::affinities, 0, 1},
      field::OnlyIf{"sm_count", &CreateContextRecord::sm_count, &CreateContextRecord::affinities},
      field::Zero{&CreateContextRecord::pad}};
};

// Ends a context. A primary context is identified by its device, a created context by its number.
struct EndContextRecord {
  std::uint64_t number;
};
struct DestroyContextRecord : EndContextRecord {
  static constexpr std::tuple fields{field::CreatedContext{"number", &EndContextRecord::number}};
};
struct ResetRecord : EndContextRecord {
  static constexpr std::tuple fields{field::Ordinal{"number", &EndContextRecord::number}};
};

// ---- names that the table uses -------------------------------------------------------------------------------------

using CopyRowsNowRecord = CopyRowsOf<false>;
using CopyRowsAsyncRecord = CopyRowsOf<true>;
using LoadModuleRecord = LoadOf<Handle::Module>;
using LoadLibraryRecord = LoadOf<Handle::Library>;

}  // namespace api

#include "ring/api/green_records.h"
#include "ring/api/link_records.h"
#include "ring/api/lookup_records.h"
