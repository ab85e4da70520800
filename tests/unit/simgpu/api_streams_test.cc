// Tests the order of work in streams of the simulated GPU. The tests block a stream with a wait for a word in pinned
// memory, so no test depends on the speed of the machine.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/unit/simgpu/api_fixture.h"
#include "tests/unit/simgpu/api_notes.h"

namespace {

class Streams : public InContext {
 protected:
  void SetUp() override {
    InContext::SetUp();
    void* memory = nullptr;
    OK(cuMemHostAlloc(&memory, 64, 0));
    word_ = static_cast<std::uint32_t*>(memory);
    *word_ = 0;
    OK(cuStreamCreate(&blocking_, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&other_, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&free_, CU_STREAM_NON_BLOCKING));
  }
  void TearDown() override {
    let_go();
    for (CUstream stream : {blocking_, other_, free_}) EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeHost(word_), CUDA_SUCCESS);
    InContext::TearDown();
  }
  void hold(CUstream stream) {
    OK(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(word_), 1, CU_STREAM_WAIT_VALUE_EQ));
  }
  void let_go() { std::atomic_ref(*word_).store(1); }
  void note(CUstream stream, int number) {
    notes_.push_back(std::make_unique<Note>(Note{&log_, number}));
    OK(cuLaunchHostFunc(stream, write_note, notes_.back().get()));
  }

  std::uint32_t* word_ = nullptr;
  CUstream blocking_ = nullptr, other_ = nullptr, free_ = nullptr;
  Notes log_;
  std::vector<std::unique_ptr<Note>> notes_;
};

using Entries = std::vector<int>;

TEST_F(Streams, work_in_one_stream_keeps_its_order_and_does_not_hold_another_up) {
  hold(blocking_);
  note(blocking_, 1);
  note(blocking_, 2);
  note(other_, 3);
  OK(cuStreamSynchronize(other_));
  EXPECT_EQ(log_.entries(), Entries({3}));
  EXPECT_EQ(cuStreamQuery(blocking_), CUDA_ERROR_NOT_READY);
  let_go();
  OK(cuStreamSynchronize(blocking_));
  EXPECT_EQ(log_.entries(), Entries({3, 1, 2}));
  EXPECT_EQ(cuStreamQuery(blocking_), CUDA_SUCCESS);
}

TEST_F(Streams, the_legacy_stream_comes_after_blocking_streams_and_before_what_follows) {
  hold(blocking_);
  note(blocking_, 1);
  note(nullptr, 2);
  note(other_, 3);
  note(free_, 4);
  OK(cuStreamSynchronize(free_));
  EXPECT_EQ(log_.entries(), Entries({4})) << "a non-blocking stream has no part in it";
  EXPECT_EQ(cuStreamQuery(other_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  let_go();
  OK(cuStreamSynchronize(other_));
  EXPECT_EQ(log_.entries(), Entries({4, 1, 2, 3}));
}

TEST_F(Streams, a_non_blocking_stream_does_not_hold_the_legacy_stream_up) {
  hold(free_);
  note(nullptr, 1);
  OK(cuStreamSynchronize(nullptr));
  EXPECT_EQ(log_.entries(), Entries({1}));
}

TEST_F(Streams, each_thread_has_a_stream_of_its_own) {
  hold(CU_STREAM_PER_THREAD);
  note(CU_STREAM_PER_THREAD, 1);
  unsigned long long here = 0, there = 0;
  OK(cuStreamGetId(CU_STREAM_PER_THREAD, &here));
  std::thread([&] {
    OK(cuCtxSetCurrent(context_));
    note(CU_STREAM_PER_THREAD, 2);
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &there));
  }).join();
  EXPECT_NE(here, there);
  EXPECT_EQ(log_.entries(), Entries({2}));
  note(nullptr, 3);  // the legacy stream waits for both streams, because they are blocking streams
  EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  let_go();
  OK(cuCtxSynchronize());
  EXPECT_EQ(log_.entries(), Entries({2, 1, 3}));
}

