// The helper: which channels are disabled (switch_table.h), and the helper's socket (helper_service.h). A strict fake
// driver counts how often a channel was disabled and, like NVIDIA's driver, stops at the first unknown channel.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/scheduler/helper_service.h"
#include "host/scheduler/switch_table.h"
#include "host/scheduler/switcher.h"
#include "host/simgpu/api/device/usage_file.h"
#include "tests/deadline.h"

namespace {

using namespace host::scheduler;
using host::rm::ChannelRef;

constexpr std::int64_t invalid_channel = 0x21;

class StrictDriver {
 public:
  std::int64_t switch_channels(std::span<const ChannelRef> channels, bool off) {
    std::lock_guard lock(mutex_);
    ++calls_;
    if (lost_) return host::rm::gpu_is_lost;
    if (channels.size() > host::rm::channels_a_call) return 0x1f;
    for (const ChannelRef& one : channels) {
      const auto found = offs_.find({one.client, one.channel});
      if (found == offs_.end()) return invalid_channel;
      if (off || found->second != 0) found->second += off ? 1 : -1;
    }
    return 0;
  }
  void make(std::uint32_t client, std::uint32_t channel) {
    std::lock_guard lock(mutex_);
    offs_[{client, channel}] = 0;
  }
  void end(std::uint32_t client, std::uint32_t channel) {
    std::lock_guard lock(mutex_);
    offs_.erase({client, channel});
  }
  void lose() {
    std::lock_guard lock(mutex_);
    lost_ = true;
  }
  // Returns how often the channel was disabled; -1 if it does not exist.
  int offs(std::uint32_t client, std::uint32_t channel) const {
    std::lock_guard lock(mutex_);
    const auto found = offs_.find({client, channel});
    return found != offs_.end() ? found->second : -1;
  }
  int all_offs() const {
    std::lock_guard lock(mutex_);
    int sum = 0;
    for (const auto& [channel, count] : offs_) sum += count;
    return sum;
  }
  int calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  SwitchTable::Driver driver() {
    return [this](std::span<const ChannelRef> channels, bool off) { return switch_channels(channels, off); };
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> offs_;
  int calls_ = 0;
  bool lost_ = false;
};

// Makes eight channels of one client. A context has as many.
std::vector<SwitchedChannel> context(StrictDriver& driver, std::uint32_t client, std::uint32_t first = 1) {
  std::vector<SwitchedChannel> channels;
  for (std::uint32_t c = first; c < first + 8; ++c) {
    driver.make(client, c);
    channels.push_back({client, c, c});
  }
  return channels;
}

TEST(SwitchTable, SwitchesEachChannelOnceHoweverOftenItIsOrdered) {
  StrictDriver driver;
  SwitchTable table(driver.driver());
  const auto a = context(driver, 1);
  EXPECT_EQ(table.off(a).failed, 0U);
  EXPECT_EQ(table.off(a).failed, 0U);
  EXPECT_EQ(driver.offs(1, 1), 1);
  EXPECT_TRUE(table.any_off());
  table.on(a);
  table.on(a);
  EXPECT_EQ(driver.all_offs(), 0);
  EXPECT_FALSE(table.any_off());
  EXPECT_EQ(driver.calls(), 2);
}

TEST(SwitchTable, NewChannelsOfAClientThatIsOffGoOffAlone) {
  StrictDriver driver;
  SwitchTable table(driver.driver());
  auto a = context(driver, 1);
  table.off(a);
  const auto more = context(driver, 1, 20);
  a.insert(a.end(), more.begin(), more.end());
  table.off(a);
  for (const SwitchedChannel& one : a) EXPECT_EQ(driver.offs(1, one.channel), 1);
  table.on(a);
  EXPECT_EQ(driver.all_offs(), 0);
}

TEST(SwitchTable, ADeadChannelInAListKeepsNoOtherOn) {
  for (const std::uint32_t dead : {1U, 4U, 8U}) {
    StrictDriver driver;
    SwitchTable table(driver.driver());
    const auto a = context(driver, 1);
    driver.end(1, dead);
    EXPECT_EQ(table.off(a).failed, 1U);
    EXPECT_EQ(table.off(a).refused, invalid_channel);
    for (std::uint32_t c = 1; c <= 8; ++c) EXPECT_EQ(driver.offs(1, c), c == dead ? -1 : 1) << c << " of dead " << dead;
    table.on(a);
    EXPECT_EQ(driver.all_offs(), 0) << "of dead " << dead;
  }
}

TEST(SwitchTable, AHandleThatIsUsedAgainIsAnotherChannel) {
  StrictDriver driver;
  SwitchTable table(driver.driver());
  auto a = context(driver, 1);
  table.off(a);
  driver.end(1, 3), driver.make(1, 3);
  a[2].serial = 100;
  table.off(a);
  EXPECT_EQ(driver.offs(1, 3), 1);
  EXPECT_EQ(driver.offs(1, 4), 1);
  table.on(a);
  EXPECT_EQ(driver.all_offs(), 0);
}

TEST(SwitchTable, ManyContextsTakeMoreCalls) {
  StrictDriver driver;
  SwitchTable table(driver.driver());
  std::vector<SwitchedChannel> all;
  for (std::uint32_t client = 1; client <= 40; ++client) {
    const auto one = context(driver, client);
    all.insert(all.end(), one.begin(), one.end());
  }
  EXPECT_EQ(table.off(all).failed, 0U);
  EXPECT_EQ(driver.all_offs(), 320);
  EXPECT_EQ(driver.calls(), 5);
  table.all_on();
  EXPECT_EQ(driver.all_offs(), 0);
}

TEST(SwitchTable, ForcesOnWhatAnotherOneHasLeftOff) {
  StrictDriver driver;
  const auto a = context(driver, 1);
  SwitchTable(driver.driver()).off(a);
  EXPECT_EQ(driver.all_offs(), 8);
  SwitchTable table(driver.driver());
  table.on(a);
  EXPECT_EQ(driver.all_offs(), 8) << "it knows of none";
  table.on(a, true);
  EXPECT_EQ(driver.all_offs(), 0);
}

// ---- the socket -----------------------------------------------------------------------------------------------------

class Service : public testing::Test {
 protected:
  Service() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    ours_.reset(ends[0]);
    thread_ = std::thread([this, theirs = ends[1]] {
      std::vector<HelperService::Gpu> gpus(2);
      gpus[0].table = std::make_unique<SwitchTable>(driver_.driver());
      gpus[0].instance = 3;
      gpus[1].refused = 0x56;
      {
        HelperService service(theirs, std::move(gpus));
        EXPECT_TRUE(service.greet());
        service.run();
      }
      close(theirs);
    });
    EXPECT_EQ(recv(ours_.get(), &hello_, sizeof hello_, 0), static_cast<ssize_t>(sizeof hello_));
  }
  ~Service() override { end(); }
  void end() {
    ours_.reset();
    switcher_.reset();
    if (thread_.joinable()) thread_.join();
  }
  Switcher& switcher(std::chrono::milliseconds longest_silence = std::chrono::minutes(1)) {
    if (!switcher_) switcher_ = make_helper_switcher(std::move(ours_), hello_, {"a", "b"}, longest_silence);
    return *switcher_;
  }
  std::optional<Switcher::Answer> answer() {
    std::optional<Switcher::Answer> got;
    EXPECT_TRUE(before_deadline([&] { return (got = switcher().answer(lost_)).has_value() || lost_; }));
    return got;
  }

