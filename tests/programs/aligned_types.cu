// Structures of many sizes and alignments, which kernels read and write as a whole and by members. The compiler
// translates these accesses into loads and stores of 1 to 16 bytes, scalar and vector. The structures are passed in
// memory and as parameters.
#include <cstddef>

#include "check.h"

namespace {

struct Bytes3 {
  unsigned char r, g, b;
};
struct Words3 {
  unsigned x, y, z;
};
struct __align__(8) Pair8 {
  unsigned x, y;
};
struct __align__(16) Words3Aligned {
  unsigned x, y, z;
};
struct __align__(16) Quad16 {
  unsigned x, y, z, w;
};
struct __align__(16) Two16 {
  Quad16 a, b;
};
struct Mixed {
  char a;
  double b;
  short c;
  unsigned char d[5];
  float e;
};
struct Bits {
  unsigned a : 5;
  int b : 11;
  unsigned long long c : 40;
  bool d : 1;
};
struct Nested {
  Bytes3 first;
  struct {
    short2 pair;
    Mixed mixed;
  } second;
  double2 last;
};

template <class T>
__global__ void copy(const T* in, T* out, T first, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i == 0 ? first : in[i];
}

// Reverses the elements of a block through shared memory.
template <class T>
__global__ void turn(const T* in, T* out, int n) {
  __shared__ T part[64];
  const int first = blockIdx.x * 64;
  const int count = min(64, n - first);
  if (threadIdx.x < count) part[count - 1 - threadIdx.x] = in[first + threadIdx.x];
  __syncthreads();
  if (threadIdx.x < count) out[first + threadIdx.x] = part[threadIdx.x];
}

__global__ void use_members(Nested* nested, Bits* bits, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Nested value = nested[i];
  value.first.g = static_cast<unsigned char>(value.first.r + i);
  value.second.pair.y = static_cast<short>(value.second.pair.x - i);
  value.second.mixed.b += i;
  value.second.mixed.d[i % 5] ^= 0xff;
  value.last = {value.last.y, value.last.x};
  nested[i] = value;
  bits[i].b = bits[i].b / 2;
  bits[i].c = bits[i].c * 3 + bits[i].a;
  bits[i].d = !bits[i].d;
}

void use_members_on_the_cpu(Nested& value, Bits& bits, int i) {
  value.first.g = static_cast<unsigned char>(value.first.r + i);
  value.second.pair.y = static_cast<short>(value.second.pair.x - i);
  value.second.mixed.b += i;
  value.second.mixed.d[i % 5] ^= 0xff;
  value.last = {value.last.y, value.last.x};
  bits.b = bits.b / 2;
  bits.c = bits.c * 3 + bits.a;
  bits.d = !bits.d;
}

// `bytes_that_count`: the size without padding at the structure's end, since padding need not be copied.
template <class T>
void run(const char* name, int n, size_t bytes_that_count = sizeof(T)) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<unsigned char> bytes(n * sizeof(T));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(check::small_number(i, 1) * 16 + check::small_number(i, 2));
  }
  std::vector<T> in(n), expected(n);
  std::memcpy(static_cast<void*>(in.data()), bytes.data(), bytes.size());
  for (int i = 0; i < n; ++i) {
    const int first = i / 64 * 64, count = n - first < 64 ? n - first : 64;
    std::memcpy(static_cast<void*>(&expected[i]), &in[first + count - 1 - (i - first)], sizeof(T));
  }
  T* device_in = check::device_copy(in);
  T* device_middle = check::device_buffer<T>(n);
  T* device_out = check::device_buffer<T>(n);
  CHECK_CUDA(cudaMemset(device_middle, 0, n * sizeof(T)));
  CHECK_CUDA(cudaMemset(device_out, 0, n * sizeof(T)));
  copy<<<(n + 63) / 64, 64>>>(device_in, device_middle, in[0], n);
  turn<<<(n + 63) / 64, 64>>>(device_middle, device_out, n);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<T> out = check::host_copy(device_out, n);
  uint64_t sum = 0;
  for (int i = 0; i < n; ++i) {
    CHECK_THAT(std::memcmp(static_cast<const void*>(&out[i]), &expected[i], bytes_that_count) == 0,
               "%s: element %d differs.", name, i);
    sum = sum * 31 + check::checksum(&out[i], bytes_that_count);
  }
  std::printf("aligned_types: %s, %zu bytes aligned to %zu, checksum %016llx\n", name, sizeof(T), alignof(T),
              static_cast<unsigned long long>(sum));
  for (T* buffer : {device_in, device_middle, device_out}) CHECK_CUDA(cudaFree(buffer));
}

