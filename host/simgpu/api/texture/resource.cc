// Resource descriptors: an array, a mipmapped array, linear memory or rows with a pitch, and views of them.
#include "host/simgpu/api/texture/resource.h"

#include <algorithm>
#include <iterator>

#include "host/simgpu/api/device/device.h"
#include "host/simgpu/api/texture/array.h"
#include "host/simgpu/api/texture/array_format.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

std::size_t limit(const Context& context, CUdevice_attribute attribute) {
  return static_cast<std::size_t>(device_attribute(context.device, attribute).value_or(0));
}

// Creates the image of plain memory, which may have any size and address. The image does not own the memory: each
// access of a kernel looks the memory up.
CUresult image_of_memory(Geometry geometry, TexelFormat format, CUdeviceptr start, Level level, Image& out) {
  out.geometry = geometry;
  out.format = format;
  if (level.width == 0 || level.height == 0) return CUDA_SUCCESS;
  level.texels = reinterpret_cast<std::byte*>(start);
  out.levels = {level};
  return CUDA_SUCCESS;
}

CUresult image_of_linear(const Context& context, const CUDA_RESOURCE_DESC& resource, Image& out) {
  const auto& linear = resource.res.linear;
  if (const CUresult r = check_format(linear.format, linear.numChannels); r != CUDA_SUCCESS) return r;
  const TexelFormat format{.format = linear.format, .channels = linear.numChannels};
  const std::size_t texels = linear.sizeInBytes / texel_bytes(format);
  const bool fits = texels <= limit(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
  if (linear.devPtr == 0 || !fits) return CUDA_ERROR_INVALID_VALUE;
  if (linear.devPtr % limit(context, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Level level{.width = static_cast<std::uint32_t>(texels), .row_pitch = linear.sizeInBytes};
  return image_of_memory(Geometry::Linear, format, linear.devPtr, level, out);
}

CUresult image_of_rows(const Context& context, const CUDA_RESOURCE_DESC& resource, Image& out) {
  const auto& rows = resource.res.pitch2D;
  if (const CUresult r = check_format(rows.format, rows.numChannels); r != CUDA_SUCCESS) return r;
  const TexelFormat format{.format = rows.format, .channels = rows.numChannels};
  const bool fits = rows.width <= limit(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) &&
                    rows.height <= limit(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) &&
                    rows.pitchInBytes <= limit(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH);
  if (rows.devPtr == 0 || !fits) return CUDA_ERROR_INVALID_VALUE;
  const bool aligned = rows.devPtr % limit(context, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) == 0 &&
                       rows.pitchInBytes % limit(context, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) == 0;
  if (!aligned) return CUDA_ERROR_INVALID_VALUE;
  const Level level{.width = static_cast<std::uint32_t>(rows.width),
                    .height = static_cast<std::uint32_t>(rows.height),
                    .row_pitch = rows.pitchInBytes,
                    .slice_pitch = rows.pitchInBytes * rows.height};
  return image_of_memory(Geometry::D2, format, rows.devPtr, level, out);
}

// Returns the bytes per block of a view's block-compressed format; 0 for other formats.
unsigned block_bytes(CUresourceViewFormat format) {
  switch (format) {
    case CU_RES_VIEW_FORMAT_UNSIGNED_BC1:
    case CU_RES_VIEW_FORMAT_UNSIGNED_BC4:
    case CU_RES_VIEW_FORMAT_SIGNED_BC4: return 8;
    default: return format > CU_RES_VIEW_FORMAT_UNSIGNED_BC1 && format <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7 ? 16 : 0;
  }
}

// Returns the format of a view. The result has 0 channels if the view has no format or a block-compressed one, which is
// not supported.
TexelFormat format_of_view(CUresourceViewFormat format) {
  if (format < CU_RES_VIEW_FORMAT_UINT_1X8 || format > CU_RES_VIEW_FORMAT_FLOAT_4X32) return {.channels = 0};
  constexpr CUarray_format formats[] = {
      CU_AD_FORMAT_UNSIGNED_INT8,  CU_AD_FORMAT_SIGNED_INT8,  CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16,
      CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_HALF,           CU_AD_FORMAT_FLOAT};
  // The enumeration lists the formats in the order of this array, and for each format 1, 2 and 4 channels.
  const unsigned place = static_cast<unsigned>(format) - CU_RES_VIEW_FORMAT_UINT_1X8;
  return {.format = formats[place / 3], .channels = 1U << place % 3};
}

bool is_layered(Geometry geometry) {
  return geometry == Geometry::D1Layered || geometry == Geometry::D2Layered || geometry == Geometry::CubeLayered;
}

bool is_cube(Geometry geometry) { return geometry == Geometry::Cube || geometry == Geometry::CubeLayered; }

// Returns true if the view has the size of the whole array. As in an array description, a missing dimension has size 0.
bool shows_all_of(const CUDA_RESOURCE_VIEW_DESC& view, const Level& level, Geometry geometry) {
  const bool flat = geometry == Geometry::D1 || geometry == Geometry::D1Layered;
  const bool deep = geometry == Geometry::D3 || is_layered(geometry) || is_cube(geometry);
  return view.width == level.width && view.height == (flat ? 0 : level.height) &&
         view.depth == (deep ? level.depth : 0);
}

// Returns true if a view may show the parts from `first` to `last` of `count`. An H200 accepts a `last` that exceeds
// the last part by one.
bool are_parts(unsigned first, unsigned last, std::size_t count) { return first <= last && last <= count; }

}  // namespace

CUresult image_of(Driver& driver, Context& context, const CUDA_RESOURCE_DESC& resource, Image& out) {
  if (resource.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
      if (resource.res.array.hArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
      const auto array = driver.arrays.find(resource.res.array.hArray);
      if (array == nullptr || array->context.get() != &context) return CUDA_ERROR_INVALID_HANDLE;
      out = array->image;
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      if (resource.res.mipmap.hMipmappedArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
      const auto array = driver.mipmapped_arrays.find(resource.res.mipmap.hMipmappedArray);
      if (array == nullptr || array->context.get() != &context) return CUDA_ERROR_INVALID_HANDLE;
      out = array->image;
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_LINEAR: return image_of_linear(context, resource, out);
    case CU_RESOURCE_TYPE_PITCH2D: return image_of_rows(context, resource, out);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult apply_view(const CUDA_RESOURCE_VIEW_DESC& view, bool is_mipmapped, Image& image) {
  const bool reserved = std::any_of(std::begin(view.reserved), std::end(view.reserved), [](auto w) { return w != 0; });
  const TexelFormat format = format_of_view(view.format);
  if (block_bytes(view.format) == texel_bytes(image.format)) return CUDA_ERROR_NOT_SUPPORTED;
  if (reserved || format.channels == 0 || texel_bytes(format) != texel_bytes(image.format))
    return CUDA_ERROR_INVALID_VALUE;
  const Level& first = image.levels.front();
  const std::uint32_t layers = is_layered(image.geometry) ? first.depth : 0;
  const bool parts = are_parts(view.firstMipmapLevel, view.lastMipmapLevel, is_mipmapped ? image.levels.size() : 0) &&
                     are_parts(view.firstLayer, view.lastLayer, layers);
  if (!parts || !shows_all_of(view, first, image.geometry)) return CUDA_ERROR_INVALID_VALUE;
  image.format = format;
  if (view.lastMipmapLevel + 1 < image.levels.size()) image.levels.resize(view.lastMipmapLevel + 1);
  const bool nothing = view.firstMipmapLevel >= image.levels.size() || (layers != 0 && view.firstLayer >= layers);
  image.levels.erase(image.levels.begin(), nothing ? image.levels.end() : image.levels.begin() + view.firstMipmapLevel);
  if (layers != 0)
    for (Level& level : image.levels) {
      level.texels += view.firstLayer * level.slice_pitch;
      level.depth = std::min(view.lastLayer, layers - 1) - view.firstLayer + 1;
    }
  return CUDA_SUCCESS;
}

void TextureObjectRecords::insert(const Device* device, std::uint64_t number, TextureObjectRecord record) {
  const ring::MutexLock lock(mutex_);
  records_.insert_or_assign({device, number}, std::move(record));
}

std::optional<TextureObjectRecord> TextureObjectRecords::find(const Device* device, std::uint64_t number,
                                                              bool is_surface) const {
  const ring::MutexLock lock(mutex_);
  const auto found = records_.find({device, number});
  if (found == records_.end() || found->second.is_surface != is_surface) return std::nullopt;
  return found->second;
}

bool TextureObjectRecords::remove(const Device* device, std::uint64_t number, bool is_surface) {
  const ring::MutexLock lock(mutex_);
  const auto found = records_.find({device, number});
  if (found == records_.end() || found->second.is_surface != is_surface) return false;
  records_.erase(found);
  return true;
}

std::map<std::uint64_t, TextureObjectRecord> TextureObjectRecords::take_all(const Context* context) {
  const ring::MutexLock lock(mutex_);
  std::map<std::uint64_t, TextureObjectRecord> out;
  for (auto at = records_.begin(); at != records_.end();) {
    if (at->second.context.get() != context) {
      ++at;
      continue;
    }
    out.insert_or_assign(at->first.second, std::move(at->second));
    at = records_.erase(at);
  }
  return out;
}

TextureTable& textures_of(Device& device) { return device.space.textures(); }

void drop_texture_objects(Driver& driver, Context& context) {
  TextureTable& table = textures_of(context.device);
  for (const auto& [number, record] : driver.texture_objects.take_all(&context)) {
    if (record.is_surface)
      table.remove_surface(number);
    else
      table.remove_texture(number);
  }
}

}  // namespace simgpu
