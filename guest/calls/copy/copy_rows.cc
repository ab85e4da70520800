// Copies of rows: cuMemcpy2D, cuMemcpy3D and their variants, all in the three-dimensional form, and copies of one row
// of an array. The guest's half is handwritten because each side may be an array, device memory, pinned memory or the
// program's own memory. The host can reach the first three kinds. The program's own memory goes through a staging
// chunk, one block at a time.
#include <algorithm>
#include <cstring>
#include <optional>

#include "guest/calls/calls.h"
#include "guest/calls/captured.h"
#include "guest/calls/copy/chunk.h"
#include "guest/calls/copy/judge_copy.h"
#include "guest/calls/copy/pageable_copy.h"
#include "guest/calls/memory/arena_block.h"
#include "guest/calls/stub.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest::calls {
namespace {

struct Shape {
  std::size_t width, height, depth;
  bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

// One side of a copy as the program describes it.
struct Described {
  std::size_t x, y, z;
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  std::size_t pitch, height;
  CUarray array;
};

// A side whose kind of memory is known. For memory, `start` is the address of the first byte: an address of this
// process for pageable memory, else the host's address. For an array, the side has the array's id and a position in the
// array.
struct Side {
  bool pageable = false;
  std::uint64_t start = 0;
  std::size_t pitch = 0, slice = 0;
  std::uint64_t array = 0;
  std::size_t x = 0, y = 0, z = 0;

  void advance(std::size_t by_x, std::size_t by_y, std::size_t by_z) {
    if (array == 0) return void(start = at(by_x, by_y, by_z));
    x += by_x, y += by_y, z += by_z;
  }

