// Variables of a program: __constant__ and __device__ variables, scalars, arrays, structures and aligned ones, with and
// without initial values, of this file and of a template. The program copies them by symbol, in whole and in part,
// synchronously and on a stream, and through the address of cudaGetSymbolAddress. Then a kernel reads and writes the
// variables.
#include "check.h"

namespace {

constexpr int points = 64;

struct Point {
  int x;
  double y;
  char name[7];
};

__constant__ int factors[points];                            // the program sets these values
__constant__ Point corner = {3, 2.5, {'c', 'o', 'r'}};       // the compiler sets these values
__constant__ unsigned char alphabet[] = "abcdefghijklmnop";  // kernels read a byte at a time
__device__ int counter = 7;
__device__ long long sums[points];
__device__ Point moved;
__device__ int table[2][3] = {{1, 2, 3}, {4, 5, 6}};
__device__ int* const into_table = &table[1][0];  // the loader fills in this address
__device__ __align__(256) char aligned_bytes[3];

template <class T>
__device__ T per_type = sizeof(T);

__global__ void use_all() {
  const int i = threadIdx.x;
  sums[i] += static_cast<long long>(factors[i]) * alphabet[i % 16] + into_table[i % 3];
  atomicAdd(&counter, factors[i]);
  if (i != 0) return;
  moved = corner;
  moved.x += counter >= 7 ? 1 : 0;
  moved.y *= per_type<double> / per_type<float>;
  table[0][2] += table[1][2];
  aligned_bytes[2] = static_cast<char>(reinterpret_cast<unsigned long long>(aligned_bytes) % 256 + 1);
}

template <class T>
T value_of(const T& symbol) {
  T value;
  CHECK_CUDA(cudaMemcpyFromSymbol(&value, symbol, sizeof(value)));
  return value;
}

template <class T>
void size_and_address(const char* name, const T& symbol, size_t alignment) {
  size_t size = 0;
  void* address = nullptr;
  CHECK_CUDA(cudaGetSymbolSize(&size, symbol));
  CHECK_CUDA(cudaGetSymbolAddress(&address, symbol));
  CHECK_THAT(size == sizeof(T), "%s has %zu bytes, not %zu.", name, size, sizeof(T));
  CHECK_THAT(address != nullptr && reinterpret_cast<size_t>(address) % alignment == 0, "%s is at %p.", name, address);
  cudaPointerAttributes attributes = {};
  CHECK_CUDA(cudaPointerGetAttributes(&attributes, address));
  CHECK_THAT(attributes.type == cudaMemoryTypeDevice && attributes.devicePointer == address,
             "The address of %s is memory of type %d.", name, static_cast<int>(attributes.type));
  std::printf("symbols: %s has %zu bytes\n", name, size);
}

void initial_values() {
  const Point point = value_of(corner);
  CHECK_THAT(point.x == 3 && point.y == 2.5 && std::strcmp(point.name, "cor") == 0,
             "A constant's initial value is lost.");
  CHECK_THAT(value_of(counter) == 7, "A variable's initial value is lost.");
  CHECK_THAT(value_of(per_type<double>) == 8, "A template variable's initial value is lost.");
  long long zero[points];
  CHECK_CUDA(cudaMemcpyFromSymbol(zero, sums, sizeof(sums)));
  for (const long long value : zero) CHECK_THAT(value == 0, "A variable without an initial value holds %lld.", value);
  std::printf("symbols: initial values\n");
}

// Copies one half synchronously, and the other half from pinned memory on a stream. `sums` gets its initial values
// through its address.
void set(cudaStream_t stream, int* staging) {
  for (int i = 0; i < points; ++i) staging[i] = i * i - 100;
  CHECK_CUDA(cudaMemcpyToSymbol(factors, staging, sizeof(factors) / 2));
  CHECK_CUDA(cudaMemcpyToSymbolAsync(factors, staging + points / 2, sizeof(factors) / 2, sizeof(factors) / 2,
                                     cudaMemcpyHostToDevice, stream));
  const int count = -5;
  CHECK_CUDA(cudaMemcpyToSymbol(counter, &count, sizeof(count)));
  void* address = nullptr;
  CHECK_CUDA(cudaGetSymbolAddress(&address, sums));
  CHECK_CUDA(cudaMemsetAsync(address, 0x11, sizeof(sums), stream));
}

void read_and_compare(cudaStream_t stream, long long* pinned) {
  CHECK_CUDA(cudaMemcpyFromSymbolAsync(pinned, sums, sizeof(sums), 0, cudaMemcpyDeviceToHost, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  int count = -5;
  for (int i = 0; i < points; ++i) {
    const long long expected = 0x1111111111111111ll + (i * i - 100ll) * ("abcdefghijklmnop"[i % 16]) + 4 + i % 3;
    CHECK_THAT(pinned[i] == expected, "Sum %d is %lld, the CPU says %lld.", i, pinned[i], expected);
    count += i * i - 100;
  }
  CHECK_THAT(value_of(counter) == count, "The counter is %d, the CPU says %d.", value_of(counter), count);
  const Point point = value_of(moved);
  CHECK_THAT(point.x == 4 && point.y == 5 && std::strcmp(point.name, "cor") == 0, "The point is %d %g.", point.x,
             point.y);
  int last = 0;
  CHECK_CUDA(cudaMemcpyFromSymbol(&last, table, sizeof(int), 2 * sizeof(int)));
  CHECK_THAT(last == 9, "Element 0 2 of the table is %d.", last);
  char byte = 0;
  CHECK_CUDA(cudaMemcpyFromSymbol(&byte, aligned_bytes, 1, 2));
  CHECK_THAT(byte == 1, "The aligned variable is off by %d.", byte - 1);
  std::printf("symbols: counter %d, sums %016llx\n", count,
              static_cast<unsigned long long>(check::checksum(pinned, sizeof(sums))));
}

// Uses a symbol as the source and the target of copies within the device.
void symbol_to_symbol() {
  void* address = nullptr;
  CHECK_CUDA(cudaGetSymbolAddress(&address, sums));
  CHECK_CUDA(cudaMemcpyToSymbol(factors, address, sizeof(factors), 0, cudaMemcpyDeviceToDevice));
  int copied[points];
  CHECK_CUDA(cudaMemcpyFromSymbol(copied, factors, sizeof(factors)));
  long long original[points];
  CHECK_CUDA(cudaMemcpy(original, address, sizeof(original), cudaMemcpyDeviceToHost));
  CHECK_THAT(std::memcmp(copied, original, sizeof(copied)) == 0, "A copy from symbol to symbol changed something.");
  std::printf("symbols: symbol to symbol, checksum %016llx\n",
              static_cast<unsigned long long>(check::checksum(copied, sizeof(copied))));
}

void past_the_end() {
  int value = 0;
  const cudaError_t to = cudaMemcpyToSymbol(counter, &value, sizeof(int), sizeof(int));
  const cudaError_t from = cudaMemcpyFromSymbol(&value, counter, sizeof(int), 1);
  CHECK_THAT(to == cudaErrorInvalidValue && from == cudaErrorInvalidValue, "A copy past a symbol's end gave %s and %s.",
             cudaGetErrorName(to), cudaGetErrorName(from));
  (void)cudaGetLastError();
  std::printf("symbols: past the end: %s\n", cudaGetErrorName(to));
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = 2;
  check::parse(argc, argv, "symbols", "copies to and from the variables of a program",
               {{"--rounds", "times that all is set and read", &rounds, 1, 1000}});
  size_and_address("factors", factors, 4);
  size_and_address("corner", corner, 8);
  size_and_address("counter", counter, 4);
  size_and_address("aligned_bytes", aligned_bytes, 256);
  size_and_address("per_type<double>", per_type<double>, 8);
  size_and_address("table", table, 4);
  initial_values();
  const Point nothing = {};
  const int table_values[2][3] = {{1, 2, 3}, {4, 5, 6}};
  cudaStream_t stream = nullptr;
  int* staging = nullptr;
  long long* pinned = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_CUDA(cudaMallocHost(&staging, points * sizeof(int)));
  CHECK_CUDA(cudaMallocHost(&pinned, sizeof(sums)));
  for (long round = 0; round < rounds; ++round) {
    CHECK_CUDA(cudaMemcpyToSymbol(moved, &nothing, sizeof(nothing)));
    CHECK_CUDA(cudaMemcpyToSymbol(table, table_values, sizeof(table_values)));
    set(stream, staging);
    use_all<<<1, points, 0, stream>>>();
    CHECK_CUDA(cudaGetLastError());
    read_and_compare(stream, pinned);
  }
  symbol_to_symbol();
  past_the_end();
  CHECK_CUDA(cudaFreeHost(staging));
  CHECK_CUDA(cudaFreeHost(pinned));
  CHECK_CUDA(cudaStreamDestroy(stream));
  return 0;
}
