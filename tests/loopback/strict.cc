// Tests that control the driver: errors of posted calls, a full ring, a lost worker or broker, and invalid words in the
// region.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "guest/process/process.h"
#include "guest/process/thread.h"
#include "guest/session/channel.h"
#include "tests/deadline.h"
#include "tests/loopback/backend_fake.h"
#include "tests/loopback/in_process.h"
#include "tests/loopback/kernels.h"
#include "tests/other_side.h"
#include "tests/unit/under_tsan.h"

namespace {

using Clock = std::chrono::steady_clock;
using loopback::backend, loopback::fake_driver, loopback::InProcess;

void await(const std::atomic<bool>& word) {
  while (!word) std::this_thread::yield();
}

#ifdef IVGPU_UNDER_TSAN
constexpr bool reserves_channels = false;  // guest/session/channel_mutex.h
#else
constexpr bool reserves_channels = true;
#endif

class Strict : public testing::Test {
 protected:
  explicit Strict(const loopback::InProcessOptions& options = {}) : loopback_(backend(), options) {}
  void SetUp() override {
    ASSERT_TRUE(loopback_.ok());
    ASSERT_EQ(cu::cuMemAlloc_v2(&device_, 4096), CUDA_SUCCESS);
    ASSERT_EQ(cu::cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  }
  CUresult post() { return cu::cuMemsetD32Async(device_, 1, 1, stream_); }
  void post_an_error(CUresult error = CUDA_ERROR_INVALID_VALUE) {
    fake_driver().fail_next("cuMemsetD32Async", error);
    ASSERT_EQ(post(), CUDA_SUCCESS);
    ASSERT_TRUE(guest::session()->channels().at(0).await_executed(guest::session()->channels().at(0).posted()));
  }
  // Blocks the worker's channel 0 in a driver call until the test opens the gate.
  void block_worker() {
    fake_driver().close_gate();
    ASSERT_EQ(cu::cuMemsetD8Async(device_, 1, 1, stream_), CUDA_SUCCESS);
    while (!fake_driver().somebody_waits()) std::this_thread::yield();
  }
  ring::Shared<std::uint32_t> asleep_at(std::uint32_t channel) const {
    return loopback_.slot().control(channel)[&ring::ChannelControl::guest_asleep];
  }
  // Expects that each call fails after at most `questions` questions to the host: none if the session is lost; fewer
  // than a waiting call asks if the host is silent.
  void expect_unavailable(unsigned questions = 0) {
    char byte = 0;
    CUdeviceptr at = 0;
    void* pinned = nullptr;
    const auto fails = [&](auto call) {
      const std::uint32_t before = loopback_.asked();
      EXPECT_EQ(call(), CUDA_ERROR_DEVICE_UNAVAILABLE);
      EXPECT_LE(loopback_.asked() - before, questions);
    };
    fails([] { return cu::cuCtxSynchronize(); });
    fails([&] { return cu::cuMemAlloc_v2(&at, 1); });
    fails([&] { return cu::cuMemcpyDtoH_v2(&byte, device_, 1); });
    fails([&] { return cu::cuMemHostAlloc(&pinned, 1, 0); });
    fails([&] { return cu::cuMemsetD8Async(device_, 1, 1, nullptr); });
    EXPECT_EQ(guest::session()->liveness().lost(), questions == 0);
  }
  void TearDown() override { fake_driver().open_gate(); }

  InProcess loopback_;
  CUdeviceptr device_ = 0;
  CUstream stream_ = nullptr;
};

class StrictWithASilentHost : public Strict {
 protected:
  static constexpr unsigned patience = 7;
  StrictWithASilentHost() : Strict({.host_patience = patience}) {}
  // Returns true if the host counts as alive until this thread's wait has asked `questions` times.
  bool alive_for(unsigned questions) {
    const std::uint32_t last = loopback_.asked() + questions;
    bool alive = true;
    return before_deadline(
               [&] { return !(alive = guest::session()->liveness().host_alive()) || loopback_.asked() == last; }) &&
           alive;
  }
};

// ---- errors of posted calls ----------------------------------------------------------------------------------------

TEST_F(Strict, APostedErrorAppearsAtTheNextWaitOnce) {
  fake_driver().fail_next("cuMemsetD32Async", CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(post(), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
}

TEST_F(Strict, APostedErrorIsTheNextPostedCallsAnswerAndThatIsNotMade) {
  post_an_error();
  const auto before = fake_driver().calls("cuMemsetD32Async");
  EXPECT_EQ(post(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(fake_driver().calls("cuMemsetD32Async"), before);
  EXPECT_EQ(post(), CUDA_SUCCESS);
}

TEST_F(Strict, APostedErrorIsItsThreadsOwn) {
  post_an_error();
  CUresult elsewhere = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    loopback::use_device();
    elsewhere = cu::cuCtxSynchronize();
  }).join();
  EXPECT_EQ(elsewhere, CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Strict, OfSeveralPostedErrorsOneIsReported) {
  for (int i = 0; i < 3; ++i) {
    fake_driver().fail_next("cuMemsetD32Async", CUDA_ERROR_INVALID_VALUE);
    fake_driver().fail_next("cuEventRecord", CUDA_ERROR_NOT_PERMITTED);
  }
  CUevent event = nullptr;
  ASSERT_EQ(cu::cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(post(), CUDA_SUCCESS);
  // The guest may already know the first error. In that case the record call returns the error and is not made;
  // otherwise the wait returns the error.
  const CUresult recorded = cu::cuEventRecord(event, stream_);
  const CUresult waited = cu::cuCtxSynchronize();
  EXPECT_TRUE(recorded != CUDA_SUCCESS || waited != CUDA_SUCCESS);
  static_cast<void>(cu::cuCtxSynchronize());  // returns the second error if the record returned the first
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

// A stream whose posted creation failed does not exist, and its index can be reused.
TEST_F(Strict, APostedCreationThatFails) {
  CUstream failed = nullptr;
  fake_driver().fail_next("cuStreamCreate", CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cu::cuStreamCreate(&failed, 0), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cu::cuStreamSynchronize(failed), CUDA_ERROR_INVALID_HANDLE);  // the worker does not know the stream
  EXPECT_EQ(cu::cuStreamDestroy_v2(failed), CUDA_SUCCESS);                // posted
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_INVALID_HANDLE);
  for (int i = 0; i < 100; ++i) {
    CUstream s = nullptr;
    ASSERT_EQ(cu::cuStreamCreate(&s, 0), CUDA_SUCCESS);
    ASSERT_EQ(cu::cuStreamDestroy_v2(s), CUDA_SUCCESS);
  }
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

// An error is pending from a posted call when a creating call starts. Either the call returns the error and creates
// nothing, or it succeeds and a later call returns the error. Guest and worker always agree on the objects.
class PostedErrorBefore : public Strict {
 protected:
  void expect_consistent(CUresult made, CUresult later) {
    EXPECT_TRUE(made == CUDA_ERROR_INVALID_VALUE || later == CUDA_ERROR_INVALID_VALUE);
    std::vector<CUstream> streams(64);
    for (CUstream& s : streams) ASSERT_EQ(cu::cuStreamCreate(&s, 0), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  }
};

TEST_F(PostedErrorBefore, ALoad) {
  post_an_error();
  CUmodule module = nullptr;
  const CUresult made = cu::cuModuleLoadData(&module, loopback::module_text);
  EXPECT_EQ(fake_driver().calls("cuModuleLoadDataEx") != 0, made == CUDA_SUCCESS);
  expect_consistent(made, cu::cuCtxSynchronize());
}

TEST_F(PostedErrorBefore, ALookup) {
  CUmodule module = nullptr;
  CUfunction f = nullptr;
  ASSERT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_SUCCESS);
  post_an_error();
  const CUresult made = cu::cuModuleGetFunction(&f, module, "nothing");
  expect_consistent(made, cu::cuCtxSynchronize());
}

TEST_F(PostedErrorBefore, AnAllocation) {
  post_an_error();
  CUdeviceptr at = 0;
  const CUresult made = cu::cuMemAlloc_v2(&at, 4096);
  EXPECT_EQ(fake_driver().live_allocations(), made == CUDA_SUCCESS ? 2u : 1u);
  expect_consistent(made, cu::cuCtxSynchronize());
}

TEST_F(PostedErrorBefore, AFree) {
  post_an_error();
  static_cast<void>(cu::cuMemFree_v2(device_));
  static_cast<void>(cu::cuCtxSynchronize());
  EXPECT_EQ(fake_driver().live_allocations(), 0u);
}

TEST_F(Strict, AFailedChunkFailsTheWholeCopy) {
  std::vector<char> data(6u << 20);
  CUdeviceptr large = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&large, data.size()), CUDA_SUCCESS);
  fake_driver().fail_next("cuMemcpyHtoD_v2", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemcpyHtoD_v2(large, data.data(), data.size()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemcpyHtoD_v2(large, data.data(), data.size()), CUDA_SUCCESS);
  fake_driver().fail_next("cuMemcpyDtoH_v2", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemcpyDtoH_v2(data.data(), large, data.size()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemcpyDtoH_v2(data.data(), large, data.size()), CUDA_SUCCESS);
}

// ---- per-thread forms ----------------------------------------------------------------------------------------------

TEST_F(Strict, PerThreadFormsReachThePerThreadForms) {
  EXPECT_EQ(cu::per_thread(cu::cuStreamSynchronize, CUstream{nullptr}), CUDA_SUCCESS);
  EXPECT_EQ(cu::per_thread(cu::cuMemsetD32Async, device_, 1u, std::size_t{1}, CUstream{nullptr}), CUDA_SUCCESS);
  char byte = 0;
  EXPECT_EQ(cu::per_thread(cu::cuMemcpyHtoD_v2, device_, static_cast<const void*>(&byte), std::size_t{1}),
            CUDA_SUCCESS);
  EXPECT_EQ(cu::cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(fake_driver().per_thread_calls("cuStreamSynchronize"), 1u);
  EXPECT_EQ(fake_driver().per_thread_calls("cuMemsetD32Async"), 1u);
  EXPECT_EQ(fake_driver().per_thread_calls("cuMemcpyHtoD_v2"), 1u);
}

// ---- JIT options ---------------------------------------------------------------------------------------------------

TEST_F(Strict, JitLogsComeBackWithinTheirBuffers) {
  for (const std::size_t room : {std::size_t{1}, std::size_t{8}, std::size_t{512}, std::size_t{1} << 20}) {
    std::vector<char> info(room), error(room);
    CUjit_option names[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL};
    const auto number = [](std::size_t n) { return reinterpret_cast<void*>(n); };
    void* values[] = {info.data(), number(room), error.data(), number(room), number(3)};
    CUmodule module = nullptr;
    ASSERT_EQ(cu::cuModuleLoadDataEx(&module, "garbage", 5, names, values), CUDA_ERROR_INVALID_IMAGE);
    EXPECT_EQ(std::strncmp(info.data(), "a log of the fake driver", room - 1), 0);
    EXPECT_EQ(error[std::min<std::size_t>(room - 1, 24)], '\0');
    ASSERT_EQ(cu::cuModuleLoadDataEx(&module, loopback::module_text, 5, names, values), CUDA_SUCCESS);
  }
}

// ---- a full ring ---------------------------------------------------------------------------------------------------

TEST_F(Strict, AFullRingIsWaitedFor) {
  block_worker();
  constexpr unsigned records = 6000;  // several rings' worth
  std::atomic<unsigned> posted{0}, channel{ring::max_channels};
  std::thread poster([&] {
    loopback::use_device();
    CUstream s = nullptr;
    cu::cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
    cu::cuMemsetD8Async(device_, 2, 1, s);
    channel = guest::this_channel().index();
    for (unsigned i = 0; i < records; ++i, ++posted)
      if (cu::cuMemsetD32Async(device_, i, 1, s) != CUDA_SUCCESS) return;
  });
  EXPECT_TRUE(before_deadline([&] { return channel < ring::max_channels && asleep_at(channel).load() != 0; }));
  EXPECT_LT(posted, records);
  EXPECT_GT(posted, 1000u);
  fake_driver().open_gate();
  poster.join();
  EXPECT_EQ(posted, records);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(fake_driver().calls("cuMemsetD32Async"), records);
}

// ---- a host that is gone -------------------------------------------------------------------------------------------

TEST_F(Strict, AWorkerThatHasEnded) {
  EXPECT_EQ(loopback_.end_worker(), host::Served::Ended);
  expect_unavailable();
}

TEST_F(Strict, AWorkerThatDiesInMidCall) {
  block_worker();
  loopback::TimedSleeps sleeps;
  CUresult result = CUDA_SUCCESS;
  std::thread waiter([&] {
    loopback::use_device();
    const loopback::CountedSleeps counted(sleeps);
    result = cu::cuStreamSynchronize(stream_);  // the worker is executing the stream's last use
  });
  EXPECT_TRUE(before_deadline([&] { return sleeps.count != 0; }));
  loopback_.mark_dead();
  waiter.join();
  EXPECT_EQ(result, CUDA_ERROR_DEVICE_UNAVAILABLE);
  expect_unavailable();
}

TEST_F(Strict, AWorkerThatDiesWhileTheRingIsFull) {
  block_worker();
  CUresult last = CUDA_SUCCESS;
  std::atomic<unsigned> posted{0}, channel{ring::max_channels};
  std::thread poster([&] {
    loopback::use_device();
    CUstream s = nullptr;
    cu::cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
    cu::cuMemsetD8Async(device_, 2, 1, s);
    channel = guest::this_channel().index();
    for (; last == CUDA_SUCCESS && posted < 100'000; ++posted) last = cu::cuMemsetD32Async(device_, 1, 1, s);
  });
  EXPECT_TRUE(before_deadline([&] { return channel < ring::max_channels && asleep_at(channel).load() != 0; }));
  loopback_.mark_dead();
  poster.join();
  EXPECT_EQ(last, CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_TRUE(guest::session()->liveness().lost());
}

TEST_F(StrictWithASilentHost, AHostThatDoesNotAnswerWhoWaits) {
  block_worker();
  loopback_.answer(false);
  const std::uint32_t before = loopback_.asked();
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_GE(loopback_.asked() - before, patience) << "it may be slow";
  expect_unavailable(patience - 1);
}

// The query is known to be done, so it never waits. Most calls of such a loop do not read the clock.
TEST_F(StrictWithASilentHost, AThreadThatCallsOftenNoticesIt) {
  ASSERT_EQ(cu::cuStreamQuery(stream_), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuStreamQuery(stream_), CUDA_SUCCESS);
  loopback_.answer(false);
  const auto until = Clock::now() + test_deadline;
  CUresult last = CUDA_SUCCESS;
  while (last == CUDA_SUCCESS && Clock::now() < until) last = cu::cuStreamQuery(stream_);
  EXPECT_EQ(last, CUDA_ERROR_DEVICE_UNAVAILABLE);
}

// A busy machine can only lengthen the time between questions.
TEST_F(StrictWithASilentHost, WhoWaitsAsksTheBrokerTenTimesASecondAndNobodyElseDoes) {
  const std::uint32_t before = loopback_.asked();
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  EXPECT_EQ(loopback_.asked(), before);
  const auto start = Clock::now();
  EXPECT_TRUE(alive_for(5));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(400));
}

TEST_F(StrictWithASilentHost, ABrokerThatAnswersLateIsNotGone) {
  for (int round = 0; round < 2; ++round) {
    loopback_.answer(false);
    EXPECT_TRUE(alive_for(patience - 1)) << "round " << round;
    loopback_.answer(true);
    EXPECT_TRUE(alive_for(2)) << "round " << round;
  }
}

// A region whose only slot never becomes Ready, and whose broker answers a limited number of doorbells.
class Deserted final : public guest::Region {
 public:
  explicit Deserted(unsigned& signalled, unsigned answers)
      : signalled_(signalled), answers_(answers), bytes_(ring::first_slot_offset + ring::min_slot_bytes) {
    header_->version = ring::layout_version;
    header_->slot_count = 1;
    header_->region_bytes = bytes_.size();
    header_->first_slot = ring::first_slot_offset;
    header_->slot_bytes = bytes_.size() - ring::first_slot_offset;
    header_->magic = ring::region_magic;
  }
  std::byte* map(std::uint64_t offset, std::size_t, void*) override { return bytes_.data() + offset; }
  void ring(std::uint32_t) override {
    if (signalled_++ < answers_) other_side::shared(header_->heartbeat).fetch_add(1);
  }
  std::uint64_t size() const override { return bytes_.size(); }
  std::uint32_t peer() const override { return ring::first_guest_peer; }
  bool same_kernel() const override { return false; }
  void forget() override {}

 private:
  unsigned& signalled_;
  const unsigned answers_;
  std::vector<std::byte> bytes_;
  ring::RegionHeader* const header_ = &other_side::region(bytes_.data());
};

// The number of times a program that wants a slot rings the broker before it gives up: once for the slot, then once per
// question.
unsigned rings_of_a_claim(unsigned answers) {
  unsigned signalled = 0;
  EXPECT_EQ(guest::Session::open(std::make_unique<Deserted>(signalled, answers)), nullptr);
  return signalled;
}

TEST(Claim, ABrokerThatDoesNotAnswerIsNotWaitedFor) {
  unsetenv("IVGPU_HOST_PATIENCE");
  EXPECT_EQ(rings_of_a_claim(0), 1 + 7U);
}

TEST(Claim, ABrokerThatAnswersMayTakeItsTimeToStartAWorker) {
  setenv("IVGPU_HOST_PATIENCE", "2", 1);
  EXPECT_EQ(rings_of_a_claim(8), 8 + 2U);
}

// ---- invalid words -------------------------------------------------------------------------------------------------

TEST_F(Strict, AReplyLongerThanItsMailboxEndsTheSession) {
  block_worker();
  guest::Channel& channel = guest::session()->channels().at(0);
  const std::uint64_t next = channel.posted() + 1;
  const ring::Shared<ring::ChannelControl> control = loopback_.slot().control(0);
  std::thread liar([&] {
    while (channel.posted() < next) std::this_thread::yield();
    control[&ring::ChannelControl::reply_length].store(ring::reply_bytes + 1);
    control[&ring::ChannelControl::reply_result].store(CUDA_SUCCESS);
    control[&ring::ChannelControl::reply_position].store(next, std::memory_order_release);
  });
  char byte = 0;
  EXPECT_EQ(cu::cuMemcpyDtoH_v2(&byte, device_, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
  liar.join();
  EXPECT_TRUE(guest::session()->liveness().lost());
}

// The reply is shorter than requested. The guest reads nothing past its end, and ends the session.
TEST_F(Strict, AReplyThatIsTooShortEndsTheSession) {
  block_worker();
  guest::Channel& channel = guest::session()->channels().at(0);
  const std::uint64_t next = channel.posted() + 1;
  const ring::Shared<ring::ChannelControl> control = loopback_.slot().control(0);
  std::thread liar([&] {
    while (channel.posted() < next) std::this_thread::yield();
    control[&ring::ChannelControl::reply_length].store(3);
    control[&ring::ChannelControl::reply_result].store(CUDA_SUCCESS);
    control[&ring::ChannelControl::reply_position].store(next, std::memory_order_release);
  });
  char bytes[16] = {};
  EXPECT_EQ(cu::cuMemcpyDtoH_v2(bytes, device_, sizeof bytes), CUDA_ERROR_DEVICE_UNAVAILABLE);
  liar.join();
  EXPECT_TRUE(guest::session()->liveness().lost());
}

// ---- the end -------------------------------------------------------------------------------------------------------

// At exit other threads may still run. Another process may soon get the slot that they wrote to.
TEST_F(Strict, NobodyWritesToASlotThatWasLeft) {
  std::atomic<bool> running{false};
  std::atomic<CUresult> last{CUDA_SUCCESS};
  std::thread sender([&] {
    loopback::use_device();
    for (CUresult r = CUDA_SUCCESS; r == CUDA_SUCCESS; running = true) last = r = post();
  });
  std::thread waiter([&] {
    loopback::use_device();
    while (cu::cuCtxSynchronize() == CUDA_SUCCESS) continue;
  });
  await(running);
  guest::session()->leave();
  const auto tail = [&](std::uint32_t c) { return loopback_.slot().control(c)[&ring::ChannelControl::tail].load(); };
  std::uint32_t tails[ring::max_channels];
  for (std::uint32_t c = 0; c < ring::max_channels; ++c) tails[c] = tail(c);
  sender.join();
  waiter.join();
  EXPECT_EQ(last, CUDA_ERROR_DEVICE_UNAVAILABLE);
  for (std::uint32_t c = 0; c < ring::max_channels; ++c) EXPECT_EQ(tail(c), tails[c]) << c;
}

// ---- known completions ---------------------------------------------------------------------------------------------

// The number of this thread's calls that waited for the worker's answer.
std::uint64_t asked() { return guest::this_channel().counts.waited_calls; }

template <class F>
std::uint64_t asked_by(F f) {
  const std::uint64_t before = asked();
  f();
  return asked() - before;
}

TEST_F(Strict, WhatIsKnownToBeDoneIsNotAskedAgain) {
  const auto query = [&] { EXPECT_EQ(cu::cuStreamQuery(stream_), CUDA_SUCCESS); };
  const auto wait = [&] { EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS); };
  EXPECT_EQ(asked_by(query), 0u) << "SetUp has waited for it";
  ASSERT_EQ(post(), CUDA_SUCCESS);
  EXPECT_EQ(asked_by(query), 1u);
  EXPECT_EQ(asked_by(query), 0u);
  EXPECT_EQ(asked_by(wait), 1u) << "what kernels have printed comes with a wait";
  EXPECT_EQ(asked_by(wait), 0u);
  EXPECT_EQ(asked_by(query), 0u);
}

TEST_F(Strict, AnEventIsAskedForAfterEachRecord) {
  CUevent event = nullptr;
  ASSERT_EQ(cu::cuEventCreate(&event, 0), CUDA_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(cu::cuEventRecord(event, stream_), CUDA_SUCCESS);
    EXPECT_EQ(asked_by([&] { EXPECT_EQ(cu::cuEventSynchronize(event), CUDA_SUCCESS); }), 1u);
    EXPECT_EQ(asked_by([&] { EXPECT_EQ(cu::cuEventSynchronize(event), CUDA_SUCCESS); }), 0u);
    EXPECT_EQ(asked_by([&] { EXPECT_EQ(cu::cuEventQuery(event), CUDA_SUCCESS); }), 0u);
  }
  ASSERT_EQ(cu::cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Strict, AnEventIsAskedForAfterEachLaunchThatRecordsIt) {
  CUmodule module = nullptr;
  CUfunction nothing = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuModuleGetFunction(&nothing, module, "nothing"), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
  attribute.value.launchCompletionEvent.event = event;
  const CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, stream_, &attribute, 1};
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(cu::cuLaunchKernelEx(&config, nothing, nullptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(asked_by([&] { EXPECT_EQ(cu::cuEventSynchronize(event), CUDA_SUCCESS); }), 1u);
    EXPECT_EQ(asked_by([&] { EXPECT_EQ(cu::cuEventSynchronize(event), CUDA_SUCCESS); }), 0u);
  }
  ASSERT_EQ(cu::cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuLaunchKernelEx(&config, nothing, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Strict, TheNullStreamAndTheContextAreDoneUntilAnythingIsSent) {
  CUstream other = nullptr;
  ASSERT_EQ(cu::cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  for (const auto& wait : {+[] { return cu::cuStreamSynchronize(nullptr); }, +[] { return cu::cuCtxSynchronize(); }}) {
    EXPECT_EQ(asked_by([&] { EXPECT_EQ(wait(), CUDA_SUCCESS); }), 1u);
    EXPECT_EQ(asked_by([&] { EXPECT_EQ(wait(), CUDA_SUCCESS); }), 0u);
    ASSERT_EQ(cu::cuMemsetD32Async(device_, 1, 1, other), CUDA_SUCCESS);
    EXPECT_EQ(asked_by([&] { EXPECT_EQ(wait(), CUDA_SUCCESS); }), 1u);
  }
  ASSERT_EQ(cu::cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(asked_by([] { EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS); }), 1u)
      << "the NULL stream's end is not the context's";
}

TEST_F(Strict, AnotherThreadsPostMakesItUnknown) {
  ASSERT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  std::thread([&] {
    loopback::use_device();
    EXPECT_EQ(post(), CUDA_SUCCESS);
  }).join();
  EXPECT_EQ(asked_by([] { EXPECT_EQ(cu::cuStreamSynchronize(nullptr), CUDA_SUCCESS); }), 1u);
  EXPECT_EQ(asked_by([&] { EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS); }), 1u);
}

TEST_F(Strict, NoErrorIsHiddenByWhatIsKnown) {
  CUstream other = nullptr;
  ASSERT_EQ(cu::cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  fake_driver().fail_next("cuMemsetD32Async", CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cu::cuMemsetD32Async(device_, 1, 1, other), CUDA_SUCCESS);
  ASSERT_TRUE(guest::session()->channels().at(0).await_executed(guest::session()->channels().at(0).posted()));
  EXPECT_EQ(cu::cuStreamQuery(stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuStreamQuery(stream_), CUDA_SUCCESS);
}

TEST_F(Strict, AFailedQueryMakesNothingKnown) {
  ASSERT_EQ(post(), CUDA_SUCCESS);
  fake_driver().fail_next("cuStreamQuery", CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cu::cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(asked_by([&] { EXPECT_EQ(cu::cuStreamQuery(stream_), CUDA_SUCCESS); }), 1u);
}

TEST(StrictWithout, KnownDone) {
  setenv("IVGPU_OFF", "known_done", 1);
  InProcess loopback(backend());
  ASSERT_TRUE(loopback.ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(asked_by([] { EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS); }), 1u);
}

// ---- polling and parking -------------------------------------------------------------------------------------------

TEST_F(Strict, TheGuestPollsLessWhileItDoesNotPay) {
  guest::Channel& channel = guest::this_channel();
  const std::uint64_t bound = guest::session()->slot().spin_nanoseconds();
  const ring::Shared<std::uint32_t> asleep = asleep_at(channel.index());
  ASSERT_GT(bound, 0u);
  // The loop starts from twice the bound, as after a slow start.
  for (int i = 0; i <= ring::AdaptiveSpin::most_halvings; ++i) {
    block_worker();
    std::thread opener([&] {
      while (asleep.load() == 0) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::nanoseconds(bound * 4));
      fake_driver().open_gate();
    });
    EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
    opener.join();
  }
  EXPECT_EQ(channel.polling_nanoseconds(), bound >> ring::AdaptiveSpin::most_halvings);
}

// Returns how long a guest with the bound `bound_us` polls after waits that were slightly longer than the bound.
std::uint64_t polled_after_longer_waits(std::uint32_t bound_us) {
  InProcess loopback(backend(), {.guest_spin_us = bound_us / ring::guest_spin_factor});
  EXPECT_TRUE(loopback.ok());
  guest::Channel& channel = guest::this_channel();
  const std::uint64_t bound = guest::session()->slot().spin_nanoseconds();
  EXPECT_EQ(bound, bound_us * 1000);
  const auto asleep = loopback.slot().control(channel.index())[&ring::ChannelControl::guest_asleep];
  CUdeviceptr device = 0;
  EXPECT_EQ(cu::cuMemAlloc_v2(&device, 16), CUDA_SUCCESS);
  // On a busy machine some waits exceed twice the bound, and the guest then polls for less time. A shorter wait undoes
  // the change, so the test retries until the deadline.
  const auto end = Clock::now() + test_deadline;
  while (channel.polling_nanoseconds() <= bound && Clock::now() < end) {
    fake_driver().close_gate();
    EXPECT_EQ(cu::cuMemsetD8Async(device, 1, 1, nullptr), CUDA_SUCCESS);
    std::thread opener([&] {
      while (asleep.load() == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
      fake_driver().open_gate();
    });
    EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
    opener.join();
  }
  return channel.polling_nanoseconds();
}

// A sleep for the short remainder would cost as much as polling.
TEST(StrictWith, WaitsALittleLongerThanTheBoundArePolledToTheirEnd) {
  EXPECT_EQ(polled_after_longer_waits(4800), 9'600'000u);
}

TEST(StrictWith, NobodyPollsForLongerThanTheLongest) {
  EXPECT_EQ(polled_after_longer_waits(8000), ring::longest_spin_us * std::uint64_t{1000});
}

// The worker wakes a guest that waits for the last of many records once, not for each record.
TEST_F(Strict, AParkedGuestIsWokenForWhatItAwaits) {
  const ring::Shared<ring::ChannelControl> control = loopback_.slot().control(0);
  block_worker();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(post(), CUDA_SUCCESS);
  // Plays a guest that has parked for a record far ahead.
  control[&ring::ChannelControl::guest_awaits].store(guest::this_channel().posted() + 1);
  control[&ring::ChannelControl::guest_asleep].store(1);
  const std::uint64_t last = guest::this_channel().posted();
  fake_driver().open_gate();
  while (control[&ring::ChannelControl::executed].load() < last) std::this_thread::yield();
  EXPECT_EQ(control[&ring::ChannelControl::guest_asleep].load(), 1u);
  ASSERT_EQ(post(), CUDA_SUCCESS);
  while (control[&ring::ChannelControl::guest_asleep].load() != 0) std::this_thread::yield();
}

TEST_F(Strict, ARingIndexOutOfRangeEndsTheGuestsSession) {
  block_worker();  // otherwise the worker would store the right index again
  loopback_.slot().control(0)[&ring::ChannelControl::head].fetch_add(1 << 20);
  CUresult last = CUDA_SUCCESS;
  // Until the guest looks at the index.
  for (std::size_t i = 0; last == CUDA_SUCCESS && i < ring::request_bytes / 16; ++i) last = post();
  EXPECT_EQ(last, CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_TRUE(guest::session()->liveness().lost()) << "it waited for a silent host instead";
}

TEST_F(Strict, AScribbledTailEndsTheWorker) {
  loopback_.slot().control(0)[&ring::ChannelControl::tail].fetch_add(24);
  other_side::wake(loopback_.slot().control(0)[&ring::ChannelControl::worker_asleep]);
  while (!loopback_.worker_has_ended()) std::this_thread::yield();
  EXPECT_EQ(loopback_.end_worker(), host::Served::ProtocolBroken);
  expect_unavailable();
}

// Fills the device page with unterminated texts, and with zeros as divisors.
template <int nonsense>
void spoil_devices(ring::SlotView slot) {
  ring::DeviceInfo& info = other_side::device_page(slot).device[0];
  std::memset(info.name, 'n', sizeof info.name);
  std::memset(info.bus_id, 'b', sizeof info.bus_id);
  info.attribute[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = nonsense;
  info.attribute[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = nonsense;
  info.greatest_priority = nonsense;
}

class NonsensePage : public testing::TestWithParam<void (*)(ring::SlotView)> {};

TEST_P(NonsensePage, IsReadWithinItsFields) {
  loopback::InProcessOptions options;
  options.before_open = GetParam();
  InProcess loopback(backend(), options);
  ASSERT_TRUE(loopback.ok());
  CUmodule module = nullptr;
  CUfunction f = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuModuleGetFunction(&f, module, "fill"), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  char text[1024];
  EXPECT_EQ(cu::cuDeviceGetName(text, sizeof text, 0), CUDA_SUCCESS);
  EXPECT_EQ(std::string(text), std::string(sizeof(ring::DeviceInfo::name) - 1, 'n'));
  EXPECT_EQ(cu::cuDeviceGetPCIBusId(text, sizeof text, 0), CUDA_SUCCESS);
  EXPECT_EQ(std::string(text), std::string(sizeof(ring::DeviceInfo::bus_id) - 1, 'b'));
  int grid = 0, block = 0, priority = 0;
  EXPECT_EQ(cu::cuOccupancyMaxPotentialBlockSize(&grid, &block, f, nullptr, 0, 64), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
}
INSTANTIATE_TEST_SUITE_P(Numbers, NonsensePage,
                         testing::Values(spoil_devices<0>, spoil_devices<-1>,
                                         spoil_devices<std::numeric_limits<int>::min()>,
                                         spoil_devices<std::numeric_limits<int>::max()>));

// The guest reads the device page once, so later writes change nothing for its session.
TEST_F(Strict, ADevicePageIsReadOnce) {
  char before[256], after[256];
  std::size_t memory_before = 0, memory_after = 0;
  ASSERT_EQ(cu::cuDeviceGetName(before, sizeof before, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuDeviceTotalMem_v2(&memory_before, 0), CUDA_SUCCESS);
  std::memset(static_cast<void*>(&other_side::device_page(loopback_.slot())), 0xff, sizeof(ring::DevicePage));
  ASSERT_EQ(cu::cuDeviceGetName(after, sizeof after, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuDeviceTotalMem_v2(&memory_after, 0), CUDA_SUCCESS);
  EXPECT_STREQ(before, after);
  EXPECT_EQ(memory_before, memory_after);
}

// A device page gives no session if its driver has failed or if it lists too many devices.
TEST(DevicePage, WithoutAUsableGpuIsRefused) {
  EXPECT_NONFATAL_FAILURE(
      {
        loopback::InProcessOptions options;
        options.before_open = [](ring::SlotView slot) {
          other_side::device_page(slot).device_count = ring::max_devices + 1;
        };
        InProcess loopback(backend(), options);
      },
      "the session was not opened");
}

// The worker publishes a wrong number of channels; each thread still gets a channel.
template <std::uint32_t channels>
void tell_channels(ring::SlotView slot) {
  other_side::header(slot).channels = channels;
}
class NumberOfChannels : public testing::TestWithParam<void (*)(ring::SlotView)> {};

TEST_P(NumberOfChannels, ServesEveryThread) {
  loopback::InProcessOptions options;
  options.before_open = GetParam();
  InProcess loopback(backend(), options);
  ASSERT_TRUE(loopback.ok());
  std::atomic<unsigned> served{0};
  constexpr unsigned threads = ring::max_channels + 4;  // all threads at once
  std::vector<std::thread> all;
  for (unsigned i = 0; i < threads; ++i)
    all.emplace_back([&] {
      loopback::use_device();
      EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
      for (++served; served < threads;) std::this_thread::yield();
    });
  for (std::thread& t : all) t.join();
  EXPECT_LE(guest::session()->channels().open(), ring::max_channels);
}

// The first thread posts while other threads get its channel, one after the other.
TEST(SharedChannel, LosesNoRecord) {
  loopback::InProcessOptions options;
  options.before_open = tell_channels<1>;
  InProcess loopback(backend(), options);
  ASSERT_TRUE(loopback.ok());
  CUdeviceptr device = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&device, 4096), CUDA_SUCCESS);
  EXPECT_EQ(guest::this_channel().mutex().is_reserved(), reserves_channels);
  constexpr unsigned threads = 8, steps = 300;
  std::atomic<unsigned> posted{0};
  const auto post = [&](CUstream stream) {
    if (cu::cuMemsetD32Async(device, 1, 1, stream) == CUDA_SUCCESS) ++posted;
  };
  for (unsigned i = 0; i < threads; ++i) {
    std::thread other([&] {
      loopback::use_device();
      for (unsigned k = 0; k < steps; ++k) post(CU_STREAM_PER_THREAD);
    });
    for (unsigned k = 0; k < steps; ++k) post(CU_STREAM_PER_THREAD);
    other.join();
  }
  EXPECT_FALSE(guest::this_channel().mutex().is_reserved());
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(posted, 2 * threads * steps);
  EXPECT_EQ(fake_driver().calls("cuMemsetD32Async"), posted);
}

TEST(StrictWithout, ClockSkips) {
  setenv("IVGPU_OFF", "clock_skips", 1);
  InProcess loopback(backend());
  ASSERT_TRUE(loopback.ok());
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_FALSE(guest::this_thread().pace.skips());
  }
}

TEST(StrictWithout, UnlockedChannels) {
  setenv("IVGPU_OFF", "unlocked_channels", 1);
  InProcess loopback(backend());
  ASSERT_TRUE(loopback.ok());
  EXPECT_FALSE(guest::this_channel().mutex().is_reserved());
  CUdeviceptr device = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&device, 4096), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemsetD32Async(device, 1, 1, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

// A thread's channel is reserved for the next thread, too.
TEST(StrictChannels, AreReservedForEachOfTheirThreads) {
  InProcess loopback(backend());
  ASSERT_TRUE(loopback.ok());
  ASSERT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i)
    std::thread([] {
      loopback::use_device();
      EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
      EXPECT_EQ(guest::this_channel().index(), 1u);
      EXPECT_EQ(guest::this_channel().mutex().is_reserved(), reserves_channels);
    }).join();
}

INSTANTIATE_TEST_SUITE_P(Told, NumberOfChannels,
                         testing::Values(tell_channels<0>, tell_channels<1>, tell_channels<ring::max_channels + 1>,
                                         tell_channels<~0u>));

// Sleep words are only hints, so calls succeed with any value in these words.
TEST_F(Strict, ScribbledSleepWordsCostTimeOnly) {
  std::atomic<bool> stop{false};
  std::thread scribbler([&] {
    while (!stop) {
      loopback_.slot().control(0)[&ring::ChannelControl::guest_asleep].store(7);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      loopback_.slot().control(0)[&ring::ChannelControl::guest_asleep].store(0);
    }
  });
  for (int i = 0; i < 50; ++i) EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  stop = true;
  scribbler.join();
}

// ---- reuse ---------------------------------------------------------------------------------------------------------

TEST_F(Strict, WhatIsDestroyedIsDestroyedInTheDriver) {
  const std::size_t before = fake_driver().live_handles();
  CUmodule module = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(fake_driver().live_handles(), before + 2);
  ASSERT_EQ(cu::cuModuleUnload(module), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuEventDestroy_v2(event), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemFree_v2(device_), CUDA_SUCCESS);
  EXPECT_EQ(fake_driver().live_handles(), before);
  EXPECT_EQ(fake_driver().live_allocations(), 0u);
}

TEST_F(Strict, TheArenaIsRegisteredAsItIsUsed) {
  const std::size_t before = fake_driver().registered_bytes();
  EXPECT_GE(before, std::size_t{8} << 20);
  void* pinned = nullptr;
  ASSERT_EQ(cu::cuMemHostAlloc(&pinned, 40u << 20, 0), CUDA_SUCCESS);
  const std::size_t after = fake_driver().registered_bytes();
  EXPECT_GE(after, before + (std::size_t{40} << 20));
  void* more = nullptr;
  EXPECT_EQ(cu::cuMemHostAlloc(&more, 60u << 20, 0), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cu::cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemHostAlloc(&more, 40u << 20, 0), CUDA_SUCCESS);
  EXPECT_EQ(more, pinned);
  EXPECT_EQ(fake_driver().registered_bytes(), after);
}

// The guest registers the pieces of freed smaller blocks anew, as one piece for a larger block. A copy can span the
// larger block.
TEST_F(Strict, PinnedMemoryThatWasFreedServesALargerBlock) {
  void* pinned = nullptr;
  for (const std::size_t mib : {20, 33, 36}) {
    ASSERT_EQ(cu::cuMemHostAlloc(&pinned, mib << 20, 0), CUDA_SUCCESS) << mib;
    ASSERT_EQ(cu::cuMemFreeHost(pinned), CUDA_SUCCESS);
  }
  const std::uint64_t before = fake_driver().calls("cuMemHostUnregister");
  ASSERT_EQ(cu::cuMemHostAlloc(&pinned, std::size_t{64} << 20, 0), CUDA_SUCCESS);
  EXPECT_GE(fake_driver().calls("cuMemHostUnregister"), before + 2) << "it found room without joining";
  auto* bytes = static_cast<unsigned char*>(pinned);
  std::memset(bytes + (std::size_t{30} << 20), 0x5a, std::size_t{8} << 20);
  CUdeviceptr device = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&device, std::size_t{64} << 20), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemcpyHtoD_v2(device, bytes, std::size_t{64} << 20), CUDA_SUCCESS);
  std::memset(bytes, 0, std::size_t{64} << 20);
  ASSERT_EQ(cu::cuMemcpyDtoH_v2(bytes, device, std::size_t{64} << 20), CUDA_SUCCESS);
  EXPECT_EQ(bytes[(std::size_t{34} << 20)], 0x5a);
  EXPECT_EQ(cu::cuMemFree_v2(device), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST_F(Strict, AJoinThatTheDriverRefusesIsNoRoom) {
  void* pinned = nullptr;
  ASSERT_EQ(cu::cuMemHostAlloc(&pinned, std::size_t{40} << 20, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemFreeHost(pinned), CUDA_SUCCESS);
  fake_driver().fail_next("cuMemHostRegister_v2", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cu::cuMemHostAlloc(&pinned, std::size_t{64} << 20, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cu::cuMemHostAlloc(&pinned, std::size_t{64} << 20, 0), CUDA_SUCCESS) << "what was given up is free";
}

}  // namespace
