// Large copies to the device and back, from pageable memory, from pinned memory and from unaligned addresses. A kernel
// sums and changes the copied words on the device, and the program compares every word of the copy back.
#include <algorithm>

#include "check.h"

namespace {

using Word = unsigned long long;

constexpr Word change = 0x5a5a00ff12345678ull;

Word word(size_t place, Word salt) { return (place + salt) * 0x9e3779b97f4a7c15ull; }

// Each word is weighted by its position, so that exchanged words are detected.
__global__ void sum_and_change(ulonglong2* words, size_t pairs, Word* total) {
  Word sum = 0;
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += static_cast<size_t>(gridDim.x) * blockDim.x) {
    ulonglong2 pair = words[i];
    sum += pair.x * (4 * i + 1) + pair.y * (4 * i + 3);
    pair.x ^= change;
    pair.y ^= change;
    words[i] = pair;
  }
  atomicAdd(total, sum);
}

struct Memory {
  const char* name;
  Word* host;
  size_t words;  // an even number
  Word salt;
};

void fill(const Memory& memory) {
  for (size_t i = 0; i < memory.words; ++i) memory.host[i] = word(i, memory.salt);
}

void check_sum(const Memory& memory, const Word* device_total) {
  Word expected = 0;
  for (size_t i = 0; i < memory.words; ++i) expected += word(i, memory.salt) * (2 * i + 1);
  const Word total = check::host_copy(device_total, 1)[0];
  CHECK_THAT(total == expected, "%s: the device's sum is %016llx, the CPU's %016llx.", memory.name, total, expected);
  std::printf("large: %s, %zu KiB, sum %016llx\n", memory.name, memory.words * sizeof(Word) / 1024, total);
}

void check_words(const Memory& memory) {
  for (size_t i = 0; i < memory.words; ++i) {
    CHECK_THAT(memory.host[i] == (word(i, memory.salt) ^ change), "%s: word %zu is %016llx, the CPU says %016llx.",
               memory.name, i, memory.host[i], word(i, memory.salt) ^ change);
  }
}

void run_kernel(Word* device, size_t words, Word* total, cudaStream_t stream) {
  CHECK_CUDA(cudaMemsetAsync(total, 0, sizeof(Word), stream));
  sum_and_change<<<32, 256, 0, stream>>>(reinterpret_cast<ulonglong2*>(device), words / 2, total);
  CHECK_CUDA(cudaGetLastError());
}

void pageable(const Memory& memory, Word* device, Word* total) {
  fill(memory);
  CHECK_CUDA(cudaMemcpy(device, memory.host, memory.words * sizeof(Word), cudaMemcpyHostToDevice));
  run_kernel(device, memory.words, total, nullptr);
  std::fill_n(memory.host, memory.words, 0);
  CHECK_CUDA(cudaMemcpy(memory.host, device, memory.words * sizeof(Word), cudaMemcpyDeviceToHost));
  check_sum(memory, total);
  check_words(memory);
}

// Copies in both directions at once, in pieces: the second half goes to the device while the first half comes back.
void pinned(const Memory& memory, Word* device, Word* total) {
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) CHECK_CUDA(cudaStreamCreate(&stream));
  fill(memory);
  const size_t half = memory.words / 4 * 2;
  const size_t rest = memory.words - half;
  CHECK_CUDA(cudaMemcpyAsync(device, memory.host, half * sizeof(Word), cudaMemcpyHostToDevice, streams[0]));
  CHECK_CUDA(
      cudaMemcpyAsync(device + half, memory.host + half, rest * sizeof(Word), cudaMemcpyHostToDevice, streams[1]));
  CHECK_CUDA(cudaStreamSynchronize(streams[0]));
  CHECK_CUDA(cudaStreamSynchronize(streams[1]));
  run_kernel(device, memory.words, total, nullptr);
  CHECK_CUDA(cudaMemcpyAsync(memory.host, device, half * sizeof(Word), cudaMemcpyDeviceToHost, streams[0]));
  CHECK_CUDA(
      cudaMemcpyAsync(memory.host + half, device + half, rest * sizeof(Word), cudaMemcpyDeviceToHost, streams[1]));
  for (const cudaStream_t stream : streams) {
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaStreamDestroy(stream));
  }
  check_sum(memory, total);
  check_words(memory);
}

// Copies nearly all bytes from an unaligned address to another one and back.
void odd_addresses(const Memory& memory, Word* device) {
  fill(memory);
  auto* host = reinterpret_cast<unsigned char*>(memory.host);
  auto* there = reinterpret_cast<unsigned char*>(device);
  const size_t bytes = memory.words * sizeof(Word) - 16;
  const uint64_t before = check::checksum(host + 5, std::min<size_t>(bytes, 1 << 20));
  const unsigned char last = host[5 + bytes - 1];
  CHECK_CUDA(cudaMemcpy(there + 3, host + 5, bytes, cudaMemcpyHostToDevice));
  std::memset(host, 0, bytes + 16);
  CHECK_CUDA(cudaMemcpy(host + 1, there + 3, bytes, cudaMemcpyDeviceToHost));
  CHECK_THAT(host[0] == 0 && host[bytes + 1] == 0, "A copy to an odd address wrote beside it.");
  CHECK_THAT(check::checksum(host + 1, std::min<size_t>(bytes, 1 << 20)) == before && host[bytes] == last,
             "A copy between odd addresses changed something.");
  std::printf("large: odd addresses: ok\n");
}

}  // namespace

int main(int argc, char** argv) {
  long mebibytes = 256, pinned_mebibytes = 256;
  check::parse(argc, argv, "large", "copies much memory to the device and back",
               {{"--mib", "MiB of pageable memory", &mebibytes, 1, 65536},
                {"--pinned", "MiB of pinned memory, at most that of pageable memory", &pinned_mebibytes, 1, 65536}});
  if (pinned_mebibytes > mebibytes) pinned_mebibytes = mebibytes;
  const size_t words = (static_cast<size_t>(mebibytes) << 20) / sizeof(Word);
  Word* device = check::device_buffer<Word>(words);
  Word* total = check::device_buffer<Word>(1);
  {
    std::vector<Word> host(words);
    pageable({"pageable", host.data(), words, 1}, device, total);
    odd_addresses({"odd addresses", host.data(), words, 2}, device);
  }
  const size_t pinned_words = (static_cast<size_t>(pinned_mebibytes) << 20) / sizeof(Word);
  Word* host = nullptr;
  CHECK_CUDA(cudaMallocHost(&host, pinned_words * sizeof(Word)));
  pinned({"pinned", host, pinned_words, 3}, device, total);
  CHECK_CUDA(cudaFreeHost(host));
  CHECK_CUDA(cudaFree(device));
  CHECK_CUDA(cudaFree(total));
  return 0;
}
