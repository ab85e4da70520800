// The records of green contexts and their resources. Part of ring/api/records.h, which includes it.
#pragma once

#include "ring/api/records.h"

namespace api {

namespace field {
// A field description that only these records use, in a reply: `count` values of CUdevResource, as the program gets
// them (ring/api/structs.h).
template <class M>
struct Resources {
  const char* name;
  M count;
};
template <class M>
Resources(const char*, M) -> Resources<M>;
}  // namespace field
template <class M>
inline constexpr bool follows_reply_v<field::Resources<M>> = true;

// For cuGreenCtxCreate. The guest chooses the context's number, as in cuCtxCreate. The driver accepts a missing
// resource description.
struct CreateGreenContextRecord {
  std::uint64_t description;
  std::uint32_t number, device;  // device: the host's ordinal
  std::uint32_t flags, pad;

  static constexpr std::tuple fields{
      field::MaybeId{"description", Handle::ResourceDesc, &CreateGreenContextRecord::description},
      field::NewContext{"number", &CreateGreenContextRecord::number},
      field::Ordinal{"device", &CreateGreenContextRecord::device},
      field::Bits{"flags", &CreateGreenContextRecord::flags, CU_GREEN_CTX_DEFAULT_STREAM},
      field::Zero{&CreateGreenContextRecord::pad}};
};
struct DestroyGreenContextRecord : EndContextRecord {
  static constexpr std::tuple fields{field::CreatedContext{"number", &EndContextRecord::number}};
};

// The largest number of groups. A group has at least one multiprocessor, and no GPU has this many.
inline constexpr std::uint64_t max_split_groups = 256;

struct SplitResourceReply {
  std::uint32_t groups;
  std::uint32_t resources;  // the number of resources that follow if wanted: first the groups, then the rest

  static constexpr std::tuple fields{field::Number{"groups", &SplitResourceReply::groups},
                                     field::Resources{"resources", &SplitResourceReply::resources}};
};
// For cuDevSmResourceSplitByCount.
struct SplitResourceRecord {
  static constexpr std::uint32_t wants_groups = 1, wants_rest = 2;

  std::uint64_t input;
  std::uint32_t groups;  // the capacity of the program's array of groups
  std::uint32_t least, flags;
  std::uint32_t wants;  // if wants_groups is not set, the program wants only the number of possible groups

  static constexpr std::tuple fields{field::Id{Handle::Resource, &SplitResourceRecord::input},
                                     field::Between{"groups", &SplitResourceRecord::groups, 0, max_split_groups},
                                     field::Number{"least", &SplitResourceRecord::least},
                                     field::Number{"flags", &SplitResourceRecord::flags},
                                     field::Bits{"wants", &SplitResourceRecord::wants, wants_groups | wants_rest}};
  using Reply = SplitResourceReply;
};
static_assert(sizeof(SplitResourceReply) + (max_split_groups + 1) * sizeof(CUdevResource) <= ring::reply_bytes);

}  // namespace api
