// A common form for copies and fills of one to three dimensions.
#pragma once

#include "host/simgpu/api/driver.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "host/simgpu/engine.h"

namespace simgpu {

// `depth` slices of `height` rows of `width` bytes. A linear range is one row.
struct Shape {
  std::size_t width = 0, height = 1, depth = 1;
};

// The start address of a shape, and its pitches from row to row and from slice to slice.
struct Layout {
  Address start = 0;
  std::size_t pitch = 0, slice = 0;
};

// Returns the number of bytes from the first to the last byte of the shape; nullopt on overflow.
std::optional<std::size_t> span_of(const Layout& layout, const Shape& shape);

struct Copy {
  Layout to, from;
  Shape shape;
  std::shared_ptr<void> keeps_to = nullptr, keeps_from = nullptr;  // own the texels of arrays until the copy is done
  // The description that the call received, unless the copy is a linear range; null: derived from the other fields.
  std::shared_ptr<const CUDA_MEMCPY3D> asked = nullptr;
};

// The memory that a side of a copy may use: device memory, memory of the program, or either (the driver determines it).
enum class Side { Device, Host, Any };

// The condition under which the call of a copy returns: it always waits, or waits if the CUDA documentation says so.
enum class Wait { Always, AsCudaSays };

// Returns the error that copy_in_stream would return, or CUDA_SUCCESS.
CUresult check_copy(Driver& driver, Context& context, CUstream stream, const Copy& copy, Side to, Side from);

// Converts a CUDA_MEMCPY3D into a Copy, and determines the memory that each side may use.
CUresult copy_of(Driver& driver, const CUDA_MEMCPY3D& description, Copy& copy, Side& to, Side& from);

// A checked side: either pageable memory of the program, or memory that the driver knows.
struct Found {
  bool valid = false;
  bool pageable = false;
  std::size_t span = 0;
};

// A checked copy. The work may run later; it checks again that the memory exists.
struct ReadyCopy {
  Found target, source;
  std::function<void()> work;
};

CUresult prepare_copy(Driver& driver, const Copy& copy, Side to, Side from, ReadyCopy& out);

// Checks a copy and submits it in stream order.
CUresult copy_in_stream(Driver& driver, Context& context, CUstream stream, const Copy& copy, Side to, Side from,
                        Wait wait);

// A fill with a pattern of 1, 2 or 4 bytes. `shape.width` is in bytes.
struct Fill {
  Layout to;
  Shape shape;
  std::uint32_t pattern = 0;
  std::size_t pattern_size = 1;
};

struct ReadyFill {
  std::function<void()> work;
  bool seen_by_host = false;  // the host may read the memory without waiting
};

CUresult prepare_fill(Driver& driver, Context& context, const Fill& fill, ReadyFill& out);
CUresult fill_in_stream(Driver& driver, Context& context, CUstream stream, const Fill& fill, Wait wait);

}  // namespace simgpu
