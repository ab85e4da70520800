// Memory in stream order: blocks that one thread allocates in its stream and the next thread frees in another stream,
// blocks that streams reuse after an event and without an event, a pool of the program with its counts, threshold and
// limit, the device's pool, and refusals. The driver decides how much memory a pool reserves, so the program checks
// only bounds of it.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>

#include "check.h"

namespace {

long n = 20000, thread_count = 4, rounds = 24;

constexpr size_t kib = 1024, mib = 1024 * kib;

__host__ __device__ unsigned element(unsigned seed, size_t i) {
  return (seed + static_cast<unsigned>(i)) * 2654435761u;
}

__global__ void fill(unsigned* values, size_t count, unsigned seed) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    values[i] = element(seed, i);
}

__global__ void inspect(const unsigned* values, size_t count, unsigned seed, unsigned* wrong) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    if (values[i] != element(seed, i)) atomicAdd(wrong, 1u);
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

cudaEvent_t recorded(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK_CUDA(cudaEventRecord(event, stream));
  return event;
}

void wait_and_destroy(cudaStream_t stream, cudaEvent_t event) {
  CHECK_CUDA(cudaStreamWaitEvent(stream, event, 0));
  CHECK_CUDA(cudaEventDestroy(event));
}

// The number of elements that kernels found changed.
class Wrong {
 public:
  Wrong() : count_(check::device_buffer<unsigned>(1)) {
    CHECK_CUDA(cudaMemset(count_, 0, sizeof *count_));
    CHECK_CUDA(cudaDeviceSynchronize());  // non-blocking streams do not wait for a fill
  }
  ~Wrong() { CHECK_CUDA(cudaFree(count_)); }
  Wrong(const Wrong&) = delete;
  Wrong& operator=(const Wrong&) = delete;

  unsigned* on_device() const { return count_; }
  void expect_none(const char* where) const {
    CHECK_CUDA(cudaDeviceSynchronize());
    const unsigned count = check::host_copy(count_, 1).front();
    CHECK_THAT(count == 0, "%s: %u elements are not as they were written.", where, count);
  }

 private:
  unsigned* count_ = nullptr;
};

struct Block {
  unsigned* values = nullptr;
  size_t count = 0;
  unsigned seed = 0;
  cudaEvent_t filled = nullptr;

  void write(cudaStream_t stream) const {
    fill<<<4, 128, 0, stream>>>(values, count, seed);
    CHECK_CUDA(cudaGetLastError());
  }
  void look(const Wrong& wrong, cudaStream_t stream) const {
    inspect<<<4, 128, 0, stream>>>(values, count, seed, wrong.on_device());
    CHECK_CUDA(cudaGetLastError());
  }
};

// Different sizes, so that the pool splits or joins a freed block, or leaves it for another allocation.
size_t length_of(unsigned seed) { return 1 + (size_t{seed} * 7919 + 611) % static_cast<size_t>(n); }

Block new_block(unsigned seed, cudaStream_t stream) {
  Block block;
  block.count = length_of(seed), block.seed = seed;
  CHECK_CUDA(cudaMallocAsync(&block.values, block.count * sizeof(unsigned), stream));
  return block;
}

// ---- threads -------------------------------------------------------------------------------------------------------

class Mailbox {
 public:
  void put(const Block& block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_.push(block);
    there_.notify_one();
  }
  Block take() {
    std::unique_lock<std::mutex> lock(mutex_);
    there_.wait(lock, [this] { return !blocks_.empty(); });
    const Block block = blocks_.front();
    blocks_.pop();
    return block;
  }

 private:
  std::mutex mutex_;
  std::condition_variable there_;
  std::queue<Block> blocks_;
};

// Fills blocks in this thread's stream for the next thread. Checks the previous thread's blocks in this stream, and
// frees them here.
void hand_on(unsigned me, Mailbox& from, Mailbox& to, const Wrong& wrong) {
  CHECK_CUDA(cudaSetDevice(0));
  const cudaStream_t stream = new_stream();
  for (unsigned round = 0; round < rounds; ++round) {
    Block mine = new_block(me * 1000 + round, stream);
    mine.write(stream);
    mine.filled = recorded(stream);
    to.put(mine);
    const Block theirs = from.take();
    wait_and_destroy(stream, theirs.filled);
    theirs.look(wrong, stream);
    CHECK_CUDA(cudaFreeAsync(theirs.values, stream));
  }
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_CUDA(cudaStreamDestroy(stream));
}

