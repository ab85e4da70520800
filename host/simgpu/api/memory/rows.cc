// A copy call checks the range and the kind of memory of each side. Because memory may be freed in between, the work
// checks again when it executes.
#include "host/simgpu/api/memory/rows.h"

#include <cstring>
#include <vector>

#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/graph/graph_calls.h"
#include "host/simgpu/api/memory/memory.h"
#include "host/simgpu/api/memory/memory_pool.h"
#include "host/simgpu/api/stream/streams.h"

namespace simgpu {
namespace {

// Up to this size, an asynchronous copy from pageable memory makes a private copy of the source and returns; a larger
// copy waits. CUDA allows both. The limit bounds the memory for private copies.
constexpr std::size_t max_staged = 64 << 10;

template <class F>
void each_row(const Shape& shape, F&& row) {
  for (std::size_t z = 0; z < shape.depth; ++z)
    for (std::size_t y = 0; y < shape.height; ++y) row(y, z);
}

std::uint8_t* at(const Layout& layout, std::size_t y, std::size_t z) {
  return reinterpret_cast<std::uint8_t*>(layout.start + z * layout.slice + y * layout.pitch);
}

void copy_rows(const Copy& copy) {
  each_row(copy.shape, [&](std::size_t y, std::size_t z) {
    std::memmove(at(copy.to, y, z), at(copy.from, y, z), copy.shape.width);
  });
}

void fill_row(std::uint8_t* row, std::size_t width, std::uint32_t pattern, std::size_t pattern_size) {
  if (pattern_size == 1) {
    std::memset(row, static_cast<int>(pattern & 0xff), width);
    return;
  }
  for (std::size_t i = 0; i < width; i += pattern_size) std::memcpy(row + i, &pattern, pattern_size);
}

// Returns true for pool memory of a device other than the current context's. In the simulation, devices do not share
// pools. All other memory can be copied in any context.
bool is_another_devices_pool(Driver& driver, Address start) {
  const Context* const current = driver.current();
  const auto allocation = driver.memory.find(start);
  return current != nullptr && allocation && allocation->pool != nullptr && !allocation->pool->on_host() &&
         &allocation->pool->device() != &current->device;
}

Found look_at(Driver& driver, const Layout& layout, const Shape& shape, Side side, bool to_write) {
  const auto span = span_of(layout, shape);
  if (!span || layout.start == 0 || *span > UINT64_MAX - layout.start) return {};
  if (known(driver, layout.start, *span, to_write)) return {.valid = true, .pageable = false, .span = *span};
  if (side == Side::Device) return {};
  // If the driver knows the address, the range extends past the end of an allocation or the mapping has no access
  // rights. Such memory is not pageable memory of the program.
  if (range_of(driver, layout.start) || driver.memory.find(layout.start)) return {};
  return {.valid = true, .pageable = true, .span = *span};
}

// Reports a fault if the memory was freed between the call and the execution of the work.
bool still_there(Driver& driver, const Layout& layout, const Found& found) {
  if (found.pageable || reachable(driver, layout.start, found.span)) return true;
  driver.fail({.code = CUDA_ERROR_ILLEGAL_ADDRESS, .what = "a copy or fill reached memory that was freed meanwhile."});
  return false;
}

// Returns true for memory of another device. A fill runs on the stream's device, which cannot access that memory.
bool is_another_devices(const Allocation& allocation, const Context& context) {
  const bool on_a_device = allocation.kind == MemoryKind::Device || allocation.kind == MemoryKind::Pool;
  return on_a_device && allocation.device != nullptr && allocation.device != &context.device;
}

CUresult run_and_wait(Driver& driver, Stream& stream, std::function<void()> work) {
  run_now(driver, stream, std::move(work));
  driver.flush_output();
  return driver.fault();
}

CUmemorytype memory_type_of(Side side) {
  if (side == Side::Host) return CU_MEMORYTYPE_HOST;
  return side == Side::Device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
}

// Describes a copy of a linear range.
CUDA_MEMCPY3D description_of(const Copy& copy, Side to, Side from) {
  CUDA_MEMCPY3D out{};
  out.dstMemoryType = memory_type_of(to);
  out.srcMemoryType = memory_type_of(from);
  out.dstDevice = to == Side::Host ? 0 : copy.to.start;
  out.srcDevice = from == Side::Host ? 0 : copy.from.start;
  out.dstHost = to == Side::Host ? reinterpret_cast<void*>(copy.to.start) : nullptr;
  out.srcHost = from == Side::Host ? reinterpret_cast<const void*>(copy.from.start) : nullptr;
  out.WidthInBytes = copy.shape.width;
  out.Height = out.Depth = 1;
  return out;
}

// The node accesses pageable memory when it executes.
CUresult capture_copy(Driver& driver, Stream& stream, const Copy& copy, Side to, Side from) {
  if (copy.asked == nullptr && (copy.shape.height != 1 || copy.shape.depth != 1)) return CUDA_ERROR_NOT_SUPPORTED;
  CopyWork work;
  const CUDA_MEMCPY3D asked = copy.asked != nullptr ? *copy.asked : description_of(copy, to, from);
  const CUresult error = make_copy_work(driver, asked, stream.context, work);
  return error == CUDA_SUCCESS ? capture_node(driver, stream, work) : error;
}

// The address is checked when the graph is instantiated.
CUresult capture_fill(Driver& driver, Stream& stream, const Fill& fill) {
  if (fill.to.start % fill.pattern_size != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMSET_NODE_PARAMS_v1 asked{.dst = fill.to.start,
                                         .pitch = fill.to.pitch,
                                         .value = fill.pattern,
                                         .elementSize = static_cast<unsigned>(fill.pattern_size),
                                         .width = fill.shape.width / fill.pattern_size,
                                         .height = fill.shape.height};
  return capture_node(driver, stream, FillWork{.context = stream.context, .asked = asked});
}

}  // namespace

std::optional<std::size_t> span_of(const Layout& layout, const Shape& shape) {
  if (shape.width == 0 || shape.height == 0 || shape.depth == 0) return 0;
  std::size_t rows = 0, slices = 0, total = 0;
  if (__builtin_mul_overflow(shape.height - 1, layout.pitch, &rows) ||
      __builtin_mul_overflow(shape.depth - 1, layout.slice, &slices) || __builtin_add_overflow(rows, slices, &total) ||
      __builtin_add_overflow(total, shape.width, &total))
    return std::nullopt;
  return total;
}

CUresult check_copy(Driver& driver, Context& context, CUstream handle, const Copy& copy, Side to, Side from) {
  if (stream_of(driver, context, handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (copy.shape.width == 0 || copy.shape.height == 0 || copy.shape.depth == 0) return CUDA_SUCCESS;
  const bool valid =
      look_at(driver, copy.to, copy.shape, to, true).valid && look_at(driver, copy.from, copy.shape, from, false).valid;
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult prepare_copy(Driver& driver, const Copy& copy, Side to, Side from, ReadyCopy& out) {
  out.target = look_at(driver, copy.to, copy.shape, to, true);
  out.source = look_at(driver, copy.from, copy.shape, from, false);
  if (!out.target.valid || !out.source.valid) return CUDA_ERROR_INVALID_VALUE;
  if (is_another_devices_pool(driver, copy.to.start) || is_another_devices_pool(driver, copy.from.start))
    return CUDA_ERROR_INVALID_VALUE;
  out.work = [&driver, copy, target = out.target, source = out.source] {
    if (still_there(driver, copy.to, target) && still_there(driver, copy.from, source)) copy_rows(copy);
  };
  return CUDA_SUCCESS;
}

CUresult copy_in_stream(Driver& driver, Context& context, CUstream handle, const Copy& copy, Side to, Side from,
                        Wait wait) {
  const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (copy.shape.width == 0 || copy.shape.height == 0 || copy.shape.depth == 0) return CUDA_SUCCESS;
  if (wait == Wait::AsCudaSays && is_captured(driver, *stream)) return capture_copy(driver, *stream, copy, to, from);
  ReadyCopy ready;
  if (const CUresult error = prepare_copy(driver, copy, to, from, ready); error != CUDA_SUCCESS) return error;
  if (wait == Wait::Always || ready.target.pageable) return run_and_wait(driver, *stream, std::move(ready.work));
  if (!ready.source.pageable) {
    post(driver, *stream, std::move(ready.work));
    return CUDA_SUCCESS;
  }
  const std::size_t total = copy.shape.width * copy.shape.height * copy.shape.depth;
  if (total > max_staged) return run_and_wait(driver, *stream, std::move(ready.work));

  const auto staged = std::make_shared<std::vector<std::uint8_t>>(total);
  Copy stage = copy;
  const std::size_t width = copy.shape.width;
  stage.to = {.start = address_of(staged->data()), .pitch = width, .slice = width * copy.shape.height};
  copy_rows(stage);
  Copy rest = copy;
  rest.from = stage.to;
  post(driver, *stream, [&driver, rest, target = ready.target, staged] {
    if (still_there(driver, rest.to, target)) copy_rows(rest);
  });
  return CUDA_SUCCESS;
}

CUresult prepare_fill(Driver& driver, Context& context, const Fill& fill, ReadyFill& out) {
  const Layout& to = fill.to;
  const Shape& shape = fill.shape;
  if (to.start % fill.pattern_size != 0 || (shape.height > 1 && to.pitch % fill.pattern_size != 0))
    return CUDA_ERROR_INVALID_VALUE;
  const Found target = look_at(driver, to, shape, Side::Device, true);
  const auto allocation = driver.memory.find(to.start);
  const bool kept_away = allocation && ((allocation->pool != nullptr && !allocation->pool->is_reached()) ||
                                        is_another_devices(*allocation, context));
  if (!target.valid || kept_away) return CUDA_ERROR_INVALID_VALUE;
  out.work = [&driver, fill, target] {
    if (!still_there(driver, fill.to, target)) return;
    each_row(fill.shape, [&](std::size_t y, std::size_t z) {
      fill_row(at(fill.to, y, z), fill.shape.width, fill.pattern, fill.pattern_size);
    });
  };
  // The host may read host memory and managed memory right after the call. It cannot read device memory without
  // waiting.
  const auto range = range_of(driver, to.start);
  const bool managed = allocation && allocation->kind == MemoryKind::Managed;
  out.seen_by_host = managed || (range && range->kind == RangeKind::Host);
  return CUDA_SUCCESS;
}

CUresult fill_in_stream(Driver& driver, Context& context, CUstream handle, const Fill& fill, Wait wait) {
  const std::shared_ptr<Stream> stream = stream_of(driver, context, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (fill.shape.width == 0 || fill.shape.height == 0) return CUDA_SUCCESS;
  if (wait == Wait::AsCudaSays && is_captured(driver, *stream)) return capture_fill(driver, *stream, fill);
  ReadyFill ready;
  if (const CUresult error = prepare_fill(driver, context, fill, ready); error != CUDA_SUCCESS) return error;
  if (wait == Wait::Always && ready.seen_by_host) return run_and_wait(driver, *stream, std::move(ready.work));
  post(driver, *stream, std::move(ready.work));
  return CUDA_SUCCESS;
}

}  // namespace simgpu
