// Virtual memory management by the driver API: vectors that grow in place by mapping objects behind one another, while
// kernels run and in two threads, and vectors that move; an object mapped at two addresses, one after the other and at
// once; a large reservation with few mappings; objects that only their mappings keep alive; access rights; refusals.
#include <functional>
#include <thread>

#include "check.h"

namespace {

using Handle = CUmemGenericAllocationHandle;
using Value = unsigned long long;

constexpr size_t mib = size_t{1} << 20, gib = size_t{1} << 30;
constexpr size_t segment = 2 * mib, values_of_segment = segment / sizeof(Value);

long segments = 6, rounds = 8;

__host__ __device__ Value element(size_t i) { return (i + 1) * 0x9e3779b97f4a7c15ull >> 40; }

__global__ void fill(Value* values, size_t first, size_t count) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    values[first + i] = element(first + i);
}

__global__ void sum(const Value* values, size_t count, Value* out) {
  Value mine = 0;
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    mine += values[i];
  atomicAdd(out, mine);
}

template <class T>
T* pointer(CUdeviceptr at) {
  return reinterpret_cast<T*>(at);
}

// ---- reservations, objects, mappings -------------------------------------------------------------------------------

CUmemAllocationProp device_memory() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 0;
  return properties;
}

CUdeviceptr reserve(size_t bytes) {
  CUdeviceptr at = 0;
  CHECK_DRIVER(DRIVER_ENTRY(cuMemAddressReserve)(&at, bytes, 0, 0, 0));
  return at;
}

Handle new_object(size_t bytes = segment) {
  const CUmemAllocationProp properties = device_memory();
  Handle handle = 0;
  CHECK_DRIVER(DRIVER_ENTRY(cuMemCreate)(&handle, bytes, &properties, 0));
  return handle;
}

CUresult set_access(CUdeviceptr at, size_t bytes, CUmemAccess_flags flags) {
  const CUmemAccessDesc access{device_memory().location, flags};
  return DRIVER_ENTRY(cuMemSetAccess)(at, bytes, &access, 1);
}

unsigned long long access_at(CUdeviceptr at) {
  unsigned long long flags = 9;
  const CUmemLocation here = device_memory().location;
  CHECK_DRIVER(DRIVER_ENTRY(cuMemGetAccess)(&flags, &here, at));
  return flags;
}

CUresult map_at(CUdeviceptr at, Handle handle, size_t bytes = segment) {
  return DRIVER_ENTRY(cuMemMap)(at, bytes, 0, handle, 0);
}
CUresult unmap(CUdeviceptr at, size_t bytes = segment) { return DRIVER_ENTRY(cuMemUnmap)(at, bytes); }
CUresult release(Handle handle) { return DRIVER_ENTRY(cuMemRelease)(handle); }
CUresult free_addresses(CUdeviceptr at, size_t bytes) { return DRIVER_ENTRY(cuMemAddressFree)(at, bytes); }

// Returns the object's handle once more. The caller must release it once more, too.
Handle retained(CUdeviceptr at) {
  Handle handle = 0;
  CHECK_DRIVER(DRIVER_ENTRY(cuMemRetainAllocationHandle)(&handle, pointer<void>(at)));
  return handle;
}

