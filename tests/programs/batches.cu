// Batches of stream operations and of copies. Kernels of two streams alternate by words that one batch writes and
// another batch waits for. Batches copy ranges from pageable and pinned memory, within the device and back; other
// batches copy rows, layers and an array.
#include "check.h"

namespace {

long n = 20000, rounds = 8, pieces = 40;

__global__ void add(unsigned* values, size_t count, unsigned by, const unsigned* turn, unsigned expected,
                    unsigned* early) {
  if (blockIdx.x == 0 && threadIdx.x == 0 && *turn != expected) atomicAdd(early, 1u);
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    values[i] = values[i] * 3 + by;
}

CUstream driver_stream(cudaStream_t stream) { return reinterpret_cast<CUstream>(stream); }
CUdeviceptr driver_address(const void* at) { return reinterpret_cast<CUdeviceptr>(at); }

CUstreamBatchMemOpParams wait_for(const unsigned* word, unsigned value) {
  CUstreamBatchMemOpParams op{};
  op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  op.waitValue.address = driver_address(word);
  op.waitValue.value = value;
  op.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  return op;
}

CUstreamBatchMemOpParams write_of(const unsigned* word, unsigned value) {
  CUstreamBatchMemOpParams op{};
  op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  op.writeValue.address = driver_address(word);
  op.writeValue.value = value;
  return op;
}

void submit(cudaStream_t stream, std::vector<CUstreamBatchMemOpParams> ops) {
  static const auto batch = DRIVER_ENTRY(cuStreamBatchMemOp);
  CHECK_DRIVER(batch(driver_stream(stream), static_cast<unsigned>(ops.size()), ops.data(), 0));
}

// Two streams change the same values alternately: each stream waits for the other stream's word, and the first stream
// waits for a word that the host writes when all work is queued.
void take_turns() {
  std::vector<unsigned> expected(n, 1);
  unsigned* values = check::device_copy(expected);
  // The word that selects the next stream, and a copy of it that a kernel checks.
  unsigned* turn = check::device_buffer<unsigned>(2);
  unsigned* early = check::device_buffer<unsigned>(1);
  unsigned* start = nullptr;
  CHECK_CUDA(cudaHostAlloc(&start, sizeof *start, cudaHostAllocDefault));
  CHECK_CUDA(cudaMemset(turn, 0, 2 * sizeof *turn));
  CHECK_CUDA(cudaMemset(early, 0, sizeof *early));
  *start = 0;
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  add<<<1, 1>>>(values, 0, 0, turn, 0, early);  // a kernel's first launch may wait for all queued work
  CHECK_CUDA(cudaDeviceSynchronize());
  submit(streams[0], {wait_for(start, 7), write_of(turn + 1, 1), write_of(turn, 1)});
  for (unsigned k = 1; k <= 2 * rounds; ++k) {
    const cudaStream_t stream = streams[k % 2];
    submit(stream, {wait_for(turn, k), wait_for(turn + 1, k)});
    add<<<8, 128, 0, stream>>>(values, n, k, turn, k, early);
    submit(stream, {write_of(turn + 1, k + 1), write_of(turn, k + 1)});
    for (unsigned& value : expected) value = value * 3 + k;
  }
  *static_cast<volatile unsigned*>(start) = 7;
  for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamSynchronize(stream));
  check::compare("the values after all turns", check::host_copy(values, n), expected);
  const unsigned too_early = check::host_copy(early, 1)[0];
  CHECK_THAT(too_early == 0, "%u kernels ran before their turn.", too_early);
  std::printf("turns: %ld of two streams, checksum %016llx\n", 2 * rounds,
              static_cast<unsigned long long>(check::checksum(expected)));
  for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_CUDA(cudaFreeHost(start));
  for (unsigned* buffer : {values, turn, early}) CHECK_CUDA(cudaFree(buffer));
}

// ---- ranges --------------------------------------------------------------------------------------------------------

struct Ranges {
  std::vector<void*> to;
  std::vector<const void*> from;
  std::vector<size_t> sizes;

  void add(void* to_at, const void* from_at, size_t bytes) {
    to.push_back(to_at), from.push_back(from_at), sizes.push_back(bytes);
  }
  // Copies the first half of the ranges with one access order of the sources, and the rest with another.
  cudaError_t copy(cudaMemcpySrcAccessOrder first, cudaMemcpySrcAccessOrder rest, cudaStream_t stream) {
    cudaMemcpyAttributes attributes[2]{};
    attributes[0].srcAccessOrder = first;
    attributes[1].srcAccessOrder = rest;
    size_t from_copy[2] = {0, sizes.size() / 2};
    return cudaMemcpyBatchAsync(to.data(), from.data(), sizes.data(), sizes.size(), attributes, from_copy, 2, stream);
  }
};

