#include "guest/objects/copy/streaming_copy.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace guest {
namespace {

constexpr std::size_t line = 64;

void copy_line(std::byte* to, const std::byte* from) {
  auto* t = reinterpret_cast<__m128i*>(to);
  const auto* f = reinterpret_cast<const __m128i*>(from);
  const __m128i a = _mm_loadu_si128(f), b = _mm_loadu_si128(f + 1), c = _mm_loadu_si128(f + 2),
                d = _mm_loadu_si128(f + 3);
  _mm_stream_si128(t, a);
  _mm_stream_si128(t + 1, b);
  _mm_stream_si128(t + 2, c);
  _mm_stream_si128(t + 3, d);
}

}  // namespace

void streaming_copy(void* to, const void* from, std::size_t bytes) {
  auto* t = static_cast<std::byte*>(to);
  const auto* f = static_cast<const std::byte*>(from);
  const std::size_t head = std::min(bytes, (line - reinterpret_cast<std::uintptr_t>(t) % line) % line);
  std::memcpy(t, f, head);
  std::size_t done = head;
  for (; done + line <= bytes; done += line) copy_line(t + done, f + done);
  std::memcpy(t + done, f + done, bytes - done);
  _mm_sfence();  // only a store fence orders streaming stores; a release store does not
}

}  // namespace guest
