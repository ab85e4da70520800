// Textures beyond plain two-dimensional ones: three-dimensional textures with and without levels, cubes, layered cubes;
// and features of two-dimensional textures that textures.cu does not test: gathers and sRGB. Coordinates are multiples
// of a quarter texel, sizes are powers of two and texels small integers, so that interpolated values are exact. Only
// the decoding of sRGB differs between GPUs: the program checks its results within a bound, and prints them rounded.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "textures.h"

namespace {

constexpr int width = 16, height = 8, depth = 4;
constexpr int edge = 4, faces = 6;
constexpr int solid_edge = 8, levels = 4;
constexpr float border_color = 2;

// For a cube, x, y and z are the direction.
struct Place {
  float x, y, z;
  int layer;
  float level;  // for Form::gradient, the length of the gradient
};

enum class Form { solid, cube, cube_layers, level, gradient };

template <Form form>
__global__ void read(cudaTextureObject_t texture, const Place* places, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Place p = places[i];
  if constexpr (form == Form::solid) out[i] = tex3D<float>(texture, p.x, p.y, p.z);
  if constexpr (form == Form::cube) out[i] = texCubemap<float>(texture, p.x, p.y, p.z);
  if constexpr (form == Form::cube_layers) out[i] = texCubemapLayered<float>(texture, p.x, p.y, p.z, p.layer);
  if constexpr (form == Form::level) out[i] = tex3DLod<float>(texture, p.x, p.y, p.z, p.level);
  if constexpr (form == Form::gradient) {
    const float4 longer = make_float4(0, p.level, 0, 0), none = make_float4(0, 0, 0, 0);
    out[i] = tex3DGrad<float>(texture, p.x, p.y, p.z, longer, none);
  }
}

// The component is a template parameter, since it is an immediate operand of the instruction.
template <int component>
__global__ void gather(cudaTextureObject_t texture, float4* out) {
  const int x = threadIdx.x, y = threadIdx.y;
  out[y * (width + 1) + x] = tex2Dgather<float4>(texture, static_cast<float>(x), static_cast<float>(y), component);
}

__global__ void read_colors(cudaTextureObject_t texture, float4* out, float offset) {
  const int x = threadIdx.x;
  out[x] = tex2D<float4>(texture, x + offset, 0.5f);
}

std::vector<float> texels(size_t count, unsigned salt) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(check::small_number(i, salt));
  return out;
}

cudaTextureDesc sampling(cudaTextureFilterMode filter, cudaTextureAddressMode address, bool normalized) {
  cudaTextureDesc d{};
  d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = address;
  d.filterMode = filter;
  d.readMode = cudaReadModeElementType;
  d.normalizedCoords = normalized ? 1 : 0;
  d.borderColor[0] = border_color;
  return d;
}

template <class T>
void fill(cudaArray_t array, const std::vector<T>& all, cudaExtent extent) {
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(const_cast<T*>(all.data()), extent.width * sizeof(T), extent.width, extent.height);
  copy.dstArray = array, copy.extent = extent, copy.kind = cudaMemcpyHostToDevice;
  CHECK_CUDA(cudaMemcpy3D(&copy));
}

template <class T>
cudaArray_t array_of(const std::vector<T>& all, cudaExtent extent, unsigned flags) {
  const auto format = cudaCreateChannelDesc<T>();
  cudaArray_t array = nullptr;
  CHECK_CUDA(cudaMalloc3DArray(&array, &format, extent, flags));
  // For a two-dimensional array, an allocation's extent has depth 0, but a copy's extent has depth 1.
  fill(array, all, make_cudaExtent(extent.width, extent.height, std::max<size_t>(extent.depth, 1)));
  return array;
}

template <Form form>
std::vector<float> found_at(cudaTextureObject_t texture, const std::vector<Place>& places) {
  const int n = static_cast<int>(places.size());
  Place* const device = check::device_copy(places);
  float* const out = check::device_buffer<float>(n);
  read<form><<<(n + 127) / 128, 128>>>(texture, device, out, n);
  CHECK_CUDA(cudaGetLastError());
  std::vector<float> found = check::host_copy(out, n);
  CHECK_CUDA(cudaFree(device));
  CHECK_CUDA(cudaFree(out));
  return found;
}