  std::uint64_t at(std::size_t x, std::size_t y, std::size_t z) const { return start + z * slice + y * pitch + x; }
  std::byte* bytes(std::size_t x, std::size_t y, std::size_t z) const {
    return reinterpret_cast<std::byte*>(at(x, y, z));
  }
};

// Computes pitch, slice and start of a side. A pitch or height of 0 means the pitch or height of the copied rows.
// Returns false if the description contradicts itself.
bool lay_out(const Described& d, const Shape& shape, Side& side) {
  const std::size_t row_end = d.x + shape.width;
  const std::size_t height = d.height == 0 ? d.y + shape.height : d.height;
  side.pitch = d.pitch == 0 ? row_end : d.pitch;
  if (row_end < d.x || side.pitch < row_end || (shape.depth > 1 && height < shape.height)) return false;
  const auto slice = api::product(side.pitch, height);
  if (!slice) return false;
  side.slice = *slice;
  const std::uint64_t base = d.type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(d.host) : d.device;
  const auto z = api::product(d.z, side.slice), y = api::product(d.y, side.pitch);
  if (!z || !y || __builtin_add_overflow(base, *z, &side.start) ||
      __builtin_add_overflow(side.start, *y, &side.start) || __builtin_add_overflow(side.start, d.x, &side.start))
    return false;
  return base != 0 || shape.empty();
}

// Finds the kind of memory of a side that is no array. Returns false if the address is neither device memory nor the
// program's own memory.
bool resolve_memory(const Described& d, const Shape& shape, Side& side) {
  const bool host = d.type == CU_MEMORYTYPE_HOST, unified = d.type == CU_MEMORYTYPE_UNIFIED;
  if (!host && !unified && d.type != CU_MEMORYTYPE_DEVICE) return false;
  if (!lay_out(d, shape, side)) return false;
  if (shape.empty()) return true;
  const auto span = api::span_of_rows(shape.width, shape.height, side.pitch, shape.depth, side.slice);
  if (!span) return false;
  if (const auto seen = session()->memory.addresses.device_view(side.start, *span)) {
    side.start = *seen;
    return true;
  }
  side.pageable = true;
  return (host || unified) &&
         // The program's own memory must not overlap memory that CUDA knows.
         !session()->memory.addresses.touch(side.start, *span);
}

CUresult resolve(const Described& d, const Shape& shape, Side& side) {
  if (d.type != CU_MEMORYTYPE_ARRAY) return resolve_memory(d, shape, side) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (d.array == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* array = session()->objects.find(d.array, api::Handle::Array);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  side.array = array->id.load(std::memory_order_relaxed);
  side.x = d.x, side.y = d.y, side.z = d.z;
  return CUDA_SUCCESS;
}

struct Rows {
  Shape shape;
  Side to, from;
  CUstream stream;
  bool async;
  Context* context;
  StreamRef ref;
};

CUresult synchronize(const Rows& c) { return Stub<api::id_of::cuStreamSynchronize>::call(c.stream); }

std::size_t rows_of(const Side& s) { return s.pitch == 0 ? 0 : s.slice / s.pitch; }

api::TexelsSide texels_side(const Side& s) {
  return {.array = s.array, .x = s.x, .y = s.y, .z = s.z, .address = s.start, .pitch = s.pitch, .rows = rows_of(s)};
}
// At least one side is an array. Only the driver can check the array's bounds, so the guest waits for the result.
Sent send_texels(const Rows& c, const Side& to, const Side& from, const Shape& shape) {
  const api::CopyTexelsRecord record{.to = texels_side(to),
                                     .from = texels_side(from),
                                     .width = shape.width,
                                     .height = shape.height,
                                     .depth = shape.depth,
                                     .stream = reinterpret_cast<std::uint64_t>(c.stream)};
  const int call = c.async ? api::id_of::cuMemcpyHtoAAsync_v2 : api::id_of::cuMemcpyAtoD_v2;
  return cross({.call = call, .context = *c.context, .stream = &c.ref, .way = api::Way::Waited}, record);
}

Sent send(const Rows& c, const Side& to, const Side& from, const Shape& shape) {
  if (to.array != 0 || from.array != 0) return send_texels(c, to, from, shape);
  const auto side = [&](const Side& s) {
    return api::RowsSide{.address = s.start, .pitch = s.pitch, .rows = rows_of(s)};
  };
  const api::CopyRowsRecord record{.to = side(to),
                                   .from = side(from),
                                   .width = shape.width,
                                   .height = shape.height,
                                   .depth = shape.depth,
                                   .stream = reinterpret_cast<std::uint64_t>(c.stream)};
  const int call = c.async ? api::id_of::cuMemcpy3DAsync_v2 : api::id_of::cuMemcpy3D_v2;
  return cross({.call = call, .context = *c.context, .stream = &c.ref}, record);
}

// Copies rows between the program's own memory and the host. Rows are packed into a chunk, or unpacked from a chunk.
class Staged {
 public:
  explicit Staged(const Rows& copy) : copy_(copy), chunk_(*session()->memory.arena->borrow(true)) {}
  ~Staged() { session()->memory.arena->give_back(chunk_); }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  CUresult run() {
    if (const CUresult r = await_chunk(chunk_); r != CUDA_SUCCESS) return r;
    const Shape& all = copy_.shape;
    const std::size_t width = std::min(all.width, Arena::chunk_bytes);
    const std::size_t height = std::max<std::size_t>(Arena::chunk_bytes / all.width, 1);
    // Copies the last block first. If the last block lies in the array, so do the others; if it does not, the driver
    // refuses the copy before any byte is written.
    for (std::size_t z = all.depth; z-- > 0;)
      for (std::size_t y = last(all.height, height);; y -= height) {
        for (std::size_t x = last(all.width, width);; x -= width) {
          const Shape shape{std::min(width, all.width - x), std::min(height, all.height - y), 1};
          if (const CUresult r = piece(shape, x, y, z); r != CUDA_SUCCESS) return r;
          if (x == 0) break;
        }
        if (y == 0) break;
      }
    return CUDA_SUCCESS;
  }

 private:
  // Returns the start of the last block of `step` elements.
  static std::size_t last(std::size_t all, std::size_t step) { return (all - 1) / step * step; }

  CUresult piece(const Shape& shape, std::size_t x, std::size_t y, std::size_t z) {
    Session& s = *session();
    const Side here{.pageable = false,
                    .start = s.device_address(s.memory.arena->offset(chunk_.at)),
                    .pitch = shape.width,
                    .slice = shape.width * shape.height,
                    .array = 0};
    const Side& pageable = copy_.to.pageable ? copy_.to : copy_.from;
    Side there = copy_.to.pageable ? copy_.from : copy_.to;
    there.advance(x, y, z);
    if (copy_.from.pageable)
      for (std::size_t row = 0; row < shape.height; ++row)
        std::memcpy(chunk_.at + row * shape.width, pageable.bytes(x, y + row, z), shape.width);
    const Sent sent = copy_.to.pageable ? send(copy_, here, there, shape) : send(copy_, there, here, shape);
    note_use(sent);
    if (sent.result != CUDA_SUCCESS) return sent.result;
    if (copy_.async)  // the next block reuses the chunk
      if (const CUresult r = synchronize(copy_); r != CUDA_SUCCESS) return r;
    chunk_.last = 0, chunk_.unfinished = nullptr;
    if (copy_.to.pageable)
      for (std::size_t row = 0; row < shape.height; ++row)
        std::memcpy(pageable.bytes(x, y + row, z), chunk_.at + row * shape.width, shape.width);
    if (!this_channel().read_is_good()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    s.memory.staged_bytes.fetch_add(shape.width * shape.height, std::memory_order_relaxed);
    return CUDA_SUCCESS;
  }

  // Records that the copy still uses the chunk, unless this call waits for the end of the copy.
  void note_use(const Sent& sent) {
    if (copy_.async ? sent.use.position == 0 : !sent.unanswered) return;
    chunk_.last = sent.use.packed();
    if (copy_.async) chunk_.unfinished = copy_.context;
  }

  const Rows& copy_;
  Arena::Chunk chunk_;
};

CUresult copy_here(const Rows& c) {
  if (const CUresult r = synchronize(c); r != CUDA_SUCCESS) return r;
  for (std::size_t z = 0; z < c.shape.depth; ++z)
    for (std::size_t y = 0; y < c.shape.height; ++y)
      std::memmove(c.to.bytes(0, y, z), c.from.bytes(0, y, z), c.shape.width);
  return CUDA_SUCCESS;
}

// A level of a mipmapped array has an array of its own. A level's number has no meaning for other memory.
bool names_a_level(const CUDA_MEMCPY3D& c) {
  return (c.dstLOD != 0 && c.dstMemoryType == CU_MEMORYTYPE_ARRAY) ||
         (c.srcLOD != 0 && c.srcMemoryType == CU_MEMORYTYPE_ARRAY);
}

// Returns the copy's error, or fills `rows` with the copy's description.
CUresult prepare(const CUDA_MEMCPY3D* c, Rows& rows) {
  if (const CUresult r = enter(rows.context, {rows.stream}); r != CUDA_SUCCESS) return r;
  if (c == nullptr || names_a_level(*c)) return CUDA_ERROR_INVALID_VALUE;
  rows.shape = {c->WidthInBytes, c->Height, c->Depth};
  const Described to{c->dstXInBytes, c->dstY,     c->dstZ,      c->dstMemoryType, c->dstHost,
                     c->dstDevice,   c->dstPitch, c->dstHeight, c->dstArray};
  const Described from{c->srcXInBytes, c->srcY,     c->srcZ,      c->srcMemoryType, c->srcHost,
                       c->srcDevice,   c->srcPitch, c->srcHeight, c->srcArray};
  if (const CUresult r = resolve(to, rows.shape, rows.to); r != CUDA_SUCCESS) return r;
  if (const CUresult r = resolve(from, rows.shape, rows.from); r != CUDA_SUCCESS) return r;
  rows.ref = resolve_stream(rows.stream, *rows.context);
  return rows.ref.object == nullptr ? no_such(rows.stream) : CUDA_SUCCESS;
}

Rows rows_in(CUstream stream, bool async) {
  return {.shape = {}, .to = {}, .from = {}, .stream = stream, .async = async, .context = nullptr, .ref = {}};
}

CUresult copy(const CUDA_MEMCPY3D* c, CUstream stream, bool async) {
  Rows rows = rows_in(stream, async);
  if (const CUresult r = prepare(c, rows); r != CUDA_SUCCESS) return r;
  if (rows.shape.empty()) return CUDA_SUCCESS;
  if ((rows.to.pageable || rows.from.pageable) && async && is_captured(stream)) return capture_pageable(*c, stream);
  if (rows.to.pageable && rows.from.pageable) return copy_here(rows);
  if (rows.to.pageable || rows.from.pageable) return Staged(rows).run();
  return send(rows, rows.to, rows.from, rows.shape).result;
}

// Describes the two-dimensional copy as one slice of the three-dimensional form.
CUDA_MEMCPY3D one_slice(const CUDA_MEMCPY2D& c) {
  CUDA_MEMCPY3D all;
  std::memset(&all, 0, sizeof all);
  all.srcXInBytes = c.srcXInBytes, all.srcY = c.srcY, all.srcMemoryType = c.srcMemoryType, all.srcHost = c.srcHost;
  all.srcDevice = c.srcDevice, all.srcPitch = c.srcPitch, all.srcArray = c.srcArray;
  all.dstXInBytes = c.dstXInBytes, all.dstY = c.dstY, all.dstMemoryType = c.dstMemoryType, all.dstHost = c.dstHost;
  all.dstDevice = c.dstDevice, all.dstPitch = c.dstPitch, all.dstArray = c.dstArray;
  all.WidthInBytes = c.WidthInBytes, all.Height = c.Height, all.Depth = 1;
  return all;
}

CUresult copy(const CUDA_MEMCPY2D* c, CUstream stream, bool async) {
  if (c == nullptr) return copy(static_cast<const CUDA_MEMCPY3D*>(nullptr), stream, async);
  const CUDA_MEMCPY3D all = one_slice(*c);
  return copy(&all, stream, async);
}

// One side of a copy of one row: an array from an offset on, or memory.
struct RowSide {
  CUmemorytype type;
  const void* host = nullptr;
  CUdeviceptr device = 0;
  CUarray array = nullptr;
  std::size_t offset = 0;
};
RowSide of(CUarray array, std::size_t offset) {
  return {.type = CU_MEMORYTYPE_ARRAY, .array = array, .offset = offset};
}
RowSide host(const void* at) { return {.type = CU_MEMORYTYPE_HOST, .host = at}; }
RowSide device(CUdeviceptr at) { return {.type = CU_MEMORYTYPE_DEVICE, .device = at}; }

// The driver checks neither side of a copy of 0 bytes.
CUresult copy_row(const RowSide& to, const RowSide& from, std::size_t bytes, CUstream stream, bool async) {
  CUDA_MEMCPY3D c;
  std::memset(&c, 0, sizeof c);
  if (bytes == 0) {
    c.dstMemoryType = c.srcMemoryType = CU_MEMORYTYPE_HOST;
    return copy(&c, stream, async);
  }
  c.dstMemoryType = to.type, c.dstHost = const_cast<void*>(to.host), c.dstDevice = to.device;
  c.dstArray = to.array, c.dstXInBytes = to.offset;
  c.srcMemoryType = from.type, c.srcHost = from.host, c.srcDevice = from.device;
  c.srcArray = from.array, c.srcXInBytes = from.offset;
  c.WidthInBytes = bytes, c.Height = c.Depth = 1;
  return copy(&c, stream, async);
}

}  // namespace

CUresult judge_copy(const CUDA_MEMCPY3D& c, CUstream stream) {
  Rows rows = rows_in(stream, true);
  return prepare(&c, rows);
}

CUresult describe_copy(const CUDA_MEMCPY3D& c, api::CopyTexelsRecord& record) {
  Rows rows = rows_in(nullptr, true);
  if (const CUresult r = prepare(&c, rows); r != CUDA_SUCCESS) return r;
  if (rows.to.pageable || rows.from.pageable) return CUDA_ERROR_NOT_SUPPORTED;
  record.to = texels_side(rows.to), record.from = texels_side(rows.from);
  record.width = rows.shape.width, record.height = rows.shape.height, record.depth = rows.shape.depth;
  record.stream = 0;
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoA_v2(CUarray to, std::size_t offset, CUdeviceptr from, std::size_t bytes) {
  return copy_row(of(to, offset), device(from), bytes, nullptr, false);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, std::size_t offset, std::size_t bytes) {
  return copy_row(device(to), of(from, offset), bytes, nullptr, false);
}
CUresult cuMemcpyHtoA_v2(CUarray to, std::size_t offset, const void* from, std::size_t bytes) {
  return copy_row(of(to, offset), host(from), bytes, nullptr, false);
}
CUresult cuMemcpyAtoH_v2(void* to, CUarray from, std::size_t offset, std::size_t bytes) {
  return copy_row(host(to), of(from, offset), bytes, nullptr, false);
}
CUresult cuMemcpyAtoA_v2(CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset, std::size_t bytes) {
  return copy_row(of(to, to_offset), of(from, from_offset), bytes, nullptr, false);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray to, std::size_t offset, const void* from, std::size_t bytes, CUstream stream) {
  return copy_row(of(to, offset), host(from), bytes, stream, true);
}
CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, std::size_t offset, std::size_t bytes, CUstream stream) {
  return copy_row(host(to), of(from, offset), bytes, stream, true);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* c) { return copy(c, nullptr, false); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* c, CUstream stream) { return copy(c, stream, true); }
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* c) { return copy(c, nullptr, false); }
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* c) { return copy(c, nullptr, false); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* c, CUstream stream) { return copy(c, stream, true); }

}  // namespace guest::calls

