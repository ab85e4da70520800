// Looks up texture and surface objects for a running kernel in the worker's snapshot, which it refreshes after changes.
// Checks texels in device memory.
#pragma once

#include <string>

#include "host/simgpu/texture/sampler.h"
#include "host/simgpu/texture/texture.h"
#include "host/simgpu/vm/ctx.h"

namespace simgpu {

// Per instruction: lanes mostly use one object, so it and its memory are looked up once.
class Objects {
 public:
  Objects(Ctx& c, const Ins* i);

  // Returns null after recording a fault. An entry without an object of this kind gives an empty object.
  const Texture* texture(std::uint64_t number, unsigned lane);
  const Surface* surface(std::uint64_t number, unsigned lane);

  // The reach of the texture found last. Null: its memory is complete.
  Reach* reach() { return is_whole_ ? nullptr : &reach_; }
  // True if a read of that texture left its memory; records a fault.
  bool left_memory(unsigned lane);

  bool is_texture(std::uint64_t number) const { return list_.texture(number) != nullptr; }
  bool is_surface(std::uint64_t number) const { return list_.surface(number) != nullptr; }

 private:
  // `found`, or an empty object. Null if the number is beyond the table's end.
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
