#include "host/simgpu/vm/objects.h"

#include <algorithm>
#include <limits>

#include "host/simgpu/vm/access.h"
#include "host/simgpu/vm/state.h"
#include "host/simgpu/vm/texture.h"

namespace simgpu {
namespace {

const TextureList& current_list(Worker& worker) {
  const TextureTable& table = worker.space->textures;
  const std::uint64_t generation = table.generation();  // memory order A in texture.h
  if (!worker.textures || generation != worker.texture_generation) {
    worker.texture_generation = generation;
    worker.textures = table.list();
  }
  return *worker.textures;
}

std::uint64_t bytes_of(const Level& level, TexelFormat format) {
  return std::uint64_t{level.depth - 1} * level.slice_pitch + std::uint64_t{level.height - 1} * level.row_pitch +
         std::uint64_t{level.width} * texel_bytes(format);
}

constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

// Returns the bytes that each level has in device memory, or `all`. Arrays own their memory. Linear and pitch memory
// belongs to the program, which may have freed it; it may also be smaller than the texture.
std::uint64_t memory_there(Ctx& c, const Image& image) {
  std::uint64_t there = all;
  if (image.keeps) return there;
  for (const Level& level : image.levels) {
    const std::uint64_t wanted = bytes_of(level, image.format);
    const std::uint64_t held = bytes_held(c, reinterpret_cast<std::uint64_t>(level.texels), wanted);
    if (held < wanted) there = std::min(there, held);
  }
  return there;
}

}  // namespace

Objects::Objects(Ctx& c, const Ins* i) : c_(c), i_(i), list_(current_list(*c.worker)) {}

template <class T>
const T* Objects::known(const T* found, std::uint64_t number, unsigned lane, const char* kind) {
  static const T nothing{};
  if (found == nullptr && list_.has_entry(number)) return &nothing;
  if (found == nullptr) {
    raise_fault(c_, i_, unknown_object_code, lane,
                std::string("no ") + kind + " has the number " + std::to_string(number));
  }
  return found;
}

bool Objects::left_memory(unsigned lane) {
  if (!reach_.left) return false;
  raise_fault(
      c_, i_, CUDA_ERROR_ILLEGAL_ADDRESS, lane,
      "a read of texture object " + std::to_string(number_) + " where no allocation of the device holds its memory");
  return true;
}

const Texture* Objects::texture(std::uint64_t number, unsigned lane) {
  if (texture_ != nullptr && number == number_) return texture_;
  const Texture* const found = known(list_.texture(number), number, lane, "texture object");
  if (found == nullptr) return nullptr;
  reach_ = {memory_there(c_, found->image)};
  is_whole_ = reach_.bytes == all;
  number_ = number;
  return texture_ = found;
}

const Surface* Objects::surface(std::uint64_t number, unsigned lane) {
  if (surface_ != nullptr && number == number_) return surface_;
  const Surface* const found = known(list_.surface(number), number, lane, "surface object");
  if (found == nullptr) return nullptr;
  if (memory_there(c_, found->image) != all) {
    raise_fault(c_, i_, CUDA_ERROR_ILLEGAL_ADDRESS, lane,
                "no allocation of the device holds the memory of surface object " + std::to_string(number));
    return nullptr;
  }
  number_ = number;
  return surface_ = found;
}

}  // namespace simgpu
