// The records of streams' attributes: ring/api/records.h explains them.
#pragma once

#include <cstdint>
#include <tuple>

#include "ring/api/cuda.h"
#include "ring/api/field_list.h"

namespace api {

// An attribute of a stream, sent like a launch attribute, since cuda.h has one union for both.
struct SetStreamAttributeRecord {
  std::uint64_t stream;
  std::uint32_t attributes, pad;

  static constexpr std::tuple fields{
      field::Stream{&SetStreamAttributeRecord::stream}, field::Between{"", &SetStreamAttributeRecord::attributes, 1, 1},
      field::Zero{&SetStreamAttributeRecord::pad}, field::Attributes{&SetStreamAttributeRecord::attributes}};
};
struct StreamAttributeReply {
  std::uint64_t value[sizeof(CUlaunchAttributeValue) / sizeof(std::uint64_t)];

  static constexpr std::tuple fields{field::Triple{"", &StreamAttributeReply::value}};
};
struct GetStreamAttributeRecord {
  std::uint64_t stream;
  std::uint32_t tag, pad;

  static constexpr std::tuple fields{field::Stream{&GetStreamAttributeRecord::stream},
                                     field::Number{"attribute", &GetStreamAttributeRecord::tag},
                                     field::Zero{&GetStreamAttributeRecord::pad}};
  using Reply = StreamAttributeReply;
};

// For cuLaunchHostFunc and cuStreamAddCallback. `token`: the guest's number for function and argument
// (ring/queue/callback_slot.h).
struct HostFunctionRecord {
  std::uint64_t stream, token;

  static constexpr std::tuple fields{field::Stream{&HostFunctionRecord::stream},
                                     field::Number{"token", &HostFunctionRecord::token}};
};

}  // namespace api
