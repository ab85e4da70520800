// Texture and surface references: what a program has set. A module's is shown to kernels as the number of a texture or
// surface in the module's variable; one that a program has created is shown to none.
#pragma once

#include "host/simgpu/api/cuda_api.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/objects.h"
#include "host/simgpu/api/texture/resource.h"
#include "host/simgpu/texture/texture.h"

namespace simgpu {

// A module's variable, and the number that kernels find there.
class ShownNumber {
 public:
  explicit ShownNumber(bool is_surface) : is_surface_(is_surface) {}
  ShownNumber(const ShownNumber&) = delete;
  ShownNumber& operator=(const ShownNumber&) = delete;
  ~ShownNumber();

  // Precondition: nobody else has the reference yet.
  void belong_to(const std::shared_ptr<LoadedModule>& module, const Global& variable);
  bool is_modules() const { return variable_ != 0; }
  // Puts another number there, once the kernels that may use the present one are done. It belongs to this object.
  CUresult show(Driver& driver, Context& context, std::uint64_t number);

 private:
  void remove(std::uint64_t number);

  const bool is_surface_;
  std::weak_ptr<LoadedModule> module_;
  TextureTable* table_ = nullptr;  // the device's, which lives as long as the process
  Address variable_ = 0;
  std::uint64_t number_ = 0;  // 0: nothing
};

struct TextureReference {
  // An array, a mipmapped array, memory, or nothing.
  struct Bound {
    CUarray array = nullptr;
    CUmipmappedArray mipmapped_array = nullptr;
    Image image = {};  // of an array
    CUdeviceptr address = 0;
    std::size_t bytes = 0;                         // of memory in one row
    std::size_t width = 0, height = 0, pitch = 0;  // of rows
  };

  std::shared_ptr<Context> context;
  CUtexref handle = nullptr;
  std::mutex mutex;  // for the members below
  ShownNumber shown{false};
  Bound bound;
  TexelFormat format{.format = CU_AD_FORMAT_FLOAT, .channels = 1};
  CUaddress_mode address_mode[3] = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP};
  CUfilter_mode filter_mode = CU_TR_FILTER_MODE_POINT, mipmap_filter_mode = CU_TR_FILTER_MODE_POINT;
  float level_bias = 0, min_level = 0, max_level = 0;
  unsigned max_anisotropy = 0;
  float border[4] = {};
  unsigned flags = 0;

  void bind(Bound what, TexelFormat of) {
    bound = std::move(what);
    format = of;
  }
};

struct SurfaceReference {
  std::shared_ptr<Context> context;
  CUsurfref handle = nullptr;
  std::mutex mutex;  // for the members below
  ShownNumber shown{true};
  CUarray array = nullptr;
};

}  // namespace simgpu
