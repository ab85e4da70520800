// The pipeline that overlaps copies with kernels: frames go through a copy to the device, a kernel and a copy back, a
// few frames at a time. Each slot has its own stream and buffers. The host fills the next frame while the GPU processes
// earlier ones, and waits for a slot only before it reuses the slot.
#include "check.h"

namespace {

constexpr int slots = 4;
constexpr int block = 128;

__global__ void work(const unsigned* in, unsigned* out, int n, unsigned frame, int turns) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = in[i];
  for (int turn = 0; turn < turns; ++turn) x = (x ^ frame) * 2654435761u + (x >> 7);
  out[i] = x;
}

unsigned work_on_the_cpu(unsigned x, unsigned frame, int turns) {
  for (int turn = 0; turn < turns; ++turn) x = (x ^ frame) * 2654435761u + (x >> 7);
  return x;
}

struct Slot {
  cudaStream_t stream;
  cudaEvent_t copied_in, done;
  unsigned *host_in, *host_out;  // pinned
  unsigned *device_in, *device_out;
  long frame;  // the frame in the slot, or -1
};

unsigned element(long frame, int i) { return static_cast<unsigned>(frame * 977 + i); }

void start(Slot& slot, long frame, int n, int turns) {
  const size_t bytes = n * sizeof(unsigned);
  // The input buffer is free as soon as it has been copied. The slot's last frame was fetched earlier.
  CHECK_CUDA(cudaEventSynchronize(slot.copied_in));
  for (int i = 0; i < n; ++i) slot.host_in[i] = element(frame, i);
  CHECK_CUDA(cudaMemcpyAsync(slot.device_in, slot.host_in, bytes, cudaMemcpyHostToDevice, slot.stream));
  CHECK_CUDA(cudaEventRecord(slot.copied_in, slot.stream));
  work<<<(n + block - 1) / block, block, 0, slot.stream>>>(slot.device_in, slot.device_out, n,
                                                           static_cast<unsigned>(frame), turns);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaMemcpyAsync(slot.host_out, slot.device_out, bytes, cudaMemcpyDeviceToHost, slot.stream));
  CHECK_CUDA(cudaEventRecord(slot.done, slot.stream));
  slot.frame = frame;
}

uint64_t fetch(Slot& slot, int n, int turns) {
  if (slot.frame < 0) return 0;
  CHECK_CUDA(cudaEventSynchronize(slot.done));
  for (int i = 0; i < n; ++i) {
    const unsigned expected = work_on_the_cpu(element(slot.frame, i), static_cast<unsigned>(slot.frame), turns);
    CHECK_THAT(slot.host_out[i] == expected, "Frame %ld: element %d is %u, the CPU says %u.", slot.frame, i,
               slot.host_out[i], expected);
  }
  slot.frame = -1;
  return check::checksum(slot.host_out, n * sizeof(unsigned));
}

Slot create(int n) {
  Slot slot = {};
  slot.frame = -1;
  CHECK_CUDA(cudaStreamCreate(&slot.stream));
  CHECK_CUDA(cudaEventCreateWithFlags(&slot.copied_in, cudaEventDisableTiming));
  CHECK_CUDA(cudaEventCreateWithFlags(&slot.done, cudaEventDisableTiming | cudaEventBlockingSync));
  CHECK_CUDA(cudaHostAlloc(&slot.host_in, n * sizeof(unsigned), cudaHostAllocWriteCombined));
  CHECK_CUDA(cudaMallocHost(&slot.host_out, n * sizeof(unsigned)));
  slot.device_in = check::device_buffer<unsigned>(n);
  slot.device_out = check::device_buffer<unsigned>(n);
  return slot;
}

void destroy(const Slot& slot) {
  CHECK_CUDA(cudaStreamDestroy(slot.stream));
  CHECK_CUDA(cudaEventDestroy(slot.copied_in));
  CHECK_CUDA(cudaEventDestroy(slot.done));
  CHECK_CUDA(cudaFreeHost(slot.host_in));
  CHECK_CUDA(cudaFreeHost(slot.host_out));
  CHECK_CUDA(cudaFree(slot.device_in));
  CHECK_CUDA(cudaFree(slot.device_out));
}

}  // namespace

int main(int argc, char** argv) {
  long n = 5000, frames = 30, turns = 8;
  check::parse(argc, argv, "multi_copy_compute", "sends frames through copy, kernel and copy on several streams",
               {{"--n", "elements of a frame", &n, 1, 100000000},
                {"--frames", "frames", &frames, 1, 1000000},
                {"--turns", "work on each element", &turns, 0, 1000000}});
  Slot all[slots];
  for (Slot& slot : all) slot = create(static_cast<int>(n));
  uint64_t sum = 0;
  for (long frame = 0; frame < frames + slots; ++frame) {
    Slot& slot = all[frame % slots];
    sum = sum * 31 + fetch(slot, static_cast<int>(n), static_cast<int>(turns));
    if (frame < frames) start(slot, frame, static_cast<int>(n), static_cast<int>(turns));
  }
  for (const Slot& slot : all) destroy(slot);
  std::printf("multi_copy_compute: %ld frames of %ld, checksum %016llx\n", frames, n,
              static_cast<unsigned long long>(sum));
  return 0;
}
