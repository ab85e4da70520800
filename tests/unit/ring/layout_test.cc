// The layout: words that share a cache line, address computations, the division of a region, and equal structs in C.
// tests/docs/wire_format_test.cc tests each field's offset and each constant.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "ring/layout/layout.h"
#include "ring/layout/region_view.h"
#include "ring/view.h"
#include "tests/other_side.h"

// Defined in tests/unit/ring/layout_in_c.c.
extern "C" const std::size_t ivgpu_sizes_in_c[10];
extern "C" const std::uint64_t ivgpu_numbers_in_c[12];
extern "C" int ivgpu_callback_slot_is_free(const ring::CallbackSlot* callback_slot);

namespace {

using ring::SlotState, ring::SlotWord;

TEST(Layout, MagicsReadAsTextInADump) {
  const std::uint64_t region = ring::region_magic, slot = ring::slot_magic;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(&region), 8), std::string("\x1a\nIVGPU1"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(&slot), 8), std::string("\x1a\nIVslot"));
}

TEST(Layout, AnEntryAndACallbackSlotLieAtTheirIndex) {
  EXPECT_EQ(ring::slot_entry_offset(0), 4096u);
  EXPECT_EQ(ring::slot_entry_offset(63), 4096u + 63 * 64);
  EXPECT_EQ(ring::callback_slot_offset(0), 60u << 10);
  EXPECT_EQ(ring::callback_slot_offset(7), (60u << 10) + 7 * 128);
}

TEST(Layout, EachFactAndEachChannelHasABit) {
  EXPECT_EQ(std::size(ring::VmGpu{}.fact), sizeof(ring::VmGpu::known) * 8);
  EXPECT_EQ(sizeof(ring::SlotHeader::opened) * 8, ring::max_channels);
  EXPECT_EQ(std::size(ring::VmGpu{}.used_by), ring::max_slots) << "a number for each session";
}

TEST(Layout, AChannelsBitIsOneOfAllOfThem) {
  EXPECT_EQ(ring::channel_bit(0), 1u);
  EXPECT_EQ(ring::channel_bit(63), std::uint64_t{1} << 63);
  EXPECT_EQ(ring::first_channels(0), 0u);
  EXPECT_EQ(ring::first_channels(1), 1u);
  EXPECT_EQ(ring::first_channels(63), ~std::uint64_t{0} >> 1);
  EXPECT_EQ(ring::first_channels(ring::max_channels), ~std::uint64_t{0});
}

// A word that one side polls must not share a cache line with a word that the peer writes.
TEST(Layout, WordsWithDifferentWritersHaveLinesOfTheirOwn) {
  using R = ring::RegionHeader;
  using S = ring::SlotHeader;
  using L = ring::CallbackSlot;
  using C = ring::ChannelControl;
  using Offsets = std::vector<std::size_t>;
  const auto apart = [](const char* what, const Offsets& guest, const Offsets& host) {
    for (const std::size_t g : guest)
      for (const std::size_t h : host) EXPECT_NE(g / ring::line, h / ring::line) << what << ": " << g << " and " << h;
  };
  apart("region", {offsetof(R, wanted), offsetof(R, gpu_questions)},
        {offsetof(R, magic), offsetof(R, guest_vectors), offsetof(R, heartbeat), offsetof(R, release),
         offsetof(R, doorbell_port)});
  apart("slot", {offsetof(S, opened), offsetof(S, callbacks_asleep)},
        {offsetof(S, magic), offsetof(S, session_calls), offsetof(S, fault), offsetof(S, output),
         offsetof(S, heartbeat)});
  apart("lane", {offsetof(L, done), offsetof(L, result)},
        {offsetof(L, token), offsetof(L, kind), offsetof(L, sequence), offsetof(L, worker_asleep)});
  apart("channel", {offsetof(C, tail), offsetof(C, guest_asleep), offsetof(C, guest_awaits)},
        {offsetof(C, head), offsetof(C, worker_asleep), offsetof(C, executed), offsetof(C, reply_position),
         offsetof(C, deferred_count), offsetof(C, unused), offsetof(C, completion)});
}

TEST(Layout, ChannelsLieOneAfterTheOther) {
  for (std::uint32_t c = 0; c < ring::max_channels; ++c) {
    EXPECT_EQ(ring::channel_offset(c) % ring::page, 0u);
    EXPECT_EQ(ring::request_offset(c), ring::channel_offset(c) + ring::control_bytes);
    EXPECT_EQ(ring::reply_offset(c), ring::request_offset(c) + ring::request_bytes);
    EXPECT_EQ(ring::channel_offset(c + 1), ring::reply_offset(c) + ring::reply_bytes);
  }
}

TEST(Layout, CHasTheSame) {
  constexpr std::size_t sizes[] = {sizeof(ring::RegionHeader),  sizeof(ring::SlotOwner),  sizeof(ring::SlotEntry),
                                   sizeof(ring::VmPage),        sizeof(ring::VmGpu),      sizeof(ring::SlotHeader),
                                   sizeof(ring::DeviceInfo),    sizeof(ring::DevicePage), sizeof(ring::CallbackSlot),
                                   sizeof(ring::ChannelControl)};
  for (std::size_t i = 0; i < std::size(sizes); ++i) EXPECT_EQ(ivgpu_sizes_in_c[i], sizes[i]) << i;
  constexpr std::uint64_t numbers[] = {ring::region_magic,   ring::slot_magic,
                                       ring::layout_version, ring::arena_offset,
                                       ring::channel_bytes,  ring::window_address(0),
                                       ring::window_bytes,   ring::callback_slot_offset(0),
                                       ring::vm_page_offset, static_cast<std::uint64_t>(ring::SlotState::Claimed),
                                       ring::vm_gpus_offset, ring::header_area_bytes};
  for (std::size_t i = 0; i < std::size(numbers); ++i) EXPECT_EQ(ivgpu_numbers_in_c[i], numbers[i]) << i;
  ring::CallbackSlot callback_slot{};
  EXPECT_EQ(ivgpu_callback_slot_is_free(&callback_slot), 1);
  callback_slot.sequence = 1;
  EXPECT_EQ(ivgpu_callback_slot_is_free(&callback_slot), 0);
  callback_slot.done = 1;
  EXPECT_EQ(ivgpu_callback_slot_is_free(&callback_slot), 1);
}

TEST(Layout, WindowsDoNotTouchAndSuitAnyProgram) {
  for (std::uint32_t w = 1; w < ring::window_count; ++w)
    EXPECT_EQ(ring::window_address(w), ring::window_address(w - 1) + ring::window_bytes);
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
  EXPECT_EQ(ring::slot_bytes_for(16 * mib, 3), 4 * mib);  // 4 2/3 MiB, rounded down to a multiple of a huge page
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
  alignas(64) static std::byte front[ring::header_area_bytes];
  const ring::RegionView view(front);
  view.header()[&ring::RegionHeader::gpu_questions].store(77);
  EXPECT_EQ(other_side::at<std::uint32_t>(front, 384), 77u);
  view.vm_page()[&ring::VmPage::answered].store(78);
  EXPECT_EQ(other_side::at<std::uint32_t>(front, 8192 + 8), 78u);
  view.vm_gpu(ring::max_devices - 1)[&ring::VmGpu::state].store(79);
  EXPECT_EQ(other_side::at<std::uint32_t>(front, 12288 + 15 * 1024 + 1016), 79u);
}

}  // namespace
