// How cuda.h's handles cross the ring. Everything in this file is a compile-time constant. ring/api/structs.h describes
// the structs.
//
// ```cpp
// static_assert(api::handle_of<CUstream> == api::Handle::Stream);
// constexpr CUresult answer_for_unknown(api::Handle kind) { return api::kind_of(kind).unknown; }
// ```
#pragma once

#include <cstdint>
#include <iterator>

#include "ring/api/cuda.h"

namespace api {

// Kernels use texture and surface objects by number, so a program gets the driver's numbers. Guest and worker represent
// such an object by one of these two types, which cuda.h does not have.
using TextureHandle = struct TextureObject*;
using SurfaceHandle = struct SurfaceObject*;

// A device's resource is a struct with private bytes of the driver, which only the worker keeps. The program's copy has
// an id of this kind instead (ring/api/structs.h).
using ResourceHandle = struct KeptResource*;

// Handles cross as ids (ring/api/id.h), which only the host's table can translate into the driver's pointers. The lines
// of ring/api/handles.def define the kinds of handles.
enum class Handle : std::uint8_t {
  None,
#define HANDLE(kind, ...) kind,
#include "ring/api/handles.def"
};

// The event with which an object ends: the end of its process, or of its context.
enum class Life : std::uint8_t { of_process, of_context, of_green_context };
using enum Life;

// How often the driver returns an object's handle.
enum class Given : std::uint8_t { once, again, counted };
using enum Given;

// A set of handle kinds, one bit for each kind.
using Kinds = std::uint32_t;
template <class... K>
constexpr Kinds owned_by(K... kinds) {
  return (Kinds{0} | ... | (Kinds{1} << static_cast<unsigned>(kinds)));
}
inline constexpr Kinds unowned = 0;

struct HandleKind {
  const char* text;
  Life life;
  Kinds owners;
  CUresult unknown;
  Given given;
};
inline constexpr HandleKind handle_table[] = {
    {"handle", of_process, unowned, CUDA_ERROR_INVALID_HANDLE, once},
#define HANDLE(kind, type, text, life, owners, unknown, given) {text, life, owners, unknown, given},
#include "ring/api/handles.def"
};
inline constexpr unsigned handle_kinds = std::size(handle_table);

constexpr const HandleKind& kind_of(Handle kind) { return handle_table[static_cast<unsigned>(kind) % handle_kinds]; }
constexpr bool ends_with_context(Handle kind) { return kind_of(kind).life != of_process; }
constexpr bool ends_with_green_context(Handle kind) { return kind_of(kind).life == of_green_context; }
// True for handles that cross as a context's number (ring/wire/record.h).
constexpr bool crosses_as_number(Handle kind) { return kind == Handle::Context || kind == Handle::GreenContext; }
constexpr bool may_own(Handle owner, Handle kind) { return (kind_of(kind).owners & owned_by(owner)) != 0; }
// True if objects of this kind own other objects, or are owned.
constexpr bool has_family(Handle kind) {
  Kinds owners = 0;
  for (const HandleKind& k : handle_table) owners |= k.owners;
  return kind_of(kind).owners != 0 || (owners & owned_by(kind)) != 0;
}

// Tag type for handles that cuda.h declares as `unsigned long long`. The table's line gives the kind of each parameter
// with this type.
template <int>
struct Integer;

template <class T>
inline constexpr Handle handle_of = Handle::None;
#define HANDLE(kind, type, ...) \
  template <>                   \
  inline constexpr Handle handle_of<type> = Handle::kind;
#include "ring/api/handles.def"

// The driver accepts a CUkernel as a CUfunction: the CUDA runtime passes one to cuLaunchKernel.
constexpr bool accepts(Handle wanted, Handle given) {
  return wanted == given || (wanted == Handle::Function && given == Handle::Kernel);
}

}  // namespace api
