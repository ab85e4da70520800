// A hostile guest program. It maps its VM's region itself and writes random words into it while other programs work.
//
// usage: hostile_program REGION SCOPE BOUND SEED
// REGION is a broker's socket or "pci"; bound.h explains BOUND. SCOPE:
//   slot    claims one slot after another as a program does, and overwrites all words of the slot, its directory entry,
//           and `wanted`. A program may do this without harm to others of its VM. A round is five slots.
//   region  overwrites all words. This harms other sessions of the VM, which trust each other if the guest has no
//           kernel module.
//   dirty   claims as many slots as possible, writes to each page of these slots, and releases all slots at once.
//   claims  claims and releases a slot as fast as possible, and always requests more slots.
//   words   overwrites the directory's words, which the broker repairs and might log.
// With a broker's socket also:
//   connections   connects and hangs up, a hundred at a time.
// Prints the number of words written and slots worn out. Exit codes: 0, 2 usage, 3 and 4 no region, 5 no slot.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "guest/region/region.h"
#include "guest/region/slot_owner.h"
#include "ring/api/call.h"
#include "ring/layout/region_view.h"
#include "ring/view.h"
#include "ring/wire/record.h"
#include "tests/hostile/bound.h"

namespace {

using Word = volatile std::uint64_t;
using hostile::Bound, hostile::now;

constexpr double slot_patience = 60;  // seconds, while workers start

// Attempts to send a record that does not end the worker's session. Usually the first record ends it.
constexpr int most_tries = 100;

class Hostile {
 public:
  Hostile(guest::Region& region, const guest::CheckedRegion& layout, unsigned long seed)
      : region_(region),
        slots_(layout.slot_count),
        first_(layout.first_slot),
        slot_bytes_(layout.slot_bytes),
        base_(region.map(0, region.size(), nullptr)),
        random_(seed) {}

  bool mapped() const { return base_ != nullptr; }

  void wear_out_slots(Bound bound) {
    for (; !bound.is_over(); bound.round_over())
      for (int i = 0; i < slots_per_round && !bound.is_over(); ++i)
        if (!wear_out_a_slot(bound)) return;
  }

  void wear_out_region(Bound bound) {
    for (; !bound.is_over(); bound.round_over()) {
      scribble(base_, ring::first_slot_offset);
      scribble(base_, region_.size());
      for (std::uint32_t peer = 0; peer <= slots_; ++peer) region_.ring(peer);
    }
  }

  void wear_out_memory(Bound bound) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> held;  // number and word of each claimed slot
    for (; !bound.is_over(); bound.round_over()) {
      for (std::uint32_t slot = claim(bound, 0.05); slot != slots_; slot = claim(bound, 0.05)) {
        held.emplace_back(slot, entry(slot)[&ring::SlotEntry::state].load());
        for (std::uint64_t at = 0; at < slot_bytes_; at += ring::page) slot_base(slot)[at] = std::byte{0x5a};
        words_ += slot_bytes_ / ring::page;
      }
      for (const auto& [slot, word] : held) let_go(slot, word);
      worn_out_ += static_cast<unsigned>(held.size());
      held.clear();
    }
  }

  void wear_out_claims(Bound bound) {
    for (; !bound.is_over(); bound.round_over()) {
      header()[&ring::RegionHeader::wanted].fetch_add(1000);
      const std::uint32_t slot = claim(bound, slot_patience);
      if (slot == slots_) return;
      let_go(slot, entry(slot)[&ring::SlotEntry::state].load());
      ++worn_out_;
    }
  }

  void wear_out_words(Bound bound) {
    for (; !bound.is_over(); bound.round_over()) {
      for (std::uint32_t slot = 0; slot < slots_; ++slot)
        entry(slot)[&ring::SlotEntry::state].store(static_cast<std::uint32_t>(random_()));
      words_ += slots_;
      region_.ring(ring::peer_broker);
    }
  }

  void report() const { std::printf("hostile: %llu words, %u slots\n", words_, worn_out_); }
  unsigned worn_out() const { return worn_out_; }

