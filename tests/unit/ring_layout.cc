// The layout as the page at its head tells it, stated here a second time: offsets, sizes, what shares a cache line, how
// a region of a given size is divided.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "ring/layout.h"
#include "ring/region_view.h"
#include "ring/view.h"
#include "tests/other_side.h"

// tests/unit/ring_layout_in_c.c
extern "C" const std::size_t ivgpu_sizes_in_c[10];
extern "C" const std::uint64_t ivgpu_numbers_in_c[12];
extern "C" int ivgpu_lane_is_free(const ring::LaneControl* lane);

namespace {

using ring::SlotState, ring::SlotWord;

TEST(Layout, RegionHeaderIsThePageThatTheBrokerWrites) {
  EXPECT_EQ(offsetof(ring::RegionHeader, magic), 0u);
  EXPECT_EQ(offsetof(ring::RegionHeader, version), 8u);
  EXPECT_EQ(offsetof(ring::RegionHeader, slot_count), 12u);
  EXPECT_EQ(offsetof(ring::RegionHeader, generation), 16u);
  EXPECT_EQ(offsetof(ring::RegionHeader, region_bytes), 24u);
  EXPECT_EQ(offsetof(ring::RegionHeader, first_slot), 32u);
  EXPECT_EQ(offsetof(ring::RegionHeader, slot_bytes), 40u);
  EXPECT_EQ(offsetof(ring::RegionHeader, vm), 48u);
  EXPECT_EQ(offsetof(ring::RegionHeader, heartbeat), 128u);
  EXPECT_EQ(offsetof(ring::RegionHeader, wanted), 192u);
  EXPECT_EQ(offsetof(ring::RegionHeader, release), 320u);
  EXPECT_EQ(offsetof(ring::RegionHeader, common_offset), 352u);
  EXPECT_EQ(offsetof(ring::RegionHeader, common_bytes), 360u);
  EXPECT_EQ(offsetof(ring::RegionHeader, bell_port), 368u);
  EXPECT_EQ(offsetof(ring::RegionHeader, gpu_questions), 384u) << "the guests' line";
  EXPECT_EQ(sizeof(ring::RegionHeader), 448u);
  EXPECT_LE(sizeof(ring::RegionHeader), 4096u);
}

TEST(Layout, MagicsReadAsTextInADump) {
  const std::uint64_t region = ring::region_magic, slot = ring::slot_magic;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(&region), 8), std::string("\x1a\nIVGPU1"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(&slot), 8), std::string("\x1a\nIVslot"));
}

TEST(Layout, DirectoryFollowsTheHeaderOneLineASlot) {
  EXPECT_EQ(sizeof(ring::SlotEntry), 64u);
  EXPECT_EQ(ring::slot_entry_offset(0), 4096u);
  EXPECT_EQ(ring::slot_entry_offset(63), 4096u + 63 * 64);
  EXPECT_EQ(offsetof(ring::SlotEntry, owner), 8u);
  EXPECT_EQ(offsetof(ring::SlotOwner, boot), 0u);
  EXPECT_EQ(offsetof(ring::SlotOwner, pid_space), 8u);
  EXPECT_EQ(offsetof(ring::SlotOwner, start_time), 16u);
  EXPECT_EQ(offsetof(ring::SlotOwner, pid), 24u);
  EXPECT_EQ(offsetof(ring::SlotOwner, peer), 28u);
  EXPECT_LE(ring::slot_entry_offset(ring::max_slots), ring::vm_page_offset);
}

TEST(Layout, TheVmHasAPageOfItsOwnBehindTheDirectory) {
  EXPECT_EQ(ring::vm_page_offset, 8192u);
  EXPECT_EQ(sizeof(ring::VmPage), 4096u);
  EXPECT_EQ(ring::vm_page_version, 2u);
  EXPECT_EQ(offsetof(ring::VmPage, version), 0u);
  EXPECT_EQ(offsetof(ring::VmPage, sequence), 4u);
  EXPECT_EQ(offsetof(ring::VmPage, answered), 8u);
  EXPECT_EQ(offsetof(ring::VmPage, gpu_count), 12u);
  EXPECT_EQ(offsetof(ring::VmPage, cuda_version), 16u);
  EXPECT_EQ(offsetof(ring::VmPage, driver), 20u);
  EXPECT_EQ(offsetof(ring::VmPage, reserved), 96u);
  EXPECT_EQ(ring::region_header_bytes, ring::vm_page_offset + sizeof(ring::VmPage));
}

