// A separable convolution of an image, first along the rows and then along the columns. Kernels fetch texels through a
// texture, which clamps coordinates beyond the edge. Texels and weights are small integers, so every sum is exact in
// any order and must equal the CPU's result in every bit.
#include <algorithm>
#include <iterator>

#include "textures.h"

namespace {

constexpr int radius = 4, taps = 2 * radius + 1, tile = 16;

// The coefficients of the eighth power of a sum. Their sum is 256, so that the result for texels up to 15 stays below
// 2^20.
constexpr int binomial[taps] = {1, 8, 28, 56, 70, 56, 28, 8, 1};
// The weights 3 and 1 of two neighbours equal four times one fetch at a quarter of the distance between them.
constexpr int paired[taps] = {0, 0, 1, 3, 4, 3, 1, 0, 0};

__constant__ float weights[taps];
__constant__ int whole_weights[taps];

struct Size {
  int width, height;
  int count() const { return width * height; }
};

template <bool along_rows>
__global__ void convolve(cudaTextureObject_t texture, float* out, size_t pitch, Size size) {
  const int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  if (x >= size.width || y >= size.height) return;
  float sum = 0;
  for (int k = -radius; k <= radius; ++k) {
    const int dx = along_rows ? k : 0, dy = along_rows ? 0 : k;
    sum += weights[k + radius] * tex2D<float>(texture, x + dx + 0.5f, y + dy + 0.5f);
  }
  out[y * pitch + x] = sum;
}

template <bool along_rows>
__global__ void convolve_pairs(cudaTextureObject_t texture, float* out, size_t pitch, Size size) {
  const int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  if (x >= size.width || y >= size.height) return;
  const float dx = along_rows ? 1.25f : 0, dy = along_rows ? 0 : 1.25f;
  const float u = x + 0.5f, v = y + 0.5f;
  out[y * pitch + x] =
      4 * (tex2D<float>(texture, u - dx, v - dy) + tex2D<float>(texture, u, v) + tex2D<float>(texture, u + dx, v + dy));
}

// Colours, as integers: from a texture of bytes to a surface, and from a texture of the result.
template <bool along_rows, class Texel>
__global__ void convolve_colors(cudaTextureObject_t texture, cudaSurfaceObject_t out, Size size) {
  const int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  if (x >= size.width || y >= size.height) return;
  uint4 sum = make_uint4(0, 0, 0, 0);
  for (int k = -radius; k <= radius; ++k) {
    const int dx = along_rows ? k : 0, dy = along_rows ? 0 : k;
    const Texel texel = tex2D<Texel>(texture, x + dx + 0.5f, y + dy + 0.5f);
    const unsigned weight = whole_weights[k + radius];
    sum.x += weight * texel.x, sum.y += weight * texel.y, sum.z += weight * texel.z, sum.w += weight * texel.w;
  }
  surf2Dwrite(sum, out, x * sizeof(uint4), y);
}

dim3 grid_of(Size size) { return dim3((size.width + tile - 1) / tile, (size.height + tile - 1) / tile); }
const dim3 block(tile, tile);

// ---- on the CPU

std::vector<unsigned> convolved(const std::vector<unsigned>& from, Size size, const int (&by)[taps], bool along_rows) {
  std::vector<unsigned> out(from.size());
  for (int y = 0; y < size.height; ++y)
    for (int x = 0; x < size.width; ++x) {
      unsigned sum = 0;
      for (int k = -radius; k <= radius; ++k) {
        const int u = std::min(std::max(along_rows ? x + k : x, 0), size.width - 1);
        const int v = std::min(std::max(along_rows ? y : y + k, 0), size.height - 1);
        sum += by[k + radius] * from[v * size.width + u];
      }
      out[y * size.width + x] = sum;
    }
  return out;
}

std::vector<unsigned> convolved_twice(const std::vector<unsigned>& from, Size size, const int (&by)[taps]) {
  return convolved(convolved(from, size, by, true), size, by, false);
}

std::vector<unsigned> image_of(Size size, unsigned salt) {
  std::vector<unsigned> out(size.count());
  for (int i = 0; i < size.count(); ++i) out[i] = check::small_number(i, salt);
  return out;
}

// ---- textures

cudaTextureObject_t texture_of(const cudaResourceDesc& resource, cudaTextureFilterMode filter) {
  cudaTextureDesc d{};
  d.addressMode[0] = d.addressMode[1] = cudaAddressModeClamp;
  d.filterMode = filter;
  d.readMode = cudaReadModeElementType;
  return check::texture_of(resource, d);
}

// An image in rows with a pitch, which is one kernel's output and the next kernel's texture.
struct Rows {
  float* at = nullptr;
  size_t pitch = 0;  // in bytes
  Size size;

