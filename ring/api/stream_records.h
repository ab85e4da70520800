// The records of streams' attributes: ring/api/records.h explains them.
#pragma once

#include <cstdint>
#include <tuple>

#include "ring/api/cuda.h"
#include "ring/api/field_list.h"

namespace api {

// An attribute of a stream, in a launch's form: cuda.h has one union for both.
struct SetStreamAttributeRecord {
  std::uint64_t stream;
  std::uint32_t attributes, pad;

  static constexpr std::tuple fields{
      field::stream(&SetStreamAttributeRecord::stream), field::between("", &SetStreamAttributeRecord::attributes, 1, 1),
      field::zero(&SetStreamAttributeRecord::pad), field::attributes(&SetStreamAttributeRecord::attributes)};
};
struct StreamAttributeReply {
  std::uint64_t value[sizeof(CUlaunchAttributeValue) / sizeof(std::uint64_t)];

  static constexpr std::tuple fields{field::triple("", &StreamAttributeReply::value)};
};
struct GetStreamAttributeRecord {
  std::uint64_t stream;
  std::uint32_t tag, pad;

  static constexpr std::tuple fields{field::stream(&GetStreamAttributeRecord::stream),
                                     field::number("attribute", &GetStreamAttributeRecord::tag),
                                     field::zero(&GetStreamAttributeRecord::pad)};
  using Reply = StreamAttributeReply;
};

// cuLaunchHostFunc and cuStreamAddCallback. `token`: the guest's name for function and argument (ring/queue/callback_slot.h).
struct HostFunctionRecord {
  std::uint64_t stream, token;

  static constexpr std::tuple fields{field::stream(&HostFunctionRecord::stream),
                                     field::number("token", &HostFunctionRecord::token)};
};

}  // namespace api