void map_for_writing(CUdeviceptr at, Handle handle) {
  CHECK_DRIVER(map_at(at, handle));
  CHECK_DRIVER(set_access(at, segment, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

void put(CUdeviceptr at, Value value) {
  CHECK_CUDA(cudaMemcpy(pointer<void>(at), &value, sizeof value, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaDeviceSynchronize());  // such a copy may return before the data has arrived
}
Value get(CUdeviceptr at) { return check::host_copy(pointer<Value>(at), 1).front(); }

// ---- a vector that grows -------------------------------------------------------------------------------------------

// The vector releases its objects as soon as they are mapped, since their mappings keep them alive.
class Vector {
 public:
  explicit Vector(long most) : bytes_(most * segment), at_(reserve(bytes_)) {
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CHECK_CUDA(cudaMalloc(&sum_, sizeof *sum_));
  }

  // Maps the new object while a kernel adds up the earlier ones.
  void grow() {
    CHECK_CUDA(cudaMemsetAsync(sum_, 0, sizeof *sum_, stream_));
    add_up(0, count());
    const Handle handle = new_object();
    map_for_writing(at_ + mapped_, handle);
    CHECK_DRIVER(release(handle));
    fill<<<8, 128, 0, stream_>>>(values(), count(), values_of_segment);
    CHECK_CUDA(cudaGetLastError());
    add_up(count(), values_of_segment);
    mapped_ += segment;
    expect_sum("grown");
  }

  // Moves to another reservation: maps each object there, with its contents.
  void move(long most) {
    const size_t bytes = most * segment;
    const CUdeviceptr to = reserve(bytes);
    CHECK_CUDA(cudaStreamSynchronize(stream_));
    for (size_t offset = 0; offset < mapped_; offset += segment) {
      const Handle handle = retained(at_ + offset);
      CHECK_DRIVER(unmap(at_ + offset));
      map_for_writing(to + offset, handle);
      CHECK_DRIVER(release(handle));
    }
    CHECK_DRIVER(free_addresses(at_, bytes_));
    at_ = to, bytes_ = bytes;
    expect_all("moved");
  }

  Value expect_all(const char* when) {
    CHECK_CUDA(cudaMemsetAsync(sum_, 0, sizeof *sum_, stream_));
    add_up(0, count());
    return expect_sum(when);
  }

  // Compares by a copy across all mappings.
  void compare() const {
    const std::vector<Value> all = check::host_copy(values(), count());
    for (size_t i = 0; i < all.size(); ++i)
      CHECK_THAT(all[i] == element(i), "Value %zu is %llu, not %llu.", i, all[i], element(i));
  }

  void end() {
    CHECK_CUDA(cudaStreamDestroy(stream_));
    CHECK_CUDA(cudaFree(sum_));
    CHECK_DRIVER(unmap(at_, mapped_));
    CHECK_DRIVER(free_addresses(at_, bytes_));
  }

  Value* values() const { return pointer<Value>(at_); }
  size_t count() const { return mapped_ / sizeof(Value); }

 private:
  void add_up(size_t first, size_t count) {
    sum<<<8, 128, 0, stream_>>>(values() + first, count, sum_);
    CHECK_CUDA(cudaGetLastError());
  }

  Value expect_sum(const char* when) {
    Value expected = 0, got = 0;
    for (size_t i = 0; i < count(); ++i) expected += element(i);
    CHECK_CUDA(cudaMemcpyAsync(&got, sum_, sizeof got, cudaMemcpyDeviceToHost, stream_));
    CHECK_CUDA(cudaStreamSynchronize(stream_));
    CHECK_THAT(got == expected, "%s: the sum of %zu values is %llu, the CPU says %llu.", when, count(), got, expected);
    return got;
  }

  size_t bytes_, mapped_ = 0;
  CUdeviceptr at_;
  cudaStream_t stream_ = nullptr;
  Value* sum_ = nullptr;
};

void grow_and_move() {
  Vector vector(segments);
  Value* const at = vector.values();
  for (long i = 0; i < segments; ++i) vector.grow();
  vector.compare();
  std::printf("grown in place: %zu values, sum %llu, address kept: %d\n", vector.count(), vector.expect_all("all"),
              vector.values() == at);
  vector.move(segments + 1);
  vector.grow();
  vector.compare();
  std::printf("moved and grown: %zu values, sum %llu\n", vector.count(), vector.expect_all("all"));
  vector.end();
}

// Two threads grow and move their own vectors at the same time.
void grow_in_threads() {
  Vector vectors[] = {Vector(segments), Vector(segments)};
  const auto work = [](Vector& vector) {
    CHECK_CUDA(cudaSetDevice(0));
    for (long i = 0; i < segments; ++i) vector.grow();
    vector.move(segments);
  };
  std::thread other(work, std::ref(vectors[1]));
  work(vectors[0]);
  other.join();
  const Value one = vectors[0].expect_all("one"), two = vectors[1].expect_all("the other");
  std::printf("grown and moved in two threads: sums %llu and %llu\n", one, two);
  for (Vector& vector : vectors) vector.end();
}

// ---- an object at two places ---------------------------------------------------------------------------------------

// A ring whose start is mapped a second time behind its end, so that data across the end is one range.
void ring() {
  const Handle handle = new_object();
  const CUdeviceptr at = reserve(2 * segment);
  for (const size_t offset : {size_t{0}, segment}) map_for_writing(at + offset, handle);
  CHECK_DRIVER(release(handle));
  auto* values = pointer<Value>(at);
  const size_t step = values_of_segment / 3;
  for (long round = 0; round < rounds; ++round) {
    const size_t first = round * step % values_of_segment;
    fill<<<8, 128>>>(values, first, step);
    CHECK_CUDA(cudaGetLastError());
    const std::vector<Value> there = check::host_copy(values + first, step);
    // Reads the same words through the other mapping, in two pieces if they cross the end.
    const size_t until_end = first + step > values_of_segment ? values_of_segment - first : step;
    std::vector<Value> again = check::host_copy(values + values_of_segment + first, until_end);
    const std::vector<Value> wrapped = check::host_copy(values, step - until_end);
    again.insert(again.end(), wrapped.begin(), wrapped.end());
    for (size_t i = 0; i < step; ++i)
      CHECK_THAT(there[i] == element(first + i) && again[i] == there[i],
                 "Round %ld: value %zu of the ring is %llu and %llu, not %llu.", round, i, there[i], again[i],
                 element(first + i));
  }
  std::printf("ring: %ld rounds, the same at both places\n", rounds);
  CHECK_DRIVER(unmap(at));
  CHECK_DRIVER(unmap(at + segment));
  CHECK_DRIVER(free_addresses(at, 2 * segment));
}

// Maps the object at one address, then at another, with no mapping in between.
void carry_over() {
  const Handle handle = new_object();
  const CUdeviceptr first = reserve(segment), second = reserve(segment);
  map_for_writing(first, handle);
  put(first + 4096, 123);
  CHECK_DRIVER(unmap(first));
  map_for_writing(second, handle);
  std::printf("carried over: %llu\n", get(second + 4096));
  put(second + 4096, 456);
  CHECK_DRIVER(unmap(second));
  map_for_writing(first, handle);
  std::printf("and back: %llu\n", get(first + 4096));
  CHECK_DRIVER(unmap(first));
  CHECK_DRIVER(release(handle));
  for (const CUdeviceptr at : {first, second}) CHECK_DRIVER(free_addresses(at, segment));
}

// A mapping keeps its object when the handle is released, and can return a new handle.
void outlive_the_handle() {
  const CUdeviceptr at = reserve(2 * segment);
  const Handle handle = new_object();
  map_for_writing(at, handle);
  put(at, 77);
  CHECK_DRIVER(release(handle));
  std::printf("the handle released: %llu\n", get(at));
  const Handle again = retained(at + segment / 2);
  CUmemAllocationProp properties{};
  CHECK_DRIVER(DRIVER_ENTRY(cuMemGetAllocationPropertiesFromHandle)(&properties, again));
  std::printf("its properties: pinned %d, of the device %d, exported %d\n",
              properties.type == CU_MEM_ALLOCATION_TYPE_PINNED,
              properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE && properties.location.id == 0,
              properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE);
  map_for_writing(at + segment, again);
  CHECK_DRIVER(unmap(at));
  CHECK_DRIVER(release(again));
  std::printf("its first mapping gone: %llu\n", get(at + segment));
  CHECK_DRIVER(unmap(at + segment));
  CHECK_DRIVER(free_addresses(at, 2 * segment));
}

// ---- a large reservation -------------------------------------------------------------------------------------------

void print_error(const char* what, CUresult result) { std::printf("%s: %s\n", what, check::driver_error_name(result)); }
void print_error(const char* what, cudaError_t error) {
  std::printf("%s: %s\n", what, cudaGetErrorName(error));
  (void)cudaGetLastError();  // otherwise the next launch would seem to have failed
}

void map_little() {
  const CUdeviceptr at = reserve(32 * gib);
  const size_t places[] = {0, 13 * gib + segment, 32 * gib - segment};
  Value* total = check::device_buffer<Value>(1);
  CHECK_CUDA(cudaMemset(total, 0, sizeof *total));
  Value expected = 0;
  for (const size_t place : places) {
    const Handle handle = new_object();
    map_for_writing(at + place, handle);
    CHECK_DRIVER(release(handle));
    const size_t first = place / sizeof(Value);
    fill<<<8, 128>>>(pointer<Value>(at), first, values_of_segment);
    CHECK_CUDA(cudaGetLastError());
    for (size_t i = 0; i < values_of_segment; ++i) expected += element(first + i);
  }
  for (const size_t place : places) sum<<<8, 128>>>(pointer<Value>(at + place), values_of_segment, total);
  CHECK_CUDA(cudaGetLastError());
  const Value got = check::host_copy(total, 1).front();
  CHECK_THAT(got == expected, "The sum of what is mapped is %llu, the CPU says %llu.", got, expected);
  std::printf("32 GiB reserved, 6 MiB mapped: sum %llu\n", got);
  print_error("a copy to where nothing is", cudaMemcpy(pointer<void>(at + gib), &got, 8, cudaMemcpyHostToDevice));
  print_error("a fill over a mapping's end", cudaMemset(pointer<void>(at + segment - 8), 0, 16));
  for (const size_t place : places) CHECK_DRIVER(unmap(at + place));
  CHECK_DRIVER(free_addresses(at, 32 * gib));
  CHECK_CUDA(cudaFree(total));
}

// ---- access rights -------------------------------------------------------------------------------------------------

void rights() {
  const CUdeviceptr at = reserve(2 * segment);
  for (const size_t offset : {size_t{0}, segment}) {
    const Handle handle = new_object();
    CHECK_DRIVER(map_at(at + offset, handle));
    CHECK_DRIVER(release(handle));
  }
  Value value = 5;
  std::printf("before they are set: %llu\n", access_at(at));
  print_error("a copy", cudaMemcpy(&value, pointer<void>(at), sizeof value, cudaMemcpyDeviceToHost));
  CHECK_DRIVER(set_access(at, 2 * segment, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  put(at, 99);
  put(at + segment, 100);
  CHECK_DRIVER(set_access(at, segment, CU_MEM_ACCESS_FLAGS_PROT_READ));
  std::printf("to be read: %llu, and its neighbour: %llu\n", access_at(at + 5), access_at(at + segment));
  print_error("a copy to it", cudaMemcpy(pointer<void>(at), &value, sizeof value, cudaMemcpyHostToDevice));
  std::printf("its value: %llu, the neighbour's: %llu\n", get(at), get(at + segment));
  Value* total = check::device_buffer<Value>(1);
  CHECK_CUDA(cudaMemset(total, 0, sizeof *total));
  sum<<<1, 1>>>(pointer<Value>(at), 1, total);
  CHECK_CUDA(cudaGetLastError());
  std::printf("a kernel reads it: %llu\n", check::host_copy(total, 1).front());
  CHECK_DRIVER(set_access(at, segment, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  put(at, 101);
  std::printf("to be written again: %llu\n", get(at));
  CHECK_CUDA(cudaFree(total));
  CHECK_DRIVER(unmap(at, 2 * segment));
  CHECK_DRIVER(free_addresses(at, 2 * segment));
}

// ---- refusals ------------------------------------------------------------------------------------------------------

void refuse_objects() {
  const auto create = DRIVER_ENTRY(cuMemCreate);
  CUmemAllocationProp properties = device_memory();
  Handle handle = 0;
  print_error("an object of no bytes", create(&handle, 0, &properties, 0));
  print_error("of one byte", create(&handle, 1, &properties, 0));
  print_error("of too many", create(&handle, size_t{1} << 60, &properties, 0));
  properties.location.id = 99;
  print_error("of device 99", create(&handle, segment, &properties, 0));
  print_error("the end of none", release(0));
  CUdeviceptr at = 0;
  print_error("no addresses", DRIVER_ENTRY(cuMemAddressReserve)(&at, 0, 0, 0, 0));
  print_error("4 KiB of them", DRIVER_ENTRY(cuMemAddressReserve)(&at, 4096, 0, 0, 0));
  auto* plain = check::device_buffer<Value>(1);
  print_error("the object of plain memory", DRIVER_ENTRY(cuMemRetainAllocationHandle)(&handle, plain));
  CHECK_CUDA(cudaFree(plain));
}

void refuse_mappings(CUdeviceptr at, Handle one, Handle two) {
  const auto map = DRIVER_ENTRY(cuMemMap);
  print_error("a mapping out of the reservation", map_at(at + (CUdeviceptr{1} << 40), one));
  print_error("of more than there is", map_at(at, one, 2 * segment));
  print_error("of less than there is", map_at(at, two, segment));
  print_error("off the object's start", map(at, segment, segment, two, 0));
  print_error("of no bytes", map_at(at, one, 0));
  print_error("at 4 KiB", map_at(at + 4096, one));
  print_error("with flags", map(at, segment, 0, one, 1));
  print_error("of no object", map_at(at, 0));
}

void refuse_changes(CUdeviceptr at, Handle one, Handle two) {
  CHECK_DRIVER(map_at(at, one));
  print_error("a mapping over another", map_at(at, one));
  print_error("half over it", map_at(at, two, 2 * segment));
  CHECK_DRIVER(map_at(at + segment, two, 2 * segment));
  print_error("access to half a mapping", set_access(at + segment, segment, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  print_error("access beyond", set_access(at, 4 * segment, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  print_error("access to both", set_access(at, 3 * segment, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  print_error("half a mapping unmapped", unmap(at + segment));
  print_error("one and a half", unmap(at, 2 * segment));
  print_error("free by cudaFree", cudaFree(pointer<void>(at)));
  print_error("the reservation's end while mapped", free_addresses(at, 4 * segment));
  put(at, 1);
  put(at + 3 * segment - sizeof(Value), 2);
  std::printf("after all that: %llu, %llu\n", get(at), get(at + 3 * segment - sizeof(Value)));
}

void refuse() {
  refuse_objects();
  const CUdeviceptr at = reserve(4 * segment);
  const Handle one = new_object(), two = new_object(2 * segment);
  refuse_mappings(at, one, two);
  refuse_changes(at, one, two);
  CHECK_DRIVER(unmap(at, 3 * segment));
  print_error("the end of half a reservation", free_addresses(at, 2 * segment));
  print_error("its end", free_addresses(at, 4 * segment));
  print_error("once more", free_addresses(at, 4 * segment));
  print_error("a mapping after it", map_at(at, one));
  for (const Handle handle : {one, two}) CHECK_DRIVER(release(handle));
}

void expect_granularity() {
  const auto granularity = DRIVER_ENTRY(cuMemGetAllocationGranularity);
  const CUmemAllocationProp properties = device_memory();
  size_t least = 0, best = 0;
  CHECK_DRIVER(granularity(&least, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK_DRIVER(granularity(&best, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  CHECK_THAT(least != 0 && segment % least == 0, "2 MiB are no multiple of the granularity, %zu.", least);
  std::printf("the best granularity is a multiple of the least: %d\n", best % least == 0);
}

}  // namespace

int main(int argc, char** argv) {
  check::parse(argc, argv, "virtual_memory", "reserved addresses, memory objects, mappings and their rights",
               {{"--segments", "pieces of 2 MiB to which a vector grows", &segments, 1, 512},
                {"--rounds", "writes to a ring", &rounds, 1, 1000}});
  CHECK_CUDA(cudaFree(nullptr));
  expect_granularity();
  grow_and_move();
  grow_in_threads();
  ring();
  carry_over();
  outlive_the_handle();
  map_little();
  rights();
  refuse();
  return 0;
}
