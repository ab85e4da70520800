// The records of tensor maps: ring/api/records.h explains them.
#pragma once

#include <cstdint>
#include <tuple>

#include "ring/api/cuda.h"
#include "ring/api/field_list.h"

namespace api {

struct TensorMapReply {
  std::uint64_t map[sizeof(CUtensorMap) / sizeof(std::uint64_t)];

  static constexpr std::tuple fields{field::triple("", &TensorMapReply::map)};
};
// cuTensorMapEncodeTiled and the im2col forms: each fills the members of its parameters, and leaves the rest zero.
// Programs describe tensors that are larger than their memory and never touch the rest.
struct TensorMapRecord {
  static constexpr std::uint32_t most_dimensions = 5;

  std::uint64_t address;
  std::uint64_t dimensions[most_dimensions], strides[most_dimensions - 1];
  std::uint32_t type, rank, interleave, swizzle, promotion, fill, mode;
  std::uint32_t box[most_dimensions], steps[most_dimensions];
  std::int32_t lower[3], upper[3];
  std::uint32_t channels, pixels, pad;

  static constexpr std::tuple fields{field::address("address", &TensorMapRecord::address, field::first_byte),
                                     field::number("type", &TensorMapRecord::type),
                                     field::between("rank", &TensorMapRecord::rank, 1, most_dimensions),
                                     field::triple("dimensions", &TensorMapRecord::dimensions),
                                     field::triple("strides", &TensorMapRecord::strides),
                                     field::triple("box", &TensorMapRecord::box),
                                     field::triple("steps", &TensorMapRecord::steps),
                                     field::triple("lower", &TensorMapRecord::lower),
                                     field::triple("upper", &TensorMapRecord::upper),
                                     field::number("channels", &TensorMapRecord::channels),
                                     field::number("pixels", &TensorMapRecord::pixels),
                                     field::number("interleave", &TensorMapRecord::interleave),
                                     field::number("swizzle", &TensorMapRecord::swizzle),
                                     field::number("promotion", &TensorMapRecord::promotion),
                                     field::number("fill", &TensorMapRecord::fill),
                                     field::number("mode", &TensorMapRecord::mode),
                                     field::zero(&TensorMapRecord::pad)};
  using Reply = TensorMapReply;
};
struct MoveTensorMapRecord {
  std::uint64_t address;
  std::uint64_t map[sizeof(CUtensorMap) / sizeof(std::uint64_t)];

  static constexpr std::tuple fields{field::address("address", &MoveTensorMapRecord::address, field::first_byte),
                                     field::triple("", &MoveTensorMapRecord::map)};
  using Reply = TensorMapReply;
};

}  // namespace api