  explicit Rows(Size given) : size(given) {
    CHECK_CUDA(cudaMallocPitch(&at, &pitch, size.width * sizeof(float), size.height));
  }
  ~Rows() { cudaFree(at); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  size_t elements() const { return pitch / sizeof(float); }
  cudaResourceDesc resource() const {
    cudaResourceDesc r{};
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = at;
    r.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    r.res.pitch2D.width = size.width, r.res.pitch2D.height = size.height;
    r.res.pitch2D.pitchInBytes = pitch;
    return r;
  }
  std::vector<float> content() const {
    std::vector<float> out(size.count());
    const size_t row = size.width * sizeof(float);
    CHECK_CUDA(cudaMemcpy2D(out.data(), row, at, pitch, row, size.height, cudaMemcpyDeviceToHost));
    return out;
  }
};

cudaArray_t float_array(Size size) {
  const auto format = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  CHECK_CUDA(cudaMallocArray(&array, &format, size.width, size.height));
  return array;
}

cudaArray_t float_array(const std::vector<unsigned>& image, Size size) {
  const cudaArray_t array = float_array(size);
  const std::vector<float> texels(image.begin(), image.end());
  const size_t row = size.width * sizeof(float);
  CHECK_CUDA(cudaMemcpy2DToArray(array, 0, 0, texels.data(), row, row, size.height, cudaMemcpyHostToDevice));
  return array;
}

void expect(const char* what, const std::vector<float>& found, const std::vector<unsigned>& wanted, Size size) {
  for (int i = 0; i < size.count(); ++i)
    CHECK_THAT(found[i] == static_cast<float>(wanted[i]), "%s: at %d, %d there is %g, the CPU says %u.", what,
               i % size.width, i / size.width, found[i], wanted[i]);
  std::printf("texture_convolution: %s, %d by %d: ok, %016llx\n", what, size.width, size.height,
              static_cast<unsigned long long>(check::checksum(found)));
}

// ---- the kinds of convolution

// Copies the result along the rows back into the array behind the texture. The second kernel reads the columns from
// that array.
void through_an_array(const std::vector<unsigned>& image, Size size, int turns) {
  const cudaArray_t array = float_array(image, size);
  const cudaTextureObject_t texture = texture_of(check::resource_of(array), cudaFilterModePoint);
  const Rows out(size);
  const size_t row = size.width * sizeof(float);
  const auto back_into_array = [&] {
    CHECK_CUDA(cudaMemcpy2DToArrayAsync(array, 0, 0, out.at, out.pitch, row, size.height, cudaMemcpyDeviceToDevice));
  };
  std::vector<unsigned> wanted = image;
  for (int turn = 0; turn < turns; ++turn) {
    convolve<true><<<grid_of(size), block>>>(texture, out.at, out.elements(), size);
    back_into_array();
    convolve<false><<<grid_of(size), block>>>(texture, out.at, out.elements(), size);
    CHECK_CUDA(cudaGetLastError());
    wanted = convolved_twice(wanted, size, binomial);
    expect("through an array", out.content(), wanted, size);
    // Reduces the sums to small numbers, so that the next iteration is exact, too.
    for (unsigned& value : wanted) value %= 16;
    const std::vector<float> texels(wanted.begin(), wanted.end());
    CHECK_CUDA(cudaMemcpy2DToArray(array, 0, 0, texels.data(), row, row, size.height, cudaMemcpyHostToDevice));
  }
  CHECK_CUDA(cudaDestroyTextureObject(texture));
  CHECK_CUDA(cudaFreeArray(array));
}

// A kind of sum, the texture sampling that it needs, and the equivalent weights.
struct Way {
  using Kernel = void (*)(cudaTextureObject_t, float*, size_t, Size);

