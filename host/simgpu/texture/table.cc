// The table of texture and surface objects.
#include <utility>

#include "host/simgpu/texture/texture.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

// The lower bits of a number that encode its slot. The table of an H200 has equally many entries.
constexpr unsigned slot_bits = 20;
constexpr std::uint64_t slot_mask = (std::uint64_t{1} << slot_bits) - 1;
constexpr std::uint64_t one_use = std::uint64_t{1} << slot_bits;
// The minimum length of the table. On an H200 the unused number 1000 reads as zeros, and 74565 is an error.
constexpr std::uint64_t least_entries = 1024;

}  // namespace

// The slot is the lower bits minus one, so that the first number is 1.
const TextureObject* TextureList::find(std::uint64_t number) const {
  const std::uint64_t slot = (number & slot_mask) - 1;
  if (slot >= objects_.size() || objects_[slot].number != number) return nullptr;
  return &objects_[slot];
}

const Texture* TextureList::texture(std::uint64_t number) const {
  const TextureObject* const object = find(number);
  return object == nullptr ? nullptr : object->texture.get();
}

const Surface* TextureList::surface(std::uint64_t number) const {
  const TextureObject* const object = find(number);
  return object == nullptr ? nullptr : object->surface.get();
}

bool TextureList::has_entry(std::uint64_t number) const {
  return number < least_entries || (number & slot_mask) <= objects_.size();
}

void TextureTable::changed() {
  list_.reset();
  generation_.fetch_add(1, std::memory_order_release);  // A in texture.h
}

std::uint64_t TextureTable::insert(Texture texture) {
  return insert({0, std::make_shared<const Texture>(std::move(texture)), nullptr});
}

std::uint64_t TextureTable::insert(Surface surface) {
  return insert({0, nullptr, std::make_shared<const Surface>(std::move(surface))});
}

std::uint64_t TextureTable::insert(TextureObject object) {
  const ring::MutexLock lock(mutex_);
  std::vector<TextureObject>& objects = current_.objects_;
  if (free_slots_.empty()) {
    if (objects.size() == slot_mask) return 0;
    object.number = objects.size() + 1;
    objects.push_back(std::move(object));
    changed();
    return objects.back().number;
  }
  TextureObject& slot = objects[free_slots_.back()];
  free_slots_.pop_back();
  slot.texture = std::move(object.texture);
  slot.surface = std::move(object.surface);
  changed();
  return slot.number;
}

// An empty slot holds the number that it will issue next. The removed object is destroyed outside the lock, because its
// memory may be freed with it.
bool TextureTable::remove(std::uint64_t number, bool is_texture) {
  TextureObject removed;
  const ring::MutexLock lock(mutex_);
  const TextureObject* const found = current_.find(number);
  if (found == nullptr || (is_texture ? !found->texture : !found->surface)) return false;
  const auto slot = static_cast<std::uint32_t>((number & slot_mask) - 1);
  removed = std::exchange(current_.objects_[slot], TextureObject{number + one_use, nullptr, nullptr});
  free_slots_.push_back(slot);
  changed();
  return true;
}

bool TextureTable::remove_texture(std::uint64_t number) { return remove(number, true); }
bool TextureTable::remove_surface(std::uint64_t number) { return remove(number, false); }

std::shared_ptr<const Texture> TextureTable::texture(std::uint64_t number) const {
  const ring::MutexLock lock(mutex_);
  const TextureObject* const object = current_.find(number);
  return object == nullptr ? nullptr : object->texture;
}

std::shared_ptr<const Surface> TextureTable::surface(std::uint64_t number) const {
  const ring::MutexLock lock(mutex_);
  const TextureObject* const object = current_.find(number);
  return object == nullptr ? nullptr : object->surface;
}

std::shared_ptr<const TextureList> TextureTable::list() const {
  const ring::MutexLock lock(mutex_);
  if (!list_) list_ = std::make_shared<const TextureList>(current_);
  return list_;
}

}  // namespace simgpu
