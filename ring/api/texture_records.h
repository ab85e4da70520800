// The records of CUSTOM lines about arrays, textures and surfaces. Part of ring/api/records.h, which explains records.
//
// The driver gives each texture or surface object a number, which kernels use. The guest chooses the object's id on the
// wire; the reply to its creation has the number.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "ring/api/fields.h"
#include "ring/api/records.h"

namespace api {

// ---- textures and surfaces -----------------------------------------------------------------------------------------

// Returns the size of a texel in plain memory, or nothing if texels of this format cannot lie in plain memory.
constexpr std::optional<std::uint64_t> texel_bytes(std::uint32_t format, std::uint32_t channels) {
  if (channels != 1 && channels != 2 && channels != 4) return std::nullopt;
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
    case CU_AD_FORMAT_UNORM_INT_101010_2: return 4 * channels;
    default: break;
  }
  // cuda.h has four groups of formats with 1, 2 and 4 channels each: unsigned 8 bits, unsigned 16 bits, signed 8 bits
  // and signed 16 bits.
  if (format < CU_AD_FORMAT_UNORM_INT8X1 || format > CU_AD_FORMAT_SNORM_INT16X4) return std::nullopt;
  const bool wide = (format - CU_AD_FORMAT_UNORM_INT8X1) / 3 % 2 == 1;
  return wide ? 2 * channels : channels;
}

// The members of CUDA_RESOURCE_DESC that the resource's type uses; the other members are 0. `width` is in texels for
// rows, and in bytes for linear memory.
struct TextureResource {
  std::uint64_t array, mipmapped_array;
  std::uint64_t address, width, height, pitch;
  std::uint32_t type, format, channels, pad;
};
// The members of CUDA_TEXTURE_DESC, with floats as bits.
struct TextureSampling {
  std::uint32_t address_mode[3], filter_mode;
  std::uint32_t flags, max_anisotropy, mipmap_filter_mode, level_bias;
  std::uint32_t min_level, max_level;
  std::uint32_t red, green, blue, alpha;
};
// The members of CUDA_RESOURCE_VIEW_DESC.
struct TextureView {
  std::uint64_t width, height, depth;
  std::uint32_t format, first_level, last_level, first_layer, last_layer, pad;
};

struct TextureReply {
  std::uint64_t number;

  static constexpr std::tuple fields{field::Number{"number", &TextureReply::number}};
};

// For cuTexObjectCreate.
struct TextureRecord {
  std::uint64_t id;
  TextureResource resource;
  TextureSampling sampling;
  TextureView view;
  std::uint64_t has_view;

  // Only the first byte must be the session's, as for field::first_byte. Arrays have no address.
  static constexpr std::uint64_t span(const TextureRecord& r) {
    const bool memory = r.resource.type == CU_RESOURCE_TYPE_LINEAR || r.resource.type == CU_RESOURCE_TYPE_PITCH2D;
    return memory ? 1 : 0;
  }

  using Record = TextureRecord;
  template <class T>
  static constexpr auto of_resource(T TextureResource::*member) {
    return field::of(&Record::resource, member);
  }
  template <class T>
  static constexpr auto of_sampling(T TextureSampling::*member) {
    return field::of(&Record::sampling, member);
  }
  template <class T>
  static constexpr auto of_view(T TextureView::*member) {
    return field::of(&Record::view, member);
  }
  static constexpr auto fields_of_texture() {
    using R = TextureResource;
    using S = TextureSampling;
    using V = TextureView;
    return std::tuple{field::Proposed{Handle::Texture, &Record::id},
                      field::Between{"type", of_resource(&R::type), 0, CU_RESOURCE_TYPE_PITCH2D},
                      field::MaybeId{"array", Handle::Array, of_resource(&R::array)},
                      field::MaybeId{"mipmapped_array", Handle::MipmappedArray, of_resource(&R::mipmapped_array)},
                      field::MaybeAddress{"address", of_resource(&R::address), span},
                      field::Number{"width", of_resource(&R::width)},
                      field::Number{"height", of_resource(&R::height)},
                      field::Number{"pitch", of_resource(&R::pitch)},
                      field::Number{"format", of_resource(&R::format)},
                      field::Number{"channels", of_resource(&R::channels)},
                      field::Zero{of_resource(&R::pad)},
                      field::Triple{"address_mode", of_sampling(&S::address_mode)},
                      field::Number{"filter", of_sampling(&S::filter_mode)},
                      field::Number{"flags", of_sampling(&S::flags)},
                      field::Number{"", of_sampling(&S::max_anisotropy)},
                      field::Number{"", of_sampling(&S::mipmap_filter_mode)},
                      field::Number{"", of_sampling(&S::level_bias)},
                      field::Number{"", of_sampling(&S::min_level)},
                      field::Number{"", of_sampling(&S::max_level)},
                      field::Number{"", of_sampling(&S::red)},
                      field::Number{"", of_sampling(&S::green)},
                      field::Number{"", of_sampling(&S::blue)},
                      field::Number{"", of_sampling(&S::alpha)},
                      field::Flag{&Record::has_view},
                      field::OnlyIf{"view_format", of_view(&V::format), &Record::has_view},
                      field::OnlyIf{"view_width", of_view(&V::width), &Record::has_view},
                      field::OnlyIf{"view_height", of_view(&V::height), &Record::has_view},
                      field::OnlyIf{"view_depth", of_view(&V::depth), &Record::has_view},
                      field::OnlyIf{"first_level", of_view(&V::first_level), &Record::has_view},
                      field::OnlyIf{"last_level", of_view(&V::last_level), &Record::has_view},
                      field::OnlyIf{"first_layer", of_view(&V::first_layer), &Record::has_view},
                      field::OnlyIf{"last_layer", of_view(&V::last_layer), &Record::has_view},
                      field::Zero{of_view(&V::pad)}};
  }
};
struct CreateTextureRecord : TextureRecord {
  static constexpr auto fields = fields_of_texture();
  using Reply = TextureReply;
};

