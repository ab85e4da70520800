// The record of cuPointerSetAttribute. Part of ring/api/records.h.
#pragma once

#include <cstdint>
#include <tuple>

#include "ring/api/field_list.h"

namespace api {

// Sets CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, the only attribute that can be set, for the allocation that contains this
// byte.
struct SetPointerRecord {
  std::uint64_t address;
  std::uint64_t sync_memops;

  static constexpr std::tuple fields{field::Address{"address", &SetPointerRecord::address, field::first_byte},
                                     field::Flag{&SetPointerRecord::sync_memops}};
};

}  // namespace api