TEST_F(Streams, an_event_orders_streams_by_what_was_recorded_when_the_wait_was_asked_for) {
  CUevent event = nullptr;
  OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  hold(blocking_);
  note(blocking_, 1);
  OK(cuEventRecord(event, blocking_));
  OK(cuStreamWaitEvent(free_, event, 0));
  note(free_, 2);
  OK(cuEventRecord(event, other_));  // recorded again: the earlier wait still refers to the first record
  OK(cuEventSynchronize(event));
  EXPECT_EQ(cuStreamQuery(free_), CUDA_ERROR_NOT_READY);
  OK(cuEventDestroy(event));  // destroying the event keeps the pending wait
  let_go();
  OK(cuStreamSynchronize(free_));
  EXPECT_EQ(log_.entries(), Entries({1, 2}));
}

TEST_F(Streams, what_a_context_waits_for_holds_back_its_later_streams_as_well) {
  CUevent event = nullptr;
  CUstream later = nullptr;
  OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  hold(blocking_);
  note(blocking_, 1);
  OK(cuEventRecord(event, blocking_));
  OK(cuCtxWaitEvent(context_, event));
  OK(cuStreamCreate(&later, CU_STREAM_NON_BLOCKING));
  note(later, 2);
  OK(cuEventRecord(event, later));
  OK(cuStreamWaitEvent(free_, event, 0));
  note(free_, 3);
  EXPECT_EQ(cuStreamQuery(later), CUDA_ERROR_NOT_READY);
  let_go();
  OK(cuCtxSynchronize());
  EXPECT_EQ(log_.entries(), Entries({1, 2, 3}));
  OK(cuStreamDestroy(later));
  OK(cuEventDestroy(event));
}

TEST_F(Streams, destroyed_streams_finish_their_work) {
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, 0));
  hold(stream);
  note(stream, 1);
  OK(cuStreamDestroy(stream));
  note(nullptr, 2);
  let_go();
  OK(cuCtxSynchronize());
  EXPECT_EQ(log_.entries(), Entries({1, 2}));
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Streams, elapsed_time_is_the_time_between) {
  CUevent start = nullptr, stop = nullptr;
  float milliseconds = 0;
  OK(cuEventCreate(&start, 0));
  OK(cuEventCreate(&stop, 0));
  OK(cuEventRecord(start, blocking_));
  OK(cuEventSynchronize(start));
  hold(blocking_);
  OK(cuEventRecord(stop, blocking_));
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, start, stop), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventQuery(stop), CUDA_ERROR_NOT_READY);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  let_go();
  OK(cuEventSynchronize(stop));
  OK(cuEventElapsedTime(&milliseconds, start, stop));
  EXPECT_GE(milliseconds, 20.0F);
  OK(cuEventElapsedTime(&milliseconds, stop, start));
  EXPECT_LE(milliseconds, -20.0F);
  OK(cuEventDestroy(start));
  OK(cuEventDestroy(stop));
}

TEST_F(Streams, an_asynchronous_copy_takes_pageable_memory_at_once_and_pinned_memory_in_its_turn) {
  CUdeviceptr device = 0;
  OK(cuMemAlloc(&device, 8));
  std::uint32_t pageable = 11;
  std::uint32_t* pinned = word_ + 1;
  *pinned = 21;
  hold(blocking_);
  OK(cuMemcpyHtoDAsync(device, &pageable, 4, blocking_));
  OK(cuMemcpyHtoDAsync(device + 4, pinned, 4, blocking_));
  pageable = 12;
  *pinned = 22;
  let_go();
  OK(cuStreamSynchronize(blocking_));
  std::uint32_t back[2] = {};
  OK(cuMemcpyDtoH(back, device, 8));
  EXPECT_EQ(back[0], 11U);
  EXPECT_EQ(back[1], 22U);
  OK(cuMemFree(device));
}

