// A VM whose region is persistent memory: the label that the VM's kernel reads, and doorbell channels, with valid and
// invalid messages. The tests use a real ivgpud and fake workers, and stand in for the VM and QEMU.
#include <sys/stat.h>

#include "host/broker/region/dax_label.h"
#include "host/broker/transport/transport.h"
#include "tests/unit/broker/doorbell_port.h"
#include "tests/unit/broker/opened_memory.h"

namespace {

using namespace broker_test;
using ring::SlotState;

// Idle polls are so rare here that an immediate reaction must come from a channel.
std::string pmem(const std::string& file, const std::string& more = "") {
  return "transport = \"pmem\"\ndoorbell_idle_poll_ms = 500\nplain_file = \"" + file + "\"\n" + more;
}

// The guest's devdax device is the memory behind the label.
struct Vm : OpenedMemory {
  explicit Vm(const std::string& path) : OpenedMemory(path, ring::devdax_start) {}
};

// The checksum as the guest's kernel computes it: over the page, with a checksum field of 0.
std::uint64_t sum(host::broker::DaxLabel label) {
  label.checksum = 0;
  std::uint32_t words[1024], low = 0;
  std::memcpy(words, &label, sizeof words);
  std::uint64_t high = 0;
  for (const std::uint32_t word : words) low += word, high += low;
  return high << 32 | low;
}

TEST(Pmem, TheGuestsKernelFindsADevdaxNamespaceOfTheRegionsSize) {
  const std::string file = memory_file("label");
  Broker broker(pmem(file));
  Vm vm(file);
  ASSERT_TRUE(vm.there()) << broker.log();
  EXPECT_EQ(vm.bytes(), (128u << 20) + ring::devdax_start);
  host::broker::DaxLabel label;
  std::memcpy(&label, vm.memory() + host::broker::dax_label_offset, sizeof label);
  EXPECT_STREQ(label.signature, "NVDIMM_DAX_INFO");
  EXPECT_EQ(label.data_offset, ring::devdax_start);
  EXPECT_EQ(label.pages * label.page_size, 128u << 20);
  EXPECT_EQ(label.align, 4096u);
  EXPECT_EQ(label.checksum, sum(label));
  EXPECT_EQ(vm.header().magic, ring::region_magic);
  EXPECT_EQ(vm.header().region_bytes, 128u << 20);
  EXPECT_EQ(vm.header().no_doorbell, 1u);
  EXPECT_EQ(vm.header().guest_vectors, vm.header().slot_count);
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Pmem, ALabelThatAGuestHasSpoiltIsThereForItsNextStart) {
  const std::string file = memory_file("spoilt");
  Broker broker(pmem(file));
  {
    Vm vm(file);
    ASSERT_TRUE(vm.there());
    std::memset(vm.memory(), 0x5a, ring::devdax_start);
    ASSERT_TRUE(broker.eventually_logged("t: a VM has opened its memory"));
  }
  ASSERT_TRUE(broker.eventually_logged("t: the VM has ended"));
  Vm next(file);
  host::broker::DaxLabel label;
  EXPECT_TRUE(eventually([&] {  // the status changes after the broker has logged the line
    std::memcpy(&label, next.memory() + host::broker::dax_label_offset, sizeof label);
    return label.checksum == sum(label);
  }));
  EXPECT_EQ(std::memcmp(label.signature, "NVDIMM_DAX_INFO", sizeof "NVDIMM_DAX_INFO"), 0);
}

TEST(Pmem, AChannelHasTheBrokerLookAndWakesTheSlotThatItNames) {
  const std::string file = memory_file("woken");
  Broker broker(pmem(file, "slots = 2"));
  Vm vm(file);
  ASSERT_TRUE(vm.claim(0));
  Port port(broker.socket_path());
  ASSERT_TRUE(port.say(ring::doorbell_look));
  EXPECT_TRUE(vm.becomes(1, SlotState::Ready));
  ASSERT_TRUE(port.say(0));
  EXPECT_TRUE(port.heard_once()) << "the worker may have rung before";
  vm.ask_for_interrupt(0);
  ASSERT_TRUE(port.say(ring::doorbell_look));
  EXPECT_TRUE(port.heard_once());
  EXPECT_EQ(vm.command(0)[2], 'y');
  EXPECT_EQ(broker.terminate(), 0);
}

// The timer expires only once an hour here, which no configuration file allows.
TEST(Pmem, AChannelHasTheBrokerLookWithoutItsTimer) {
  const Folder folder;
  host::broker::VmOptions options;
  options.name = "t", options.transport = "pmem", options.region_size = 128 << 20, options.slots = 2,
  options.connections = 4;
  options.socket_mode = 0600;
  options.doorbell_poll_us = 3'600'000'000, options.doorbell_idle_poll_ms = 3'600'000;
  host::broker::BrokerOptions broker;
  broker.runtime_dir = folder.path();
  host::broker::EventLoop loop;
  const std::unique_ptr<host::broker::Region> region = host::broker::Region::create(options, {}).value();
  int signalled = 0;
  const std::unique_ptr<host::broker::Transport> transport =
      host::broker::make_transport(loop, *region, options, broker, {},
                                   {.signalled = [&] { ++signalled, loop.stop(); },
                                    .peer_gone = [](auto) {},
                                    .vm_gone = [] {},
                                    .holder_gone = [](auto) {},
                                    .channel_named = [](auto, auto) {}})
          .value();
  Vm vm(transport->memory());
  ASSERT_TRUE(vm.there());
  vm.ring_peer(ring::peer_broker);
  const Port port(transport->socket());
  ASSERT_TRUE(port.say(ring::doorbell_look));
  loop.after(test_deadline, [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(signalled, 1);
}

TEST(Pmem, WithoutAChannelAVmIsServedAllTheSame) {
  const std::string file = memory_file("without");
  Broker broker(pmem(file, "slots = 2"));
  Vm vm(file);
  ASSERT_TRUE(vm.claim(0));
  EXPECT_TRUE(vm.becomes(1, SlotState::Ready)) << "the bit was not seen";
  vm.ask_for_interrupt(0);
  EXPECT_TRUE(eventually([&] { return vm.command(0)[2] == 'y'; }));
  Port late(broker.socket_path());
  ASSERT_TRUE(late.say(0));
  EXPECT_TRUE(late.heard_once());
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Pmem, TheChannelThatNamedASlotLastHasIt) {
  const std::string file = memory_file("last");
  Broker broker(pmem(file, "slots = 2"));
  Vm vm(file);
  ASSERT_TRUE(vm.claim(0));
  Port first(broker.socket_path()), second(broker.socket_path());
  first.say(0), second.say(ring::doorbell_look);
  EXPECT_TRUE(first.heard_once());
  second.say(0);
  EXPECT_TRUE(second.heard_once());
  vm.ask_for_interrupt(0);
  EXPECT_TRUE(second.heard_once());
  EXPECT_EQ(first.woken(), 0);
  first.say(0);
  EXPECT_TRUE(first.heard_once());
  first.end();  // no program uses the slot, so a worker's interrupt is harmless
  vm.command(0)[2] = 0;
  vm.ring_peer(ring::peer_of_slot(0));
  EXPECT_TRUE(eventually([&] { return vm.command(0)[2] == 'y'; }));
  EXPECT_EQ(second.woken(), 0);
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Pmem, NonsenseIsReportedOnceAndChangesNothing) {
  const std::string file = memory_file("nonsense");
  Broker broker(pmem(file, "slots = 2"));
  Vm vm(file);
  ASSERT_TRUE(vm.there());
  const auto begin = std::chrono::steady_clock::now();
  Port port(broker.socket_path()), flooding(broker.socket_path());
  for (int byte = 2; byte < 256; ++byte) ASSERT_TRUE(port.say(static_cast<unsigned char>(byte)));
  EXPECT_TRUE(broker.eventually_logged("t: a doorbell channel says 0x02, which means nothing"));
  // Sends both slots' numbers, look requests and invalid bytes as fast as the broker reads them, and reads nothing.
  std::string all(4096, '\0');
  for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<char>(k * 31 % 256);
  for (int round = 0; round < 2000; ++round) {
    flooding.flood(all);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  const std::size_t lines = broker.times_logged("which means nothing");
  EXPECT_LE(static_cast<double>(lines), 1 + seconds_since(begin)) << "once a second";
  ASSERT_TRUE(vm.claim(0));
  EXPECT_TRUE(vm.becomes(1, SlotState::Ready)) << "the broker has no time any more";
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Pmem, MoreChannelsThanConnectionsAreRefused) {
  const std::string file = memory_file("full");
  Broker broker(pmem(file, "connections = 1"));
  Port first(broker.socket_path());
  ASSERT_TRUE(first.say(0));
  EXPECT_TRUE(first.heard_once());
  Port second(broker.socket_path());
  EXPECT_TRUE(second.ended());
  EXPECT_TRUE(broker.eventually_logged("t: a doorbell channel is refused: there are 1 already"));
  first.end();
  EXPECT_TRUE(eventually([&] {
    Port next(broker.socket_path());
    return next.say(0) && next.heard();
  }));
  EXPECT_EQ(broker.terminate(), 0);
}

TEST(Pmem, TheBrokersEndEndsTheChannels) {
  const std::string file = memory_file("ends");
  Broker broker(pmem(file));
  Port port(broker.socket_path());
  ASSERT_TRUE(port.say(0));
  EXPECT_TRUE(port.heard_once());
  EXPECT_EQ(broker.terminate(), 0);
  EXPECT_TRUE(port.ended());
}

}  // namespace
