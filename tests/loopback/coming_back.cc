// A host that falls silent for a while, with a slow worker: calls in flight fail, later calls succeed, and abandoned
// calls disturb no other call. Also tests a silent broker with a live worker.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "guest/process/thread.h"
#include "guest/session/channel.h"
#include "tests/child.h"
#include "tests/deadline.h"
#include "tests/loopback/backend_fake.h"
#include "tests/loopback/in_process.h"
#include "tests/loopback/kernels.h"

namespace {

using Clock = std::chrono::steady_clock;
using loopback::backend, loopback::fake_driver, loopback::InProcess;
using Bytes = std::vector<unsigned char>;

constexpr unsigned few_questions = 3;  // unanswered questions after which calls fail

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

Bytes pattern(std::size_t n, unsigned seed) {
  Bytes bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<unsigned char>((i * 7 + i / 4096 + seed * 31) & 0xff);
  return bytes;
}

// Runs `f` in a thread of the program, with its own channel.
template <class F>
std::thread elsewhere(F f) {
  return std::thread([f] {
    EXPECT_EQ(loopback::use_device(), CUDA_SUCCESS);
    f();
  });
}

// Repeats a call until the session serves calls again.
testing::AssertionResult comes_back() {
  int ordinal = 0;
  if (before_deadline([&] { return cu::cuStreamGetDevice(nullptr, &ordinal) == CUDA_SUCCESS; }))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the session stays lost though the host answers";
}

// Succeeds if all calls keep failing although the host answers, for longer than the interval between two questions.
testing::AssertionResult stays_lost() {
  for (int i = 0; i < 25; ++i, pause_ms(10))
    if (cu::cuCtxSynchronize() != CUDA_ERROR_DEVICE_UNAVAILABLE) return testing::AssertionFailure() << "call " << i;
  return testing::AssertionResult(guest::session()->liveness().lost());
}

std::thread gate_opens_after(int ms) {
  return std::thread([ms] {
    pause_ms(ms);
    fake_driver().open_gate();
  });
}

std::thread gate_opens_when(const std::function<bool()>& condition) {
  return std::thread([condition] {
    EXPECT_TRUE(before_deadline(condition));
    fake_driver().open_gate();
  });
}

std::function<bool()> worker_answers(const InProcess& loopback, unsigned times) {
  const auto heartbeat = loopback.slot().header()[&ring::SlotHeader::heartbeat];
  return [heartbeat, last = heartbeat.load() + times] { return heartbeat.load() >= last; };
}

class ComingBack : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(loopback_.ok());
    device_ = allocate(room + 1);
    stream_ = new_stream(CU_STREAM_NON_BLOCKING);
    ASSERT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  }
  void TearDown() override { fake_driver().open_gate(); }

  static CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr at = 0;
    EXPECT_EQ(cu::cuMemAlloc_v2(&at, bytes), CUDA_SUCCESS);
    return at;
  }
  static CUstream new_stream(unsigned flags) {
    CUstream stream = nullptr;
    EXPECT_EQ(cu::cuStreamCreate(&stream, flags), CUDA_SUCCESS);
    return stream;
  }
  static Bytes fetched(CUdeviceptr from, std::size_t bytes) {
    Bytes back(bytes);
    EXPECT_EQ(cu::cuMemcpyDtoH_v2(back.data(), from, bytes), CUDA_SUCCESS);
    return back;
  }

  // Makes the host silent, and blocks the worker's thread for this channel in a driver call.
  void stall() {
    block_worker();
    loopback_.answer(false);
  }
  // Same as stall(), but the worker still answers its doorbell.
  void silence_broker() {
    stall();
    loopback_.answer_for_worker();
  }
  std::function<bool()> asks(unsigned times) const {
    return [this, last = loopback_.asked() + times] { return loopback_.asked() >= last; };
  }
  void block_worker() {
    fake_driver().close_gate();
    ASSERT_EQ(cu::cuMemsetD8Async(device_ + room, 1, 1, stream_), CUDA_SUCCESS);
    while (!fake_driver().somebody_waits()) std::this_thread::yield();
  }
  // Makes the host answer again. The worker's thread still blocks.
  void come_back() {
    loopback_.answer(true);
    ASSERT_TRUE(comes_back());
  }
  // Lets the worker's thread continue.
  void open_gate() {
    fake_driver().open_gate();
    ASSERT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  }

  static constexpr std::size_t room = 8 << 20;
  InProcess loopback_{backend(), {.host_patience = few_questions}};
  CUdeviceptr device_ = 0;
  CUstream stream_ = nullptr;
};

