// Calls from the worker to the program, with a real worker and the real guest library. This test's driver calls the
// program in cuCtxSetLimit(how, token), as a real driver does in its callbacks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <thread>
#include <vector>

#include "host/untrusted/callbacks/callback_slots.h"
#include "tests/child.h"
#include "tests/deadline.h"
#include "tests/loopback/backend_fake.h"
#include "tests/loopback/in_process.h"
#include "tests/other_side.h"

namespace {

using namespace std::chrono_literals;
using guest::Callback;
using loopback::backend, loopback::InProcess;
using Life = Callback::Life;

constexpr auto host_function = ring::CallbackKind::HostFunction;

// ---- the worker's side ---------------------------------------------------------------------------------------------

constexpr auto how_call = CUlimit(0), how_post = CUlimit(1);
std::atomic<host::CallbackSlots*> worker_callback_slots{nullptr};

CUresult have_program_called(CUlimit how, std::size_t token) {
  host::CallbackSlots& callback_slots = *worker_callback_slots;
  if (how == how_post) return callback_slots.post(host_function, token) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
  const auto answer = callback_slots.call(host_function, token);
  return answer ? static_cast<CUresult>(*answer) : CUDA_ERROR_UNKNOWN;
}

const host::Driver& calling_driver() {
  static host::Driver driver = [] {
    host::Driver d = backend();
    d.cuCtxSetLimit = have_program_called;
    return d;
  }();
  return driver;
}

// ---- the program's side --------------------------------------------------------------------------------------------

CUresult call(std::uint64_t token) { return cu::cuCtxSetLimit(how_call, token); }
CUresult post(std::uint64_t token) { return cu::cuCtxSetLimit(how_post, token); }

// A function of the program, and counts of its calls.
struct Counted {
  std::atomic<int> calls{0}, at_once{0}, most_at_once{0};
  std::atomic<bool> may_return{true};
  int plain = 0;  // not atomic; the test reads it after a worker's call has returned
  CUresult result = CUDA_SUCCESS;

  // A call that the worker posted may still run.
  ~Counted() {
    may_return = true;
    while (at_once != 0) std::this_thread::sleep_for(1ms);
  }
  static CUresult run(const Callback& callback, CUresult) {
    auto& self = *static_cast<Counted*>(callback.argument);
    self.most_at_once = std::max(self.most_at_once.load(), ++self.at_once);
    ++self.calls;
    ++self.plain;
    while (!self.may_return) std::this_thread::sleep_for(1ms);
    const CUresult result = self.result;
    --self.at_once;
    return result;
  }
  Callback once() { return {.function = run, .argument = this, .life = Life::Once}; }
  Callback until_ended() { return {.function = run, .argument = this, .life = Life::UntilEnded}; }
};

std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

// How the worker wakes the guest's thread: with a futex, not at all, or with an interrupt.
enum class Guest : std::uint8_t { OnThisMachine, InVm, WithModule };

loopback::InProcessOptions options(Guest guest) {
  loopback::InProcessOptions o;
  o.same_kernel = guest == Guest::OnThisMachine;
  o.module = guest == Guest::WithModule;
  o.serve.serving = [](host::Session& session) { worker_callback_slots = session.callbacks.callback_slots; };
  return o;
}

class CallbackSlots : public testing::TestWithParam<Guest> {
 protected:
  void SetUp() override { ASSERT_TRUE(loopback_.ok()); }
  guest::Callbacks& callbacks() { return guest::session()->callbacks(); }
  std::uint64_t issue(const Callback& callback) {
    const std::uint64_t token = callbacks().issue(callback);
    EXPECT_NE(token, 0u);
    return token;
  }
  std::uint64_t done(std::uint32_t k) {
    return other_side::shared(other_side::callback_slot(loopback_.slot(), k).done).load();
  }
  // Fills a callback slot as a hostile worker.
  void fill(std::uint32_t k, std::uint64_t token, std::uint64_t sequence) {
    ring::CallbackSlot& callback_slot = other_side::callback_slot(loopback_.slot(), k);
    other_side::shared(callback_slot.token).store(token);
    other_side::shared(callback_slot.kind).store(1);
    other_side::shared(callback_slot.sequence).store(sequence);
  }

  void wake_worker(std::uint32_t k) {
    ring::Parking worker(loopback_.slot().callback_slot(k)[&ring::CallbackSlot::worker_asleep]);
    if (worker.must_wake() != ring::Asleep::No) other_side::wake(worker.word());
  }