 private:
  static constexpr int slots_per_round = 5;

  // False if no slot was free.
  bool wear_out_a_slot(const Bound& bound) {
    const std::uint32_t slot = claim(bound, slot_patience);
    if (slot == slots_) return false;
    const std::uint32_t word = entry(slot)[&ring::SlotEntry::state].load();
    for (int i = 0; i < most_tries && !bound.is_over() && entry(slot)[&ring::SlotEntry::state].load() == word; ++i) {
      if (i % 3 == 0)
        scribble(slot_base(slot), slot_bytes_);
      else
        send_nonsense(slot);
      region_.ring(ring::peer_of_slot(slot));
      header()[&ring::RegionHeader::wanted].fetch_add(static_cast<std::uint32_t>(random_()));
      region_.ring(ring::peer_broker);
    }
    give_back(slot, word);
    ++worn_out_;
    return true;
  }

  ring::Shared<ring::RegionHeader> header() const { return ring::RegionView(base_).header(); }
  ring::Shared<ring::SlotEntry> entry(std::uint32_t slot) const { return ring::RegionView(base_).entry(slot); }
  std::byte* slot_base(std::uint32_t slot) const { return base_ + first_ + slot * slot_bytes_; }

  // Claims a slot and returns its number; returns slots_ if no slot became free within `patience` seconds.
  std::uint32_t claim(const Bound& bound, double patience) {
    const double until = now() + patience;
    header()[&ring::RegionHeader::wanted].fetch_add(1);
    region_.ring(ring::peer_broker);
    const ring::SlotOwner self = guest::this_process(region_.peer());
    while (now() < until && !bound.is_over()) {
      for (std::uint32_t slot = 0; slot < slots_; ++slot) {
        const ring::SlotWord ready =
            ring::SlotWord::of(entry(slot)[&ring::SlotEntry::state].load()).with(ring::SlotState::Ready);
        std::uint32_t expected = ready.word();
        if (!entry(slot)[&ring::SlotEntry::state].compare_exchange(expected,
                                                                   ready.with(ring::SlotState::Claimed).word()))
          continue;
        entry(slot)[&ring::SlotEntry::owner].copy_in(self);
        region_.ring(ring::peer_broker);
        return slot;
      }
      const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
      nanosleep(&pause, nullptr);
    }
    return slots_;
  }

  void let_go(std::uint32_t slot, std::uint32_t word) {
    std::uint32_t claimed = word;
    entry(slot)[&ring::SlotEntry::state].compare_exchange(
        claimed, ring::SlotWord::of(word).with(ring::SlotState::Released).word());
    region_.ring(ring::peer_broker);
  }

  // Writes an invalid word first, then the word that a program writes at its end.
  void give_back(std::uint32_t slot, std::uint32_t word) {
    std::uint32_t nonsense = word;
    entry(slot)[&ring::SlotEntry::state].compare_exchange(nonsense, static_cast<std::uint32_t>(random_()) | 0x80u);
    region_.ring(ring::peer_broker);
    for (int i = 0; i < 1000; ++i) {
      const ring::SlotWord claimed = ring::SlotWord::of(word);
      for (const ring::SlotState from : {ring::SlotState::Claimed, ring::SlotState::Dead}) {
        std::uint32_t expected = claimed.with(from).word();
        if (entry(slot)[&ring::SlotEntry::state].compare_exchange(expected,
                                                                  claimed.with(ring::SlotState::Released).word()))
          return region_.ring(ring::peer_broker);
      }
      const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
      nanosleep(&pause, nullptr);
    }
  }

  std::uint64_t nonsense() {
    const std::uint64_t any = random_();
    switch (any % 8) {
      case 0: return 0;
      case 1: return ~0ULL;
      case 2: return any >> 40;                              // small
      case 3: return reinterpret_cast<std::uint64_t>(this);  // an address of this process
      case 4: return any % region_.size();
      default: return any;
    }
  }

