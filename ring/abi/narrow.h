// CUDA 3's forms of calls, with 32-bit device addresses and sizes: the table's NARROW lines. A library calls
// narrow_answer, then narrow_works_in for the context, then call_newer. That widens each argument, makes the call by
// its newer form, and narrows each result, by the types of both forms in cuda.h.
//
// An address beyond 4 GiB does not fit: the call then fails and writes nothing. A size is clamped to 32 bits, as in the
// driver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "ring/api/cuda.h"

namespace cuabi {

// Whether these forms work in a context of this version (cuCtxGetApiVersion): the old cuCtxCreate makes version 3010.
constexpr bool narrow_works_in(unsigned api_version) { return api_version <= 3010; }

// Whether a form needs a current context. cuMemFree does not, since the address names the device.
constexpr bool narrow_needs_context(std::string_view form) { return form != "cuMemFree"; }

// Forms that allocate device memory. If an address does not fit, its memory is freed again.
constexpr bool narrow_allocates(std::string_view form) { return form == "cuMemAlloc" || form == "cuMemAllocPitch"; }

// ---- before the context --------------------------------------------------------------------------------------------

template <class P>
bool is_null_handle(P given) {
  if constexpr (std::is_same_v<P, CUmodule> || std::is_same_v<P, CUarray> || std::is_same_v<P, CUtexref> ||
                std::is_same_v<P, CUgraphicsResource>)
    return given == nullptr;
  else
    return false;
}

template <class P>
bool is_null_pointer(P given) {
  if constexpr (std::is_pointer_v<P>)
    return given == nullptr;
  else
    return true;
}

// The answer of a form in any context; `state` is the context's state. Nothing: it depends on the context. A form that
// queries an object first checks for a null handle, for arrays even before cuInit.
template <class... P>
std::optional<CUresult> narrow_answer(std::string_view form, CUresult state, P... given) {
  if (form == "cuMemGetAddressRange" && (is_null_pointer(given) && ...)) return CUDA_SUCCESS;  // nothing to do
  const bool looks_first =
      form.starts_with("cuArray") || (!form.starts_with("cuMemcpy") && state != CUDA_ERROR_NOT_INITIALIZED);
  if (looks_first && (is_null_handle(given) || ...)) return CUDA_ERROR_INVALID_HANDLE;
  return std::nullopt;
}

// ---- structs -------------------------------------------------------------------------------------------------------

inline void widen(const CUDA_MEMCPY2D_v1& from, CUDA_MEMCPY2D& to) {
  to = {.srcXInBytes = from.srcXInBytes,
        .srcY = from.srcY,
        .srcMemoryType = from.srcMemoryType,
        .srcHost = from.srcHost,
        .srcDevice = from.srcDevice,
        .srcArray = from.srcArray,
        .srcPitch = from.srcPitch,
        .dstXInBytes = from.dstXInBytes,
        .dstY = from.dstY,
        .dstMemoryType = from.dstMemoryType,
        .dstHost = from.dstHost,
        .dstDevice = from.dstDevice,
        .dstArray = from.dstArray,
        .dstPitch = from.dstPitch,
        .WidthInBytes = from.WidthInBytes,
        .Height = from.Height};
}

inline void widen(const CUDA_MEMCPY3D_v1& from, CUDA_MEMCPY3D& to) {
  to = {.srcXInBytes = from.srcXInBytes,
        .srcY = from.srcY,
        .srcZ = from.srcZ,
        .srcLOD = from.srcLOD,
        .srcMemoryType = from.srcMemoryType,
        .srcHost = from.srcHost,
        .srcDevice = from.srcDevice,
        .srcArray = from.srcArray,
        .reserved0 = from.reserved0,
        .srcPitch = from.srcPitch,
        .srcHeight = from.srcHeight,
        .dstXInBytes = from.dstXInBytes,
        .dstY = from.dstY,
        .dstZ = from.dstZ,
        .dstLOD = from.dstLOD,
        .dstMemoryType = from.dstMemoryType,
        .dstHost = from.dstHost,
        .dstDevice = from.dstDevice,
        .dstArray = from.dstArray,
        .reserved1 = from.reserved1,
        .dstPitch = from.dstPitch,
        .dstHeight = from.dstHeight,
        .WidthInBytes = from.WidthInBytes,
        .Height = from.Height,
        .Depth = from.Depth};
}

inline void widen(const CUDA_ARRAY_DESCRIPTOR_v1& from, CUDA_ARRAY_DESCRIPTOR& to) {
  to = {.Width = from.Width, .Height = from.Height, .Format = from.Format, .NumChannels = from.NumChannels};
}

inline void widen(const CUDA_ARRAY3D_DESCRIPTOR_v1& from, CUDA_ARRAY3D_DESCRIPTOR& to) {
  to = {.Width = from.Width,
        .Height = from.Height,
        .Depth = from.Depth,
        .Format = from.Format,
        .NumChannels = from.NumChannels,
        .Flags = from.Flags};
}

// ---- results: false if one does not fit ----------------------------------------------------------------------------

inline constexpr unsigned narrow_most = std::numeric_limits<unsigned>::max();

inline unsigned narrow_size(std::size_t size) {
  return static_cast<unsigned>(std::min<std::size_t>(size, narrow_most));
}

inline bool narrow(CUdeviceptr address, CUdeviceptr_v1& to) {
  to = static_cast<CUdeviceptr_v1>(address);
  return address <= narrow_most;
}

inline bool narrow(std::size_t size, unsigned& to) {
  to = narrow_size(size);
  return true;
}

inline bool narrow(const CUDA_ARRAY_DESCRIPTOR& from, CUDA_ARRAY_DESCRIPTOR_v1& to) {
  to = {.Width = narrow_size(from.Width),
        .Height = narrow_size(from.Height),
        .Format = from.Format,
        .NumChannels = from.NumChannels};
  return true;
}

inline bool narrow(const CUDA_ARRAY3D_DESCRIPTOR& from, CUDA_ARRAY3D_DESCRIPTOR_v1& to) {
  to = {.Width = narrow_size(from.Width),
        .Height = narrow_size(from.Height),
        .Depth = narrow_size(from.Depth),
        .Format = from.Format,
        .NumChannels = from.NumChannels,
        .Flags = from.Flags};
  return true;
}

// ---- parameters ----------------------------------------------------------------------------------------------------

// A parameter with type N in the old form and W in the newer one: the same type, or a wider number.
template <class N, class W>
class NarrowArgument {
 public:
  static_assert(std::is_same_v<N, W> || (std::is_integral_v<N> && std::is_integral_v<W> && sizeof(N) < sizeof(W)),
                "a parameter of a NARROW line is the newer form's, a number with fewer bits, or a pointer to one");
  explicit NarrowArgument(N given) : given_(given) {}
  W wide() { return given_; }
  bool fits() { return true; }
  void give() {}
  void free_by(CUresult (*)(CUdeviceptr)) {}

