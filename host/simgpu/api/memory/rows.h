// Copies and fills of one, two or three dimensions, all of one form.
#pragma once

#include "host/simgpu/api/driver.h"

#include <cstddef>
#include <functional>
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
  // As a call with more than a range has described it; else it follows from the rest.
  std::shared_ptr<const CUDA_MEMCPY3D> asked = nullptr;
};

// The allowed memory of a copy's side.
enum class Side { Device, Host, Any };  // Host: the program's own affair; Any: the driver finds out

// When a copy's call may return.
enum class Wait { Always, AsCudaSays };

// What copy_in_stream would refuse; CUDA_SUCCESS: nothing.
CUresult check_copy(Driver& driver, Context& context, CUstream stream, const Copy& copy, Side to, Side from);

// The copy that a description of CUDA means, and the allowed memory of its sides.
CUresult copy_of(Driver& driver, const CUDA_MEMCPY3D& description, Copy& copy, Side& to, Side& from);

// A side as it was found: pageable memory is the program's own; all else is known to the driver and was checked.
struct Found {
  bool valid = false;
  bool pageable = false;
  std::size_t span = 0;
};

// A copy that has been checked. Its work may run at any time, and looks again whether the memory is there.
struct ReadyCopy {
  Found target, source;
  std::function<void()> work;
};

CUresult prepare_copy(Driver& driver, const Copy& copy, Side to, Side from, ReadyCopy& out);

// Checks, then copies in the stream's order.
CUresult copy_in_stream(Driver& driver, Context& context, CUstream stream, const Copy& copy, Side to, Side from,
                        Wait wait);

// A fill with a pattern of 1, 2 or 4 bytes (`shape.width` in bytes).
struct Fill {
  Layout to;
  Shape shape;
  std::uint32_t pattern = 0;
  std::size_t pattern_size = 1;
};

struct ReadyFill {
  std::function<void()> work;
  bool seen_by_host = false;  // the host may look at the memory without waiting
};

CUresult prepare_fill(Driver& driver, Context& context, const Fill& fill, ReadyFill& out);
CUresult fill_in_stream(Driver& driver, Context& context, CUstream stream, const Fill& fill, Wait wait);

}  // namespace simgpu