TEST(Layout, TheVmsGpusEndTheRegionsFront) {
  EXPECT_EQ(ring::vm_gpus_offset, 12288u);
  EXPECT_EQ(sizeof(ring::VmGpu), 1024u);
  EXPECT_EQ(offsetof(ring::VmGpu, uuid), 0u);
  EXPECT_EQ(offsetof(ring::VmGpu, name), 96u);
  EXPECT_EQ(offsetof(ring::VmGpu, bus_id), 160u);
  EXPECT_EQ(offsetof(ring::VmGpu, vbios), 192u);
  EXPECT_EQ(offsetof(ring::VmGpu, memory_total), 216u);
  EXPECT_EQ(offsetof(ring::VmGpu, memory_reserved), 224u);
  EXPECT_EQ(offsetof(ring::VmGpu, memory_free), 232u);
  EXPECT_EQ(offsetof(ring::VmGpu, known), 240u);
  EXPECT_EQ(offsetof(ring::VmGpu, fact), 248u);
  EXPECT_EQ(sizeof(ring::VmGpu::fact) / 4, sizeof(ring::VmGpu::known) * 8) << "a bit for each";
  EXPECT_EQ(offsetof(ring::VmGpu, used_by), 504u);
  EXPECT_EQ(sizeof(ring::VmGpu::used_by) / 8, ring::max_slots);
  EXPECT_EQ(offsetof(ring::VmGpu, state), 1016u);
  EXPECT_EQ(ring::front_bytes, 28672u);
  EXPECT_EQ(ring::front_bytes, ring::vm_gpus_offset + ring::max_devices * sizeof(ring::VmGpu));
  EXPECT_LE(ring::front_bytes, ring::first_slot_offset);
}

TEST(Layout, SlotHeaderAndDevicePage) {
  EXPECT_EQ(offsetof(ring::SlotHeader, magic), 0u);
  EXPECT_EQ(offsetof(ring::SlotHeader, version), 8u);
  EXPECT_EQ(offsetof(ring::SlotHeader, channels), 12u);
  EXPECT_EQ(offsetof(ring::SlotHeader, arena_offset), 16u);
  EXPECT_EQ(offsetof(ring::SlotHeader, arena_bytes), 24u);
  EXPECT_EQ(offsetof(ring::SlotHeader, spin_us), 32u);
  EXPECT_EQ(offsetof(ring::SlotHeader, driver_calls), 36u);
  EXPECT_EQ(offsetof(ring::SlotHeader, session_calls), 38u);
  EXPECT_EQ(offsetof(ring::SlotHeader, fault), 64u);
  EXPECT_EQ(offsetof(ring::SlotHeader, opened), 128u);
  EXPECT_EQ(offsetof(ring::DevicePage, driver_version), 0u);
  EXPECT_EQ(offsetof(ring::DevicePage, device_count), 4u);
  EXPECT_EQ(offsetof(ring::DevicePage, init_result), 8u);
  EXPECT_EQ(offsetof(ring::DevicePage, simulated), 12u);
  EXPECT_EQ(offsetof(ring::DevicePage, device), 16u);
  EXPECT_EQ(sizeof(ring::DeviceInfo), 2040u);
  EXPECT_EQ(sizeof(ring::SlotHeader::opened) * 8, ring::max_channels) << "a bit for each channel";
  EXPECT_LE(ring::device_page_offset + sizeof(ring::DevicePage), ring::lanes_offset);
}

TEST(Layout, LanesHaveAPageOfTheirOwnBeforeTheChannels) {
  using L = ring::LaneControl;
  EXPECT_EQ(ring::max_lanes, 8u);
  EXPECT_EQ(ring::lane_offset(0), 60u << 10);
  EXPECT_EQ(ring::lane_offset(7), (60u << 10) + 7 * 128);
  EXPECT_LE(ring::lane_offset(ring::max_lanes), ring::channel_offset(0));
  EXPECT_EQ(offsetof(L, token), 0u);
  EXPECT_EQ(offsetof(L, kind), 8u);
  EXPECT_EQ(offsetof(L, sequence), 16u);
  EXPECT_EQ(offsetof(L, done), 64u) << "the guest's line";
  EXPECT_EQ(offsetof(L, result), 72u);
}

TEST(Layout, AChannelsBitIsOneOfAllOfThem) {
  EXPECT_EQ(ring::channel_bit(0), 1u);
  EXPECT_EQ(ring::channel_bit(63), std::uint64_t{1} << 63);
  EXPECT_EQ(ring::first_channels(0), 0u);
  EXPECT_EQ(ring::first_channels(1), 1u);
  EXPECT_EQ(ring::first_channels(63), ~std::uint64_t{0} >> 1);
  EXPECT_EQ(ring::first_channels(ring::max_channels), ~std::uint64_t{0});
}

