// The texture and surface objects of this process. A program holds such an object by the driver's number, since kernels
// do; the guest and the worker know it as an object with an id (guest/objects/objects.h). Here is the way from the number
// to the id, and what the program has said of the object, which it may ask for again.
//
// Thread-safety: any. Invariant: an entry whose object has ended, say with its context, counts as none; the driver may
// give its number again, and the new entry takes its place.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "guest/objects/objects.h"
#include "ring/api/cuda.h"

namespace guest {

struct TextureEntry {
  std::uint64_t id = 0;  // of a Texture, or of a Surface
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC sampling{};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
};

class Textures {
 public:
  explicit Textures(Objects& objects) : objects_(objects) {}

  void insert(unsigned long long number, const TextureEntry& entry);
  // Nothing: there is no such object of this kind.
  std::optional<TextureEntry> find(unsigned long long number, api::Handle kind);

 private:
  Objects& objects_;
  std::mutex mutex_;
  std::map<std::pair<api::Handle, unsigned long long>, TextureEntry> entries_;
};

}  // namespace guest
