// Compares docs/wire-format.md with the headers: every offset, size and constant must match, and no field may be
// omitted.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ring/api/records.h"
#include "ring/layout/layout.h"
#include "ring/wire/record.h"
#include "tests/docs/markdown.h"

namespace {

struct Place {
  std::size_t offset, bytes;
  bool operator==(const Place&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Place& p) { return out << p.bytes << " bytes at " << p.offset; }

using Fields = std::map<std::string, Place>;
using Structs = std::map<std::string, Fields>;

// The headers' values. A check below finds a field that is missing from this list, by the bytes between fields.
Structs in_the_headers() {
  Structs all;
#define FIELD(space, type, field) all[#type][#field] = Place{offsetof(space::type, field), sizeof(space::type::field)};
  FIELD(ring, RegionHeader, magic)
  FIELD(ring, RegionHeader, version)
  FIELD(ring, RegionHeader, slot_count)
  FIELD(ring, RegionHeader, generation)
  FIELD(ring, RegionHeader, region_bytes)
  FIELD(ring, RegionHeader, first_slot)
  FIELD(ring, RegionHeader, slot_bytes)
  FIELD(ring, RegionHeader, vm)
  FIELD(ring, RegionHeader, no_doorbell)
  FIELD(ring, RegionHeader, guest_vectors)
  FIELD(ring, RegionHeader, heartbeat)
  FIELD(ring, RegionHeader, wanted)
  FIELD(ring, RegionHeader, doorbell_bits)
  FIELD(ring, RegionHeader, release)
  FIELD(ring, RegionHeader, common_offset)
  FIELD(ring, RegionHeader, common_bytes)
  FIELD(ring, RegionHeader, doorbell_port)
  FIELD(ring, RegionHeader, gpu_questions)
  FIELD(ring, SlotEntry, state)
  FIELD(ring, SlotEntry, pinned)
  FIELD(ring, SlotEntry, owner)
  FIELD(ring, SlotEntry, program)
  FIELD(ring, SlotOwner, boot)
  FIELD(ring, SlotOwner, pid_space)
  FIELD(ring, SlotOwner, start_time)
  FIELD(ring, SlotOwner, pid)
  FIELD(ring, SlotOwner, peer)
  FIELD(ring, VmPage, version)
  FIELD(ring, VmPage, sequence)
  FIELD(ring, VmPage, answered)
  FIELD(ring, VmPage, gpu_count)
  FIELD(ring, VmPage, cuda_version)
  FIELD(ring, VmPage, driver)
  FIELD(ring, VmPage, reserved)
  FIELD(ring, VmGpu, uuid)
  FIELD(ring, VmGpu, name)
  FIELD(ring, VmGpu, bus_id)
  FIELD(ring, VmGpu, vbios)
  FIELD(ring, VmGpu, memory_total)
  FIELD(ring, VmGpu, memory_reserved)
  FIELD(ring, VmGpu, memory_free)
  FIELD(ring, VmGpu, known)
  FIELD(ring, VmGpu, fact)
  FIELD(ring, VmGpu, used_by)
  FIELD(ring, VmGpu, state)
  FIELD(ring, VmGpu, reserved)
  FIELD(ring, SlotHeader, magic)
  FIELD(ring, SlotHeader, version)
  FIELD(ring, SlotHeader, channels)
  FIELD(ring, SlotHeader, arena_offset)
  FIELD(ring, SlotHeader, arena_bytes)
  FIELD(ring, SlotHeader, spin_us)
  FIELD(ring, SlotHeader, driver_calls)
  FIELD(ring, SlotHeader, session_calls)
  FIELD(ring, SlotHeader, fault)
  FIELD(ring, SlotHeader, output)
  FIELD(ring, SlotHeader, opened)
  FIELD(ring, SlotHeader, callbacks_asleep)
  FIELD(ring, SlotHeader, heartbeat)
  FIELD(ring, DevicePage, driver_version)
  FIELD(ring, DevicePage, device_count)
  FIELD(ring, DevicePage, init_result)
  FIELD(ring, DevicePage, simulated)
  FIELD(ring, DevicePage, device)
  FIELD(ring, CallbackSlot, token)
  FIELD(ring, CallbackSlot, kind)
  FIELD(ring, CallbackSlot, status)
  FIELD(ring, CallbackSlot, sequence)
  FIELD(ring, CallbackSlot, worker_asleep)
  FIELD(ring, CallbackSlot, done)
  FIELD(ring, CallbackSlot, result)
  FIELD(ring, ChannelControl, tail)
  FIELD(ring, ChannelControl, head)
  FIELD(ring, ChannelControl, worker_asleep)
  FIELD(ring, ChannelControl, executed)
  FIELD(ring, ChannelControl, reply_position)
  FIELD(ring, ChannelControl, reply_length)
  FIELD(ring, ChannelControl, reply_result)
  FIELD(ring, ChannelControl, guest_asleep)
  FIELD(ring, ChannelControl, guest_awaits)
  FIELD(ring, ChannelControl, deferred_count)
  FIELD(ring, ChannelControl, deferred_result)
  FIELD(ring, ChannelControl, unused)
  FIELD(ring, ChannelControl, completion)
  FIELD(ring, RecordHeader, bytes)
  FIELD(ring, RecordHeader, call)
  FIELD(ring, RecordHeader, flags)
  FIELD(ring, RecordHeader, position)
  FIELD(api, HelloRecord, window)
  FIELD(api, HelloRecord, pin_bytes)
  FIELD(api, HelloReply, arena_address)
#undef FIELD
  return all;
}

// A structured binding must name all members, so a new or removed member breaks the compilation of this function.
[[maybe_unused]] void as_many_fields_as_above(ring::RegionHeader& region, ring::SlotEntry& entry,
                                              ring::SlotOwner& owner, ring::SlotHeader& slot, ring::DevicePage& page,
                                              ring::ChannelControl& channel, ring::RecordHeader& record,
                                              ring::VmPage& vm, ring::VmGpu& gpu, ring::CallbackSlot& callback_slot) {
  [[maybe_unused]] auto& [r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15, r16, r17] = region;
  [[maybe_unused]] auto& [e0, e1, e2, e3] = entry;
  [[maybe_unused]] auto& [o0, o1, o2, o3, o4] = owner;
  [[maybe_unused]] auto& [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12] = slot;
  [[maybe_unused]] auto& [p0, p1, p2, p3, p4] = page;
  [[maybe_unused]] auto& [c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12] = channel;
  [[maybe_unused]] auto& [h0, h1, h2, h3] = record;
  [[maybe_unused]] auto& [v0, v1, v2, v3, v4, v5, v6] = vm;
  [[maybe_unused]] auto& [g0, g1, g2, g3, g4, g5, g6, g7, g8, g9, g10, g11] = gpu;
  [[maybe_unused]] auto& [l0, l1, l2, l3, l4, l5, l6] = callback_slot;
}

std::map<std::string, std::uint64_t> constants() {
  std::map<std::string, std::uint64_t> all;
#define CONSTANT(name) all[#name] = static_cast<std::uint64_t>(ring::name);
  CONSTANT(region_magic)
  CONSTANT(slot_magic)
  CONSTANT(layout_version)
  CONSTANT(page)
  CONSTANT(line)
  CONSTANT(huge_page)
  CONSTANT(max_slots)
  CONSTANT(doorbell_words)
  CONSTANT(max_channels)
  CONSTANT(max_callback_slots)
  CONSTANT(max_devices)
  CONSTANT(request_bytes)
  CONSTANT(max_record)
  CONSTANT(reply_bytes)
  CONSTANT(control_bytes)
  CONSTANT(channel_bytes)
  CONSTANT(vm_page_offset)
  CONSTANT(vm_page_version)
  CONSTANT(vm_gpus_offset)
  CONSTANT(header_area_bytes)
  CONSTANT(device_page_offset)
  CONSTANT(callback_slots_offset)
  CONSTANT(first_channel)
  CONSTANT(arena_offset)
  CONSTANT(first_slot_offset)
  CONSTANT(min_slot_bytes)
  CONSTANT(window_count)
  CONSTANT(window_bytes)
  CONSTANT(heartbeat_ms)
#undef CONSTANT
  return all;
}

std::vector<std::string> cells(const std::string& row) {
  std::vector<std::string> all;
  std::istringstream stream(row.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) all.push_back(docs_test::trimmed(cell));
  return all;
}

std::string unquoted(const std::string& cell) {
  return cell.size() > 2 && cell.front() == '`' && cell.back() == '`' ? cell.substr(1, cell.size() - 2) : "";
}

std::uint64_t number(std::string text) {
  std::erase(text, '_');
  return std::stoull(text, nullptr, 0);
}

// The tables below headings named after structs, and the tables of constants.
struct Told {
  Structs structs;
  std::map<std::string, std::uint64_t> constants;
};

Told told_by(const std::string& text) {
  Told told;
  std::string heading;
  for (const std::string& line : docs_test::lines_of(text)) {
    if (line.starts_with('#')) heading = docs_test::trimmed(line.substr(line.find_first_not_of('#')));
    if (!line.starts_with("| ")) continue;
    const std::vector<std::string> row = cells(line);
    if (const std::string name = unquoted(heading); !name.empty() && row.size() == 5 && !unquoted(row[2]).empty())
      told.structs[name][unquoted(row[2])] = {number(row[0]), number(row[1])};
    if (heading == "Constants" && !unquoted(row[0]).empty()) told.constants[unquoted(row[0])] = number(row[1]);
  }
  return told;
}

const std::string the_page = docs_test::read(IVGPU_SOURCE_DIR "/docs/wire-format.md");

TEST(WireFormat, ThePageHasEveryFieldWhereItIs) {
  const Structs page = told_by(the_page).structs;
  for (const auto& [name, fields] : in_the_headers()) {
    ASSERT_TRUE(page.contains(name)) << name;
    EXPECT_EQ(page.at(name), fields) << name;
  }
  EXPECT_EQ(page.size(), in_the_headers().size());
}

TEST(WireFormat, ThePageHasEveryConstant) { EXPECT_EQ(told_by(the_page).constants, constants()); }

TEST(WireFormat, OffsetsInTheProseAreThoseOfTheCode) {
  const auto says = [](const std::string& text) { return the_page.find(text) != std::string::npos; };
  EXPECT_TRUE(says("channel *n* at " + std::to_string(ring::channel_offset(0)) + " + *n* × " +
                   std::to_string(ring::channel_bytes)));
  EXPECT_TRUE(says("the mailbox at " + std::to_string(ring::reply_offset(0) - ring::channel_offset(0))));
  EXPECT_TRUE(says("(64 entries of " + std::to_string(sizeof(ring::SlotEntry)) + " bytes)"));
  EXPECT_TRUE(says("the VM's page at " + std::to_string(ring::vm_page_offset) + ", its GPUs at " +
                   std::to_string(ring::vm_gpus_offset) + " (" + std::to_string(ring::max_devices) + " of " +
                   std::to_string(sizeof(ring::VmGpu)) + " bytes)"));
  EXPECT_TRUE(says("`DeviceInfo`, of " + std::to_string(sizeof(ring::DeviceInfo)) + " bytes"));
  EXPECT_TRUE(says("the arena at " + std::to_string(ring::arena_offset >> 20) + " MiB"));
  EXPECT_TRUE(says("the lanes at " + std::to_string(ring::callback_slots_offset) + ", a page of " +
                   std::to_string(ring::max_callback_slots) + " × " + std::to_string(sizeof(ring::CallbackSlot)) +
                   " bytes"));
  EXPECT_EQ(ring::window_address(0), 0x7e80'0000'0000u);
}

TEST(WireFormat, APageThatLiesIsFound) {
  const Structs page =
      told_by("### `SlotOwner`\n| offset | bytes | field | by | is |\n|---|---|---|---|---|\n| 4 | 8 | `boot` | | |\n")
          .structs;
  EXPECT_EQ(page.at("SlotOwner").at("boot"), (Place{4, 8}));
  EXPECT_NE(page.at("SlotOwner"), in_the_headers().at("SlotOwner"));
}

}  // namespace
