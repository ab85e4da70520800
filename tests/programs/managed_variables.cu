// Variables in managed memory, which the host and kernels use by name, one after the other: numbers, an array of
// several pages, and a structure that points to another variable. The host writes before the first CUDA call, and reads
// after each kind of wait.
#include <thread>

#include "check.h"

namespace {

constexpr int many = 3000, block = 128;

struct Account {
  int* balance;
  long long turnover;
  char holder[9];
};

__managed__ int counter = 7;
__managed__ double ratio = 2.5;
__managed__ char letter;
__managed__ int values[many];
__managed__ int savings = 1000;
__managed__ Account account = {nullptr, 5, {'n', 'o', 'b', 'o', 'd', 'y'}};
__managed__ unsigned first_sum, second_sum;
__device__ int on_device_alone = 3;

__global__ void count(int summand) { counter += summand; }
__global__ void use_all(int summand) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < many) values[i] += summand;
  if (i != 0) return;
  counter += on_device_alone;
  ratio *= 2;
  ++letter;
  *account.balance += summand;
  account.turnover += summand;
  account.holder[0] = 'N';
}
__global__ void sum_up(unsigned* sum, int from, int to) {
  unsigned all = 0;
  for (int i = from; i < to; ++i) all += static_cast<unsigned>(values[i]);
  *sum = all;
}
__global__ void redirect(int* to) { account.balance = to; }

unsigned grid() { return (many + block - 1) / block; }

void expect_counter(const char* when, int wanted) {
  CHECK_THAT(counter == wanted, "%s: the counter is %d, the CPU says %d.", when, counter, wanted);
}

// The host writes the value from which the kernel continues to count, and reads the value after this wait.
template <class Wait>
void turn(const char* what, cudaStream_t stream, Wait wait) {
  static int next = 100;
  counter = next;
  count<<<1, 1, 0, stream>>>(11);
  CHECK_CUDA(cudaGetLastError());
  wait();
  expect_counter(what, next + 11);
  next += 50;
}

template <class Query>
void until_done(Query query) {
  cudaError_t result = cudaErrorNotReady;
  while (result == cudaErrorNotReady) result = query();
  CHECK_CUDA(result);
}

