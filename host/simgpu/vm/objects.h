// The lookup of texture and surface objects by a running kernel: the table's list as the worker has it, refreshed when
// the table has changed, and the check of texels that lie in memory of the device.
#pragma once

#include <string>

#include "host/simgpu/texture/sampler.h"
#include "host/simgpu/texture/texture.h"
#include "host/simgpu/vm/ctx.h"

namespace simgpu {

// For one instruction: lanes mostly name the same object, which is looked up once, and so is its memory.
class Objects {
 public:
  Objects(Ctx& c, const Ins* i);

  // Null after a fault, which is then recorded. An entry of the table that holds no object of the kind gives one of
  // nothing.
  const Texture* texture(std::uint64_t number, unsigned lane);
  const Surface* surface(std::uint64_t number, unsigned lane);

  // Of the texture that was found last. Null: its memory is there to its end.
  Reach* reach() { return is_whole_ ? nullptr : &reach_; }
  // Whether a read of that texture left its memory. Records a fault then.
  bool left_memory(unsigned lane);

  bool is_texture(std::uint64_t number) const { return list_.texture(number) != nullptr; }
  bool is_surface(std::uint64_t number) const { return list_.surface(number) != nullptr; }

 private:
  // `found`, or an object of nothing. Null: the table ends before the number.
  template <class T>
  const T* known(const T* found, std::uint64_t number, unsigned lane, const char* kind);

  Ctx& c_;
  const Ins* i_;
  const TextureList& list_;
  std::uint64_t number_ = 0;
  const Texture* texture_ = nullptr;
  const Surface* surface_ = nullptr;
  bool is_whole_ = true;
  Reach reach_;
};

}  // namespace simgpu