  // Overwrites every word once. It starts at a random word, since indices and flags then change while the worker reads
  // them.
  void scribble(std::byte* at, std::size_t bytes) {
    const std::size_t count = bytes / sizeof(std::uint64_t), from = random_() % count;
    Word* const to = reinterpret_cast<Word*>(at);
    for (std::size_t i = 0; i < count; ++i) to[(from + i) % count] = nonsense();
    words_ += count;
  }

  // Sends plausible records at the worker's position: a valid header with a random call, then random bytes.
  void send_nonsense(std::uint32_t slot) {
    const ring::SlotView view(slot_base(slot), slot_bytes_);
    for (std::uint32_t channel = 0; channel < ring::max_channels; ++channel) {
      const ring::Shared<ring::ChannelControl> control = view.control(channel);
      std::byte* const ring = view.base() + ring::request_offset(channel);
      std::uint32_t at = control[&ring::ChannelControl::head].load();
      for (std::uint64_t position = control[&ring::ChannelControl::executed].load() + 1;
           position < control[&ring::ChannelControl::executed].load() + 9; ++position) {
        const std::uint32_t bytes = 32 + static_cast<std::uint32_t>(random_() % 8) * 32;
        const ring::RecordHeader header{.bytes = bytes,
                                        .call = static_cast<std::uint16_t>(random_() % 400),
                                        .flags = static_cast<std::uint16_t>(random_() % 2 | some_context()),
                                        .position = position};
        scribble_wrapped(ring, at, bytes);
        std::memcpy(ring + (at & (ring::request_bytes - 1) & ~15u), &header, sizeof header);
        at += bytes;
      }
      control[&ring::ChannelControl::tail].store(at);
      control[&ring::ChannelControl::worker_asleep].store(0);
    }
    view.header()[&ring::SlotHeader::opened].store(~std::uint64_t{0});
  }

  // Returns mostly a valid context, since an invalid context ends the session before the worker reads the record.
  std::uint16_t some_context() {
    return random_() % 64 == 0 ? ring::context_flags(static_cast<unsigned>(random_())) : std::uint16_t{0};
  }

  void scribble_wrapped(std::byte* ring, std::uint32_t at, std::uint32_t bytes) {
    for (std::uint32_t i = 0; i < bytes; i += 8) {
      const std::uint64_t word = nonsense();
      std::memcpy(ring + ((at + i) & (ring::request_bytes - 1) & ~7u), &word, sizeof word);
    }
    words_ += bytes / 8;
  }

  guest::Region& region_;
  const std::uint32_t slots_;
  const std::uint64_t first_, slot_bytes_;
  std::byte* const base_;
  std::mt19937_64 random_;
  unsigned long long words_ = 0;
  unsigned worn_out_ = 0;
};

// Connects and hangs up as QEMUs do that start and exit, a hundred at a time.
int wear_out_connections(const char* socket, Bound bound) {
  unsigned made = 0;
  for (; !bound.is_over(); bound.round_over()) {
    std::vector<std::unique_ptr<guest::Region>> all;
    for (int i = 0; i < 100 && !bound.is_over(); ++i, ++made) all.push_back(guest::connect_region(socket));
  }
  std::printf("hostile: %u connections\n", made);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string where = argv[1], scope = argv[2];
  const Bound bound(argv[3]);
  if (scope == "connections") return wear_out_connections(argv[1], bound);
  std::string why;
  const std::unique_ptr<guest::Region> region =
      where == "pci" ? guest::open_ivshmem("/sys/bus/pci/devices", why) : guest::connect_region(argv[1]);
  const auto layout = region != nullptr ? guest::check_region(*region) : std::nullopt;
  if (!layout) return 3;
  Hostile program(*region, *layout, std::strtoul(argv[4], nullptr, 10));
  if (!program.mapped()) return 4;
  if (scope == "slot") program.wear_out_slots(bound);
  if (scope == "region") program.wear_out_region(bound);
  if (scope == "dirty") program.wear_out_memory(bound);
  if (scope == "claims") program.wear_out_claims(bound);
  if (scope == "words") program.wear_out_words(bound);
  program.report();
  return scope == "slot" && program.worn_out() == 0 ? 5 : 0;
}