bool equal(const Nested& a, const Nested& b) {
  const Mixed &m = a.second.mixed, &k = b.second.mixed;
  return std::memcmp(&a.first, &b.first, sizeof(Bytes3)) == 0 && a.second.pair.x == b.second.pair.x &&
         a.second.pair.y == b.second.pair.y && m.a == k.a && m.b == k.b && m.c == k.c &&
         std::memcmp(m.d, k.d, sizeof(m.d)) == 0 && m.e == k.e && a.last.x == b.last.x && a.last.y == b.last.y;
}

bool equal(const Bits& a, const Bits& b) { return a.a == b.a && a.b == b.b && a.c == b.c && a.d == b.d; }

void members(int n) {
  std::vector<Nested> nested(n);
  std::vector<Bits> bits(n);
  for (int i = 0; i < n; ++i) {
    const int x = check::small_number(i, 4);
    const auto byte = static_cast<unsigned char>(x * 17);
    nested[i].first = {byte, 1, 2};
    nested[i].second.pair = {static_cast<short>(x * -1000), 5};
    nested[i].second.mixed = {'m', x * 0.5, static_cast<short>(x), {byte, 2, 3, 4, 5}, static_cast<float>(x)};
    nested[i].last = {x + 0.25, -x - 0.75};
    bits[i].a = static_cast<unsigned>(x) % 32;
    bits[i].b = 60 * x - 500;
    bits[i].c = (1ull << 38) + static_cast<unsigned long long>(x) * 123456789;
    bits[i].d = x % 2 == 0;
  }
  Nested* device_nested = check::device_copy(nested);
  Bits* device_bits = check::device_copy(bits);
  use_members<<<(n + 63) / 64, 64>>>(device_nested, device_bits, n);
  CHECK_CUDA(cudaGetLastError());
  const std::vector<Nested> nested_out = check::host_copy(device_nested, n);
  const std::vector<Bits> bits_out = check::host_copy(device_bits, n);
  for (int i = 0; i < n; ++i) {
    use_members_on_the_cpu(nested[i], bits[i], i);
    CHECK_THAT(equal(nested_out[i], nested[i]), "The members of element %d differ.", i);
    CHECK_THAT(equal(bits_out[i], bits[i]), "The bit fields of element %d differ.", i);
  }
  std::printf("aligned_types: %d nested structures of %zu bytes, bit fields of %zu: ok\n", n, sizeof(Nested),
              sizeof(Bits));
  CHECK_CUDA(cudaFree(device_nested));
  CHECK_CUDA(cudaFree(device_bits));
}

}  // namespace

int main(int argc, char** argv) {
  long elements = 1000;
  check::parse(argc, argv, "aligned_types", "copies structures of many sizes and alignments",
               {{"--n", "elements of each type", &elements, 1, 10000000}});
  const int n = static_cast<int>(elements);
  run<unsigned char>("1 byte", n);
  run<short>("short", n);
  run<Bytes3>("3 bytes", n);
  run<uchar4>("uchar4", n);
  run<short3>("short3", n);
  run<Pair8>("2 words", n);
  run<Words3>("3 words", n);
  run<Words3Aligned>("3 words, aligned", n, 3 * sizeof(unsigned));
  run<Quad16>("4 words", n);
  run<Two16>("8 words", n);
  run<longlong2>("longlong2", n);
  members(n);
  return 0;
}
