// What the types of cuda.h mean at the boundary: which are handles, and which structs are plain bytes.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ring/api/cuda.h"

namespace api {

// Handles cross as ids (ring/api/id.h), which only the host's table can turn into the driver's pointers.
enum class Handle : std::uint8_t { None, Context, Module, Function, Library, Kernel, Stream, Event };
inline constexpr unsigned handle_kinds = 8;

template <class T>
inline constexpr Handle handle_of = Handle::None;
template <>
inline constexpr Handle handle_of<CUcontext> = Handle::Context;
template <>
inline constexpr Handle handle_of<CUmodule> = Handle::Module;
template <>
inline constexpr Handle handle_of<CUfunction> = Handle::Function;
template <>
inline constexpr Handle handle_of<CUlibrary> = Handle::Library;
template <>
inline constexpr Handle handle_of<CUkernel> = Handle::Kernel;
template <>
inline constexpr Handle handle_of<CUstream> = Handle::Stream;
template <>
inline constexpr Handle handle_of<CUevent> = Handle::Event;

// The driver takes a CUkernel wherever it takes a CUfunction: cudart passes one to cuLaunchKernel.
constexpr bool accepts(Handle wanted, Handle given) {
  return wanted == given || (wanted == Handle::Function && given == Handle::Kernel);
}

// A struct may cross as bytes only if somebody has looked and found no pointer in it.
template <class T>
inline constexpr bool plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <>
inline constexpr bool plain<CUuuid> = true;

template <class T>
inline constexpr bool crosses = plain<T> || handle_of<T> != Handle::None;

}  // namespace api