unsigned long long value_of(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  cuuint64_t value = 0;
  CHECK_CUDA(cudaMemPoolGetAttribute(pool, attribute, &value));
  return value;
}
unsigned long long used(cudaMemPool_t pool) { return value_of(pool, cudaMemPoolAttrUsedMemCurrent); }
unsigned long long most_used(cudaMemPool_t pool) { return value_of(pool, cudaMemPoolAttrUsedMemHigh); }
unsigned long long reserved(cudaMemPool_t pool) { return value_of(pool, cudaMemPoolAttrReservedMemCurrent); }
unsigned long long most_reserved(cudaMemPool_t pool) { return value_of(pool, cudaMemPoolAttrReservedMemHigh); }

cudaMemPool_t default_pool() {
  cudaMemPool_t pool = nullptr;
  CHECK_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  return pool;
}

void hand_round() {
  const Wrong wrong;
  std::vector<Mailbox> boxes(thread_count);
  std::vector<std::thread> threads;
  for (long t = 0; t < thread_count; ++t)
    threads.emplace_back(hand_on, static_cast<unsigned>(t), std::ref(boxes[t]), std::ref(boxes[(t + 1) % thread_count]),
                         std::cref(wrong));
  for (std::thread& thread : threads) thread.join();
  wrong.expect_none("handed on");
  std::printf("handed on: %ld blocks of %ld threads, %llu bytes in use\n", thread_count * rounds, thread_count,
              used(default_pool()));
}

// ---- streams -------------------------------------------------------------------------------------------------------

// Allocates one block after another, in alternating streams. Every other round waits for an event behind the last
// block's free. The remaining rounds do not wait, so their block must not be one that the last round still uses.
void reuse() {
  const Wrong wrong;
  std::vector<cudaStream_t> streams{new_stream(), new_stream(), new_stream()};
  cudaEvent_t freed = recorded(streams[0]);
  for (unsigned round = 0; round < 4 * rounds; ++round) {
    const cudaStream_t stream = streams[round % streams.size()];
    if (round % 2 == 0) CHECK_CUDA(cudaStreamWaitEvent(stream, freed, 0));
    CHECK_CUDA(cudaEventDestroy(freed));
    Block block;
    block.count = n, block.seed = round;
    CHECK_CUDA(cudaMallocAsync(&block.values, n * sizeof(unsigned), stream));
    block.write(stream);
    block.look(wrong, stream);
    CHECK_CUDA(cudaFreeAsync(block.values, stream));
    freed = recorded(stream);
  }
  CHECK_CUDA(cudaEventDestroy(freed));
  wrong.expect_none("reused");
  for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamDestroy(stream));
  std::printf("reused: %ld blocks in three streams\n", 4 * rounds);
}

// Repeats allocation, fill, copy out and free in one stream, before the first block is done.
void queue_all() {
  const cudaStream_t stream = new_stream();
  const size_t bytes = n * sizeof(unsigned);
  unsigned* out = nullptr;
  CHECK_CUDA(cudaMallocHost(&out, rounds * bytes));
  for (long round = 0; round < rounds; ++round) {
    unsigned* values = nullptr;
    CHECK_CUDA(cudaMallocAsync(&values, bytes, stream));
    fill<<<4, 128, 0, stream>>>(values, n, static_cast<unsigned>(round));
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpyAsync(out + round * n, values, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaFreeAsync(values, stream));
  }
  CHECK_CUDA(cudaStreamSynchronize(stream));
  for (long i = 0; i < rounds * n; ++i)
    CHECK_THAT(out[i] == element(static_cast<unsigned>(i / n), i % n), "Element %ld of copy %ld is %u.", i % n, i / n,
               out[i]);
  std::printf("queued: %ld copies, checksum %016llx\n", rounds,
              static_cast<unsigned long long>(check::checksum(out, rounds * bytes)));
  CHECK_CUDA(cudaFreeHost(out));
  CHECK_CUDA(cudaStreamDestroy(stream));
}

