// Texture and surface references: the settings that a program made. For a reference of a module, the module's variable
// holds the number of a texture or surface, through which kernels access it. Kernels cannot access a reference that the
// program created.
#pragma once

#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/objects.h"
#include "host/simgpu/api/texture/resource.h"
#include "host/simgpu/texture/texture.h"

namespace simgpu {

// A module's variable with the number that kernels read from it.
class ShownNumber {
 public:
  explicit ShownNumber(bool is_surface) : is_surface_(is_surface) {}
  ShownNumber(const ShownNumber&) = delete;
  ShownNumber& operator=(const ShownNumber&) = delete;
  ~ShownNumber();

  // Call this function before another thread can access the reference.
  void belong_to(const std::shared_ptr<LoadedModule>& module, const Global& variable);
  bool is_modules() const { return variable_ != 0; }
  // Writes another number to the variable, after the kernels that may use the present number are done. This object owns
  // the number.
  CUresult show(Driver& driver, Context& context, std::uint64_t number);

 private:
  void remove(std::uint64_t number);

  const bool is_surface_;
  std::weak_ptr<LoadedModule> module_;
  TextureTable* table_ = nullptr;  // the device's table, which is never freed
  Address variable_ = 0;
  std::uint64_t number_ = 0;  // 0: no texture or surface
};

struct TextureReference {
  // The resource bound to the reference: an array, a mipmapped array, plain memory, or none.
  struct Bound {
    CUarray array = nullptr;
    CUmipmappedArray mipmapped_array = nullptr;
    Image image = {};  // image of the array
    CUdeviceptr address = 0;
    std::size_t bytes = 0;                         // size of linear memory
    std::size_t width = 0, height = 0, pitch = 0;  // size of rows with a pitch
  };

  std::shared_ptr<Context> context;
  CUtexref handle = nullptr;
  ring::Mutex mutex;
  ShownNumber shown GUARDED_BY(mutex){false};
  Bound bound GUARDED_BY(mutex);
  TexelFormat format GUARDED_BY(mutex){.format = CU_AD_FORMAT_FLOAT, .channels = 1};
  CUaddress_mode address_mode[3] GUARDED_BY(mutex) = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                                      CU_TR_ADDRESS_MODE_CLAMP};
  CUfilter_mode filter_mode GUARDED_BY(mutex) = CU_TR_FILTER_MODE_POINT;
  CUfilter_mode mipmap_filter_mode GUARDED_BY(mutex) = CU_TR_FILTER_MODE_POINT;
  float level_bias GUARDED_BY(mutex) = 0, min_level GUARDED_BY(mutex) = 0, max_level GUARDED_BY(mutex) = 0;
  unsigned max_anisotropy GUARDED_BY(mutex) = 0;
  float border[4] GUARDED_BY(mutex) = {};
  unsigned flags GUARDED_BY(mutex) = 0;

  void bind(Bound what, TexelFormat of) REQUIRES(mutex) {
    bound = std::move(what);
    format = of;
  }
};

struct SurfaceReference {
  std::shared_ptr<Context> context;
  CUsurfref handle = nullptr;
  ring::Mutex mutex;
  ShownNumber shown GUARDED_BY(mutex){true};
  CUarray array GUARDED_BY(mutex) = nullptr;
};

}  // namespace simgpu
