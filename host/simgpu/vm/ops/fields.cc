// Bit fields: extraction, insertion, masks and sign extension. See ops/lanes.h and vm/table.h.
#include "host/simgpu/vm/ops/lanes.h"
#include "host/simgpu/vm/ops/parts.h"

namespace simgpu::SIMGPU_ISA {
namespace {

// Only the low bytes of position b and length c count. Result bits beyond the field are the sign or zero.
struct Bfe {
  template <class D>
  static D run(D a, u32 b, u32 c) {
    const u32 position = b & 0xff;
    const u32 length = c & 0xff;
    if (length == 0) return 0;
    const u32 last = position + length - 1 < width<D> - 1 ? position + length - 1 : width<D> - 1;
    const bool sign = std::is_signed_v<D> && (static_cast<BitsOf<D>>(a) >> last & 1) != 0;
    const u64 field = position >= width<D> ? 0 : static_cast<u64>(static_cast<BitsOf<D>>(a)) >> position;
    const u32 valid = position >= width<D> ? 0 : last - position + 1;
    const u64 mask = valid >= 64 ? ~u64{0} : (u64{1} << valid) - 1;
    return static_cast<D>(sign ? field | ~mask : field & mask);
  }
};
struct Bfi {
  template <class D>
  static D run(D a, D b, u32 c, u32 e) {
    const u32 position = c & 0xff;
    const u32 length = e & 0xff;
    if (position >= width<D> || length == 0) return b;
    const u64 mask = (length >= 64 ? ~u64{0} : (u64{1} << length) - 1) << position;
    return static_cast<D>((u64{b} & ~mask) | (u64{a} << position & mask));
  }
};
template <class T>
struct MapBfi {
  template <bool masked>
  static const Ins* run(Ctx& c, const Ins* i) {
    const T* a = at<T>(c, i->a);
    const T* b = at<T>(c, i->b);
    const u32* position = at<u32>(c, i->c);
    const u32* length = at<u32>(c, i->e);
    alignas(64) T r[warp_size];
    SIMGPU_LANES r[l] = Bfi::run<T>(a[l], b[l], position[l], length[l]);
    blend(c, at<T>(c, i->d), r);
    return i + 1;
  }
};
template <bool wrap>
struct Bmsk {
  template <class D>
  static D run(u32 a, u32 b) {
    const u32 start = wrap ? a & 31 : a;
    const u32 length = wrap ? b & 31 : b;
    if (start >= 32 || length == 0) return 0;
    const u32 ones = length >= 32 ? ~u32{0} : (u32{1} << length) - 1;
    return static_cast<D>(ones << start);
  }
};
template <bool wrap>
struct Szext {
  template <class D>
  static D run(D a, u32 b) {
    const u32 size = wrap ? b & 31 : b > 32 ? 32 : b;
    if (size == 0) return 0;
    const u32 unused = 32 - size;
    return static_cast<D>(static_cast<D>(static_cast<u32>(a) << unused) >> unused);
  }
};

Handlers pick_bfe(const Form& form) {
  return by_integer(form.type(), [](auto tag) {
    using T = typename decltype(tag)::type;
    return both<Map3<Bfe, T, T, u32, u32>>();
  });
}
Handlers pick_bfi(const Form& form) {
  return form.type() == ptx::Type::B64 ? both<MapBfi<u64>>() : both<MapBfi<u32>>();
}
Handlers pick_bmsk(const Form& form) {
  return form.has(Word::wrap) ? both<Map2<Bmsk<true>, u32, u32, u32>>() : both<Map2<Bmsk<false>, u32, u32, u32>>();
}
Handlers pick_szext(const Form& form) {
  if (form.type() == ptx::Type::S32) {
    return form.has(Word::wrap) ? both<Map2<Szext<true>, s32, s32, u32>>() : both<Map2<Szext<false>, s32, s32, u32>>();
  }
  return form.has(Word::wrap) ? both<Map2<Szext<true>, u32, u32, u32>>() : both<Map2<Szext<false>, u32, u32, u32>>();
}

constexpr Row rows[] = {
    {"bfe", "dtuu", "u32 s32 u64 s64", "", &pick_bfe},
    {"bfi", "dttuu", "b32 b64", "", &pick_bfi},
    {"bmsk", "dtt", "b32", "wrap clamp", &pick_bmsk},
    {"szext", "dtu", "u32 s32", "wrap clamp", &pick_szext},
};

}  // namespace

Rows field_rows() { return {rows, rows + sizeof rows / sizeof *rows}; }

}  // namespace simgpu::SIMGPU_ISA