// Places, and the expected values there.
struct Expected {
  std::vector<Place> places;
  std::vector<float> values;

  void add(const Place& place, float value) {
    places.push_back(place);
    values.push_back(value);
  }
};

template <Form form>
void expect(const std::string& what, cudaTextureObject_t texture, const Expected& expected) {
  const std::vector<float> found = found_at<form>(texture, expected.places);
  for (size_t i = 0; i < found.size(); ++i) {
    const Place& p = expected.places[i];
    CHECK_THAT(found[i] == expected.values[i], "%s: at %g, %g, %g, layer %d, level %g there is %g, not %g.",
               what.c_str(), p.x, p.y, p.z, p.layer, p.level, found[i], expected.values[i]);
  }
  std::printf("textures_solid: %s: ok, %016llx\n", what.c_str(),
              static_cast<unsigned long long>(check::checksum(found)));
}

// ---- three dimensions

// The texel that index i of an axis addresses; -1 for the border.
int texel(int i, int size, cudaTextureAddressMode mode) {
  const int period = mode == cudaAddressModeMirror ? 2 * size : size;
  const int in_period = (i % period + period) % period;
  switch (mode) {
    case cudaAddressModeWrap: return in_period;
    case cudaAddressModeMirror: return std::min(in_period, period - 1 - in_period);
    case cudaAddressModeBorder: return i < 0 || i >= size ? -1 : i;
    default: return std::min(std::max(i, 0), size - 1);
  }
}

float solid_texel(const std::vector<float>& all, const int (&at)[3], cudaTextureAddressMode mode) {
  const int x = texel(at[0], width, mode), y = texel(at[1], height, mode), z = texel(at[2], depth, mode);
  return x < 0 || y < 0 || z < 0 ? border_color : all[(z * height + y) * width + x];
}

float solid_sample(const std::vector<float>& all, const float (&at)[3], bool linear, cudaTextureAddressMode mode) {
  int first[3];
  float fraction[3];
  for (int k = 0; k < 3; ++k) {
    const float place = linear ? at[k] - 0.5f : at[k];
    first[k] = static_cast<int>(std::floor(place));
    fraction[k] = linear ? place - first[k] : 0;
  }
  float sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    float weight = 1;
    int part[3];
    for (int k = 0; k < 3; ++k) {
      const int second = corner >> k & 1;
      weight *= second != 0 ? fraction[k] : 1 - fraction[k];
      part[k] = first[k] + second;
    }
    if (weight != 0) sum += weight * solid_texel(all, part, mode);
  }
  return sum;
}

Expected solid_samples(const std::vector<float>& all, bool linear, cudaTextureAddressMode mode, bool normalized) {
  Expected expected;
  for (const float offset : {0.5f, 0.75f, -3.25f, 6.25f})
    for (int i = 0; i < width * height * depth; ++i) {
      const int x = i % width, y = i / width % height, z = i / width / height;
      const float at[3] = {x + offset, y + offset, z + offset};
      const float value = solid_sample(all, at, linear, mode);
      if (normalized)
        expected.add({at[0] / width, at[1] / height, at[2] / depth, 0, 0}, value);
      else
        expected.add({at[0], at[1], at[2], 0, 0}, value);
    }
  return expected;
}

