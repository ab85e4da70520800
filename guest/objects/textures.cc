#include "guest/objects/textures.h"

#include "ring/base/mutex.h"

namespace guest {

void Textures::insert(unsigned long long number, const TextureEntry& entry) {
  const ring::MutexLock lock(mutex_);
  entries_.insert_or_assign({api::Id::of(entry.id).kind, number}, entry);
}

std::optional<TextureEntry> Textures::find(unsigned long long number, api::Handle kind) {
  const ring::MutexLock lock(mutex_);
  const auto found = entries_.find({kind, number});
  if (found == entries_.end()) return std::nullopt;
  if (objects_.find(reinterpret_cast<const void*>(found->second.id), kind) != nullptr) return found->second;
  entries_.erase(found);
  return std::nullopt;
}

}  // namespace guest