 private:
  N given_;
};

// A struct from the caller.
template <class N, class W>
requires(!std::is_same_v<N, W>) class NarrowArgument<const N*, const W*> {
 public:
  explicit NarrowArgument(const N* given) : given_(given) {}
  const W* wide() {
    if (given_ == nullptr) return nullptr;
    widen(*given_, wide_);
    return &wide_;
  }
  bool fits() { return true; }
  void give() {}
  void free_by(CUresult (*)(CUdeviceptr)) {}

 private:
  const N* given_;
  W wide_{};
};

// A result for the caller.
template <class N, class W>
requires(!std::is_same_v<N, W> && !std::is_const_v<N>) class NarrowArgument<N*, W*> {
 public:
  explicit NarrowArgument(N* given) : given_(given) {}
  W* wide() { return given_ == nullptr ? nullptr : &wide_; }
  bool fits() { return given_ == nullptr || narrow(wide_, narrow_); }
  void give() {
    if (given_ != nullptr) *given_ = narrow_;
  }
  void free_by(CUresult (*free)(CUdeviceptr)) {
    if constexpr (std::is_same_v<W, CUdeviceptr>) free(wide_);
  }

 private:
  N* given_;
  N narrow_{};
  W wide_{};
};

// Makes the call by its newer form. `free`: frees memory of a form that allocates; else null.
template <class... W, class... N>
CUresult call_newer(CUresult (*newer)(W...), CUresult (*free)(CUdeviceptr), N... given) {
  static_assert(sizeof...(W) == sizeof...(N), "a NARROW line and its newer form have the same parameters");
  std::tuple<NarrowArgument<N, W>...> arguments{NarrowArgument<N, W>(given)...};
  return std::apply(
      [&](auto&... argument) {
        if (const CUresult r = newer(argument.wide()...); r != CUDA_SUCCESS) return r;
        if ((argument.fits() && ...)) return (argument.give(), ...), CUDA_SUCCESS;
        if (free == nullptr) return CUDA_ERROR_INVALID_VALUE;
        (argument.free_by(free), ...);
        return CUDA_ERROR_OUT_OF_MEMORY;
      },
      arguments);
}

}  // namespace cuabi