void solids() {
  const struct {
    const char* name;
    cudaTextureAddressMode mode;
    bool normalized;
  } ways[] = {{"clamp", cudaAddressModeClamp, true},
              {"border", cudaAddressModeBorder, true},
              {"wrap", cudaAddressModeWrap, true},
              {"mirror", cudaAddressModeMirror, true},
              {"clamp, not normalised", cudaAddressModeClamp, false},
              {"border, not normalised", cudaAddressModeBorder, false}};
  const std::vector<float> all = texels(width * height * depth, 1);
  const cudaArray_t array = array_of(all, make_cudaExtent(width, height, depth), cudaArrayDefault);
  for (const bool linear : {false, true})
    for (const auto& way : ways) {
      const auto filter = linear ? cudaFilterModeLinear : cudaFilterModePoint;
      const cudaTextureObject_t texture = check::texture_of(array, sampling(filter, way.mode, way.normalized));
      const std::string what = std::string("three dimensions, ") + (linear ? "linear, " : "point, ") + way.name;
      expect<Form::solid>(what, texture, solid_samples(all, linear, way.mode, way.normalized));
      CHECK_CUDA(cudaDestroyTextureObject(texture));
    }
  CHECK_CUDA(cudaFreeArray(array));
}

// ---- cubes

// The direction to a place on a face, with s and t from -1 to 1, by the table of cubemaps in the CUDA C++ Programming
// Guide.
Place direction(int face, float s, float t, float length, int layer) {
  const Place all[faces] = {{1, -t, -s, 0, 0}, {-1, -t, s, 0, 0}, {s, 1, t, 0, 0},
                            {s, -1, -t, 0, 0}, {s, -t, 1, 0, 0},  {-s, -t, -1, 0, 0}};
  const Place& d = all[face];
  return {d.x * length, d.y * length, d.z * length, layer, 0};
}

// The neighbouring face, in the direction of s or t.
int neighbour(int face, float s, float t) {
  const Place middle = direction(face, 0, 0, 1, 0), side = direction(face, s, t, 1, 0);
  const float step[3] = {side.x - middle.x, side.y - middle.y, side.z - middle.z};
  int axis = 0;
  while (step[axis] == 0) ++axis;
  return 2 * axis + (step[axis] < 0 ? 1 : 0);
}

float middle_of(int number) { return (2 * number + 1 - edge) / static_cast<float>(edge); }

// Samples each texel in its middle, including texels at the edges, where no other texel contributes. The direction's
// length does not matter.
Expected cube_texels(const std::vector<float>& all, int layers) {
  Expected expected;
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    const int x = i % edge, y = i / edge % edge, face = i / edge / edge % faces, layer = i / edge / edge / faces;
    const float length = i % 3 == 0 ? 1.0f : i % 3 == 1 ? 0.25f : 4.0f;
    if (layer < layers) expected.add(direction(face, middle_of(x), middle_of(y), length, layer), all[i]);
  }
  return expected;
}

// The value at a point where four texels of a face meet is their mean.
Expected cube_middles(const std::vector<float>& all, int layers) {
  Expected expected;
  for (int i = 0; i < layers * faces; ++i) {
    const float* const at = &all[i * edge * edge + (edge / 2 - 1) * edge + edge / 2 - 1];
    expected.add(direction(i % faces, 0, 0, 1, i / faces), (at[0] + at[1] + at[edge] + at[edge + 1]) / 4);
  }
  return expected;
}

// Each face has one colour. The samples lie a quarter of a texel from the face's edges: with seamless filtering the
// neighbouring face has a quarter of the weight, otherwise none.
Expected cube_edges(const std::vector<float>& colors, bool seamless, int layers) {
  constexpr float near = 1 - 0.5f / edge;
  Expected expected;
  for (int i = 0; i < layers * faces; ++i)
    for (const auto& [s, t] : {std::pair{near, 0.0f}, {-near, 0.0f}, {0.0f, near}, {0.0f, -near}}) {
      const int layer = i / faces, face = i % faces;
      const float own = colors[i], other = colors[layer * faces + neighbour(face, s, t)];
      expected.add(direction(face, s, t, 1, layer), seamless ? (3 * own + other) / 4 : own);
    }
  return expected;
}

cudaArray_t cube_array(const std::vector<float>& all, int layers) {
  const unsigned flags = cudaArrayCubemap | (layers > 1 ? cudaArrayLayered : 0);
  return array_of(all, make_cudaExtent(edge, edge, faces * layers), flags);
}