// What one side polls and the other writes must not be dragged along by somebody else's writes.
TEST(Layout, WordsWithDifferentWritersHaveLinesOfTheirOwn) {
  using C = ring::ChannelControl;
  const std::vector<std::size_t> guest = {offsetof(C, tail), offsetof(C, guest_asleep)};
  const std::vector<std::size_t> worker = {offsetof(C, head),           offsetof(C, worker_asleep),
                                           offsetof(C, executed),       offsetof(C, reply_position),
                                           offsetof(C, deferred_count), offsetof(C, completion)};
  for (const std::size_t g : guest)
    for (const std::size_t w : worker) EXPECT_NE(g / 64, w / 64) << g << " and " << w;
  EXPECT_EQ(offsetof(C, reply_length), 264u);
  EXPECT_EQ(offsetof(C, reply_result), 268u);
  EXPECT_EQ(offsetof(C, deferred_result), 388u);
  EXPECT_EQ(offsetof(C, queued), 392u);
  EXPECT_EQ(offsetof(C, completion), 448u);
  EXPECT_EQ(sizeof(C::completion), 256u);
}

TEST(Layout, ChannelsLieOneAfterTheOtherBelowTheArena) {
  EXPECT_EQ(ring::channel_offset(0), 64u << 10);
  EXPECT_EQ(ring::channel_bytes, 4096u + (128u << 10) + (64u << 10));
  for (std::uint32_t c = 0; c < ring::max_channels; ++c) {
    EXPECT_EQ(ring::channel_offset(c) % 4096, 0u);
    EXPECT_EQ(ring::request_offset(c), ring::channel_offset(c) + 4096);
    EXPECT_EQ(ring::reply_offset(c), ring::request_offset(c) + (128u << 10));
    EXPECT_EQ(ring::channel_offset(c + 1), ring::reply_offset(c) + (64u << 10));
  }
  EXPECT_LE(ring::channel_offset(64), 16u << 20);
  EXPECT_EQ(ring::arena_offset, 16u << 20);
  EXPECT_EQ(ring::min_slot_bytes, 26u << 20);
}

TEST(Layout, CHasTheSame) {
  constexpr std::size_t sizes[] = {sizeof(ring::RegionHeader),  sizeof(ring::SlotOwner),  sizeof(ring::SlotEntry),
                                   sizeof(ring::VmPage),        sizeof(ring::VmGpu),      sizeof(ring::SlotHeader),
                                   sizeof(ring::DeviceInfo),    sizeof(ring::DevicePage), sizeof(ring::LaneControl),
                                   sizeof(ring::ChannelControl)};
  for (std::size_t i = 0; i < std::size(sizes); ++i) EXPECT_EQ(ivgpu_sizes_in_c[i], sizes[i]) << i;
  constexpr std::uint64_t numbers[] = {ring::region_magic,   ring::slot_magic,
                                       ring::layout_version, ring::arena_offset,
                                       ring::channel_bytes,  ring::window_address(0),
                                       ring::window_bytes,   ring::lane_offset(0),
                                       ring::vm_page_offset, static_cast<std::uint64_t>(ring::SlotState::Claimed),
                                       ring::vm_gpus_offset, ring::front_bytes};
  for (std::size_t i = 0; i < std::size(numbers); ++i) EXPECT_EQ(ivgpu_numbers_in_c[i], numbers[i]) << i;
  ring::LaneControl lane{};
  EXPECT_EQ(ivgpu_lane_is_free(&lane), 1);
  lane.sequence = 1;
  EXPECT_EQ(ivgpu_lane_is_free(&lane), 0);
  lane.done = 1;
  EXPECT_EQ(ivgpu_lane_is_free(&lane), 1);
}

TEST(Layout, WindowsDoNotTouchAndSuitAnyProgram) {
  EXPECT_EQ(ring::window_address(0), 0x7e80'0000'0000u);
  for (std::uint32_t w = 1; w < ring::window_count; ++w)
    EXPECT_EQ(ring::window_address(w), ring::window_address(w - 1) + (64ULL << 30));
  EXPECT_LT(ring::window_address(ring::window_count), 1ULL << 47);
}

TEST(Layout, ARecordAtTheWrapAlwaysFitsIntoAnEmptyRing) {
  EXPECT_EQ(ring::max_record * 2, ring::request_bytes);
  EXPECT_EQ(ring::request_bytes & (ring::request_bytes - 1), 0u);
}

