// Looks up texture and surface objects for a running kernel in the worker's snapshot, and refreshes the snapshot after
// changes. Also checks that texels are in device memory.
#pragma once

#include <string>

#include "host/simgpu/texture/sampler.h"
#include "host/simgpu/texture/texture.h"
#include "host/simgpu/vm/ctx.h"

namespace simgpu {

// The lookup state of one instruction. Most lanes use the same object, so the object and its memory are looked up only
// once.
class Objects {
 public:
  Objects(Ctx& c, const Ins* i);

  // Return null after recording a fault. A table entry without an object of the requested kind yields an empty object.
  const Texture* texture(std::uint64_t number, unsigned lane);
  const Surface* surface(std::uint64_t number, unsigned lane);

  // Returns the reach of the texture found last; null: the texture's memory is complete.
  Reach* reach() { return is_whole_ ? nullptr : &reach_; }
  // Returns true, and records a fault, if a read of the texture found last was outside its memory.
  bool left_memory(unsigned lane);

  bool is_texture(std::uint64_t number) const { return list_.texture(number) != nullptr; }
  bool is_surface(std::uint64_t number) const { return list_.surface(number) != nullptr; }

 private:
  // Returns `found`, or an empty object if it is null; null if the number is beyond the end of the table.
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
