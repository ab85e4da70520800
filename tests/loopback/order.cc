// The order between host threads must hold even if the worker delays any record. Here the worker's threads are delayed
// at random. One test shows that these tests can fail.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "guest/base/switches.h"
#include "tests/loopback/in_process.h"
#include "tests/unit/under_tsan.h"

namespace {

using loopback::backend, loopback::InProcess;

constexpr loopback::InProcessOptions late{.serve = {.spin_us = 20, .chaos_delay_us = 200, .join_at_end = true}};

// Alternates between two threads.
class Turn {
 public:
  void await(int who) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == who; });
  }
  void pass_to(int who) {
    {
      std::lock_guard lock(mutex_);
      turn_ = who;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = 0;
};

CUdeviceptr allocate(std::size_t bytes) {
  CUdeviceptr at = 0;
  EXPECT_EQ(cu::cuMemAlloc_v2(&at, bytes), CUDA_SUCCESS);
  return at;
}

CUstream new_stream() {
  CUstream stream = nullptr;
  EXPECT_EQ(cu::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  return stream;
}

// Thread A fills a buffer on its stream, calls `mark` for the stream and signals thread B. Thread B calls `await` for
// another stream, on another channel, and reads the buffer. Returns how often B read a wrong value.
template <class Mark, class Await>
int wrong_handoffs(unsigned rounds, Mark mark, Await await) {
  const CUdeviceptr buffer = allocate(4);
  const CUstream a = new_stream(), b = new_stream();
  EXPECT_EQ(cu::cuMemsetD32_v2(buffer, 0, 1), CUDA_SUCCESS);
  Turn turn;
  std::thread filler([&] {
    loopback::use_device();
    for (unsigned round = 1; round <= rounds; ++round) {
      turn.await(0);
      EXPECT_EQ(cu::cuMemsetD32Async(buffer, round, 1, a), CUDA_SUCCESS);
      EXPECT_EQ(mark(a), CUDA_SUCCESS);
      turn.pass_to(1);
    }
  });
  int wrong = 0;
  void* pinned = nullptr;
  EXPECT_EQ(cu::cuMemHostAlloc(&pinned, 4, 0), CUDA_SUCCESS);
  for (unsigned round = 1; round <= rounds; ++round) {
    turn.await(1);
    EXPECT_EQ(await(b), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuMemcpyDtoHAsync_v2(pinned, buffer, 4, b), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuStreamSynchronize(b), CUDA_SUCCESS);
    if (*static_cast<const volatile unsigned*>(pinned) != round) ++wrong;
    turn.pass_to(0);
  }
  filler.join();
  return wrong;
}

CUevent new_event() {
  CUevent event = nullptr;
  EXPECT_EQ(cu::cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  return event;
}

int wrong_handoffs(unsigned rounds) {
  const CUevent done = new_event();
  return wrong_handoffs(
      rounds, [=](CUstream a) { return cu::cuEventRecord(done, a); },
      [=](CUstream b) { return cu::cuStreamWaitEvent(b, done, 0); });
}

TEST(Order, SurvivesHandingOverByMutex) {
  InProcess loopback(backend(), late);
  ASSERT_TRUE(loopback.ok());
  EXPECT_EQ(wrong_handoffs(2000), 0);
}

// On the simulated GPU the lost order is a data race, which ThreadSanitizer would report.
#if !defined(IVGPU_UNDER_TSAN) || !defined(IVGPU_SIMULATED_GPU)
TEST(Order, IsLostWithTheSwitchOffSoTheTestCanFail) {
  setenv("IVGPU_OFF", "order", 1);
  InProcess loopback(backend(), late);
  ASSERT_TRUE(loopback.ok());
  ASSERT_FALSE(guest::switches().order);
  EXPECT_GT(wrong_handoffs(2000), 0);
}
#endif

// Thread A fills on a stream and hands the stream to thread B, which reads on it. The order depends only on A's last
// record.
TEST(Order, OfAStreamThatIsHandedOver) {
  InProcess loopback(backend(), late);
  ASSERT_TRUE(loopback.ok());
  const CUdeviceptr buffer = allocate(4);
  const CUstream stream = new_stream();
  Turn turn;
  std::thread filler([&] {
    loopback::use_device();
    for (unsigned round = 1; round <= 500; ++round) {
      turn.await(0);
      EXPECT_EQ(cu::cuMemsetD32Async(buffer, round, 1, stream), CUDA_SUCCESS);
      turn.pass_to(1);
    }
  });
  int wrong = 0;
  for (unsigned round = 1; round <= 500; ++round) {
    turn.await(1);
    unsigned seen = 0;
    EXPECT_EQ(cu::cuMemcpyDtoHAsync_v2(&seen, buffer, 4, stream), CUDA_SUCCESS);
    wrong += seen != round;
    turn.pass_to(0);
  }
  filler.join();
  EXPECT_EQ(wrong, 0);
}

// Two threads issue work to one stream alternately, in any order. A third thread, which synchronised with both, issues
// work that must follow the work of both threads.
TEST(Order, OfTwoThreadsOnOneStreamNeitherIsForgotten) {
  InProcess loopback(backend(), late);
  ASSERT_TRUE(loopback.ok());
  constexpr unsigned rounds = 500;
  const CUstream shared = new_stream(), mine = new_stream();
  const CUdeviceptr buffers[2] = {allocate(4), allocate(4)};
  std::mutex mutex;
  std::condition_variable changed;
  unsigned started = 0, finished = 0;
  std::thread fillers[2];
  for (int i = 0; i < 2; ++i)
    fillers[i] = std::thread([&, i] {
      loopback::use_device();
      for (unsigned round = 1; round <= rounds; ++round) {
        {
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return started == round; });
        }
        EXPECT_EQ(cu::cuMemsetD32Async(buffers[i], round, 1, shared), CUDA_SUCCESS);
        std::lock_guard lock(mutex);
        ++finished;
        changed.notify_all();
      }
    });
  int wrong = 0;
  for (unsigned round = 1; round <= rounds; ++round) {
    {
      std::unique_lock lock(mutex);
      started = round, finished = 0;
      changed.notify_all();
      changed.wait(lock, [&] { return finished == 2; });
    }
    ASSERT_EQ(cu::cuStreamSynchronize(shared), CUDA_SUCCESS);
    unsigned seen[2] = {};
    for (int i = 0; i < 2; ++i) ASSERT_EQ(cu::cuMemcpyDtoHAsync_v2(&seen[i], buffers[i], 4, mine), CUDA_SUCCESS);
    wrong += (seen[0] != round) + (seen[1] != round);
  }
  for (std::thread& filler : fillers) filler.join();
  EXPECT_EQ(wrong, 0);
}

// A context-wide call follows all earlier work of all threads.
TEST(Order, SynchronizingTheContextWaitsForEveryThread) {
  InProcess loopback(backend(), late);
  ASSERT_TRUE(loopback.ok());
  const CUdeviceptr buffer = allocate(4);
  const CUstream theirs = new_stream(), mine = new_stream();
  Turn turn;
  std::thread other([&] {
    loopback::use_device();
    for (unsigned round = 1; round <= 500; ++round) {
      turn.await(0);
      EXPECT_EQ(cu::cuMemsetD32Async(buffer, round, 1, theirs), CUDA_SUCCESS);
      turn.pass_to(1);
    }
  });
  for (unsigned round = 1; round <= 500; ++round) {
    turn.await(1);
    EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
    unsigned seen = 0;
    EXPECT_EQ(cu::cuMemcpyDtoHAsync_v2(&seen, buffer, 4, mine), CUDA_SUCCESS);
    EXPECT_EQ(seen, round);
    turn.pass_to(0);
  }
  other.join();
}

// The NULL stream and blocking streams order each other's work, whichever thread issues it.
TEST(Order, TheNullStreamComesBetweenBlockingStreams) {
  InProcess loopback(backend(), late);
  ASSERT_TRUE(loopback.ok());
  const CUdeviceptr buffer = allocate(4);
  CUstream blocking = nullptr;
  ASSERT_EQ(cu::cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  Turn turn;
  std::thread other([&] {
    loopback::use_device();
    for (unsigned round = 1; round <= 500; ++round) {
      turn.await(0);
      EXPECT_EQ(cu::cuMemsetD32Async(buffer, round, 1, blocking), CUDA_SUCCESS);
      turn.pass_to(1);
      turn.await(2);
      unsigned seen = 0;
      EXPECT_EQ(cu::cuMemcpyDtoHAsync_v2(&seen, buffer, 4, blocking), CUDA_SUCCESS);
      EXPECT_EQ(seen, round + 1'000'000);
      turn.pass_to(1);
    }
  });
  for (unsigned round = 1; round <= 500; ++round) {
    turn.await(1);
    unsigned seen = 0;
    EXPECT_EQ(cu::cuMemcpyDtoH_v2(&seen, buffer, 4), CUDA_SUCCESS);  // this copy uses the NULL stream
    EXPECT_EQ(seen, round);
    EXPECT_EQ(cu::cuMemsetD32Async(buffer, round + 1'000'000, 1, nullptr), CUDA_SUCCESS);
    turn.pass_to(2);
    turn.await(1);
    turn.pass_to(0);
  }
  other.join();
}

#ifdef IVGPU_SIMULATED_GPU  // the strict driver runs no graphs

// The graph has one node, which records the event or waits for it. The launch does not name the event.
int wrong_handoffs_by_graph(CUgraphNodeType node, unsigned rounds) {
  const bool records = node == CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  const CUevent done = new_event();
  CUgraph graph = nullptr;
  CUgraphNode made = nullptr;
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cu::cuEventRecord(done, new_stream()), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  const auto add = records ? cu::cuGraphAddEventRecordNode : cu::cuGraphAddEventWaitNode;
  EXPECT_EQ(add(&made, graph, nullptr, 0, done), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  return wrong_handoffs(
      rounds, [=](CUstream a) { return records ? cu::cuGraphLaunch(exec, a) : cu::cuEventRecord(done, a); },
      [=](CUstream b) { return records ? cu::cuStreamWaitEvent(b, done, 0) : cu::cuGraphLaunch(exec, b); });
}

TEST(Order, OfAnEventThatAGraphRecords) {
  InProcess loopback(backend(), late);
  ASSERT_TRUE(loopback.ok());
  EXPECT_EQ(wrong_handoffs_by_graph(CU_GRAPH_NODE_TYPE_EVENT_RECORD, 500), 0);
}

TEST(Order, OfAnEventThatAGraphWaitsFor) {
  InProcess loopback(backend(), late);
  ASSERT_TRUE(loopback.ok());
  EXPECT_EQ(wrong_handoffs_by_graph(CU_GRAPH_NODE_TYPE_WAIT_EVENT, 500), 0);
}

#endif

}  // namespace
