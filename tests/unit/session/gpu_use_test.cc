// A session's reports to the scheduler about its GPU use (host/session/gpu_use.h), while its channels execute records.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "tests/unit/session/channel.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;

class GpuUse : public testing::Test {
 protected:
  GpuUse() {
    host::ServeOptions options;
    options.windows = host::all_windows;
    options.gpu_use = {.orders = orders_.get(), .use = use_.get(), .scheduler_doorbell_fd = doorbell_, .devices = 1};
    world_.emplace(options);
    world_->session->protocol.end_greeting(true);
    memory_ = world_->memory(64);
    stream_ = world_->stream();
  }
  ~GpuUse() override {
    world_.reset();
    close(doorbell_);
  }
  ring::DeviceUse& use() { return use_->device[0]; }
  std::uint64_t rings() {
    std::uint64_t count = 0;
    return read(doorbell_, &count, 8) == 8 ? count : 0;
  }

  const std::unique_ptr<ring::OrdersPage> orders_ = std::make_unique<ring::OrdersPage>();
  const std::unique_ptr<ring::UsePage> use_ = std::make_unique<ring::UsePage>();
  const int doorbell_ = eventfd(0, EFD_NONBLOCK);
  std::optional<World> world_;
  std::uint64_t memory_ = 0, stream_ = 0;
};

TEST_F(GpuUse, CountsWhatGivesTheGpuWorkAndWhatAReturnedWaitCovers) {
  Channel channel(*world_);
  channel.put(ids::cuMemsetD8Async, Payload::of(memory_, 1, 64, stream_), 0);
  channel.put(ids::cuMemsetD8Async, Payload::of(memory_, 2, 64, stream_), 0);
  EXPECT_EQ(channel.serve(), 2U);
  EXPECT_EQ(ring::submissions(use()), 2U);
  EXPECT_EQ(use().settled, 0U);
  EXPECT_EQ(use().waits, 0U);
  EXPECT_EQ(use_->steps[0] % 2, 0U) << "it is in no call";
  EXPECT_GT(use_->steps[0], 0U);
}

TEST_F(GpuUse, AWaitCoversWhatWasSubmittedBeforeIt) {
  Channel channel(*world_);
  channel.put(ids::cuMemsetD8Async, Payload::of(memory_, 1, 64, stream_), 0);
  channel.put(ids::cuStreamSynchronize, Payload::of(stream_));
  channel.put(ids::cuMemsetD8Async, Payload::of(memory_, 1, 64, stream_), 0);
  channel.serve();
  EXPECT_EQ(ring::submissions(use()), 2U);
  EXPECT_EQ(use().settled, 1U);
  EXPECT_EQ(use().waits, 1U);
}

TEST_F(GpuUse, RingsOnceForEachNumberThatItIsShown) {
  orders_->device[0].wake = 5;
  Channel channel(*world_);
  for (int i = 0; i < 3; ++i) channel.put(ids::cuMemsetD8Async, Payload::of(memory_, 1, 64, stream_), 0);
  channel.serve();
  EXPECT_EQ(rings(), 1U);
  orders_->device[0].wake = 0;
  Channel second(*world_, 1);
  second.put(ids::cuMemsetD8Async, Payload::of(memory_, 1, 64, stream_), 0);
  second.serve();
  EXPECT_EQ(rings(), 0U);
  orders_->device[0].wake = 5;
  Channel third(*world_, 2);
  third.put(ids::cuMemsetD8Async, Payload::of(memory_, 1, 64, stream_), 0);
  third.serve();
  EXPECT_EQ(rings(), 1U);
  EXPECT_EQ(ring::submissions(use()), 5U) << "of three channels";
}

TEST_F(GpuUse, ANewerWaitThatReturnedFirstIsNotTakenBack) {
  world_->session->gpu_use.waited(0, 7);
  world_->session->gpu_use.waited(0, 4);
  EXPECT_EQ(use().settled, 7U);
  EXPECT_EQ(use().waits, 2U);
}

}  // namespace
