// The texture and surface objects of this process. Programs and kernels identify such an object by the driver's number;
// guest and worker by an object id (guest/objects/objects.h). This class maps the number to the id and to the program's
// description, which the program may query.
//
// Thread-safety: any. Invariant: an entry whose object has ended, for example with its context, counts as no entry. The
// driver may reuse the number; a new entry then replaces the old one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "guest/objects/objects.h"
#include "ring/api/cuda.h"
#include "ring/base/mutex.h"

namespace guest {

struct TextureEntry {
  std::uint64_t id = 0;  // the id of a Texture or a Surface
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC sampling{};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
};

class Textures {
 public:
  explicit Textures(Objects& objects) : objects_(objects) {}

  void insert(unsigned long long number, const TextureEntry& entry);
  // Returns nothing if there is no object of this kind and number.
  std::optional<TextureEntry> find(unsigned long long number, api::Handle kind);

 private:
  Objects& objects_;
  ring::Mutex mutex_;
  std::map<std::pair<api::Handle, unsigned long long>, TextureEntry> entries_ GUARDED_BY(mutex_);
};

}  // namespace guest
