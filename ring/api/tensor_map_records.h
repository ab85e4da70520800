// The records of tensor maps: ring/api/records.h explains them.
#pragma once

#include <cstdint>
#include <tuple>

#include "ring/api/cuda.h"
#include "ring/api/field_list.h"

namespace api {

struct TensorMapReply {
  std::uint64_t map[sizeof(CUtensorMap) / sizeof(std::uint64_t)];

  static constexpr std::tuple fields{field::Triple{"", &TensorMapReply::map}};
};
// For cuTensorMapEncodeTiled and the im2col variants. A call fills the members for its parameters and sets the other
// members to zero. The host checks only the first byte of the address, because programs describe tensors that are
// larger than their memory and never touch the rest.
struct TensorMapRecord {
  static constexpr std::uint32_t most_dimensions = 5;

  std::uint64_t address;
  std::uint64_t dimensions[most_dimensions], strides[most_dimensions - 1];
  std::uint32_t type, rank, interleave, swizzle, promotion, fill, mode;
  std::uint32_t box[most_dimensions], steps[most_dimensions];
  std::int32_t lower[3], upper[3];
  std::uint32_t channels, pixels, pad;

  static constexpr std::tuple fields{field::Address{"address", &TensorMapRecord::address, field::first_byte},
                                     field::Number{"type", &TensorMapRecord::type},
                                     field::Between{"rank", &TensorMapRecord::rank, 1, most_dimensions},
                                     field::Triple{"dimensions", &TensorMapRecord::dimensions},
                                     field::Triple{"strides", &TensorMapRecord::strides},
                                     field::Triple{"box", &TensorMapRecord::box},
                                     field::Triple{"steps", &TensorMapRecord::steps},
                                     field::Triple{"lower", &TensorMapRecord::lower},
                                     field::Triple{"upper", &TensorMapRecord::upper},
                                     field::Number{"channels", &TensorMapRecord::channels},
                                     field::Number{"pixels", &TensorMapRecord::pixels},
                                     field::Number{"interleave", &TensorMapRecord::interleave},
                                     field::Number{"swizzle", &TensorMapRecord::swizzle},
                                     field::Number{"promotion", &TensorMapRecord::promotion},
                                     field::Number{"fill", &TensorMapRecord::fill},
                                     field::Number{"mode", &TensorMapRecord::mode},
                                     field::Zero{&TensorMapRecord::pad}};
  using Reply = TensorMapReply;
};
struct MoveTensorMapRecord {
  std::uint64_t address;
  std::uint64_t map[sizeof(CUtensorMap) / sizeof(std::uint64_t)];

  static constexpr std::tuple fields{field::Address{"address", &MoveTensorMapRecord::address, field::first_byte},
                                     field::Triple{"", &MoveTensorMapRecord::map}};
  using Reply = TensorMapReply;
};

}  // namespace api