// Frees a block whose stream has been destroyed, a block with cudaFree, and a block of cudaMalloc in a stream.
void free_elsewhere() {
  const Wrong wrong;
  const cudaStream_t first = new_stream(), second = new_stream();
  const Block block = new_block(77, first), other = new_block(78, second);
  block.write(first);
  CHECK_CUDA(cudaStreamSynchronize(first));
  CHECK_CUDA(cudaStreamDestroy(first));
  block.look(wrong, second);
  CHECK_CUDA(cudaFreeAsync(block.values, second));
  other.write(second);
  other.look(wrong, second);
  CHECK_CUDA(cudaStreamSynchronize(second));
  CHECK_CUDA(cudaFree(other.values));
  Block plain;
  plain.count = n, plain.values = check::device_buffer<unsigned>(n);
  plain.write(second);
  plain.look(wrong, second);
  CHECK_CUDA(cudaFreeAsync(plain.values, second));
  wrong.expect_none("freed elsewhere");
  CHECK_CUDA(cudaStreamDestroy(second));
  std::printf("freed elsewhere: %llu bytes in use\n", used(default_pool()));
}

// ---- a pool --------------------------------------------------------------------------------------------------------

cudaMemPoolProps device_memory() {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 0;
  return properties;
}

cudaMemPool_t new_pool(size_t most = 0) {
  cudaMemPoolProps properties = device_memory();
  properties.maxSize = most;
  cudaMemPool_t pool = nullptr;
  CHECK_CUDA(cudaMemPoolCreate(&pool, &properties));
  return pool;
}

void set(cudaMemPool_t pool, cudaMemPoolAttr attribute, cuuint64_t value) {
  CHECK_CUDA(cudaMemPoolSetAttribute(pool, attribute, &value));
}

unsigned* from_pool(cudaMemPool_t pool, size_t bytes, cudaStream_t stream) {
  void* at = nullptr;
  CHECK_CUDA(cudaMallocFromPoolAsync(&at, bytes, pool, stream));
  return static_cast<unsigned*>(at);
}

int reuse_flag(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  int value = -1;
  CHECK_CUDA(cudaMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

void print_settings(const char* what, cudaMemPool_t pool) {
  std::printf("%s: reuse %d %d %d, threshold %llu\n", what, reuse_flag(pool, cudaMemPoolReuseFollowEventDependencies),
              reuse_flag(pool, cudaMemPoolReuseAllowOpportunistic),
              reuse_flag(pool, cudaMemPoolReuseAllowInternalDependencies),
              value_of(pool, cudaMemPoolAttrReleaseThreshold));
}

void settings() {
  const cudaMemPool_t pool = new_pool();
  print_settings("a new pool", pool);
  int off = 0;
  CHECK_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &off));
  set(pool, cudaMemPoolAttrReleaseThreshold, 3 * mib);
  print_settings("two of them set", pool);
  cudaMemLocation here = device_memory().location;
  cudaMemAccessDesc access{here, cudaMemAccessFlagsProtReadWrite};
  cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
  CHECK_CUDA(cudaMemPoolSetAccess(pool, &access, 1));
  CHECK_CUDA(cudaMemPoolGetAccess(&flags, pool, &here));
  std::printf("its own device has access: %d\n", flags);
  CHECK_CUDA(cudaMemPoolDestroy(pool));
}

void print_used(const char* what, cudaMemPool_t pool) {
  const unsigned long long now = used(pool), most = most_used(pool);
  CHECK_THAT(reserved(pool) >= now && most_reserved(pool) >= reserved(pool), "%s: fewer bytes reserved than used.",
             what);
  std::printf("%s: %llu KiB in use, %llu KiB at most\n", what, now / kib, most / kib);
}