// ---- the session ---------------------------------------------------------------------------------------------------

TEST_F(ComingBack, CallsFailWhileTheHostIsSilentAndWorkWhenItAnswers) {
  testing::internal::CaptureStderr();
  const Bytes data = pattern(room, 1);
  stall();
  std::uint32_t before = loopback_.asked();
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_GE(loopback_.asked() - before, few_questions);
  fake_driver().open_gate();
  before = loopback_.asked();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_LE(loopback_.asked() - before, 100U) << "they wait, though it is known that nobody answers";
  come_back();
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemcpyHtoD_v2(device_, data.data(), room), CUDA_SUCCESS);
  EXPECT_EQ(fetched(device_, room), data);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("neither broker nor worker answers"), std::string::npos) << log;
  EXPECT_NE(log.find("the host answers again"), std::string::npos) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
}

TEST_F(ComingBack, ASilentHostIsAskedTenTimesASecond) {
  stall();
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  const std::uint32_t before = loopback_.asked(), signalled = loopback_.signalled();
  const auto start = Clock::now();
  EXPECT_TRUE(before_deadline([&, has_asked = asks(5)] {
    EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
    return has_asked();
  }));
  // A busy machine can only lengthen the time between questions.
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(400));
  EXPECT_EQ(loopback_.signalled() - signalled, loopback_.asked() - before) << "the worker is asked, too";
  come_back();
}

TEST_F(ComingBack, AsOftenAsNeeded) {
  for (int round = 0; round < 3; ++round) {
    stall();
    EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE) << round;
    come_back();
    open_gate();
  }
}

TEST_F(ComingBack, NotWhereTheWorkerHasDiedMeanwhile) {
  stall();
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  loopback_.mark_dead();
  loopback_.answer(true);
  EXPECT_TRUE(stays_lost());
  // A session that was lost once stays lost, even if the slot's word is valid again.
  loopback_.entry()[&ring::SlotEntry::state].store(ring::SlotWord{1, ring::SlotState::Claimed}.word());
  EXPECT_TRUE(stays_lost());
}

TEST_F(ComingBack, NotToASlotThatIsAnothersNow) {
  stall();
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  loopback_.entry()[&ring::SlotEntry::state].store(
      ring::SlotWord{2, ring::SlotState::Claimed}.word());  // the next epoch shows the change
  loopback_.answer(true);
  EXPECT_TRUE(stays_lost());
}

TEST_F(ComingBack, NotAfterTheProcessHasLeft) {
  stall();
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  const std::uint32_t before = loopback_.asked();
  guest::session()->leave();
  EXPECT_EQ(loopback_.asked() - before, 1U) << "it tells the broker, and asks nothing";
  EXPECT_EQ(ring::SlotWord::of(loopback_.entry()[&ring::SlotEntry::state].load()).state, ring::SlotState::Released);
  loopback_.answer(true);
  EXPECT_TRUE(stays_lost());
}

TEST_F(ComingBack, AForkedChildHasNoPartInIt) {
  stall();
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  const auto child = [&] {
    loopback_.answer(true);
    for (int i = 0; i < 3; ++i)
      if (cu::cuCtxSynchronize() != CUDA_ERROR_NOT_INITIALIZED) return 1;
    return 0;
  };
  EXPECT_EQ(run_in_child(child), 0);
  come_back();
  open_gate();
}

// ---- a silent broker with a live worker ----------------------------------------------------------------------------

TEST_F(ComingBack, ASilentBrokerIsNotNoticedWhileTheWorkerAnswers) {
  testing::internal::CaptureStderr();
  silence_broker();
  const std::uint32_t asked = loopback_.asked(), signalled = loopback_.signalled();
  std::thread opener = gate_opens_when(asks(2 * few_questions + 2));
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS)
      << "it waits in the driver, and its worker answers meanwhile";
  opener.join();
  EXPECT_TRUE(before_deadline([&, has_asked = asks(2 * few_questions)] {
    EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
    return has_asked();
  }));
  EXPECT_LE(loopback_.signalled() - signalled, (loopback_.asked() - asked + 1) / 2)
      << "an answer of the worker's is no reason to ask it at once again";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(ComingBack, TheWorkerIsSparedTheQuestionWhileTheBrokerAnswers) {
  const std::uint32_t asked = loopback_.asked(), signalled = loopback_.signalled();
  block_worker();
  std::thread opener = gate_opens_when(asks(few_questions + 1));
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  opener.join();
  EXPECT_GT(loopback_.asked() - asked, few_questions);
  EXPECT_EQ(loopback_.signalled(), signalled);
}