// For cuSurfObjectCreate. A surface's resource is an array.
struct CreateSurfaceRecord {
  std::uint64_t id, array;

  static constexpr std::tuple fields{field::Proposed{Handle::Surface, &CreateSurfaceRecord::id},
                                     field::MaybeId{"array", Handle::Array, &CreateSurfaceRecord::array}};
  using Reply = TextureReply;
};

// ---- references ----------------------------------------------------------------------------------------------------

// For cuTexRefSetAddress2D: binds rows of texels to a texture reference.
struct BindRowsRecord {
  std::uint64_t reference;
  std::uint64_t address, width, height, pitch;
  std::uint32_t format, channels;

  // Only the first byte must be the session's, as for field::first_byte. Address 0 means no memory.
  static constexpr std::uint64_t span(const BindRowsRecord& r) { return r.address == 0 ? 0 : 1; }
  static constexpr std::tuple fields{field::Id{Handle::TextureReference, &BindRowsRecord::reference},
                                     field::MaybeAddress{"address", &BindRowsRecord::address, span},
                                     field::Number{"width", &BindRowsRecord::width},
                                     field::Number{"height", &BindRowsRecord::height},
                                     field::Number{"pitch", &BindRowsRecord::pitch},
                                     field::Number{"format", &BindRowsRecord::format},
                                     field::Number{"channels", &BindRowsRecord::channels}};
};

// ---- copies --------------------------------------------------------------------------------------------------------

// One side of a copy: an array with a position in the array, or memory by its device address, like RowsSide.
struct TexelsSide {
  std::uint64_t array;
  std::uint64_t x, y, z;
  std::uint64_t address, pitch, rows;
};
// For all copies with an array on at least one side: `depth` slices of `height` rows of `width` bytes.
struct CopyTexelsRecord {
  TexelsSide to, from;
  std::uint64_t width, height, depth, stream;

  using Record = CopyTexelsRecord;
  template <TexelsSide Record::*side>
  static constexpr std::optional<std::uint64_t> span(const Record& r) {
    const TexelsSide& s = r.*side;
    if (s.array != 0) return 0;
    const auto slice = product(s.pitch, s.rows);
    const auto all = slice ? span_of_rows(r.width, r.height, s.pitch, r.depth, *slice) : std::nullopt;
    return all != std::uint64_t{0} ? all : std::nullopt;
  }
  // The pitch and span of a side follow the same rules as in CopyRowsOf.
  template <TexelsSide Record::*side>
  static constexpr std::uint64_t least_pitch(const Record& r) {
    return (r.*side).array != 0 ? 0 : r.width;
  }
  template <TexelsSide Record::*side>
  static constexpr std::uint64_t least_rows(const Record& r) {
    return (r.*side).array == 0 && r.depth > 1 ? r.height : 0;
  }
  template <TexelsSide Record::*side>
  static constexpr auto fields_of_side(const char* array, const char* address, const char* x, const char* y,
                                       const char* z) {
    const auto of_array = field::of(side, &TexelsSide::array);
    return std::tuple{field::MaybeId{array, Handle::Array, of_array},
                      field::MaybeAddress{address, field::of(side, &TexelsSide::address), span<side>},
                      field::OnlyIf{x, field::of(side, &TexelsSide::x), of_array},
                      field::OnlyIf{y, field::of(side, &TexelsSide::y), of_array},
                      field::OnlyIf{z, field::of(side, &TexelsSide::z), of_array},
                      field::AtLeast{"", field::of(side, &TexelsSide::pitch), least_pitch<side>},
                      field::AtLeast{"", field::of(side, &TexelsSide::rows), least_rows<side>}};
  }
  static constexpr auto fields_of_copy(const char* stream) {
    return std::tuple_cat(fields_of_side<&Record::to>("to_array", "to", "to_x", "to_y", "to_z"),
                          fields_of_side<&Record::from>("from_array", "from", "from_x", "from_y", "from_z"),
                          std::tuple{field::Number{"width", &Record::width}, field::Number{"height", &Record::height},
                                     field::Number{"depth", &Record::depth}, field::Stream{&Record::stream, stream}});
  }
};
// A graph node that copies.
struct CopyNodeRecord : CopyTexelsRecord {
  static constexpr auto with(auto... ids) { return std::tuple_cat(std::tuple{ids...}, fields_of_copy("")); }
};
struct CopiedNodeReply {
  std::uint64_t node;