void waits(cudaStream_t stream) {
  cudaEvent_t event;
  CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const std::vector<int> large(1 << 18, 5);
  std::vector<int> back(large.size());
  int* const memory = check::device_copy(large);
  int* pinned = nullptr;
  const size_t bytes = large.size() * sizeof(int);
  CHECK_CUDA(cudaMallocHost(reinterpret_cast<void**>(&pinned), bytes));
  turn("cudaDeviceSynchronize", stream, [&] { CHECK_CUDA(cudaDeviceSynchronize()); });
  turn("cudaStreamSynchronize", stream, [&] { CHECK_CUDA(cudaStreamSynchronize(stream)); });
  turn("cudaEventSynchronize", stream, [&] {
    CHECK_CUDA(cudaEventRecord(event, stream));
    CHECK_CUDA(cudaEventSynchronize(event));
  });
  turn("cudaStreamQuery", stream, [&] { until_done([&] { return cudaStreamQuery(stream); }); });
  turn("cudaEventQuery", stream, [&] {
    CHECK_CUDA(cudaEventRecord(event, stream));
    until_done([&] { return cudaEventQuery(event); });
  });
  turn("cudaMemcpy of one number", nullptr,
       [&] { CHECK_CUDA(cudaMemcpy(back.data(), memory, sizeof(int), cudaMemcpyDeviceToHost)); });
  turn("cudaMemcpy of many", nullptr,
       [&] { CHECK_CUDA(cudaMemcpy(back.data(), memory, bytes, cudaMemcpyDeviceToHost)); });
  turn("cudaMemcpy to pinned memory", nullptr,
       [&] { CHECK_CUDA(cudaMemcpy(pinned, memory, bytes, cudaMemcpyDeviceToHost)); });
  turn("cudaMemcpyAsync to pageable memory", stream, [&] {
    CHECK_CUDA(cudaMemcpyAsync(back.data(), memory, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
  });
  turn("cudaMemcpyFromSymbol", nullptr, [&] {
    int seen = 0;
    CHECK_CUDA(cudaMemcpyFromSymbol(&seen, on_device_alone, sizeof seen));
  });
  turn("cudaDeviceSynchronize, twice", nullptr, [&] {
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaDeviceSynchronize());
  });
  check::compare("Copied", back, large);
  CHECK_CUDA(cudaFreeHost(pinned));
  CHECK_CUDA(cudaFree(memory));
  CHECK_CUDA(cudaEventDestroy(event));
  std::printf("managed_variables: each kind of wait: ok\n");
}

void take_turns(int rounds, const cudaStream_t (&streams)[2]) {
  for (int i = 0; i < many; ++i) values[i] = i;
  account.balance = &savings;
  const int balance = savings;
  int added = 0, before = counter;
  double expected_ratio = ratio;
  letter = 'a';
  for (int round = 0; round < rounds; ++round) {
    use_all<<<grid(), block, 0, streams[0]>>>(round + 1);
    CHECK_CUDA(cudaStreamSynchronize(streams[0]));
    for (int i = 0; i < many; ++i) ++values[i];
    added += round + 2;
    before += 3;
    CHECK_THAT(ratio == 2 * expected_ratio, "The ratio is %g, not %g.", ratio, 2 * expected_ratio);
    expected_ratio = ratio = ratio / 4;
    sum_up<<<1, 1, 0, streams[0]>>>(&first_sum, 0, many / 2);
    sum_up<<<1, 1, 0, streams[1]>>>(&second_sum, many / 2, many);
    for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamSynchronize(stream));
    unsigned sums[2] = {};
    for (int i = 0; i < many; ++i) sums[i >= many / 2] += static_cast<unsigned>(i + added);
    CHECK_THAT(first_sum == sums[0] && second_sum == sums[1], "The sums are %u and %u, the CPU says %u and %u.",
               first_sum, second_sum, sums[0], sums[1]);
  }
  for (int i = 0; i < many; ++i)
    CHECK_THAT(values[i] == i + added, "Element %d is %d, the CPU says %d.", i, values[i], i + added);
  expect_counter("In turns", before);
  CHECK_THAT(ratio == expected_ratio, "The ratio is %g.", ratio);
  CHECK_THAT(letter == static_cast<char>('a' + rounds), "The letter is %d.", letter);
  CHECK_THAT(savings == balance + added - rounds && account.turnover == 5 + added - rounds, "The account has %d, %lld.",
             savings, account.turnover);
  CHECK_THAT(std::strcmp(account.holder, "Nobody") == 0, "The holder is %s.", account.holder);
  std::printf("managed_variables: host and two streams: ok\n");
}

// Addresses of variables, stored in a variable: the host and a kernel each set one address, and the other side follows
// it.
void follow_addresses() {
  CHECK_THAT(account.balance == &savings, "The host's address was lost.");
  account.balance = &counter;
  counter = 0;
  use_all<<<grid(), block>>>(10);
  CHECK_CUDA(cudaDeviceSynchronize());
  expect_counter("By an address of the host's", 13);
  redirect<<<1, 1>>>(&values[5]);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_THAT(account.balance == &values[5], "A kernel's address did not arrive.");
  *account.balance = 77;
  sum_up<<<1, 1>>>(&first_sum, 5, 6);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_THAT(first_sum == 77, "By a kernel's address: %u.", first_sum);
  std::printf("managed_variables: addresses in variables: ok\n");
}

