// Surface instructions, one lane after another. Blocks run on several threads, so a reduction is an atomic of the
// processor.
#include <cstring>

#include "host/simgpu/texture/texel.h"
#include "host/simgpu/vm/access.h"
#include "host/simgpu/vm/mode.h"
#include "host/simgpu/vm/objects.h"
#include "host/simgpu/vm/state.h"
#include "host/simgpu/vm/texture.h"

namespace simgpu {
namespace {

std::byte* lane_memory(Ctx& c, Place place, unsigned lane, unsigned bytes) {
  return c.base[place >> 31] + (place & ~constant_place) + std::size_t{lane} * bytes;
}

template <class T>
T get(Ctx& c, Place place, unsigned lane) {
  T value;
  std::memcpy(&value, lane_memory(c, place, lane, sizeof(T)), sizeof(T));
  return value;
}

// The access of one lane.
struct Access {
  Ctx& c;
  const SurfaceForm& form;
  const Place* operands;
  unsigned lane;

  SurfacePoint point() const {
    SurfacePoint point;
    point.geometry = form.geometry;
    for (unsigned k = 0; k < 3; ++k) point.at[k] = get<std::int32_t>(c, operands[surface_at + k], lane);
    point.layer = get<std::uint32_t>(c, operands[surface_layer], lane);
    point.formatted = form.formatted;
    return point;
  }
  std::byte* value(unsigned number) const {
    return lane_memory(c, operands[surface_value + number], lane, form.lane_bytes);
  }
};

// If `memory` is null, the result is zeros.
void load(const Access& access, const std::byte* memory) {
  const SurfaceForm& form = access.form;
  for (unsigned k = 0; k < form.count; ++k) {
    std::uint64_t bits = 0;
    if (memory != nullptr) std::memcpy(&bits, memory + k * form.bytes, form.bytes);
    std::memcpy(access.value(k), &bits, form.lane_bytes);
  }
}

void store(const Access& access, const Surface& surface, std::byte* memory) {
  const SurfaceForm& form = access.form;
  if (!form.formatted) {
    for (unsigned k = 0; k < form.count; ++k) std::memcpy(memory + k * form.bytes, access.value(k), form.bytes);
    return;
  }
  ChannelBits bits{};
  for (unsigned k = 0; k < form.count; ++k) std::memcpy(&bits[k], access.value(k), sizeof bits[k]);
  write_texel(surface.image.format, memory, bits, form.count);
}

template <class U, class S>
U combined(SurfaceStep step, bool is_signed, U old, U value) {
  const bool less = is_signed ? static_cast<S>(value) < static_cast<S>(old) : value < old;
  switch (step) {
    case SurfaceStep::Add: return static_cast<U>(old + value);
    case SurfaceStep::Min: return less ? value : old;
    case SurfaceStep::Max: return less ? old : value;
    case SurfaceStep::And: return old & value;
    default: return old | value;
  }
}

template <class U, class S>
void reduce(const Access& access, bool is_signed, std::byte* memory) {
  U value;
  std::memcpy(&value, access.value(0), sizeof value);
  U* const cell = reinterpret_cast<U*>(memory);
  U old = __atomic_load_n(cell, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(cell, &old, combined<U, S>(access.form.step, is_signed, old, value), false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
}

void reduce(const Access& access, const Surface& surface, std::byte* memory) {
  const SurfaceForm& form = access.form;
  const bool is_signed = form.formatted ? is_signed_format(surface.image.format.format) : form.is_signed;
  if (form.bytes == 4) {
    reduce<std::uint32_t, std::int32_t>(access, is_signed, memory);
  } else {
    reduce<std::uint64_t, std::int64_t>(access, is_signed, memory);
  }
}

void act(const Access& access, const Surface& surface, std::byte* memory) {
  switch (access.form.step) {
    case SurfaceStep::Load: return load(access, memory);
    case SurfaceStep::Store: return memory == nullptr ? void() : store(access, surface, memory);
    default: return memory == nullptr ? void() : reduce(access, surface, memory);
  }
}

unsigned access_bytes(const SurfaceForm& form, const Surface& surface) {
  if (form.formatted && form.step == SurfaceStep::Store) return texel_bytes(surface.image.format);
  return unsigned{form.bytes} * form.count;
}

const Ins* refused(Ctx& c, const Ins* i, unsigned lane, const SurfacePoint& point, SurfacePlace::Kind kind) {
  const std::string place = "(" + std::to_string(point.at[0]) + "," + std::to_string(point.at[1]) + "," +
                            std::to_string(point.at[2]) + "), layer " + std::to_string(point.layer);
  if (kind == SurfacePlace::Kind::Misaligned) {
    return raise_fault(c, i, CUDA_ERROR_MISALIGNED_ADDRESS, lane,
                       "an access to a surface at " + place + " does not begin at a multiple of its size");
  }
  return raise_fault(c, i, surface_trap_code, lane, "an access to a surface at " + place + " leaves it");
}

const Ins* surface(Ctx& c, const Ins* i) {
  isa_base::set_mode(c, 0);
  const auto form = form_in<SurfaceForm>(*i);
  const Place* const operands = c.code->extra.data() + i->index;
  if (form.step != SurfaceStep::Load && form.step != SurfaceStep::Store) {
    ++c.sync_uses;
    c.fuel -= 64;
  }
  Objects objects(c, i);
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const Surface* const object = objects.surface(get<std::uint64_t>(c, operands[surface_object], lane), lane);
    if (object == nullptr) return c.stop;
    const Access access{c, form, operands, lane};
    const SurfacePoint point = access.point();
    const SurfacePlace place = surface_place(*object, point, access_bytes(form, *object), form.bounds);
    const bool reached = place.kind == SurfacePlace::Kind::Inside || place.kind == SurfacePlace::Kind::Nothing;
    if (!reached) return refused(c, i, lane, point, place.kind);
    act(access, *object, place.memory);
  }
  return i + 1;
}

}  // namespace

Handlers surface_handler() { return {&surface, &surface}; }

}  // namespace simgpu
