// The records of lookups: in modules, libraries and kernels, and of the arrays within arrays. Part of
// ring/api/records.h, which explains records.
//
// The guest proposes an id. The reply has this id, or the id of an earlier lookup of the same object.
#pragma once

#include <cstdint>
#include <tuple>

#include "ring/api/records.h"

namespace api {

// The data by which the guest checks and packs launches. The places of the parameters follow, and then the function's
// name. The name is empty if the lookup contained it, or if it does not fit into the reply.
struct FunctionReply {
  std::uint64_t id;  // the proposed id, or the id of an earlier lookup: one function has one handle
  std::uint32_t params, param_bytes;
  std::uint32_t max_threads, static_shared, max_dynamic_shared, name_bytes;
};
template <Handle kind>
struct FunctionReplyOf : FunctionReply {
  static constexpr std::tuple fields{field::Made{kind, &FunctionReply::id},
                                     field::Layout{"parameters", &FunctionReply::params, &FunctionReply::param_bytes},
                                     field::Text{"name", &FunctionReply::name_bytes}};
};

// The most bytes of a name in a lookup, NUL included. For a longer name, the same channel first sends the record
// bring_name with the name's offset in the arena, and the lookup says 0 bytes.
inline constexpr std::uint64_t max_inline_name = 32 << 10;
inline constexpr std::uint64_t max_name = 1 << 20;  // bytes; the worker keeps one long name for each channel

// bring_name: a long name for the next lookup on this channel.
struct BringNameRecord {
  std::uint64_t arena, bytes;

  static constexpr std::tuple fields{
      field::Between{"bytes", &BringNameRecord::bytes, 1, max_name},
      field::Place{"arena", &BringNameRecord::arena, &BringNameRecord::bytes, field::Otherwise::Nowhere}};
};

inline constexpr std::uint64_t max_name_piece = 32 << 10;  // the most bytes of a name in one reply

struct TakeNameReply {
  std::uint64_t length;

  static constexpr std::tuple fields{field::Characters{"name", &TakeNameReply::length}};
};
// take_name: asks for the name of a function or kernel from `offset` on, without its NUL: at most `room` bytes. For
// names of list elements that did not fit into the reply.
struct TakeNameRecord {
  std::uint64_t function, kernel;  // one of the two is 0
  std::uint64_t offset, room;

  static constexpr std::tuple fields{field::MaybeId{"function", Handle::Function, &TakeNameRecord::function},
                                     field::MaybeId{"kernel", Handle::Kernel, &TakeNameRecord::kernel},
                                     field::Number{"offset", &TakeNameRecord::offset},
                                     field::Between{"room", &TakeNameRecord::room, 0, max_name_piece}};
  using Reply = TakeNameReply;
};

// For cuModuleGetFunction, cuLibraryGetKernel, cuModuleGetTexRef, cuModuleGetSurfRef. `from` is the owner; the name
// follows.
struct LookupRecord {
  std::uint64_t from, id;
  std::uint64_t name_bytes;
};
template <Handle owner, Handle kind, class R = FunctionReplyOf<kind>>
struct LookupOf : LookupRecord {
  static constexpr std::tuple fields{field::Id{owner, &LookupRecord::from}, field::Proposed{kind, &LookupRecord::id},
                                     field::Text{"name", &LookupRecord::name_bytes}};
  using Reply = R;
};

// For cuKernelGetFunction and cuLibraryGetModule: asks for the owner's only object of the kind.
struct DeriveRecord {
  std::uint64_t from, id;
};
struct DeriveReply {
  std::uint64_t id;  // the proposed id, or the id of an earlier lookup
};
template <Handle kind>
struct DeriveReplyOf : DeriveReply {
  static constexpr std::tuple fields{field::Made{kind, &DeriveReply::id}};
};
template <Handle owner, Handle kind, class R>
struct DeriveOf : DeriveRecord {
  static constexpr std::tuple fields{field::Id{owner, &DeriveRecord::from}, field::Proposed{kind, &DeriveRecord::id}};
  using Reply = R;
};

// Asks for one of an owner's objects of a kind, by its index.
struct PartRecord {
  std::uint64_t from, id;
  std::uint64_t which;
};
template <Handle owner, Handle kind, class R>
struct PartOf : PartRecord {
  static constexpr std::tuple fields{field::Id{owner, &PartRecord::from}, field::Proposed{kind, &PartRecord::id},
                                     field::Between{"which", &PartRecord::which, 0, UINT32_MAX}};
  using Reply = R;
};

struct GlobalReply {
  std::uint64_t address, bytes;
  std::uint64_t managed;  // 1: a variable in managed memory; an older worker's reply does not have this member

  static constexpr std::tuple fields{field::Memory{"address", &GlobalReply::address, &GlobalReply::bytes},
                                     field::Number{"bytes", &GlobalReply::bytes},
                                     field::Number{"managed", &GlobalReply::managed}};
};
// For cuModuleGetGlobal, cuLibraryGetGlobal, cuLibraryGetManaged. The name follows.
struct GlobalRecord {
  std::uint64_t from, name_bytes;
};
template <Handle owner>
struct GlobalOf : GlobalRecord {
  static constexpr std::tuple fields{field::Id{owner, &GlobalRecord::from},
                                     field::Text{"name", &GlobalRecord::name_bytes}};
  using Reply = GlobalReply;
};

// The most bytes of all managed variables of a process. The bound exists because these bytes are compared again and
// again.
inline constexpr std::uint64_t max_shadowed_bytes = 1 << 20;

// shadow_variable: the worker keeps a managed variable, or a section of it, equal to the arena's bytes from `arena` on.
// The guest has mapped these bytes at the variable's address (docs/design/027-managed-variables.md).
struct ShadowRecord {
  std::uint64_t address, bytes, arena;

  static constexpr std::tuple fields{
      field::Address{"variable", &ShadowRecord::address, &ShadowRecord::bytes},
      field::Number{"bytes", &ShadowRecord::bytes},
      field::Place{"arena", &ShadowRecord::arena, &ShadowRecord::bytes, field::Otherwise::Nowhere}};
};

using FindFunctionRecord = LookupOf<Handle::Module, Handle::Function>;
using FindKernelRecord = LookupOf<Handle::Library, Handle::Kernel>;
// The reply for a texture or surface reference has only the reference's id.
using FindTextureReferenceRecord =
    LookupOf<Handle::Module, Handle::TextureReference, DeriveReplyOf<Handle::TextureReference>>;
using FindSurfaceReferenceRecord =
    LookupOf<Handle::Module, Handle::SurfaceReference, DeriveReplyOf<Handle::SurfaceReference>>;
using ListedFunctionRecord = PartOf<Handle::Module, Handle::Function, FunctionReplyOf<Handle::Function>>;
using ListedKernelRecord = PartOf<Handle::Library, Handle::Kernel, FunctionReplyOf<Handle::Kernel>>;
using FindModuleGlobalRecord = GlobalOf<Handle::Module>;
using FindLibraryGlobalRecord = GlobalOf<Handle::Library>;
using FindManagedRecord = GlobalOf<Handle::Library>;
using KernelsFunctionRecord = DeriveOf<Handle::Kernel, Handle::Function, FunctionReplyOf<Handle::Function>>;
using LibrarysModuleRecord = DeriveOf<Handle::Library, Handle::Module, DeriveReplyOf<Handle::Module>>;

}  // namespace api