  const char* name;
  Kernel along_rows, along_columns;
  cudaTextureFilterMode filter;
  const int (&weights)[taps];
};
const Way by_texels{"through rows with a pitch", convolve<true>, convolve<false>, cudaFilterModePoint, binomial};
// The texture's own filter adds two texels per fetch.
const Way by_pairs{"two texels a fetch", convolve_pairs<true>, convolve_pairs<false>, cudaFilterModeLinear, paired};

// The second kernel reads the rows with a pitch, which the first kernel has written, as a texture.
void through_rows(const Way& way, const std::vector<unsigned>& image, Size size) {
  const cudaArray_t array = float_array(image, size);
  const Rows between(size), out(size);
  const cudaTextureObject_t first = texture_of(check::resource_of(array), way.filter);
  const cudaTextureObject_t second = texture_of(between.resource(), way.filter);
  way.along_rows<<<grid_of(size), block>>>(first, between.at, between.elements(), size);
  way.along_columns<<<grid_of(size), block>>>(second, out.at, out.elements(), size);
  CHECK_CUDA(cudaGetLastError());
  expect(way.name, out.content(), convolved_twice(image, size, way.weights), size);
  CHECK_CUDA(cudaDestroyTextureObject(first));
  CHECK_CUDA(cudaDestroyTextureObject(second));
  CHECK_CUDA(cudaFreeArray(array));
}

template <class Texel>
cudaArray_t color_array(Size size, unsigned flags) {
  const auto format = cudaCreateChannelDesc<Texel>();
  cudaArray_t array = nullptr;
  CHECK_CUDA(cudaMallocArray(&array, &format, size.width, size.height, flags));
  return array;
}

// Extracts channel c of each texel.
std::vector<unsigned> channel(const std::vector<uint4>& all, int c) {
  std::vector<unsigned> out(all.size());
  for (size_t i = 0; i < all.size(); ++i) out[i] = c == 0 ? all[i].x : c == 1 ? all[i].y : c == 2 ? all[i].z : all[i].w;
  return out;
}

void expect_colors(const std::vector<uint4>& from, const std::vector<uint4>& found, Size size) {
  for (int c = 0; c < 4; ++c) {
    const std::vector<unsigned> wanted = convolved_twice(channel(from, c), size, binomial), got = channel(found, c);
    for (int i = 0; i < size.count(); ++i)
      CHECK_THAT(got[i] == wanted[i], "Colours: channel %d at %d, %d is %u, the CPU says %u.", c, i % size.width,
                 i / size.width, got[i], wanted[i]);
  }
  std::printf("texture_convolution: colours, %d by %d: ok, %016llx\n", size.width, size.height,
              static_cast<unsigned long long>(check::checksum(found)));
}

void colors(Size size) {
  std::vector<uint4> image(size.count());
  std::vector<uchar4> bytes(size.count());
  for (int i = 0; i < size.count(); ++i) {
    const unsigned one = check::small_number(i, 5), other = check::small_number(i, 6);
    image[i] = make_uint4(one * 16 + other, other * 17, i % 256, 255 - one);
    bytes[i] = make_uchar4(image[i].x, image[i].y, image[i].z, image[i].w);
  }
  const cudaArray_t first = color_array<uchar4>(size, cudaArrayDefault);
  const cudaArray_t between = color_array<uint4>(size, cudaArraySurfaceLoadStore);
  const cudaArray_t last = color_array<uint4>(size, cudaArraySurfaceLoadStore);
  const size_t row = size.width * sizeof(uchar4), wide_row = size.width * sizeof(uint4);
  CHECK_CUDA(cudaMemcpy2DToArray(first, 0, 0, bytes.data(), row, row, size.height, cudaMemcpyHostToDevice));
  const cudaTextureObject_t from = texture_of(check::resource_of(first), cudaFilterModePoint);
  const cudaTextureObject_t again = texture_of(check::resource_of(between), cudaFilterModePoint);
  const cudaSurfaceObject_t into = check::surface_of(between), out = check::surface_of(last);
  convolve_colors<true, uchar4><<<grid_of(size), block>>>(from, into, size);
  convolve_colors<false, uint4><<<grid_of(size), block>>>(again, out, size);
  CHECK_CUDA(cudaGetLastError());
  std::vector<uint4> found(size.count());
  CHECK_CUDA(cudaMemcpy2DFromArray(found.data(), wide_row, last, 0, 0, wide_row, size.height, cudaMemcpyDeviceToHost));
  expect_colors(image, found, size);
  for (const cudaTextureObject_t texture : {from, again}) CHECK_CUDA(cudaDestroyTextureObject(texture));
  for (const cudaSurfaceObject_t surface : {into, out}) CHECK_CUDA(cudaDestroySurfaceObject(surface));
  for (const cudaArray_t array : {first, between, last}) CHECK_CUDA(cudaFreeArray(array));
}

void set_weights() {
  float floats[taps];
  std::copy(std::begin(binomial), std::end(binomial), floats);
  CHECK_CUDA(cudaMemcpyToSymbol(weights, floats, sizeof floats));
  CHECK_CUDA(cudaMemcpyToSymbol(whole_weights, binomial, sizeof binomial));
}

}  // namespace

int main(int argc, char** argv) {
  long width = 117, height = 61, turns = 2;
  check::parse(argc, argv, "texture_convolution", "convolves an image through textures",
               {{"--width", "texels of a row", &width, 1, 8192},
                {"--height", "rows", &height, 1, 8192},
                {"--turns", "convolutions, each of the last one's result", &turns, 1, 1000}});
  const Size size{static_cast<int>(width), static_cast<int>(height)};
  const std::vector<unsigned> image = image_of(size, 1);
  set_weights();
  through_an_array(image, size, static_cast<int>(turns));
  through_rows(by_texels, image, size);
  through_rows(by_pairs, image, size);
  colors(size);
  // Images that are smaller than the filter, so that it reaches beyond both edges.
  colors({3, 2});
  through_rows(by_texels, image_of({2, 3}, 2), {2, 3});
  return 0;
}