void counts(cudaStream_t stream) {
  const cudaMemPool_t pool = new_pool();
  print_used("nothing yet", pool);
  unsigned* const first = from_pool(pool, 192 * kib, stream);
  unsigned* second = from_pool(pool, 128 * kib, stream);
  print_used("two blocks", pool);
  CHECK_CUDA(cudaFreeAsync(second, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  print_used("one freed", pool);
  set(pool, cudaMemPoolAttrUsedMemHigh, 0);
  set(pool, cudaMemPoolAttrReservedMemHigh, 0);
  print_used("reset", pool);
  std::printf("the most that was reserved is what is: %d\n", most_reserved(pool) == reserved(pool));
  second = from_pool(pool, 64 * kib, stream);
  print_used("one more", pool);
  CHECK_CUDA(cudaFreeAsync(first, stream));
  CHECK_CUDA(cudaFreeAsync(second, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  print_used("all freed", pool);
  std::printf("reserved still: %llu, once: %d\n", reserved(pool), most_reserved(pool) != 0);
  CHECK_CUDA(cudaMemPoolDestroy(pool));
}

// With a threshold a pool keeps its free memory until the program trims the pool. A pool never releases memory in use.
void threshold(cudaStream_t stream) {
  const Wrong wrong;
  const cudaMemPool_t pool = new_pool();
  set(pool, cudaMemPoolAttrReleaseThreshold, ~cuuint64_t{0});
  CHECK_CUDA(cudaFreeAsync(from_pool(pool, mib, stream), stream));
  CHECK_CUDA(cudaDeviceSynchronize());
  std::printf("with a threshold: kept %d, in use %llu\n", reserved(pool) != 0, used(pool));
  CHECK_CUDA(cudaMemPoolTrimTo(pool, 1024 * mib));
  std::printf("trimmed to 1 GiB: kept %d\n", reserved(pool) != 0);
  CHECK_CUDA(cudaMemPoolTrimTo(pool, 0));
  std::printf("trimmed to nothing: %llu\n", reserved(pool));
  Block block;
  block.values = from_pool(pool, mib, stream), block.count = mib / sizeof(unsigned), block.seed = 5;
  block.write(stream);
  CHECK_CUDA(cudaMemPoolTrimTo(pool, 0));
  std::printf("trimmed in use: %d\n", reserved(pool) >= mib);
  block.look(wrong, stream);
  wrong.expect_none("a block of a pool that was trimmed");
  CHECK_CUDA(cudaFreeAsync(block.values, stream));
  CHECK_CUDA(cudaMemPoolDestroy(pool));
}

void print_error(const char* what, cudaError_t error) {
  std::printf("%s: %s\n", what, cudaGetErrorName(error));
  (void)cudaGetLastError();  // otherwise the next launch would seem to have failed
}

void limit(cudaStream_t stream) {
  const cudaMemPool_t pool = new_pool(32 * mib);
  void *most = nullptr, *more = nullptr;
  print_error("33 MiB of a pool of 32", cudaMallocFromPoolAsync(&most, 33 * mib, pool, stream));
  print_error("32 MiB of it", cudaMallocFromPoolAsync(&most, 32 * mib, pool, stream));
  print_error("one byte more", cudaMallocFromPoolAsync(&more, 1, pool, stream));
  CHECK_CUDA(cudaFreeAsync(most, stream));
  print_error("one byte, the others freed", cudaMallocFromPoolAsync(&more, 1, pool, stream));
  CHECK_CUDA(cudaFreeAsync(more, stream));
  CHECK_CUDA(cudaMemPoolDestroy(pool));
  CHECK_CUDA(cudaStreamSynchronize(stream));
}

// ---- the device's pool ---------------------------------------------------------------------------------------------

cudaMemPool_t current_pool() {
  cudaMemPool_t pool = nullptr;
  CHECK_CUDA(cudaDeviceGetMemPool(&pool, 0));
  return pool;
}

cudaMemPool_t pool_of(const void* at) {
  CUmemoryPool pool = nullptr;
  CHECK_DRIVER(DRIVER_ENTRY(cuPointerGetAttribute)(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                                                   reinterpret_cast<CUdeviceptr>(at)));
  return pool;
}

// While a pool is the device's current pool, every thread's blocks come from it. Blocks outlive their pool.
void change_pool(cudaStream_t stream) {
  const Wrong wrong;
  std::printf("the default pool is the device's: %d\n", current_pool() == default_pool());
  const cudaMemPool_t pool = new_pool();
  CHECK_CUDA(cudaDeviceSetMemPool(0, pool));
  std::printf("another is: %d\n", current_pool() == pool && pool != default_pool());
  Block mine = new_block(5, stream), theirs;
  std::thread([&] {
    CHECK_CUDA(cudaSetDevice(0));
    theirs = new_block(6, stream);
  }).join();
  CHECK_THAT(pool_of(mine.values) == pool && pool_of(theirs.values) == pool, "A block came from another pool.");
  std::printf("two threads' blocks are of it: %d\n",
              used(pool) == (mine.count + theirs.count) * sizeof(unsigned) && used(default_pool()) == 0);
  mine.write(stream);
  CHECK_CUDA(cudaMemPoolDestroy(pool));
  std::printf("it is destroyed, and the default pool is the device's: %d\n", current_pool() == default_pool());
  theirs.write(stream);
  mine.look(wrong, stream);
  theirs.look(wrong, stream);
  wrong.expect_none("blocks of a destroyed pool");
  CHECK_CUDA(cudaFreeAsync(mine.values, stream));
  CHECK_CUDA(cudaFreeAsync(theirs.values, stream));
  mine = new_block(7, stream);
  std::printf("a new block is of the default pool: %d\n", pool_of(mine.values) == default_pool());
  CHECK_CUDA(cudaFreeAsync(mine.values, stream));
  CHECK_CUDA(cudaDeviceSynchronize());
}

// ---- refusals ------------------------------------------------------------------------------------------------------

void refuse_frees(cudaStream_t stream) {
  int on_the_stack = 0;
  void *pinned = nullptr, *block = nullptr;
  CHECK_CUDA(cudaMallocHost(&pinned, 100));
  CHECK_CUDA(cudaMallocAsync(&block, 1000, stream));
  print_error("free of nonsense", cudaFreeAsync(reinterpret_cast<void*>(1), stream));
  print_error("of the stack", cudaFreeAsync(&on_the_stack, stream));
  print_error("of pinned memory", cudaFreeAsync(pinned, stream));
  print_error("of null", cudaFreeAsync(nullptr, stream));
  print_error("within a block", cudaFreeAsync(static_cast<char*>(block) + 256, stream));
  print_error("of a block", cudaFreeAsync(block, stream));
  print_error("twice", cudaFreeAsync(block, stream));
  print_error("a copy to it then", cudaMemcpy(block, &on_the_stack, sizeof on_the_stack, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaFreeHost(pinned));
}

void refuse_allocations(cudaStream_t stream) {
  void* block = &block;
  print_error("a block of no bytes", cudaMallocAsync(&block, 0, stream));
  std::printf("it is null: %d\n", block == nullptr);
  block = &block;
  print_error("a block of no bytes from a pool", cudaMallocFromPoolAsync(&block, 0, default_pool(), stream));
  std::printf("it is null: %d\n", block == nullptr);
  print_error("an absurd one", cudaMallocAsync(&block, size_t{1} << 60, stream));
  print_error("one for nobody", cudaMallocAsync(static_cast<void**>(nullptr), 100, stream));
  print_error("one of no pool", cudaMallocFromPoolAsync(&block, 100, static_cast<cudaMemPool_t>(nullptr), stream));
}

void refuse_pools() {
  cudaMemPool_t pool = nullptr;
  cudaMemPoolProps properties = device_memory();
  properties.location.id = 99;
  print_error("a pool of device 99", cudaMemPoolCreate(&pool, &properties));
  properties = device_memory(), properties.allocType = cudaMemAllocationTypeInvalid;
  print_error("a pool of no type", cudaMemPoolCreate(&pool, &properties));
  print_error("a pool without properties", cudaMemPoolCreate(&pool, nullptr));
  print_error("the end of the default pool", cudaMemPoolDestroy(default_pool()));
  print_error("the end of no pool", cudaMemPoolDestroy(nullptr));
  print_error("the default pool of device 99", cudaDeviceGetDefaultMemPool(&pool, 99));
  print_error("no pool for the device", cudaDeviceSetMemPool(0, nullptr));
  print_error("the default pool for it", cudaDeviceSetMemPool(0, default_pool()));
  print_error("trim of no pool", cudaMemPoolTrimTo(nullptr, 0));
}

void refuse_attributes() {
  const cudaMemPool_t pool = new_pool();
  cuuint64_t value = 1;
  print_error("attribute 99", cudaMemPoolGetAttribute(pool, static_cast<cudaMemPoolAttr>(99), &value));
  print_error("an attribute of no pool", cudaMemPoolGetAttribute(nullptr, cudaMemPoolAttrUsedMemCurrent, &value));
  print_error("setting what is used", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
  print_error("setting the most to 1", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value));
  CHECK_CUDA(cudaMemPoolDestroy(pool));
}

}  // namespace

int main(int argc, char** argv) {
  check::parse(argc, argv, "pools", "memory in the order of streams, and its pools",
               {{"--n", "elements of the largest block", &n, 1, 1 << 22},
                {"--threads", "threads that hand blocks on", &thread_count, 1, 64},
                {"--rounds", "blocks of each", &rounds, 1, 999}});
  const cudaStream_t stream = new_stream();
  hand_round();
  reuse();
  queue_all();
  free_elsewhere();
  settings();
  counts(stream);
  threshold(stream);
  limit(stream);
  change_pool(stream);
  refuse_frees(stream);
  refuse_allocations(stream);
  refuse_pools();
  refuse_attributes();
  CHECK_CUDA(cudaDeviceSynchronize());
  std::printf("in use at the end: %llu bytes\n", used(default_pool()));
  CHECK_CUDA(cudaStreamDestroy(stream));
  return 0;
}