TEST_F(ComingBack, TheWorkersAnswerAloneBringsTheSessionBack) {
  stall();
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  loopback_.answer(true);
  loopback_.broker_answers(false);
  EXPECT_TRUE(comes_back());
  fake_driver().open_gate();
  EXPECT_TRUE(before_deadline([] { return cu::cuCtxSynchronize() == CUDA_SUCCESS; }));
}

// A worker of a VM without a doorbell, where only the broker rings the worker. That broker has ended.
TEST(ComingBackAlone, AWorkerWithoutABrokerAnswersUnasked) {
  int life[2];
  ASSERT_EQ(pipe(life), 0);
  loopback::InProcessOptions options;
  options.host_patience = few_questions;
  options.serve.life_fd = life[0], options.serve.outlive = std::chrono::minutes(10);
  InProcess loopback(backend(), options);
  ASSERT_TRUE(loopback.ok());
  CUstream stream = nullptr;
  CUdeviceptr at = 0;
  ASSERT_EQ(cu::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemAlloc_v2(&at, 1), CUDA_SUCCESS);
  const auto posts = [&] { return cu::cuMemsetD8Async(at, 1, 1, stream) == CUDA_SUCCESS; };
  fake_driver().close_gate();
  EXPECT_TRUE(posts());
  EXPECT_TRUE(before_deadline([] { return fake_driver().somebody_waits(); }));
  loopback.answer(false);
  EXPECT_EQ(cu::cuStreamSynchronize(stream), CUDA_ERROR_DEVICE_UNAVAILABLE) << "it has a broker";
  fake_driver().open_gate();
  const auto is_executed = [](std::uint64_t times) {
    return before_deadline([times] { return fake_driver().calls("cuMemsetD8Async") == times; });
  };
  EXPECT_TRUE(is_executed(1));
  close(life[1]);
  EXPECT_TRUE(comes_back());
  EXPECT_TRUE(before_deadline(worker_answers(loopback, 3)));
  EXPECT_TRUE(before_deadline(posts));
  EXPECT_TRUE(is_executed(2));
}

loopback::InProcessOptions without_a_doorbell() {
  loopback::InProcessOptions options;
  options.same_kernel = false;
  options.serve.doorbell_by_broker = true;
  return options;
}

// The workers of a killed broker may notice the broker's end only after seconds.
TEST(ComingBackAlone, AWorkerThatAStalledBrokerDoesNotRingServesAndAnswersAllTheSame) {
  InProcess loopback(backend(), without_a_doorbell());
  ASSERT_TRUE(loopback.ok());
  CUstream stream = nullptr;
  CUdeviceptr at = 0;
  ASSERT_EQ(cu::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemAlloc_v2(&at, 1), CUDA_SUCCESS);
  loopback.answer(false);
  const auto asleep = loopback.slot().control(0)[&ring::ChannelControl::worker_asleep];
  EXPECT_TRUE(before_deadline([&] { return asleep.load() != 0; }));
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  fake_driver().close_gate();
  EXPECT_EQ(cu::cuMemsetD8Async(at, 1, 1, stream), CUDA_SUCCESS);
  std::thread opener = gate_opens_when(worker_answers(loopback, 3));
  EXPECT_EQ(cu::cuStreamSynchronize(stream), CUDA_SUCCESS);
  opener.join();
  loopback.answer(true);
}

TEST(ComingBackAlone, AWorkerThatLooksByItselfWakesNoChannelThatHasNothingToDo) {
  InProcess loopback(backend(), without_a_doorbell());
  ASSERT_TRUE(loopback.ok());
  ASSERT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  const auto asleep = loopback.slot().control(0)[&ring::ChannelControl::worker_asleep];
  ASSERT_TRUE(before_deadline(worker_answers(loopback, 3)));  // the worker finally answers without a doorbell
  ASSERT_TRUE(before_deadline([&] { return asleep.load() != 0; }));
  const auto has_looked = worker_answers(loopback, 2);
  for (const auto latest = Clock::now() + test_deadline; !has_looked() && Clock::now() < latest;)
    ASSERT_NE(asleep.load(), 0U);
  EXPECT_TRUE(has_looked());
}

