// Resource descriptors, from which texture and surface objects are created, and the descriptors of the existing
// objects.
#pragma once

#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "host/simgpu/texture/texture.h"

namespace simgpu {

class Driver;
struct Context;
struct Device;

// Computes the image that a resource descriptor describes. Returns an error if the descriptor is invalid.
CUresult image_of(Driver& driver, Context& context, const CUDA_RESOURCE_DESC& resource, Image& out);

// Changes the image of an array or mipmapped array to the part and format that a view selects.
CUresult apply_view(const CUDA_RESOURCE_VIEW_DESC& view, bool is_mipmapped, Image& image);

// The data of an object that calls can query. Kernels receive only the object's number.
struct TextureObjectRecord {
  std::shared_ptr<Context> context;
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
  bool is_surface = false;
};

// The existing objects of all devices, by device and number. Thread-safe.
class TextureObjectRecords {
 public:
  void insert(const Device* device, std::uint64_t number, TextureObjectRecord record);
  std::optional<TextureObjectRecord> find(const Device* device, std::uint64_t number, bool is_surface) const;
  bool remove(const Device* device, std::uint64_t number, bool is_surface);
  // Removes all objects of the context, and returns them with their numbers.
  std::map<std::uint64_t, TextureObjectRecord> take_all(const Context* context);

 private:
  using Key = std::pair<const Device*, std::uint64_t>;
  mutable ring::Mutex mutex_;
  std::map<Key, TextureObjectRecord> records_ GUARDED_BY(mutex_);
};

TextureTable& textures_of(Device& device);

// Drops the texture and surface objects of a context that ends.
void drop_texture_objects(Driver& driver, Context& context);

}  // namespace simgpu
