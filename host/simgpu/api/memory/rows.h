// Copies and fills of one to three dimensions in one form.
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

// The pitches of a shape: from row to row and from slice to slice.
struct Layout {
  Address start = 0;
  std::size_t pitch = 0, slice = 0;
};

// Bytes from the shape's first byte to its end; nullopt on overflow.
std::optional<std::size_t> span_of(const Layout& layout, const Shape& shape);

struct Copy {
  Layout to, from;
  Shape shape;
  std::shared_ptr<void> keeps_to = nullptr, keeps_from = nullptr;  // keep an array's texels until the copy is done
  // The call's description, if it was more than a linear range; else derived from the other fields.
  std::shared_ptr<const CUDA_MEMCPY3D> asked = nullptr;
};

// The memory that a side of a copy may use.
enum class Side { Device, Host, Any };  // Host: program memory; Any: the driver determines it

// When a copy's call returns.
enum class Wait { Always, AsCudaSays };

// The error that copy_in_stream would return, or CUDA_SUCCESS.
CUresult check_copy(Driver& driver, Context& context, CUstream stream, const Copy& copy, Side to, Side from);

// Reads a CUDA copy description into a Copy and the allowed memory of both sides.
CUresult copy_of(Driver& driver, const CUDA_MEMCPY3D& description, Copy& copy, Side& to, Side& from);

// A resolved side: pageable memory of the program, or checked memory that the driver knows.
struct Found {
  bool valid = false;
  bool pageable = false;
  std::size_t span = 0;
};

// A checked copy. Its work may run later and checks again that the memory exists.
struct ReadyCopy {
  Found target, source;
  std::function<void()> work;
};

CUresult prepare_copy(Driver& driver, const Copy& copy, Side to, Side from, ReadyCopy& out);

// Checks, then copies in stream order.
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
  bool seen_by_host = false;  // the host may read the memory without waiting
};

CUresult prepare_fill(Driver& driver, Context& context, const Fill& fill, ReadyFill& out);
CUresult fill_in_stream(Driver& driver, Context& context, CUstream stream, const Fill& fill, Wait wait);

}  // namespace simgpu