// A program of the VM can falsify the heartbeat if the guest lacks the kernel module. The wait then lasts as long as
// the false heartbeat, but the library notices every end.
TEST_F(ComingBack, AHeartbeatThatLiesHidesNoEnd) {
  silence_broker();
  std::thread end([&, has_asked = asks(2 * few_questions + 2)] {
    EXPECT_TRUE(before_deadline(has_asked)) << "it did not believe the lie";
    loopback_.mark_dead();
  });
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_TRUE(guest::session()->liveness().lost());
  end.join();
}

// ---- replies, rings ------------------------------------------------------------------------------------------------

// A long reply arrives late, just before a short one. The short reply must keep its own length, result and bytes.
TEST_F(ComingBack, ALateReplyIsNobodys) {
  constexpr std::size_t most = 32 << 10;
  ASSERT_EQ(cu::cuMemcpyHtoD_v2(device_, pattern(most, 1).data(), most), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemcpyHtoD_v2(device_ + most, pattern(64, 2).data(), 64), CUDA_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    Bytes late(most, 0xee);
    stall();
    EXPECT_EQ(cu::cuMemcpyDtoH_v2(late.data(), device_, most), CUDA_ERROR_DEVICE_UNAVAILABLE);
    come_back();
    std::thread opener = gate_opens_after(50);
    EXPECT_EQ(fetched(device_ + most, 64), pattern(64, 2));  // in flight while the worker writes the late reply
    opener.join();
    EXPECT_EQ(late, Bytes(most, 0xee)) << "a call that had failed wrote";
  }
}

