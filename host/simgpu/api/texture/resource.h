// What a texture or surface object is made of: resource descriptors, and the descriptors of the objects that exist.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "host/simgpu/texture/texture.h"

namespace simgpu {

class Driver;
struct Context;
struct Device;

// The image that a resource descriptor describes. CUDA_SUCCESS, or what is wrong with it.
CUresult image_of(Driver& driver, Context& context, const CUDA_RESOURCE_DESC& resource, Image& out);

// Changes the image, of an array or a mipmapped array, to what a view of it shows.
CUresult apply_view(const CUDA_RESOURCE_VIEW_DESC& view, bool is_mipmapped, Image& image);

// An object's number goes to kernels; this is what the calls that ask about it give back.
struct TextureObjectRecord {
  std::shared_ptr<Context> context;
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
  bool is_surface = false;
};

// The living objects of all devices, by device and number. Threads: any.
class TextureObjectRecords {
 public:
  void insert(const Device* device, std::uint64_t number, TextureObjectRecord record);
  std::optional<TextureObjectRecord> find(const Device* device, std::uint64_t number, bool is_surface) const;
  bool remove(const Device* device, std::uint64_t number, bool is_surface);
  // The numbers of a context's objects, which are no longer in here.
  std::map<std::uint64_t, TextureObjectRecord> take_all(const Context* context);

 private:
  using Key = std::pair<const Device*, std::uint64_t>;
  mutable std::mutex mutex_;
  std::map<Key, TextureObjectRecord> records_;
};

TextureTable& textures_of(Device& device);

// The objects of a context that ends.
void drop_texture_objects(Driver& driver, Context& context);

}  // namespace simgpu
