// Host threads that pass streams, events and device buffers to one another. CUDA follows the order in which host
// threads call: work that thread A posted before it unlocked a mutex precedes work that thread B posts after it locked
// the mutex, although A and B use different channels to the GPU.
//
// One baton goes from thread to thread. In round r the holder posts `step`. This kernel checks on the device that the
// cell holds r, and writes r + 1 after a delay, so that a step which runs too early, or beside its predecessor, is
// detected. The round's move orders the new step behind the old one; the moves alternate. Between rounds each thread
// posts other work to its own stream, so that the threads' calls differ in duration.
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "check.h"

namespace {

struct Cell {
  unsigned value;
  unsigned padding[63];
};

struct Tally {
  unsigned mismatches;
  unsigned round;  // the round of the first mismatch
  unsigned seen;
};

__device__ unsigned stir(unsigned x, unsigned turns) {  // never 0, which the compiler cannot know
  x |= 1;
  for (unsigned i = 0; i < turns; ++i) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  return x;
}

__global__ void step(volatile Cell* cell, unsigned round, unsigned turns, Tally* tally) {
  const unsigned seen = cell->value;
  if (seen != round && atomicAdd(&tally->mismatches, 1) == 0) {
    tally->round = round;
    tally->seen = seen;
  }
  cell->value = round + 1 + (stir(round, turns) == 0);
}

__global__ void noise(unsigned* sink, unsigned turns) { sink[threadIdx.x] = stir(threadIdx.x, turns); }

// Objects that a thread created. Only the holder of the baton uses its own objects.
struct Own {
  cudaStream_t blocking, non_blocking, noise;
  unsigned* sink;
};

struct Baton {
  cudaStream_t tail;  // the stream of the newest step
  cudaEvent_t event;  // recorded behind the newest step, if the next move waits for an event
  Cell* cell;         // the cell with the next round's number
  Cell* spare;        // another cell, free for use in the order of the baton
  Cell* retired;      // a cell that the next holder frees, or null
  unsigned* numbers;  // pinned: numbers[i] == i
  unsigned* answer;   // pinned; the value that a holder copied back
  Tally* tally;       // device
  unsigned round;
};

// The holder of round r - 1 calls `leave` after its step. The holder of round r calls `enter` before its step.
struct Move {
  const char* name;
  void (*leave)(Baton&, Own&);
  void (*enter)(Baton&, Own&);
};

void record(Baton& baton, Own&) { CHECK_CUDA(cudaEventRecord(baton.event, baton.tail)); }

void wait_on(Baton& baton, cudaStream_t stream) {
  CHECK_CUDA(cudaStreamWaitEvent(stream, baton.event, 0));
  baton.tail = stream;
}

void wait_non_blocking(Baton& baton, Own& own) { wait_on(baton, own.non_blocking); }
void wait_blocking(Baton& baton, Own& own) { wait_on(baton, own.blocking); }
void nothing(Baton&, Own&) {}

void renew_event_and_record(Baton& baton, Own& own) {
  CHECK_CUDA(cudaEventDestroy(baton.event));
  CHECK_CUDA(cudaEventCreateWithFlags(&baton.event, cudaEventDisableTiming));
  record(baton, own);
}

// The newest step was in a blocking stream.
void turn_to_null_stream(Baton& baton, Own&) { baton.tail = nullptr; }
void turn_to_blocking(Baton& baton, Own& own) { baton.tail = own.blocking; }  // the newest step was in the NULL stream

void copy_to_spare(Baton& baton, const void* from, Own& own) {
  CHECK_CUDA(cudaMemcpyAsync(baton.spare, from, sizeof(unsigned), cudaMemcpyDefault, baton.tail));
  std::swap(baton.cell, baton.spare);
  record(baton, own);
}

void copy_from_device(Baton& baton, Own& own) { copy_to_spare(baton, baton.cell, own); }
void copy_from_host(Baton& baton, Own& own) { copy_to_spare(baton, baton.numbers + baton.round, own); }

void copy_back(Baton& baton, Own&) {
  *baton.answer = ~0u;
  CHECK_CUDA(cudaMemcpyAsync(baton.answer, baton.cell, sizeof(unsigned), cudaMemcpyDeviceToHost, baton.tail));
}

void synchronize_and_read(Baton& baton, Own& own) {
  CHECK_CUDA(cudaStreamSynchronize(baton.tail));
  CHECK_THAT(*baton.answer == baton.round, "Round %u: the host read %u.", baton.round, *baton.answer);
  baton.tail = own.non_blocking;
}

// The stream of the newest step is the holder's own non-blocking stream. The holder destroys it with the step still
// queued, and a new stream may get the same handle.
void renew_stream(Baton& baton, Own& own) {
  record(baton, own);
  CHECK_CUDA(cudaStreamDestroy(own.non_blocking));
  CHECK_CUDA(cudaStreamCreateWithFlags(&own.non_blocking, cudaStreamNonBlocking));
}

void hand_over_new_cell(Baton& baton, Own& own) {
  Cell* fresh = check::device_buffer<Cell>(1);
  CHECK_CUDA(cudaMemcpyAsync(fresh, baton.cell, sizeof(Cell), cudaMemcpyDeviceToDevice, baton.tail));
  baton.retired = baton.cell;
  baton.cell = fresh;
  record(baton, own);
}

void free_retired_cell(Baton& baton, Own& own) {
  CHECK_CUDA(cudaFree(baton.retired));  // while the copy from it may still be queued
  baton.retired = nullptr;
  wait_non_blocking(baton, own);
}

// The order matters: the NULL stream orders only blocking streams, and `new stream` needs the stream of the move before
// it.
constexpr Move moves[] = {
    {"event", record, wait_non_blocking},
    {"same stream", nothing, nothing},
    {"new event", renew_event_and_record, wait_blocking},
    {"NULL stream behind a blocking stream", nothing, turn_to_null_stream},
    {"blocking stream behind the NULL stream", nothing, turn_to_blocking},
    {"copy on the device", copy_from_device, wait_blocking},
    {"copy from the host", copy_from_host, wait_non_blocking},
    {"synchronize and read", copy_back, synchronize_and_read},
    {"new stream", renew_stream, wait_non_blocking},
    {"new buffer", hand_over_new_cell, free_retired_cell},
};
constexpr unsigned move_count = sizeof(moves) / sizeof(moves[0]);

const Move& move_of(unsigned round) { return moves[round % move_count]; }

constexpr int most_threads = 16;

struct Relay {
  std::mutex mutex;
  std::condition_variable wake[most_threads];
  int turn = 0;
  unsigned rounds = 0;
  int threads = 0;
  Baton baton = {};
};

unsigned scatter(unsigned x) { return (x * 2654435761u) >> 16; }

void play_round(Baton& baton, Own& own) {
  const unsigned round = baton.round;
  for (unsigned i = 0; i < scatter(round) % 3; ++i) noise<<<1, 32, 0, own.noise>>>(own.sink, scatter(round + i) % 200);
  move_of(round).enter(baton, own);
  step<<<1, 1, 0, baton.tail>>>(baton.cell, round, scatter(round) % 100, baton.tally);
  CHECK_CUDA(cudaGetLastError());
  ++baton.round;
  move_of(baton.round).leave(baton, own);
}

void run_thread(Relay& relay, int me, Own& own) {
  std::unique_lock lock(relay.mutex);
  for (;;) {
    relay.wake[me].wait(lock, [&] { return relay.turn == me || relay.baton.round == relay.rounds; });
    if (relay.baton.round == relay.rounds) return;
    play_round(relay.baton, own);
    const int others = relay.threads - 1;
    relay.turn = (me + 1 + static_cast<int>(scatter(relay.baton.round + 7) % others)) % relay.threads;
    if (relay.baton.round == relay.rounds) {
      for (int i = 0; i < relay.threads; ++i) relay.wake[i].notify_one();
      return;
    }
    relay.wake[relay.turn].notify_one();
  }
}

Own create_own() {
  Own own = {};
  CHECK_CUDA(cudaStreamCreate(&own.blocking));
  CHECK_CUDA(cudaStreamCreateWithFlags(&own.non_blocking, cudaStreamNonBlocking));
  CHECK_CUDA(cudaStreamCreateWithFlags(&own.noise, cudaStreamNonBlocking));
  own.sink = check::device_buffer<unsigned>(32);
  return own;
}

void destroy_own(const Own& own) {
  CHECK_CUDA(cudaStreamDestroy(own.blocking));
  CHECK_CUDA(cudaStreamDestroy(own.non_blocking));
  CHECK_CUDA(cudaStreamDestroy(own.noise));
  CHECK_CUDA(cudaFree(own.sink));
}

Baton create_baton(unsigned rounds) {
  Baton baton = {};
  CHECK_CUDA(cudaEventCreateWithFlags(&baton.event, cudaEventDisableTiming));
  baton.cell = check::device_buffer<Cell>(1);
  baton.spare = check::device_buffer<Cell>(1);
  baton.tally = check::device_buffer<Tally>(1);
  CHECK_CUDA(cudaMemset(baton.cell, 0, sizeof(Cell)));
  CHECK_CUDA(cudaMemset(baton.spare, 0xff, sizeof(Cell)));
  CHECK_CUDA(cudaMemset(baton.tally, 0, sizeof(Tally)));
  CHECK_CUDA(cudaMallocHost(&baton.numbers, (rounds + 1) * sizeof(unsigned)));
  CHECK_CUDA(cudaMallocHost(&baton.answer, sizeof(unsigned)));
  for (unsigned i = 0; i <= rounds; ++i) baton.numbers[i] = i;
  CHECK_CUDA(cudaDeviceSynchronize());
  return baton;
}

void destroy_baton(const Baton& baton) {
  CHECK_CUDA(cudaEventDestroy(baton.event));
  CHECK_CUDA(cudaFree(baton.cell));
  CHECK_CUDA(cudaFree(baton.spare));
  CHECK_CUDA(cudaFree(baton.retired));
  CHECK_CUDA(cudaFree(baton.tally));
  CHECK_CUDA(cudaFreeHost(baton.numbers));
  CHECK_CUDA(cudaFreeHost(baton.answer));
}

void report(const Baton& baton, unsigned rounds, int threads) {
  CHECK_CUDA(cudaDeviceSynchronize());
  const Tally tally = check::host_copy(baton.tally, 1)[0];
  const unsigned value = check::host_copy(baton.cell, 1)[0].value;
  CHECK_THAT(tally.mismatches == 0, "%u of %u steps ran out of order, the first in round %u (%s), which found %u.",
             tally.mismatches, rounds, tally.round, move_of(tally.round).name, tally.seen);
  CHECK_THAT(value == rounds, "After %u rounds the cell holds %u.", rounds, value);
  std::printf("handoff: %u rounds by %d threads, mismatches %u, value %u\n", rounds, threads, tally.mismatches, value);
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = 10000;
  long threads = 4;
  check::parse(argc, argv, "handoff", "hands streams, events and buffers from thread to thread",
               {{"--rounds", "rounds of the baton", &rounds, 1, 100000000},
                {"--threads", "host threads", &threads, 2, most_threads}});
  Relay relay;
  relay.rounds = static_cast<unsigned>(rounds);
  relay.threads = static_cast<int>(threads);
  relay.baton = create_baton(relay.rounds);
  std::vector<Own> own(relay.threads);
  for (Own& mine : own) mine = create_own();
  moves[0].leave(relay.baton, own[0]);

  std::vector<std::thread> players;
  for (int i = 0; i < relay.threads; ++i) players.emplace_back([&, i] { run_thread(relay, i, own[i]); });
  for (std::thread& player : players) player.join();

  report(relay.baton, relay.rounds, relay.threads);
  destroy_baton(relay.baton);
  for (const Own& mine : own) destroy_own(mine);
  return 0;
}