// Different sizes: some ranges fit into the record of the call, and some do not.
size_t length_of(long piece) { return 100 + static_cast<size_t>(piece) * 1777 % 60000; }

std::vector<unsigned char> numbers(size_t count, unsigned salt) {
  std::vector<unsigned char> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<unsigned char>(check::small_number(i, salt) * 16 + i % 11);
  return out;
}

// Copies to the device from pageable memory in one half and from pinned memory in the other half, within the device in
// another order, and back into both kinds of memory. The program overwrites the sources of the first batch as soon as
// the call returns.
void copy_ranges(cudaStream_t stream) {
  size_t total = 0;
  for (long i = 0; i < pieces; ++i) total += length_of(i);
  std::vector<unsigned char> pageable = numbers(total, 5), back(total, 0);
  const std::vector<unsigned char> original = pageable;
  unsigned char *pinned = nullptr, *pinned_back = nullptr;
  CHECK_CUDA(cudaMallocHost(&pinned, total));
  CHECK_CUDA(cudaMallocHost(&pinned_back, total));
  std::memcpy(pinned, original.data(), total);
  std::memset(pinned_back, 0, total);
  auto* there = check::device_buffer<unsigned char>(total);
  auto* turned = check::device_buffer<unsigned char>(total);
  Ranges to_device, within, to_host;
  size_t at = 0;
  for (long i = 0; i < pieces; ++i) {
    const size_t bytes = length_of(i), mirrored = total - at - bytes;
    const bool by_pinned = i >= pieces / 2;
    to_device.add(there + at, (by_pinned ? pinned : pageable.data()) + at, bytes);
    within.add(turned + mirrored, there + at, bytes);
    to_host.add((by_pinned ? pinned_back : back.data()) + at, turned + mirrored, bytes);
    at += bytes;
  }
  CHECK_CUDA(to_device.copy(cudaMemcpySrcAccessOrderDuringApiCall, cudaMemcpySrcAccessOrderDuringApiCall, stream));
  std::memset(pageable.data(), 0xee, total);
  std::memset(pinned, 0xee, total);
  CHECK_CUDA(within.copy(cudaMemcpySrcAccessOrderStream, cudaMemcpySrcAccessOrderAny, stream));
  CHECK_CUDA(to_host.copy(cudaMemcpySrcAccessOrderAny, cudaMemcpySrcAccessOrderStream, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  size_t half = 0;
  for (long i = 0; i < pieces / 2; ++i) half += length_of(i);
  std::memcpy(back.data() + half, pinned_back + half, total - half);
  check::compare("what has come back", back, original);
  std::printf("ranges: %ld pieces, %zu bytes, checksum %016llx\n", pieces, total,
              static_cast<unsigned long long>(check::checksum(back)));
  for (unsigned char* buffer : {pinned, pinned_back}) CHECK_CUDA(cudaFreeHost(buffer));
  for (unsigned char* buffer : {there, turned}) CHECK_CUDA(cudaFree(buffer));
}

// ---- rows ----------------------------------------------------------------------------------------------------------

constexpr size_t width = 24, height = 10, depth = 3;

cudaMemcpy3DOperand rows_at(const void* at, size_t row_length, size_t layer_height) {
  cudaMemcpy3DOperand side{};
  side.type = cudaMemcpyOperandTypePointer;
  side.op.ptr.ptr = const_cast<void*>(at);
  side.op.ptr.rowLength = row_length;
  side.op.ptr.layerHeight = layer_height;
  return side;
}

cudaMemcpy3DOperand in_array(cudaArray_t array, size_t x, size_t y) {
  cudaMemcpy3DOperand side{};
  side.type = cudaMemcpyOperandTypeArray;
  side.op.array.array = array;
  side.op.array.offset = {x, y, 0};
  return side;
}

cudaMemcpy3DBatchOp copy_of(const cudaMemcpy3DOperand& to, const cudaMemcpy3DOperand& from, cudaExtent extent) {
  cudaMemcpy3DBatchOp op{};
  op.dst = to, op.src = from;
  op.extent = extent;
  op.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  return op;
}

void submit(std::vector<cudaMemcpy3DBatchOp> ops, cudaStream_t stream) {
  CHECK_CUDA(cudaMemcpy3DBatchAsync(ops.size(), ops.data(), 0, stream));
}

// Copies layers of bytes to wider rows on the device, and a part of them back. Copies words through an array, whose
// lengths are in words.
void copy_rows(cudaStream_t stream) {
  constexpr size_t pitch = 40, layer = 12;
  const std::vector<unsigned char> bytes = numbers(width * height * depth, 9);
  std::vector<unsigned> words(width * height), words_back(width * height, 0);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<unsigned>(i * 2654435761u);
  const auto format = cudaCreateChannelDesc<unsigned>();
  cudaArray_t array = nullptr;
  CHECK_CUDA(cudaMallocArray(&array, &format, width, height));
  auto* wide = check::device_buffer<unsigned char>(pitch * layer * depth);
  CHECK_CUDA(cudaMemset(wide, 0xab, pitch * layer * depth));
  CHECK_CUDA(cudaDeviceSynchronize());
  submit({copy_of(rows_at(wide, pitch, layer), rows_at(bytes.data(), 0, 0), make_cudaExtent(width, height, depth)),
          copy_of(in_array(array, 0, 0), rows_at(words.data(), 0, 0), make_cudaExtent(width, height, 1))},
         stream);
  std::vector<unsigned char> all(pitch * layer * depth), part(8 * 4 * 2);
  submit({copy_of(rows_at(all.data(), 0, 0), rows_at(wide, 0, 0), make_cudaExtent(pitch, layer, depth)),
          copy_of(rows_at(part.data(), 0, 0), rows_at(wide + pitch * layer + 3 * pitch + 5, pitch, layer),
                  make_cudaExtent(8, 4, 2)),
          copy_of(rows_at(words_back.data(), width, 0), in_array(array, 0, 0), make_cudaExtent(width, height / 2, 1)),
          copy_of(rows_at(words_back.data() + width * (height / 2), width, 0), in_array(array, 0, height / 2),
                  make_cudaExtent(width, height - height / 2, 1))},
         stream);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  std::vector<unsigned char> expected(all.size(), 0xab), expected_part;
  for (size_t z = 0; z < depth; ++z)
    for (size_t y = 0; y < height; ++y)
      std::memcpy(&expected[(z * layer + y) * pitch], &bytes[(z * height + y) * width], width);
  for (size_t z = 1; z < 3; ++z)
    for (size_t y = 3; y < 7; ++y)
      for (size_t x = 5; x < 13; ++x) expected_part.push_back(expected[(z * layer + y) * pitch + x]);
  check::compare("rows", all, expected);
  check::compare("a part of them", part, expected_part);
  check::compare("the array's words", words_back, words);
  std::printf("rows: %zu x %zu x %zu, checksum %016llx, an array's %016llx\n", width, height, depth,
              static_cast<unsigned long long>(check::checksum(all)),
              static_cast<unsigned long long>(check::checksum(words_back)));
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFree(wide));
}

// If one copy of a batch is invalid, the driver refuses the whole batch.
void refuse(cudaStream_t stream) {
  unsigned* buffer = check::device_copy(std::vector<unsigned>(64, 3));
  Ranges ranges;
  ranges.add(buffer, buffer + 32, 64);
  ranges.add(nullptr, buffer + 32, 64);
  const cudaError_t refused = ranges.copy(cudaMemcpySrcAccessOrderStream, cudaMemcpySrcAccessOrderStream, stream);
  CHECK_THAT(refused == cudaErrorInvalidValue, "A copy to nowhere gave %s.", cudaGetErrorName(refused));
  (void)cudaGetLastError();
  Ranges good;
  for (const long i : {0, 1}) good.add(buffer + 8 * i, buffer + 32, 32);
  const cudaError_t null_stream = good.copy(cudaMemcpySrcAccessOrderStream, cudaMemcpySrcAccessOrderStream, nullptr);
  CHECK_THAT(null_stream == cudaErrorInvalidValue, "A batch in the NULL stream gave %s.",
             cudaGetErrorName(null_stream));
  (void)cudaGetLastError();
  CHECK_CUDA(cudaStreamSynchronize(stream));
  check::compare("what no batch has touched", check::host_copy(buffer, 64), std::vector<unsigned>(64, 3));
  std::printf("refused: a copy to nowhere, a batch in the NULL stream\n");
  CHECK_CUDA(cudaFree(buffer));
}

}  // namespace

int main(int argc, char** argv) {
  check::parse(argc, argv, "batches", "words and copies in batches",
               {{"--n", "values that two streams change", &n, 1, 1 << 24},
                {"--rounds", "turns of each stream", &rounds, 1, 1000},
                {"--pieces", "ranges of a batch", &pieces, 2, 1000}});
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  take_turns();
  copy_ranges(stream);
  copy_rows(stream);
  refuse(stream);
  CHECK_CUDA(cudaStreamDestroy(stream));
  return 0;
}