  static constexpr std::tuple fields{field::Made{Handle::GraphNode, &CopiedNodeReply::node}};
};
struct AddCopyNodeRecord : CopyNodeRecord {
  std::uint64_t graph, dependencies;

  static constexpr auto fields = with(field::Id{Handle::Graph, &AddCopyNodeRecord::graph},
                                      field::Ids{"dependencies", Handle::GraphNode, &AddCopyNodeRecord::dependencies});
  using Reply = CopiedNodeReply;
};
struct SetCopyNodeRecord : CopyNodeRecord {
  std::uint64_t node;

  static constexpr auto fields = with(field::Id{Handle::GraphNode, &SetCopyNodeRecord::node});
};
struct ExecCopyNodeRecord : CopyNodeRecord {
  std::uint64_t exec, node;

  static constexpr auto fields = with(field::Id{Handle::GraphExec, &ExecCopyNodeRecord::exec},
                                      field::Id{Handle::GraphNode, &ExecCopyNodeRecord::node});
};
// A copy from or to the program's own memory, through a block of the arena. The token's function in the guest moves the
// bytes between the program's memory and the block: before a copy to the device, and after a copy from the device
// (docs/design/050-pageable-copies-in-graphs.md).
struct PageableCopyRecord : CopyNodeRecord {
  std::uint64_t token, to_device;

  static constexpr auto with(const char* stream, auto... ids) {
    return std::tuple_cat(
        std::tuple{ids...}, fields_of_copy(stream),
        std::tuple{field::Number{"token", &PageableCopyRecord::token}, field::Flag{&PageableCopyRecord::to_device}});
  }
};
struct CapturePageableRecord : PageableCopyRecord {
  static constexpr auto fields = with("stream");
};
struct AddPageableRecord : PageableCopyRecord {
  std::uint64_t graph, dependencies;

  static constexpr auto fields =
      std::tuple_cat(with("", field::Id{Handle::Graph, &AddPageableRecord::graph}),
                     std::tuple{field::Ids{"dependencies", Handle::GraphNode, &AddPageableRecord::dependencies}});
  using Reply = CopiedNodeReply;
};
struct SetPageableRecord : PageableCopyRecord {
  std::uint64_t node;

  static constexpr auto fields = with("", field::Id{Handle::GraphNode, &SetPageableRecord::node});
};
struct ExecPageableRecord : PageableCopyRecord {
  std::uint64_t exec, node;

  static constexpr auto fields = with("", field::Id{Handle::GraphExec, &ExecPageableRecord::exec},
                                      field::Id{Handle::GraphNode, &ExecPageableRecord::node});
};
// The driver's description of a copy, sent as 64-bit words.
struct CopyNode {
  TexelsSide to, from;
  std::uint64_t width, height, depth;
  std::uint64_t to_type, from_type;  // values of CUmemorytype
};
// `token`: the guest's token if the node copies the program's own memory; else 0.
struct CopyNodeReply {
  std::uint64_t token, bytes;

  static constexpr std::tuple fields{field::Number{"token", &CopyNodeReply::token},
                                     field::Words{"copy", &CopyNodeReply::bytes}};
};
struct GetCopyNodeRecord {
  std::uint64_t node;

  static constexpr std::tuple fields{field::Id{Handle::GraphNode, &GetCopyNodeRecord::node}};
  using Reply = CopyNodeReply;
};

template <bool asynchronous>
struct CopyTexelsOf : CopyTexelsRecord {
  static constexpr auto fields = fields_of_copy(asynchronous ? "stream" : "");
};

// ---- names that the table uses -------------------------------------------------------------------------------------

using DestroyArrayRecord = CloseOf<Handle::Array>;
using DestroyTextureRecord = CloseOf<Handle::Texture>;
using DestroySurfaceRecord = CloseOf<Handle::Surface>;
using CopyTexelsNowRecord = CopyTexelsOf<false>;
using CopyTexelsAsyncRecord = CopyTexelsOf<true>;

}  // namespace api