template <Form form>
void cube(const std::string& name, int layers) {
  const size_t count = faces * edge * edge * layers;
  const std::vector<float> all = texels(count, 20);
  const cudaArray_t array = cube_array(all, layers);
  for (const bool linear : {false, true}) {
    const auto filter = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    const cudaTextureObject_t texture = check::texture_of(array, sampling(filter, cudaAddressModeClamp, true));
    expect<form>(name + (linear ? ", texels, linear" : ", texels, point"), texture, cube_texels(all, layers));
    if (linear) expect<form>(name + ", middles of faces", texture, cube_middles(all, layers));
    CHECK_CUDA(cudaDestroyTextureObject(texture));
  }
  CHECK_CUDA(cudaFreeArray(array));
}

template <Form form>
void cube_of_colors(const std::string& name, int layers) {
  std::vector<float> colors, all;
  for (int i = 0; i < faces * layers; ++i) {
    colors.push_back(static_cast<float>(4 << i));
    all.insert(all.end(), edge * edge, colors.back());
  }
  const cudaArray_t array = cube_array(all, layers);
  for (const bool seamless : {false, true}) {
    cudaTextureDesc d = sampling(cudaFilterModeLinear, cudaAddressModeClamp, true);
    d.seamlessCubemap = seamless ? 1 : 0;
    const cudaTextureObject_t texture = check::texture_of(array, d);
    expect<form>(name + (seamless ? ", near edges, seamless" : ", near edges"), texture,
                 cube_edges(colors, seamless, layers));
    CHECK_CUDA(cudaDestroyTextureObject(texture));
  }
  CHECK_CUDA(cudaFreeArray(array));
}

// ---- levels of a three-dimensional texture

std::vector<std::vector<float>> fill_levels(cudaMipmappedArray_t array) {
  std::vector<std::vector<float>> all;
  for (int level = 0; level < levels; ++level) {
    const size_t size = solid_edge >> level;
    all.push_back(texels(size * size * size, 40 + level));
    cudaArray_t one = nullptr;
    CHECK_CUDA(cudaGetMipmappedArrayLevel(&one, array, level));
    fill(one, all.back(), make_cudaExtent(size, size, size));
  }
  return all;
}

float level_texel(const std::vector<std::vector<float>>& all, int level, const Place& at) {
  const int size = solid_edge >> level;
  const int x = static_cast<int>(at.x * size), y = static_cast<int>(at.y * size), z = static_cast<int>(at.z * size);
  return all[level][(z * size + y) * size + x];
}

// The value between two levels, with the nearest texel in each level.
float blended(const std::vector<std::vector<float>>& all, const Place& at, float level) {
  const float held = std::min(std::max(level, 0.0f), levels - 1.0f);
  const int first = static_cast<int>(held);
  const float weight = held - first;
  const float low = level_texel(all, first, at);
  return weight == 0 ? low : (1 - weight) * low + weight * level_texel(all, first + 1, at);
}

// Place number i, among places that lie in the middle of a texel of level 0 and on no texel's edge in any level.
Place level_place(int i) {
  const int x = i % solid_edge, y = i / solid_edge % solid_edge, z = i / solid_edge / solid_edge;
  return {(x + 0.5f) / solid_edge, (y + 0.5f) / solid_edge, (z + 0.5f) / solid_edge, 0, 0};
}

cudaTextureObject_t levels_texture(cudaMipmappedArray_t array, float bias, float least, float most) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = array;
  cudaTextureDesc d = sampling(cudaFilterModePoint, cudaAddressModeClamp, true);
  d.mipmapFilterMode = cudaFilterModeLinear;
  d.mipmapLevelBias = bias, d.minMipmapLevelClamp = least, d.maxMipmapLevelClamp = most;
  cudaTextureObject_t texture = 0;
  CHECK_CUDA(cudaCreateTextureObject(&texture, &resource, &d, nullptr));
  return texture;
}