TEST(Layout, ARegionIsDividedIntoEqualSlotsOnHugePages) {
  constexpr std::size_t mib = 1 << 20;
  EXPECT_EQ(ring::slot_bytes_for(1024 * mib, 4), 254 * mib);
  EXPECT_EQ(ring::slot_bytes_for(16 * mib, 1), 14 * mib);
  EXPECT_EQ(ring::slot_bytes_for(16 * mib, 3), 4 * mib);  // 4 2/3, rounded down to a huge page
  EXPECT_EQ(ring::slot_bytes_for(16 * mib, 0), 0u);
  EXPECT_EQ(ring::slot_bytes_for(2 * mib, 1), 0u);
  EXPECT_EQ(ring::slot_bytes_for(0, 1), 0u);
}

TEST(Layout, PeersOfTheHostComeBeforeThoseOfGuests) {
  EXPECT_EQ(ring::peer_broker, 0u);
  EXPECT_EQ(ring::peer_of_slot(0), 1u);
  EXPECT_EQ(ring::peer_of_slot(63), 64u);
  EXPECT_EQ(ring::first_guest_peer, 65u);
}

TEST(SlotWord, KeepsEpochAndState) {
  for (const std::uint32_t epoch : {0u, 1u, 0x123456u, 0xffffffu})
    for (const SlotState state : {SlotState::Empty, SlotState::Starting, SlotState::Ready, SlotState::Claimed,
                                  SlotState::Released, SlotState::Dead}) {
      const SlotWord back = SlotWord::of(SlotWord{epoch, state}.word());
      EXPECT_EQ(back.epoch, epoch);
      EXPECT_EQ(back.state, state);
    }
  EXPECT_EQ((SlotWord{3, SlotState::Ready}.word()), 0x302u);
}

TEST(SlotWord, NextEpochIsEmptyAndWrapsWithin24Bits) {
  EXPECT_EQ((SlotWord{7, SlotState::Dead}.next().word()), 0x800u);
  EXPECT_EQ((SlotWord{0xffffff, SlotState::Released}.next().word()), 0u);
  EXPECT_EQ((SlotWord{7, SlotState::Ready}.with(SlotState::Claimed).word()), 0x703u);
}

TEST(SlotView, FindsTheSamePlaces) {
  alignas(64) static std::byte slot[ring::arena_offset];
  const ring::SlotView view(slot, sizeof slot + ring::huge_page);
  view.header()[&ring::SlotHeader::version].store(77);
  EXPECT_EQ(other_side::header(view).version, 77u);
  EXPECT_EQ(static_cast<void*>(&other_side::header(view)), slot);
  view.device_page()[&ring::DevicePage::driver_version].store(78);
  EXPECT_EQ(other_side::at<ring::DevicePage>(slot, 4096).driver_version, 78u);
  view.control(2)[&ring::ChannelControl::executed].store(79);
  EXPECT_EQ(other_side::at<ring::ChannelControl>(slot, ring::channel_offset(2)).executed, 79u);
  EXPECT_EQ(view.requests(2).bytes.write_only(0), slot + ring::request_offset(2));
  EXPECT_EQ(view.requests(2).size(), ring::request_bytes);
  EXPECT_EQ(view.requests(2).tail.futex_word(), &other_side::control(view, 2).tail);
  EXPECT_EQ(view.requests(2).head.futex_word(), &other_side::control(view, 2).head);
  EXPECT_EQ(view.reply(63).write_only(0), slot + ring::reply_offset(63));
  EXPECT_EQ(view.reply(63).size(), ring::reply_bytes);
  EXPECT_EQ(view.arena_bytes(), ring::huge_page);
  EXPECT_EQ(ring::SlotView(slot, ring::arena_offset).arena_bytes(), 0u);
  EXPECT_EQ(ring::SlotView(slot, 1).arena_bytes(), 0u);
}

TEST(RegionView, FindsTheSamePlaces) {
  alignas(64) static std::byte front[ring::front_bytes];
  const ring::RegionView view(front);
  view.header()[&ring::RegionHeader::gpu_questions].store(77);
  EXPECT_EQ(other_side::at<std::uint32_t>(front, 384), 77u);
  view.vm_page()[&ring::VmPage::answered].store(78);
  EXPECT_EQ(other_side::at<std::uint32_t>(front, 8192 + 8), 78u);
  view.vm_gpu(ring::max_devices - 1)[&ring::VmGpu::state].store(79);
  EXPECT_EQ(other_side::at<std::uint32_t>(front, 12288 + 15 * 1024 + 1016), 79u);
}

}  // namespace