namespace guest {

bool is_pageable(const CUDA_MEMCPY3D& c) {
  calls::Rows rows = calls::rows_in(nullptr, true);
  return calls::prepare(&c, rows) == CUDA_SUCCESS && !rows.shape.empty() && (rows.to.pageable || rows.from.pageable);
}

CUresult describe_pageable(const CUDA_MEMCPY3D& c, api::PageableCopyRecord& record) {
  calls::Rows rows = calls::rows_in(nullptr, true);
  if (const CUresult r = calls::prepare(&c, rows); r != CUDA_SUCCESS) return r;
  if (rows.to.pageable && rows.from.pageable) return CUDA_ERROR_NOT_SUPPORTED;
  Session& s = *session();
  const calls::Shape& shape = rows.shape;
  calls::Side& theirs = rows.from.pageable ? rows.from : rows.to;
  std::byte* const block = s.memory.arena->allocate(shape.width * shape.height * shape.depth);
  if (block == nullptr) return calls::no_block();
  auto* const copy = new PageableCopy{.as_given = c,
                                      .to_device = rows.from.pageable,
                                      .program = theirs.bytes(0, 0, 0),
                                      .pitch = theirs.pitch,
                                      .slice = theirs.slice,
                                      .block = block,
                                      .width = shape.width,
                                      .height = shape.height,
                                      .depth = shape.depth};
  record.token = s.callbacks().issue({.function = PageableCopy::move,
                                      .argument = copy,
                                      .ended = PageableCopy::end,
                                      .life = Callback::Life::UntilEnded});
  if (record.token == 0) {
    PageableCopy::end({.argument = copy});
    return s.liveness().lost() ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_ERROR_OUT_OF_MEMORY;
  }
  theirs = {.start = s.device_address(s.memory.arena->offset(block)),
            .pitch = shape.width,
            .slice = shape.width * shape.height};
  record.to = calls::texels_side(rows.to), record.from = calls::texels_side(rows.from);
  record.width = shape.width, record.height = shape.height, record.depth = shape.depth;
  record.stream = 0, record.to_device = copy->to_device ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace guest