  StrictDriver driver_;
  host::broker::Fd ours_;
  Hello hello_{};
  std::unique_ptr<Switcher> switcher_;
  std::thread thread_;
  bool lost_ = false;
};

TEST_F(Service, ReportsTheGpusThatItCanSwitch) {
  EXPECT_EQ(hello_.gpus, 2U);
  EXPECT_EQ(switcher().place_of("a"), 0U);
  EXPECT_EQ(switcher().instance_of(0), 3U);
  EXPECT_FALSE(switcher().place_of("b")) << "the driver refuses it";
  EXPECT_FALSE(switcher().place_of("c"));
}

TEST_F(Service, CarriesAnOrderOut) {
  const auto a = context(driver_, 1), b = context(driver_, 2);
  ASSERT_TRUE(switcher().begin(0, {}, {{.channels = a}}, false));
  ASSERT_TRUE(answer());
  EXPECT_EQ(driver_.all_offs(), 8);
  ASSERT_TRUE(switcher().begin(0, {{.channels = a}}, {{.channels = b}}, false));
  const auto got = answer();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->failed, 0U);
  EXPECT_GT(got->took.count(), 0);
  EXPECT_EQ(driver_.offs(1, 1), 0);
  EXPECT_EQ(driver_.offs(2, 1), 1);
}

TEST_F(Service, AnOrderOfManyChannelsTakesMoreMessagesAndHasOneAnswer) {
  std::vector<SwitchedChannel> all;
  for (std::uint32_t client = 1; client <= 1100; ++client) {
    const auto one = context(driver_, client);
    all.insert(all.end(), one.begin(), one.end());
  }
  ASSERT_GT(all.size(), 2 * most_channels);
  ASSERT_TRUE(switcher().begin(0, {}, {{.channels = all}}, false));
  const auto got = answer();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->failed, 0U);
  EXPECT_EQ(driver_.all_offs(), 8800);
  EXPECT_FALSE(switcher().answer(lost_));
  ASSERT_TRUE(switcher().begin(0, {{.channels = all}}, {}, false));
  ASSERT_TRUE(answer());
  EXPECT_EQ(driver_.all_offs(), 0);
}

