// The simulated GPU's diagnosis of an error, in the guest: the worker's text becomes lines of the guest's log. The test
// plays the driver, and also a worker that sends wrong text.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

#include "guest/marshal/output.h"
#include "guest/process/thread.h"
#include "guest/session/channel.h"
#include "host/session/output.h"
#include "ring/api/records.h"
#include "tests/loopback/backend_fake.h"
#include "tests/loopback/in_process.h"
#include "tests/other_side.h"

namespace {

using loopback::backend, loopback::fake_driver, loopback::InProcess;

CUlogsCallback listener = nullptr;
void say(std::string line) { listener(nullptr, CU_LOG_LEVEL_ERROR, line.data(), line.size()); }

class Diagnosis : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(loopback_.ok());
    ASSERT_EQ(cu::cuMemAlloc_v2(&device_, 4096), CUDA_SUCCESS);
    host::Driver driver;
    driver.cuLogsRegisterCallback = [](CUlogsCallback to, void*, CUlogsCallbackHandle*) {
      listener = to;
      return CUDA_SUCCESS;
    };
    ASSERT_TRUE(host::catch_diagnosis(driver));
  }
  void TearDown() override { fake_driver().open_gate(); }
  // Returns the log's lines after all calls have been answered.
  static std::string logged() {
    testing::internal::CaptureStderr();
    if (guest::output_waiting()) guest::print_output();
    return testing::internal::GetCapturedStderr();
  }
  // Blocks the worker in a driver call, and answers the guest's request for the text with these bytes.
  std::string logged_from(const std::vector<std::uint64_t>& reply) {
    fake_driver().close_gate();
    EXPECT_EQ(cu::cuMemsetD8Async(device_, 1, 1, nullptr), CUDA_SUCCESS);
    while (!fake_driver().somebody_waits()) std::this_thread::yield();
    guest::Channel& channel = guest::session()->channels().at(0);
    const std::uint64_t next = channel.posted() + 1;
    const ring::Shared<ring::ChannelControl> control = loopback_.slot().control(0);
    std::thread liar([&] {
      while (channel.posted() < next) std::this_thread::yield();
      std::memcpy(other_side::reply(loopback_.slot(), 0).data(), reply.data(), reply.size() * 8);
      control[&ring::ChannelControl::reply_length].store(static_cast<std::uint32_t>(reply.size() * 8));
      control[&ring::ChannelControl::reply_result].store(CUDA_SUCCESS);
      control[&ring::ChannelControl::reply_position].store(next, std::memory_order_release);
    });
    testing::internal::CaptureStderr();
    guest::print_output();
    liar.join();
    return testing::internal::GetCapturedStderr();
  }

  InProcess loopback_{backend()};
  CUdeviceptr device_ = 0;
};

constexpr std::uint64_t word_of(const char (&text)[9]) {
  std::uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = word << 8 | static_cast<unsigned char>(text[i]);
  return word;
}

TEST_F(Diagnosis, OfAWaitedCallIsLogged) {
  EXPECT_EQ(logged(), "");
  say("kernel f, thread (1,0,0): a fault");
  say("another line");
  fake_driver().fail_next("cuCtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(logged(), "ivgpu: simulated GPU: kernel f, thread (1,0,0): a fault\nivgpu: simulated GPU: another line\n");
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(logged(), "") << "once";
}

TEST_F(Diagnosis, OfAPostedCallIsThereWhenTheFaultIsSeen) {
  say("a fault");
  fake_driver().fail_next("cuMemsetD32Async", CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_EQ(cu::cuMemsetD32Async(device_, 1, 1, nullptr), CUDA_SUCCESS);
  while (guest::session()->slot().fault() == CUDA_SUCCESS) std::this_thread::yield();
  EXPECT_EQ(logged(), "ivgpu: simulated GPU: a fault\n");
}

TEST_F(Diagnosis, ALongNameIsLoggedWhole) {
  const std::string line = "kernel " + std::string(1500, 'k') + ": a fault";
  say(line);
  fake_driver().fail_next("cuCtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(logged(), "ivgpu: simulated GPU: " + line + "\n");
}

TEST_F(Diagnosis, SteersNoTerminal) {
  say("kernel \x1b[31m\r\x7f\t%s\xc3\xa4");
  fake_driver().fail_next("cuCtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(logged(), "ivgpu: simulated GPU: kernel ?[31m???%s\xc3\xa4\n");
}

// The guest logs nothing for empty text and empty lines, and reports no error.
TEST_F(Diagnosis, MayBeEmpty) {
  EXPECT_EQ(logged_from({0, 8, word_of("\n\nwords\n")}), "ivgpu: simulated GPU: words\n");
  EXPECT_TRUE(guest::session()->liveness().usable());
}

TEST_F(Diagnosis, OfNoLengthIsNone) {
  EXPECT_EQ(logged_from({0, 0}), "");
  EXPECT_TRUE(guest::session()->liveness().usable());
}

// An older worker's reply has no text.
TEST_F(Diagnosis, MayBeMissing) {
  EXPECT_EQ(logged_from({0}), "");
  EXPECT_TRUE(guest::session()->liveness().usable());
}

TEST_F(Diagnosis, LongerThanItsReplyEndsTheSession) {
  EXPECT_EQ(logged_from({0, 16, word_of("a fault\n")}).find("simulated"), std::string::npos);
  EXPECT_TRUE(guest::session()->liveness().lost());
}

TEST_F(Diagnosis, LongerThanAnyEndsTheSession) {
  std::vector<std::uint64_t> reply(2 + api::max_diagnosis / 8 + 1, word_of("a fault\n"));
  reply[0] = 0, reply[1] = api::max_diagnosis + 1;
  EXPECT_EQ(logged_from(reply).find("simulated"), std::string::npos);
  EXPECT_TRUE(guest::session()->liveness().lost());
}

TEST_F(Diagnosis, OfAnAbsurdLengthEndsTheSession) {
  EXPECT_EQ(logged_from({0, ~std::uint64_t{0}, 0}).find("simulated"), std::string::npos);
  EXPECT_TRUE(guest::session()->liveness().lost());
}

}  // namespace