void expect_levels(const char* what, cudaMipmappedArray_t array, const std::vector<std::vector<float>>& all, float bias,
                   float least, float most) {
  const cudaTextureObject_t texture = levels_texture(array, bias, least, most);
  Expected expected;
  for (const float level : {0.0f, 0.25f, 1.0f, 1.5f, 2.0f, 2.75f, 3.0f, 7.0f, -1.0f})
    for (int i = 0; i < solid_edge * solid_edge * solid_edge; i += 3) {
      Place place = level_place(i);
      place.level = level;
      expected.add(place, blended(all, place, std::min(std::max(level + bias, least), most)));
    }
  expect<Form::level>(what, texture, expected);
  CHECK_CUDA(cudaDestroyTextureObject(texture));
}

void solid_levels() {
  const auto format = cudaCreateChannelDesc<float>();
  const cudaExtent extent = make_cudaExtent(solid_edge, solid_edge, solid_edge);
  cudaMipmappedArray_t array = nullptr;
  CHECK_CUDA(cudaMallocMipmappedArray(&array, &format, extent, levels));
  const std::vector<std::vector<float>> all = fill_levels(array);
  expect_levels("levels", array, all, 0, 0, levels);
  expect_levels("levels with a bias", array, all, 0.5f, 0, levels);
  expect_levels("levels from 1 to 2.5", array, all, 0, 1, 2.5f);
  const cudaTextureObject_t texture = levels_texture(array, 0, 0, levels);
  Expected expected;
  for (int level = 0; level < levels; ++level)
    for (int i = 0; i < solid_edge * solid_edge * solid_edge; i += 3) {
      Place place = level_place(i);
      place.level = static_cast<float>(1 << level) / solid_edge;
      expected.add(place, level_texel(all, level, place));
    }
  expect<Form::gradient>("levels by a gradient", texture, expected);
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeMipmappedArray(array));
}

// ---- gathers

float component_at(const std::vector<float4>& all, int x, int y, int component) {
  x = std::min(std::max(x, 0), width - 1), y = std::min(std::max(y, 0), height - 1);
  const float4& t = all[y * width + x];
  return component == 0 ? t.x : component == 1 ? t.y : component == 2 ? t.z : t.w;
}

// At the point where four texels meet, a gather returns these four texels, from the lower left one counter-clockwise,
// since y grows downwards.
template <int component>
void expect_gather(cudaTextureObject_t texture, const std::vector<float4>& all) {
  constexpr int count = (width + 1) * (height + 1);
  float4* const device = check::device_buffer<float4>(count);
  gather<component><<<1, dim3(width + 1, height + 1)>>>(texture, device);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<float4> found = check::host_copy(device, count);
  for (int i = 0; i < count; ++i) {
    const int x = i % (width + 1), y = i / (width + 1);
    const float wanted[4] = {component_at(all, x - 1, y, component), component_at(all, x, y, component),
                             component_at(all, x, y - 1, component), component_at(all, x - 1, y - 1, component)};
    const float4& f = found[i];
    CHECK_THAT(std::memcmp(&f, wanted, sizeof f) == 0,
               "Component %d gathered at %d, %d: %g, %g, %g, %g, not %g, %g, %g, %g.", component, x, y, f.x, f.y, f.z,
               f.w, wanted[0], wanted[1], wanted[2], wanted[3]);
  }
  std::printf("textures_solid: gather of component %d: ok, %016llx\n", component,
              static_cast<unsigned long long>(check::checksum(found)));
  CHECK_CUDA(cudaFree(device));
}

void gathers() {
  std::vector<float4> all(width * height);
  for (int i = 0; i < width * height; ++i) all[i] = make_float4(i + 1.0f, i + 1001.0f, i + 2001.0f, i + 3001.0f);
  const cudaArray_t array = array_of(all, make_cudaExtent(width, height, 0), cudaArrayTextureGather);
  const cudaTextureObject_t texture =
      check::texture_of(array, sampling(cudaFilterModePoint, cudaAddressModeClamp, false));
  expect_gather<0>(texture, all);
  expect_gather<1>(texture, all);
  expect_gather<2>(texture, all);
  expect_gather<3>(texture, all);
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeArray(array));
}