TEST_F(Streams, synchronous_copies_wait_for_the_blocking_streams) {
  CUdeviceptr device = 0;
  OK(cuMemAlloc(&device, 4));
  OK(cuMemsetD32(device, 1, 1));
  hold(blocking_);
  OK(cuMemsetD32Async(device, 2, 1, blocking_));
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    let_go();
  });
  std::uint32_t value = 0;
  OK(cuMemcpyDtoH(&value, device, 4));
  release.join();
  EXPECT_EQ(value, 2U);
  OK(cuMemFree(device));
}

TEST_F(Streams, words_are_compared_as_asked) {
  const auto at = reinterpret_cast<CUdeviceptr>(word_ + 4);
  word_[4] = 0x80000005;
  OK(cuStreamWaitValue32(blocking_, at, 0x80000004, CU_STREAM_WAIT_VALUE_GEQ));
  OK(cuStreamWaitValue32(blocking_, at, 4, CU_STREAM_WAIT_VALUE_AND));
  OK(cuStreamWaitValue32(blocking_, at, 4, CU_STREAM_WAIT_VALUE_NOR));
  OK(cuStreamWriteValue32(blocking_, at, 7, 0));
  OK(cuStreamSynchronize(blocking_));
  EXPECT_EQ(word_[4], 7U);
  OK(cuStreamWaitValue32(blocking_, at, 8, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT_EQ(cuStreamQuery(blocking_), CUDA_ERROR_NOT_READY);
  OK(cuStreamWriteValue32(free_, at, 9, 0));
  OK(cuStreamSynchronize(blocking_));
}

TEST_F(Streams, stream_ordered_memory_is_freed_in_its_turn) {
  std::size_t before = 0, during = 0, after = 0, total = 0;
  CUdeviceptr memory = 0;
  OK(cuMemGetInfo(&before, &total));
  OK(cuMemAllocAsync(&memory, 1 << 20, blocking_));
  hold(blocking_);
  OK(cuMemsetD8Async(memory, 1, 1 << 20, blocking_));
  OK(cuMemFreeAsync(memory, blocking_));
  OK(cuMemGetInfo(&during, &total));
  EXPECT_LT(during, before) << "it is still to be used";
  let_go();
  OK(cuStreamSynchronize(blocking_));
  OK(cuMemGetInfo(&after, &total));
  EXPECT_EQ(after, before);
}

// Many threads have streams of their own, whose work is ordered by events. The counter is correct only if no work
// overtakes other work.
TEST_F(Streams, threads_hand_work_on) {
  constexpr int threads = 4, rounds = 200;
  struct Chain {
    std::atomic<int> value{0};
    std::atomic<int> errors{0};
  } chain;
  struct Step {
    Chain* chain;
    int expected;
  };
  std::vector<Step> steps;
  for (int i = 0; i < threads * rounds; ++i) steps.push_back({&chain, i});
  std::mutex turn;
  int next = 0;
  CUevent last = nullptr;
  OK(cuEventCreate(&last, CU_EVENT_DISABLE_TIMING));
  const auto work = [&] {
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    for (int i = 0; i < rounds; ++i) {
      const std::lock_guard lock(turn);
      EXPECT_EQ(cuStreamWaitEvent(stream, last, 0), CUDA_SUCCESS);
      const auto check = [](void* data) {
        const auto* step = static_cast<Step*>(data);
        if (step->chain->value.load() != step->expected) ++step->chain->errors;
        step->chain->value.store(step->expected + 1);
      };
      EXPECT_EQ(cuLaunchHostFunc(stream, check, &steps[static_cast<std::size_t>(next++)]), CUDA_SUCCESS);
      EXPECT_EQ(cuEventRecord(last, stream), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  };
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(work);
  for (std::thread& thread : running) thread.join();
  OK(cuCtxSynchronize());
  EXPECT_EQ(chain.errors.load(), 0);
  EXPECT_EQ(chain.value.load(), threads * rounds);
  OK(cuEventDestroy(last));
}

}  // namespace