TEST_F(ComingBack, ALateErrorIsNobodys) {
  stall();
  fake_driver().fail_next("cuMemGetInfo_v2", CUDA_ERROR_NOT_PERMITTED);
  std::size_t free = 1, total = 1;
  EXPECT_EQ(cu::cuMemGetInfo_v2(&free, &total), CUDA_ERROR_DEVICE_UNAVAILABLE);
  come_back();
  open_gate();
  EXPECT_EQ(free, 1u);
  EXPECT_EQ(total, 1u);
  EXPECT_EQ(cu::cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_GT(total, 1u);
}

TEST_F(ComingBack, WhatWasPostedStaysPostedAndAFullRingStaysWhole) {
  const std::uint64_t before = fake_driver().calls("cuMemsetD32Async");
  stall();
  std::uint64_t posted = 0;
  CUresult last = CUDA_SUCCESS;
  while (posted < 100'000 && last == CUDA_SUCCESS) {
    last = cu::cuMemsetD32Async(device_, static_cast<unsigned>(posted), 1, stream_);
    posted += last == CUDA_SUCCESS;
  }
  EXPECT_EQ(last, CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_GT(posted, 100u);
  come_back();
  std::thread opener = gate_opens_after(50);
  for (int i = 0; i < 3000; ++i, ++posted)  // more than fit into the ring
    ASSERT_EQ(cu::cuMemsetD32Async(device_, static_cast<unsigned>(posted), 1, stream_), CUDA_SUCCESS);
  opener.join();
  ASSERT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(fake_driver().calls("cuMemsetD32Async") - before, posted);
  unsigned value = 0;
  ASSERT_EQ(cu::cuMemcpyDtoH_v2(&value, device_, 4), CUDA_SUCCESS);
  EXPECT_EQ(value, posted - 1);
}

TEST_F(ComingBack, AnErrorOfWhatWasPostedIsReportedAfterwards) {
  block_worker();
  fake_driver().fail_next("cuMemsetD32Async", CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cu::cuMemsetD32Async(device_, 1, 1, stream_), CUDA_SUCCESS);
  loopback_.answer(false);
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  come_back();
  fake_driver().open_gate();
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

// ---- order, and known completions ----------------------------------------------------------------------------------

// A failed copy may still run later. Another thread's work, on a stream that waits for the NULL stream, must follow the
// copy.
class OrderAfterComingBack : public ComingBack {
 protected:
  template <class Call>
  void overtaken(Call call) {
    stall();
    EXPECT_EQ(call(), CUDA_ERROR_DEVICE_UNAVAILABLE);
    come_back();
    std::thread opener = gate_opens_after(100);
    elsewhere([&] {
      const CUstream blocking = new_stream(0);
      EXPECT_EQ(cu::cuMemsetD32Async(device_, 7, 1, blocking), CUDA_SUCCESS);
      EXPECT_EQ(cu::cuStreamSynchronize(blocking), CUDA_SUCCESS);
    }).join();
    opener.join();
    open_gate();
    unsigned value = 0;
    ASSERT_EQ(cu::cuMemcpyDtoH_v2(&value, device_, 4), CUDA_SUCCESS);
    EXPECT_EQ(value, 7u) << "the call that had failed came last";
  }
};

TEST_F(OrderAfterComingBack, OfASmallCopy) {
  const Bytes data = pattern(16, 1);
  overtaken([&] { return cu::cuMemcpyHtoD_v2(device_, data.data(), data.size()); });
}

TEST_F(OrderAfterComingBack, OfALargeCopy) {
  const Bytes data = pattern(3 << 20, 1);
  overtaken([&] { return cu::cuMemcpyHtoD_v2(device_, data.data(), data.size()); });
}

TEST_F(OrderAfterComingBack, OfACopyFromPinnedMemory) {
  void* pinned = nullptr;
  ASSERT_EQ(cu::cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
  std::memset(pinned, 0x11, 4096);
  overtaken([&] { return cu::cuMemcpyHtoD_v2(device_, pinned, 4096); });
}

TEST_F(OrderAfterComingBack, OfAFill) {
  overtaken([&] { return cu::cuMemsetD32_v2(device_, 0x22222222, 4); });
}

TEST_F(OrderAfterComingBack, OfRows) {
  const Bytes data = pattern(64 * 16, 1);
  CUDA_MEMCPY2D c{};
  c.srcMemoryType = CU_MEMORYTYPE_HOST, c.srcHost = data.data(), c.srcPitch = 64;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE, c.dstDevice = device_, c.dstPitch = 64;
  c.WidthInBytes = 64, c.Height = 16;
  overtaken([&] { return cu::cuMemcpy2D_v2(&c); });
}

TEST_F(ComingBack, NothingIsKnownToBeDoneByAWaitThatFailed) {
  CUevent event = nullptr;
  ASSERT_EQ(cu::cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuEventRecord(event, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  for (const auto& wait : {+[](CUstream s, CUevent) { return cu::cuStreamSynchronize(s); },
                           +[](CUstream, CUevent e) { return cu::cuEventSynchronize(e); },
                           +[](CUstream, CUevent) { return cu::cuCtxSynchronize(); },
                           +[](CUstream, CUevent) { return cu::cuStreamSynchronize(nullptr); }}) {
    stall();
    ASSERT_EQ(cu::cuEventRecord(event, stream_), CUDA_SUCCESS);
    EXPECT_EQ(wait(stream_, event), CUDA_ERROR_DEVICE_UNAVAILABLE);
    come_back();
    std::thread opener = gate_opens_after(50);
    const std::uint64_t asked = guest::this_channel().counts.waited_calls;
    EXPECT_EQ(wait(stream_, event), CUDA_SUCCESS);
    EXPECT_EQ(guest::this_channel().counts.waited_calls, asked + 1) << "it was not asked";
    opener.join();
  }
}

// The guest abandoned a wait between two uses, so it does not know whether the last use is complete. It asks the worker
// each time.
TEST_F(ComingBack, AnObjectOfSeveralUsesIsAskedForEachTime) {
  guest::Object* object = guest::session()->objects.find(stream_, api::Handle::Stream);
  ASSERT_NE(object, nullptr);
  object->last_use.remember({3, 9}, [](guest::Use) { return true; });
  object->last_use.remember({4, 1}, [](guest::Use) { return false; });
  const std::uint64_t asked = guest::this_channel().counts.waited_calls;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(guest::this_channel().counts.waited_calls, asked + 3);
  EXPECT_EQ(cu::cuMemsetD32Async(device_, 1, 1, stream_), CUDA_SUCCESS);  // the next posted call is the last use again
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(guest::this_channel().counts.waited_calls, asked + 4);
}

// ---- staging -------------------------------------------------------------------------------------------------------

// The guest abandons a copy while the worker is blocked, another thread makes a second copy, and then the worker
// continues. Each copy must transfer its own bytes.
class StagingAfterComingBack : public ComingBack {
 protected:
  // `copy(stream, which)` makes copy 0 or 1. With `free_chunks`, the second copy finishes before the worker continues.
  template <class Copy>
  void given_up_then(Copy copy, bool free_chunks) {
    stall();
    EXPECT_EQ(copy(stream_, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
    come_back();
    std::atomic<bool> done{false};
    std::thread second = elsewhere([&] {
      const CUstream other = new_stream(CU_STREAM_NON_BLOCKING);
      EXPECT_EQ(copy(other, 1), CUDA_SUCCESS);
      done = true;
    });
    if (free_chunks) {
      EXPECT_TRUE(before_deadline([&] { return done.load(); }));
    } else {
      pause_ms(100);
      EXPECT_FALSE(done);
    }
    fake_driver().open_gate();
    second.join();
    ASSERT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  }
  void to_device(std::size_t bytes, bool free_chunks) {
    const Bytes data[] = {pattern(bytes, 1), pattern(bytes, 2)};
    given_up_then(
        [&](CUstream s, int which) {
          return cu::cuMemcpyHtoDAsync_v2(device_ + which * (room / 2), data[which].data(), bytes, s);
        },
        free_chunks);
    EXPECT_EQ(fetched(device_, bytes), data[0]);
    EXPECT_EQ(fetched(device_ + room / 2, bytes), data[1]);
  }
  void from_device(std::size_t bytes, bool free_chunks) {
    const Bytes data[] = {pattern(bytes, 1), pattern(bytes, 2)};
    Bytes back[] = {Bytes(bytes, 0xee), Bytes(bytes, 0xee)};
    for (int which : {0, 1})
      ASSERT_EQ(cu::cuMemcpyHtoD_v2(device_ + which * (room / 2), data[which].data(), bytes), CUDA_SUCCESS);
    given_up_then(
        [&](CUstream s, int which) {
          return cu::cuMemcpyDtoHAsync_v2(back[which].data(), device_ + which * (room / 2), bytes, s);
        },
        free_chunks);
    EXPECT_EQ(back[0], Bytes(bytes, 0xee)) << "a call that had failed wrote";
    EXPECT_EQ(back[1], data[1]);
  }
  // Copies rows to or from the device asynchronously; with `first_waits`, the first copy is synchronous.
  void rows(bool to_device, bool first_waits) {
    constexpr std::size_t width = 1000, height = 100, bytes = width * height;
    const Bytes data[] = {pattern(bytes, 1), pattern(bytes, 2)};
    Bytes back[] = {Bytes(bytes, 0xee), Bytes(bytes, 0xee)};
    for (int which = 0; which < 2 && !to_device; ++which)
      ASSERT_EQ(cu::cuMemcpyHtoD_v2(device_ + which * (room / 2), data[which].data(), bytes), CUDA_SUCCESS);
    given_up_then(
        [&](CUstream s, int which) {
          CUDA_MEMCPY2D c{};
          c.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
          c.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
          (to_device ? c.dstDevice : c.srcDevice) = device_ + which * (room / 2);
          c.srcHost = to_device ? data[which].data() : nullptr;
          c.dstHost = to_device ? nullptr : back[which].data();
          c.srcPitch = c.dstPitch = width;
          c.WidthInBytes = width, c.Height = height;
          return first_waits && which == 0 ? cu::cuMemcpy2D_v2(&c) : cu::cuMemcpy2DAsync_v2(&c, s);
        },
        true);
    if (to_device) {
      EXPECT_EQ(fetched(device_, bytes), data[0]);
      EXPECT_EQ(fetched(device_ + room / 2, bytes), data[1]);
    } else {
      EXPECT_EQ(back[0], Bytes(bytes, 0xee)) << "a call that had failed wrote";
      EXPECT_EQ(back[1], data[1]);
    }
  }
};

TEST_F(StagingAfterComingBack, OneChunkToTheDevice) { to_device(100 << 10, true); }
TEST_F(StagingAfterComingBack, OneChunkFromTheDevice) { from_device(100 << 10, true); }
TEST_F(StagingAfterComingBack, AllChunksToTheDevice) { to_device(4 << 20, false); }
TEST_F(StagingAfterComingBack, AllChunksFromTheDevice) { from_device(4 << 20, false); }
TEST_F(StagingAfterComingBack, RowsToTheDevice) { rows(true, false); }
TEST_F(StagingAfterComingBack, RowsFromTheDevice) { rows(false, false); }
TEST_F(StagingAfterComingBack, RowsToTheDeviceByACallThatWaits) { rows(true, true); }
TEST_F(StagingAfterComingBack, RowsFromTheDeviceByACallThatWaits) { rows(false, true); }

// ---- objects that were made or ended -------------------------------------------------------------------------------

// The guest does not know whether the worker created these objects. The guest must not reuse their ids, since the
// worker would end the session.
TEST_F(ComingBack, IdsOfLostCreationsAreNotUsedAgain) {
  CUmodule module = nullptr, given_up = nullptr;
  CUfunction f = nullptr;
  ASSERT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_SUCCESS);
  const std::size_t before = fake_driver().live_handles();
  stall();
  EXPECT_EQ(cu::cuModuleLoadData(&given_up, loopback::module_text), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(given_up, nullptr);
  come_back();
  std::vector<CUstream> made;
  for (int i = 0; i < 8; ++i) made.push_back(new_stream(CU_STREAM_NON_BLOCKING));
  std::thread opener = gate_opens_after(50);
  ASSERT_EQ(cu::cuModuleGetFunction(&f, module, "nothing"), CUDA_SUCCESS);
  opener.join();
  EXPECT_EQ(fake_driver().live_handles(), before + 1 + made.size() + 1);  // the module and the function
  EXPECT_EQ(cu::cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, made.back(), nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_FALSE(loopback_.worker_has_ended());
}

// The worker stores the function under the id of the failed lookup, and the next lookup uses that id.
TEST_F(ComingBack, ALookupThatFailedIsMadeAgain) {
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  ASSERT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_SUCCESS);
  stall();
  EXPECT_EQ(cu::cuModuleGetFunction(&fill, module, "fill"), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(fill, nullptr);
  come_back();
  open_gate();
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cu::cuModuleGetFunction(&fill, module, "fill"), CUDA_SUCCESS);
    unsigned n = 16, value = 77;
    void* params[] = {&device_, &n, &value};
    ASSERT_EQ(cu::cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, stream_, params, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  }
  unsigned back[16] = {};
  ASSERT_EQ(cu::cuMemcpyDtoH_v2(back, device_, sizeof back), CUDA_SUCCESS);
  EXPECT_EQ(back[15], 77u);
  ASSERT_EQ(cu::cuModuleUnload(module), CUDA_SUCCESS);
  for (int i = 0; i < 100; ++i) new_stream(0);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

// The worker may still read an image whose load the guest has abandoned. The image's arena memory stays reserved until
// the worker has read it.
TEST_F(ComingBack, AnImageInTheArenaStaysUntilItWasRead) {
  const std::string image = loopback::module_text + std::string("//") + std::string(100'000, '-') + "\n";
  const std::size_t before = fake_driver().live_handles();
  CUmodule module = nullptr;
  stall();
  EXPECT_EQ(cu::cuModuleLoadData(&module, image.c_str()), CUDA_ERROR_DEVICE_UNAVAILABLE);
  come_back();
  void* pinned = nullptr;
  ASSERT_EQ(cu::cuMemHostAlloc(&pinned, 64 << 10, 0), CUDA_SUCCESS);
  std::memset(pinned, 0xff, 64 << 10);
  open_gate();
  EXPECT_EQ(fake_driver().live_handles(), before + 1) << "the late load found something else";
  void* again = nullptr;  // now the memory is free
  ASSERT_EQ(cu::cuMemHostAlloc(&again, 64 << 10, 0), CUDA_SUCCESS);
  EXPECT_LT(again, pinned);
}

TEST_F(ComingBack, AnAllocationThatFailedStaysTheHostsUntilAReset) {
  const std::size_t before = fake_driver().live_allocations();
  CUdeviceptr at = 0;
  stall();
  EXPECT_EQ(cu::cuMemAlloc_v2(&at, 4096), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(at, 0u);
  come_back();
  open_gate();
  EXPECT_EQ(fake_driver().live_allocations(), before + 1);
  const CUdeviceptr other = allocate(4096);
  EXPECT_EQ(cu::cuMemsetD8_v2(other, 1, 4096), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemFree_v2(other), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(fake_driver().live_allocations(), 0u);
}

TEST_F(ComingBack, WhatCouldNotBeFreedCanBeFreedLater) {
  const CUdeviceptr at = allocate(4096);
  void* pinned = nullptr;
  ASSERT_EQ(cu::cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
  const std::size_t before = fake_driver().live_allocations();
  CUevent event = nullptr;
  ASSERT_EQ(cu::cuEventCreate(&event, 0), CUDA_SUCCESS);
  stall();
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(cu::cuMemFree_v2(at), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(cu::cuMemFreeHost(pinned), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(cu::cuEventDestroy_v2(event), CUDA_ERROR_DEVICE_UNAVAILABLE);
  CUstream none = nullptr;
  EXPECT_EQ(cu::cuStreamCreate(&none, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(cu::cuDevicePrimaryCtxReset_v2(0), CUDA_ERROR_DEVICE_UNAVAILABLE);
  come_back();
  open_gate();
  EXPECT_EQ(cu::cuMemFree_v2(at), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(fake_driver().live_allocations(), before - 1);
}

// The guest never sent the free, since the wait for other threads' work failed.
TEST_F(ComingBack, AFreeThatWasNotSentCanBeMadeLater) {
  const CUdeviceptr at = allocate(4096);
  stall();
  elsewhere([&] { EXPECT_EQ(cu::cuMemFree_v2(at), CUDA_ERROR_DEVICE_UNAVAILABLE); }).join();
  come_back();
  open_gate();
  EXPECT_EQ(cu::cuMemFree_v2(at), CUDA_SUCCESS);
}

// The worker registers the range once, whichever thread gets the answer.
TEST_F(ComingBack, ARegistrationOfTheArenaIsAskedForAgain) {
  const std::size_t before = fake_driver().registered_bytes();
  fake_driver().close_gate();
  elsewhere([&] { EXPECT_EQ(cu::cuMemsetD8Async(device_, 1, 1, stream_), CUDA_SUCCESS); }).join();
  while (!fake_driver().somebody_waits()) std::this_thread::yield();
  loopback_.answer(false);
  void* pinned = nullptr;
  // This thread uses the ended thread's channel.
  EXPECT_EQ(cu::cuMemHostAlloc(&pinned, 33u << 20, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(pinned, nullptr);
  come_back();
  open_gate();
  constexpr std::size_t more = 36 << 20, last = 1 << 20;
  ASSERT_EQ(cu::cuMemHostAlloc(&pinned, more, 0), CUDA_SUCCESS);
  EXPECT_EQ(fake_driver().registered_bytes(), before + (34u << 20) + more);
  unsigned char* end = static_cast<unsigned char*>(pinned) + more - last;
  std::memset(end, 0x33, last);
  ASSERT_EQ(cu::cuMemcpyHtoD_v2(device_, end, last), CUDA_SUCCESS);
  EXPECT_EQ(fetched(device_, last), Bytes(last, 0x33));
}

// ---- all at once ---------------------------------------------------------------------------------------------------

// Threads copy in both directions while the host repeatedly falls silent and the worker delays records. Every copy that
// succeeds must be correct.
TEST(ComingBackStress, WhatSucceedsIsRight) {
  constexpr loopback::InProcessOptions late{.serve = {.spin_us = 20, .chaos_delay_us = 20'000, .join_at_end = true},
                                            .host_patience = few_questions};
  InProcess loopback(backend(), late);
  ASSERT_TRUE(loopback.ok());
  std::atomic<bool> stop{false};
  std::atomic<unsigned> wrong{0}, right{0}, failed{0}, begun{0};
  constexpr std::size_t bytes = 700 << 10;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.push_back(elsewhere([&, t] {
      CUdeviceptr at = 0;
      CUstream s = nullptr;
      EXPECT_EQ(cu::cuMemAlloc_v2(&at, bytes), CUDA_SUCCESS);
      EXPECT_EQ(cu::cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
      ++begun;
      for (unsigned round = 0; !stop; ++round) {
        const Bytes data = pattern(bytes, t * 1000 + round);
        Bytes back(bytes);
        const bool made = cu::cuMemcpyHtoDAsync_v2(at, data.data(), bytes, s) == CUDA_SUCCESS &&
                          cu::cuMemcpyDtoHAsync_v2(back.data(), at, bytes, s) == CUDA_SUCCESS;
        if (!made) pause_ms(1);
        ++(!made ? failed : back == data ? right : wrong);
      }
    }));
  while (begun < threads.size()) pause_ms(1);
  for (int round = 0; round < 3; ++round) {
    const unsigned given_up = failed;
    loopback.answer(false);
    EXPECT_TRUE(before_deadline([&] { return failed >= given_up + 3; })) << "round " << round;
    const unsigned before = right;
    loopback.answer(true);
    EXPECT_TRUE(before_deadline([&] { return right >= before + 6; })) << "round " << round;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_FALSE(loopback.worker_has_ended());
}

}  // namespace