// Copies and fills must see the host's last writes, and the host must see their results.
void copies(cudaStream_t stream) {
  std::vector<int> seen(many);
  for (int i = 0; i < many; ++i) values[i] = 3 * i;
  CHECK_CUDA(cudaMemcpy(seen.data(), values, sizeof values, cudaMemcpyDeviceToHost));
  for (int i = 0; i < many; ++i) CHECK_THAT(seen[i] == 3 * i, "A copy has %d at %d.", seen[i], i);
  for (int& value : seen) value += 1;
  CHECK_CUDA(cudaMemcpy(values, seen.data(), sizeof values, cudaMemcpyHostToDevice));
  for (int i = 0; i < many; ++i) CHECK_THAT(values[i] == 3 * i + 1, "Copied to, element %d is %d.", i, values[i]);
  const int forty = 40;
  CHECK_CUDA(cudaMemcpyToSymbol(counter, &forty, sizeof forty));
  expect_counter("cudaMemcpyToSymbol", 40);
  counter = 41;
  int copied = 0;
  CHECK_CUDA(cudaMemcpyFromSymbol(&copied, counter, sizeof copied));
  CHECK_THAT(copied == 41, "cudaMemcpyFromSymbol has %d.", copied);
  CHECK_CUDA(cudaMemcpyAsync(values, values + many / 2, many / 2 * sizeof(int), cudaMemcpyDefault, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_THAT(values[0] == 3 * (many / 2) + 1, "From one half to the other: %d.", values[0]);
  CHECK_CUDA(cudaMemset(values, 0x11, sizeof values));
  CHECK_CUDA(cudaDeviceSynchronize());
  for (const int value : values) CHECK_THAT(value == 0x11111111, "Filled: %x.", static_cast<unsigned>(value));
  std::printf("managed_variables: copies and fills: ok\n");
}

void attributes() {
  void* address = nullptr;
  size_t size = 0;
  CHECK_CUDA(cudaGetSymbolAddress(&address, values));
  CHECK_CUDA(cudaGetSymbolSize(&size, values));
  CHECK_THAT(address == values && size == sizeof values, "The array is not where it is.");
  cudaPointerAttributes a{};
  CHECK_CUDA(cudaPointerGetAttributes(&a, &values[3]));
  CHECK_THAT(a.type == cudaMemoryTypeManaged && a.devicePointer == &values[3] && a.hostPointer == &values[3],
             "It is not known as managed memory.");
  std::printf("managed_variables: attributes: ok\n");
}

// Each thread writes a part of the array; one thread launches the kernel.
void threads(cudaStream_t stream) {
  constexpr int parts = 4;
  std::vector<std::thread> writers;
  for (int part = 0; part < parts; ++part)
    writers.emplace_back([part] {
      for (int i = part; i < many; i += parts) values[i] = part + i;
    });
  for (std::thread& writer : writers) writer.join();
  std::thread([&] {
    use_all<<<grid(), block, 0, stream>>>(1);
    CHECK_CUDA(cudaGetLastError());
  }).join();
  CHECK_CUDA(cudaDeviceSynchronize());
  for (int i = 6; i < many; ++i)
    CHECK_THAT(values[i] == i % parts + i + 1, "Of several threads, element %d is %d.", i, values[i]);
  std::printf("managed_variables: threads: ok\n");
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = 5;
  check::parse(argc, argv, "managed_variables", "variables that host and kernels use by their names",
               {{"--rounds", "turns of host and kernels", &rounds, 1, 1000}});
  int served = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&served, cudaDevAttrManagedMemory, 0));
  CHECK_THAT(served == 1, "The device has no managed memory.");
  expect_counter("At the start", 7);
  CHECK_THAT(ratio == 2.5 && letter == 0 && values[many - 1] == 0 && account.turnover == 5,
             "An initial value is lost.");
  std::printf("managed_variables: initial values: ok\n");
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  take_turns(static_cast<int>(rounds), streams);
  waits(streams[1]);
  follow_addresses();
  copies(streams[0]);
  attributes();
  threads(streams[1]);
  for (const cudaStream_t stream : streams) CHECK_CUDA(cudaStreamDestroy(stream));
  return 0;
}
