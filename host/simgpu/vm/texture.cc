// Texture instructions, one lane after another.
#include "host/simgpu/vm/texture.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "host/simgpu/texture/sampler.h"
#include "host/simgpu/vm/mode.h"
#include "host/simgpu/vm/objects.h"
#include "host/simgpu/vm/state.h"

namespace simgpu {
namespace {

template <class T>
T* lanes(Ctx& c, Place place) {
  return reinterpret_cast<T*>(c.base[place >> 31] + (place & ~constant_place));
}

// Accesses the operands of an instruction by their number.
class Operands {
 public:
  Operands(Ctx& c, const Ins* i) : c_(c), first_(c.code->extra.data() + i->index) {}

  template <class T>
  T get(std::uint32_t operand, unsigned lane) const {
    return lanes<T>(c_, first_[operand])[lane];
  }
  template <class T>
  void set(std::uint32_t operand, unsigned lane, T value) const {
    lanes<T>(c_, first_[operand])[lane] = value;
  }
  template <class T>
  std::array<T, 3> three(std::uint32_t operand, unsigned lane) const {
    return {get<T>(operand, lane), get<T>(operand + 1, lane), get<T>(operand + 2, lane)};
  }

 private:
  Ctx& c_;
  const Place* first_;
};

ChannelBits read_numbered(const Texture& texture, const TextureForm& form, const Operands& operands, unsigned lane,
                          Reach* reach) {
  FetchPoint point{form.geometry, operands.three<std::int32_t>(texture_at, lane),
                   operands.get<std::uint32_t>(texture_layer, lane)};
  for (unsigned k = 0; k < 3; ++k) {
    const auto sum = std::int64_t{point.texel[k]} + operands.get<std::int32_t>(texture_offset + k, lane);
    point.texel[k] = static_cast<std::int32_t>(std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX));
  }
  return fetch(texture, point, operands.get<std::int32_t>(texture_level, lane), reach);
}

ChannelBits read(const Texture& texture, const TextureForm& form, const Operands& operands, unsigned lane,
                 Reach* reach) {
  if (texture.image.levels.empty()) return {};
  if (form.numbered) return read_numbered(texture, form, operands, lane, reach);
  const SamplePoint point{form.geometry, operands.three<float>(texture_at, lane),
                          operands.get<std::uint32_t>(texture_layer, lane),
                          operands.three<std::int32_t>(texture_offset, lane)};
  if (form.gather) return gather(texture, point, form.channel, reach);
  if (form.level == TextureForm::Level::Base) return sample(texture, point, std::nullopt, reach);
  if (form.level == TextureForm::Level::Given) {
    return sample(texture, point, operands.get<float>(texture_level, lane), reach);
  }
  const float level = level_of_gradient(texture, point, operands.three<float>(texture_dx, lane),
                                        operands.three<float>(texture_dy, lane));
  return sample(texture, point, level, reach);
}

std::uint16_t half_of(std::uint32_t bits) { return float_to_half(std::bit_cast<float>(bits)); }

void put(const TextureForm& form, const Operands& operands, unsigned lane, const ChannelBits& bits) {
  for (unsigned k = 0; k < 4; ++k) {
    switch (form.result) {
      case TextureForm::Result::Words: operands.set(texture_result + k, lane, bits[k]); break;
      case TextureForm::Result::Halves: operands.set(texture_result + k, lane, half_of(bits[k])); break;
      case TextureForm::Result::HalfPairs:
        if (k < 2) {
          const std::uint32_t pair = half_of(bits[2 * k]) | std::uint32_t{half_of(bits[2 * k + 1])} << 16;
          operands.set(texture_result + k, lane, pair);
        }
        break;
    }
  }
}

const Ins* texture(Ctx& c, const Ins* i) {
  isa_base::set_mode(c, 0);
  const auto form = form_in<TextureForm>(*i);
  const Operands operands(c, i);
  Objects objects(c, i);
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const Texture* const object = objects.texture(operands.get<std::uint64_t>(texture_object, lane), lane);
    if (object == nullptr) return c.stop;
    const ChannelBits bits = read(*object, form, operands, lane, objects.reach());
    if (objects.left_memory(lane)) return c.stop;
    put(form, operands, lane, bits);
  }
  return i + 1;
}

}  // namespace

Handlers texture_handler() { return {&texture, &texture}; }

}  // namespace simgpu