  InProcess loopback_{calling_driver(), options(GetParam())};
  Counted counted_;
};
INSTANTIATE_TEST_SUITE_P(Woken, CallbackSlots, testing::Values(Guest::OnThisMachine, Guest::InVm, Guest::WithModule),
                         [](const auto& info) {
                           return info.param == Guest::InVm         ? "Vm"
                                  : info.param == Guest::WithModule ? "Module"
                                                                    : "Futex";
                         });

TEST_P(CallbackSlots, AFunctionIsCalledOnceAndItsResultComesBack) {
  counted_.result = CUDA_ERROR_NOT_READY;
  EXPECT_EQ(call(issue(counted_.once())), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(counted_.calls, 1);
  EXPECT_EQ(counted_.plain, 1);
}

TEST_P(CallbackSlots, AThousandCallsOfOneToken) {
  const std::uint64_t token = issue(counted_.until_ended());
  for (int i = 1; i <= 1000; ++i) {
    ASSERT_EQ(call(token), CUDA_SUCCESS);
    ASSERT_EQ(counted_.plain, i);
  }
  EXPECT_TRUE(callbacks().end(token));
}

TEST_P(CallbackSlots, MoreThreadsThanCallbackSlots) {
  const std::uint64_t token = issue(counted_.until_ended());
  std::vector<std::thread> program;
  for (int t = 0; t < 20; ++t)
    program.emplace_back([token] {
      EXPECT_EQ(loopback::use_device(), CUDA_SUCCESS);
      for (int i = 0; i < 20; ++i) EXPECT_EQ(i % 2 == 0 ? call(token) : post(token), CUDA_SUCCESS);
    });
  for (std::thread& thread : program) thread.join();
  EXPECT_TRUE(before_deadline([&] { return counted_.calls == 400; })) << counted_.calls;
  EXPECT_EQ(counted_.most_at_once, 1);
}

TEST_P(CallbackSlots, WhatIsPostedIsNotWaitedFor) {
  counted_.may_return = false;
  const std::uint64_t token = issue(counted_.until_ended());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(post(token), CUDA_SUCCESS);
  EXPECT_TRUE(before_deadline([&] { return counted_.calls == 1; }));
  EXPECT_EQ(cu::cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_NONE), CUDA_SUCCESS) << "nobody waits for the function";
  counted_.may_return = true;
  EXPECT_TRUE(before_deadline([&] { return counted_.calls == 3; }));
}

// The worker may fill a callback slot before the callback thread exists; no thread reads the slot then.
TEST_P(CallbackSlots, TheThreadStartsWithTheFirstToken) {
  const auto before = threads();
  fill(0, 17, 1);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(done(0), 0u);
  EXPECT_EQ(threads(), before);
  issue(counted_.once());
  EXPECT_EQ(threads(), before + 1);
  EXPECT_TRUE(before_deadline([&] { return done(0) == 1; }));
}

TEST_P(CallbackSlots, NobodyLooksAtTheCallbackSlotsWhileNoTokenIsOut) {
  EXPECT_EQ(call(issue(counted_.once())), CUDA_SUCCESS);
  EXPECT_FALSE(callbacks().end(0)) << "the thread holds the lock until it has found that none is out";
  fill(1, 17, 1);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(done(1), 0u);
  issue(counted_.once());
  EXPECT_TRUE(before_deadline([&] { return done(1) == 1; }));
}

// ---- unknown tokens ------------------------------------------------------------------------------------------------

TEST_P(CallbackSlots, ATokenThatNobodyHasGivenOutIsRefused) {
  const std::uint64_t token = issue(counted_.until_ended());
  for (const std::uint64_t other : {std::uint64_t{0}, token + 1, token - 1, ~std::uint64_t{0}})
    EXPECT_EQ(call(other), CUDA_ERROR_INVALID_HANDLE) << other;
  EXPECT_EQ(counted_.calls, 0);
  EXPECT_EQ(call(token), CUDA_SUCCESS);
}

TEST_P(CallbackSlots, ATokenThatHasEndedIsRefused) {
  issue(counted_.until_ended());  // another call, so that the thread looks at its callback slots
  const std::uint64_t once = issue(counted_.once()), ended = issue(counted_.until_ended());
  EXPECT_EQ(call(once), CUDA_SUCCESS);
  EXPECT_EQ(call(once), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_TRUE(callbacks().end(ended));
  EXPECT_FALSE(callbacks().end(ended));
  EXPECT_FALSE(callbacks().end(once));
  EXPECT_EQ(call(ended), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(counted_.calls, 1);
}

TEST_P(CallbackSlots, AKindThatTheGuestDoesNotKnowIsRefused) {
  const std::uint64_t token = issue(counted_.until_ended());
  EXPECT_EQ(worker_callback_slots.load()->call(ring::CallbackKind{17}, token), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(counted_.calls, 0);
}

// ---- wrong numbers -------------------------------------------------------------------------------------------------

TEST_P(CallbackSlots, AnAnswerThatNobodyWaitsForEndsTheWorker) {
  counted_.may_return = false;
  const std::uint64_t token = issue(counted_.once());
  std::thread program([token] {
    EXPECT_EQ(loopback::use_device(), CUDA_SUCCESS);
    EXPECT_EQ(call(token), CUDA_ERROR_DEVICE_UNAVAILABLE);
  });
  EXPECT_TRUE(before_deadline([&] { return counted_.calls == 1; }));
  other_side::shared(other_side::callback_slot(loopback_.slot(), 0).done).store(5);
  wake_worker(0);  // as the guest does, since the worker may exit at any time
  EXPECT_TRUE(before_deadline([&] { return loopback_.worker_has_ended(); }));
  EXPECT_EQ(loopback_.end_worker(), host::Served::ProtocolBroken);
  program.join();
  counted_.may_return = true;
}

TEST_P(CallbackSlots, ANumberThatSkipsOneEndsTheGuestsSession) {
  fill(3, 1, 2);
  issue(counted_.until_ended());
  EXPECT_TRUE(before_deadline([] { return guest::session()->liveness().lost(); }));
  EXPECT_EQ(done(3), 0u);
  EXPECT_EQ(counted_.calls, 0);
  EXPECT_EQ(callbacks().issue(counted_.once()), 0u);
}

// ---- a function that does not return -------------------------------------------------------------------------------

TEST_P(CallbackSlots, AFunctionThatDoesNotReturnHoldsItsCallerAlone) {
  counted_.may_return = false;
  const std::uint64_t token = issue(counted_.once());
  std::promise<CUresult> result;
  std::thread program([&] {
    EXPECT_EQ(loopback::use_device(), CUDA_SUCCESS);
    result.set_value(call(token));
  });
  EXPECT_TRUE(before_deadline([&] { return counted_.calls == 1; }));
  CUdeviceptr at = 0;
  EXPECT_EQ(cu::cuMemAlloc_v2(&at, 64), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_NONE), CUDA_SUCCESS);
  auto answered = result.get_future();
  EXPECT_EQ(answered.wait_for(50ms), std::future_status::timeout);
  counted_.may_return = true;
  EXPECT_EQ(answered.get(), CUDA_SUCCESS);
  program.join();
}

TEST_P(CallbackSlots, TheWorkerEndsThoughItsGuestDoesNotAnswer) {
  counted_.may_return = false;
  const std::uint64_t token = issue(counted_.once());
  std::thread program([token] {
    EXPECT_EQ(loopback::use_device(), CUDA_SUCCESS);
    EXPECT_NE(call(token), CUDA_SUCCESS);  // the driver's error, or the error of a missing answer
  });
  EXPECT_TRUE(before_deadline([&] { return counted_.calls == 1; }));
  EXPECT_EQ(loopback_.end_worker(), host::Served::Ended);  // returns when all threads of the worker have exited
  program.join();
  counted_.may_return = true;
}

TEST_P(CallbackSlots, WhoLeavesWritesNoMoreIntoItsSlot) {
  counted_.may_return = false;
  ASSERT_EQ(post(issue(counted_.once())), CUDA_SUCCESS);
  EXPECT_TRUE(before_deadline([&] { return counted_.calls == 1; }));
  guest::session()->leave();
  EXPECT_EQ(counted_.at_once, 1) << "a function of the program's is not waited for";
  EXPECT_EQ(ring::SlotWord::of(loopback_.entry()[&ring::SlotEntry::state].load()).state, ring::SlotState::Released);
  const auto before = threads();
  counted_.may_return = true;
  EXPECT_TRUE(before_deadline([&] { return threads() == before - 1; })) << "the thread ends";
  EXPECT_EQ(done(0), 0u);
  EXPECT_EQ(callbacks().issue(counted_.once()), 0u);
}

// ---- fork ----------------------------------------------------------------------------------------------------------

TEST_P(CallbackSlots, AfterAForkTheParentsThreadGoesOnAndTheChildHasNone) {
  const std::uint64_t token = issue(counted_.until_ended());
  EXPECT_EQ(call(token), CUDA_SUCCESS);
  guest::Callbacks& parents = callbacks();
  const auto child = [&] {
    const bool apart = threads() == 1 && guest::session() == nullptr &&
                       parents.issue({.function = Counted::run, .argument = nullptr, .life = Life::Once}) == 0 &&
                       !parents.end(token) && call(token) == CUDA_ERROR_NOT_INITIALIZED;
    return apart ? 0 : 1;
  };
  EXPECT_EQ(run_in_child(child), 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(call(token), CUDA_SUCCESS);
  EXPECT_EQ(counted_.calls, 11);
}

// The child's only thread is the callback thread, whose exit without an answer ends the child. The parent's function
// waits for the child's end and then checks the result.
TEST_P(CallbackSlots, AFunctionThatForksIsAnsweredByItsParent) {
  struct Forks {
    ring::SlotView slot;
    int status = -1;
    std::uint64_t done = 7;
    static CUresult run(const Callback& callback, CUresult) {
      auto& self = *static_cast<Forks*>(callback.argument);
      const pid_t child = fork();
      if (child == 0) return CUDA_ERROR_ASSERT;  // the library ends the child
      waitpid(child, &self.status, 0);
      self.done = other_side::shared(other_side::callback_slot(self.slot, 0).done).load();
      return CUDA_ERROR_NOT_READY;
    }
  } forks;
  forks.slot = loopback_.slot();
  EXPECT_EQ(call(issue({.function = Forks::run, .argument = &forks, .life = Life::Once})), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(forks.status, 0);
  EXPECT_EQ(forks.done, 0u) << "the child has answered";
}

}  // namespace
