// Handlers of texture and surface instructions. Ins::imm encodes the variant. The extra places from Ins::index on are
// the operands, in the order given below. host/simgpu/texture/ implements the rules of sampling.
#pragma once

#include <bit>

#include "host/simgpu/texture/surface.h"
#include "host/simgpu/texture/texture.h"
#include "host/simgpu/vm/code.h"

namespace simgpu {

// The error for an object number beyond the end of the table.
inline constexpr CUresult unknown_object_code = CUDA_ERROR_ILLEGAL_ADDRESS;
// The error for an access outside a surface under .trap.
inline constexpr CUresult surface_trap_code = CUDA_ERROR_ILLEGAL_ADDRESS;

template <class F>
std::int64_t packed_form(const F& form) {
  static_assert(sizeof(F) == sizeof(std::int64_t));
  return std::bit_cast<std::int64_t>(form);
}
template <class F>
F form_in(const Ins& ins) {
  return std::bit_cast<F>(ins.imm);
}

// tex and tld4. Operands: the object (64 bits), three coordinates, the layer, the level, two gradients of three
// components, three offsets, and the results. All except the object have 32 bits. Absent operands are 0.
struct TextureForm {
  enum class Level : std::uint8_t { Base, Given, Gradient };
  enum class Result : std::uint8_t { Words, Halves, HalfPairs };
  Geometry geometry = Geometry::D2;
  Level level = Level::Base;
  Result result = Result::Words;
  bool numbered = false;  // coordinates and level are integers
  bool gather = false;    // gather `channel` of four texels
  std::uint8_t channel = 0;
  std::array<std::uint8_t, 2> unused{};
};
enum TextureOperand : std::uint32_t {
  texture_object = 0,
  texture_at = 1,
  texture_layer = 4,
  texture_level = 5,
  texture_dx = 6,
  texture_dy = 9,
  texture_offset = 12,
  texture_result = 15,
};
Handlers texture_handler();

// suld, sust and sured. Operands: the object (64 bits), three coordinates and the layer (32 bits each), then `count`
// values to load, store or combine. A value takes `lane_bytes` per lane in registers and `bytes` in memory.
enum class SurfaceStep : std::uint8_t { Load, Store, Add, Min, Max, And, Or };
struct SurfaceForm {
  Geometry geometry = Geometry::D2;
  Bounds bounds = Bounds::Trap;
  SurfaceStep step = SurfaceStep::Load;
  bool formatted = false;
  bool is_signed = false;  // for Min and Max; a formatted access uses the format of the surface
  std::uint8_t bytes = 4;
  std::uint8_t lane_bytes = 4;
  std::uint8_t count = 1;
};
enum SurfaceOperand : std::uint32_t { surface_object = 0, surface_at = 1, surface_layer = 4, surface_value = 5 };
Handlers surface_handler();

// txq and suq. Ins::count: the Query; a: the object; b: the level; d: the result.
enum class Query : std::uint16_t { Width, Height, Depth };
Handlers texture_query_handler();
Handlers surface_query_handler();
// istypep. Ins::a: the number; d: the predicate.
Handlers is_texture_handler();
Handlers is_surface_handler();

}  // namespace simgpu