// ---- sRGB

double decoded(int byte) {
  const double c = byte / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

// Byte i of the row is i, so that all 256 values are read.
std::vector<float4> read_row(const cudaArray_t array, cudaTextureFilterMode filter, int count, float offset) {
  cudaTextureDesc d = sampling(filter, cudaAddressModeClamp, false);
  d.readMode = cudaReadModeNormalizedFloat;
  d.sRGB = 1;
  const cudaTextureObject_t texture = check::texture_of(array, d);
  float4* const device = check::device_buffer<float4>(count);
  read_colors<<<1, count>>>(texture, device, offset);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<float4> found = check::host_copy(device, count);
  CHECK_CUDA(cudaFree(device));
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  return found;
}

// An H200 decodes with its own table, which differed from the standard by 0.6 % in measurements.
bool near(float found, double wanted) { return std::fabs(found - wanted) <= wanted / 64; }

// The GPU decodes the colours but not the fourth channel.
void srgb() {
  std::vector<uchar4> all;
  for (int i = 0; i < 256; ++i) all.push_back(make_uchar4(i, 255 - i, i, i));
  const cudaArray_t array = array_of(all, make_cudaExtent(256, 1, 0), cudaArrayDefault);
  const std::vector<float4> found = read_row(array, cudaFilterModePoint, 256, 0.5f);
  for (int i = 0; i < 256; ++i) {
    const float4& f = found[i];
    const bool close = near(f.x, decoded(i)) && near(f.y, decoded(255 - i));
    CHECK_THAT(close && f.z == f.x && f.w == static_cast<float>(i) / 255.0f, "sRGB of %d: %.9g, %.9g, %.9g, %.9g.", i,
               f.x, f.y, f.z, f.w);
  }
  CHECK_THAT(found[0].x == 0 && found[255].x == 1, "Black and white are %g and %g.", found[0].x, found[255].x);
  for (const int i : {0, 50, 100, 188, 254, 255}) std::printf("textures_solid: sRGB of %d: %.2f\n", i, found[i].x);
  CHECK_CUDA(cudaFreeArray(array));
}

// A filter computes the mean of decoded values. Between black and white the mean is a half, which a GPU may round to
// one of 65,535 steps.
void srgb_filtered() {
  const std::vector<uchar4> all = {make_uchar4(0, 255, 0, 0), make_uchar4(255, 0, 0, 255)};
  const cudaArray_t array = array_of(all, make_cudaExtent(2, 1, 0), cudaArrayDefault);
  const float4 f = read_row(array, cudaFilterModeLinear, 1, 1.0f)[0];
  const auto is_half = [](float value) { return std::fabs(value - 0.5f) <= 1.0f / 65535; };
  CHECK_THAT(is_half(f.x) && is_half(f.y) && f.z == 0 && is_half(f.w), "sRGB, filtered: %.9g, %.9g, %.9g, %.9g.", f.x,
             f.y, f.z, f.w);
  std::printf("textures_solid: sRGB, filtered: ok\n");
  CHECK_CUDA(cudaFreeArray(array));
}

}  // namespace

int main(int argc, char** argv) {
  long layers = 2;
  check::parse(argc, argv, "textures_solid", "reads textures of solids, cubes and levels, gathers, and decodes sRGB",
               {{"--layers", "cubes of a layered cube", &layers, 2, 3}});
  const int count = static_cast<int>(layers);
  solids();
  cube<Form::cube>("cube", 1);
  cube_of_colors<Form::cube>("cube", 1);
  cube<Form::cube_layers>("layers of cubes", count);
  cube_of_colors<Form::cube_layers>("layers of cubes", count);
  solid_levels();
  gathers();
  srgb();
  srgb_filtered();
  return 0;
}
