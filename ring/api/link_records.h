// The records of the JIT linker. Part of ring/api/records.h, which explains records.
//
// A link's options cross once, when it is created. The replies of all four calls end with the options as the driver has
// changed them, like the reply to a load (LoadRecord). First come the values (u64 each), then the info log and the
// error log, each as a length (u64) and its characters.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "ring/api/records.h"

namespace api {

// For cuLinkCreate. `options` JIT options (u64 each) follow, then the options' values (u64 each).
struct CreateLinkRecord {
  std::uint64_t id;
  std::uint32_t options, pad;

  static constexpr std::tuple fields{field::Proposed{Handle::Link, &CreateLinkRecord::id},
                                     field::Between{"options", &CreateLinkRecord::options, 0, max_jit_options},
                                     field::Zero{&CreateLinkRecord::pad},
                                     field::JitOptions{&CreateLinkRecord::options}};
};

// For cuLinkAddData. The input is an image of one section; `id` is the link's id. The same data follow as after a
// LoadRecord, then the input's name.
struct AddToLinkRecord : LoadRecord {
  std::uint32_t type;   // a CUjitInputType
  std::uint32_t named;  // 0: the program gave no name
  std::uint64_t name_bytes;

  static constexpr std::optional<std::uint64_t> not_yet(const LoadRecord&) { return 0; }
  static constexpr std::tuple fields{field::Id{Handle::Link, &LoadRecord::id},
                                     field::Place{"input", &LoadRecord::arena, not_yet, field::Otherwise::InRecord},
                                     field::Zero{&LoadRecord::form},
                                     field::Between{"", &LoadRecord::parts, 1, 1},
                                     field::Between{"options", &LoadRecord::options, 0, max_jit_options},
                                     field::Zero{&LoadRecord::pad},
                                     field::Number{"type", &AddToLinkRecord::type},
                                     field::Flag{&AddToLinkRecord::named},
                                     field::PartSizes{"bytes", &LoadRecord::parts},
                                     field::JitOptions{&LoadRecord::options},
                                     field::Parts{&LoadRecord::arena, &LoadRecord::parts},
                                     field::Text{"name", &AddToLinkRecord::name_bytes}};
};

// For cuLinkComplete. The reply begins with the image's length (u64).
struct CompleteLinkRecord {
  std::uint64_t id;

  static constexpr std::tuple fields{field::Id{Handle::Link, &CompleteLinkRecord::id}};
};
inline constexpr std::uint64_t max_image_piece = 32 << 10;  // the most bytes of an image in one reply

// Bytes of the image that cuLinkComplete has made, from `offset` on: at most `room` bytes, up to the image's end.
struct TakeImageReply {
  std::uint64_t length;

  static constexpr std::tuple fields{field::Characters{"bytes", &TakeImageReply::length}};
};
struct TakeImageRecord {
  std::uint64_t id, offset, room;

  static constexpr std::tuple fields{field::Id{Handle::Link, &TakeImageRecord::id},
                                     field::Number{"offset", &TakeImageRecord::offset},
                                     field::Between{"room", &TakeImageRecord::room, 0, max_image_piece}};
  using Reply = TakeImageReply;
};

using DestroyLinkRecord = CloseOf<Handle::Link>;

}  // namespace api
