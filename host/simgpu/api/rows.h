// Copies and fills of one, two or three dimensions, all of one form.
#pragma once

#include "host/simgpu/api/driver.h"

#include <cstddef>
#include <memory>
#include <optional>

#include "host/simgpu/engine.h"

namespace simgpu {

// `height` rows of `width` bytes in each of `depth` slices. A plain range is one row.
struct Shape {
  std::size_t width = 0, height = 1, depth = 1;
};

// The distances of a shape in memory: a row's start to the next row's, a slice's start to the next slice's.
struct Layout {
  Address start = 0;
  std::size_t pitch = 0, slice = 0;
};

// Bytes from the first byte of the shape to behind its last one; nothing when that overflows.
std::optional<std::size_t> span_of(const Layout& layout, const Shape& shape);

struct Copy {
  Layout to, from;
  Shape shape;
  std::shared_ptr<void> keeps_to = nullptr, keeps_from = nullptr;  // an array's texels, until the copy is done
};

// The allowed memory of a copy's side.
enum class Side { Device, Host, Any };  // Host: the program's own affair; Any: the driver finds out

// When a copy's call may return.
enum class Wait { Always, AsCudaSays };

// What copy_in_stream would refuse; CUDA_SUCCESS: nothing.
CUresult check_copy(Driver& driver, Context& context, CUstream stream, const Copy& copy, Side to, Side from);

// Checks, then copies in the stream's order.
CUresult copy_in_stream(Driver& driver, Context& context, CUstream stream, const Copy& copy, Side to, Side from,
                        Wait wait);

// Fills with a pattern of 1, 2 or 4 bytes (`shape.width` in bytes).
CUresult fill_in_stream(Driver& driver, Context& context, CUstream stream, const Layout& to, const Shape& shape,
                        std::uint32_t pattern, std::size_t pattern_size, Wait wait);

}  // namespace simgpu