TEST_F(Service, ReportsThatAGpuIsLostWhileChannelsOfItAreOff) {
  const auto a = context(driver_, 1), b = context(driver_, 2);
  ASSERT_TRUE(switcher().begin(0, {}, {{.channels = a}}, false));
  ASSERT_TRUE(answer());
  driver_.lose();
  ASSERT_TRUE(switcher().begin(0, {{.channels = a}}, {{.channels = b}}, false));
  const auto got = answer();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->refused, host::rm::gpu_is_lost);
  EXPECT_EQ(got->failed, 16U);
  end();  // the helper exits nevertheless
}

TEST_F(Service, AWorkerWithoutChannelsNeedsNoCall) {
  ASSERT_TRUE(switcher().begin(0, {}, {{.process = 1, .channels = {}}}, false));
  EXPECT_TRUE(answer());
  EXPECT_EQ(driver_.calls(), 0);
}

TEST_F(Service, SwitchesAllOnWhenItsBrokerEnds) {
  ASSERT_TRUE(switcher().begin(0, {}, {{.channels = context(driver_, 1)}}, false));
  ASSERT_TRUE(answer());
  EXPECT_EQ(driver_.all_offs(), 8);
  end();
  EXPECT_EQ(driver_.all_offs(), 0);
}

TEST_F(Service, SwitchesAllOnAndReportsSoWhenItsBrokerIsSilent) {
  ASSERT_TRUE(switcher(std::chrono::milliseconds(1)).begin(0, {}, {{.channels = context(driver_, 1)}}, false));
  ASSERT_TRUE(answer());
  const auto got = answer();
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->everything_on);
  EXPECT_EQ(driver_.all_offs(), 0);
}

TEST_F(Service, EndsWithEverythingOnAtAMessageThatDoesNotFit) {
  const auto a = context(driver_, 1);
  for (const Switch order :
       {Switch{7, 0, 1, 1000, 0}, {0, 1, 1, 1000, 0}, {0, ~0U, 2, 1000, 0}, {0, 5000, 0, 1000, 0}}) {
    std::array<std::byte, sizeof(Switch) + sizeof(SwitchedChannel)> message{};
    std::memcpy(message.data(), &order, sizeof order);
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    std::vector<HelperService::Gpu> gpus(1);
    gpus[0].table = std::make_unique<SwitchTable>(driver_.driver());
    gpus[0].table->off(a);
    EXPECT_EQ(driver_.all_offs(), 8);
    {
      HelperService service(ends[1], std::move(gpus));
      ASSERT_EQ(send(ends[0], message.data(), message.size(), 0), static_cast<ssize_t>(message.size()));
      service.run();  // run() returns
    }
    EXPECT_EQ(driver_.all_offs(), 0);
    close(ends[0]), close(ends[1]);
  }
}

TEST_F(Service, ASwitcherWhoseHelperHasGoneReportsSo) {
  Switcher& ours = switcher();
  ASSERT_TRUE(ours.begin(0, {}, {{.channels = context(driver_, 1)}}, false));
  ASSERT_TRUE(answer());
  ASSERT_TRUE(ours.begin(0, {{.channels = std::vector<SwitchedChannel>(most_channels, {1, 1, 1})}}, {}, false));
  shutdown(ours.fd(), SHUT_RDWR);
  thread_.join();
  EXPECT_TRUE(before_deadline([&] { return !ours.answer(lost_) && lost_; }));
  EXPECT_EQ(driver_.all_offs(), 0);
}

}  // namespace

namespace {

// A starting worker has no pid in the file yet, like a free entry.
TEST(SimulatedSwitcher, AWorkerThatIsStartingSwitchesNobodyElseOff) {
  const int file = memfd_create("usage", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, sizeof(simgpu::UsageFile)), 0);
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  simgpu::UsageFile* const usage = simgpu::map_usage_file(path.c_str());
  ASSERT_NE(usage, nullptr);
  usage->entry[0].process = 7;
  const auto switcher = make_simulated_switcher(path, {"a"});
  ASSERT_TRUE(switcher);
  bool lost = false;
  ASSERT_TRUE(switcher->begin(0, {}, {{.process = 7, .channels = {}}, {}}, false));
  EXPECT_TRUE(switcher->answer(lost));
  EXPECT_EQ(usage->entry[0].off[0], 1U);
  EXPECT_EQ(usage->entry[1].off[0], 0U);
  ASSERT_TRUE(switcher->begin(0, {{.process = 7, .channels = {}}}, {}, false));
  EXPECT_EQ(usage->entry[0].off[0], 0U);
  munmap(usage, sizeof *usage);
  close(file);
}

}  // namespace
