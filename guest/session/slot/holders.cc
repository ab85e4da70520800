#include "guest/session/slot/holders.h"

#include <algorithm>

#include "guest/region/slot_owner.h"

namespace guest {
namespace {

constexpr std::uint32_t most_named = 6;  // the most programs to list, so that the log line stays short

std::string holder_of(ring::Shared<ring::SlotEntry> entry) {
  ProgramName name{};
  entry[&ring::SlotEntry::program].copy_out(name.text);
  const std::uint32_t pid = entry[&ring::SlotEntry::owner].copy_out().pid;
  name = printable(name);
  return std::string(name.text[0] != '\0' ? name.text : "process") + " (" + std::to_string(pid) + ")";
}

}  // namespace

std::string holders_of_all(const CheckedRegion& region) {
  std::string text;
  for (std::uint32_t slot = 0; slot < region.slot_count; ++slot) {
    const auto entry = region.view.entry(slot);
    const auto word = ring::SlotWord::of(entry[&ring::SlotEntry::state].load(std::memory_order_relaxed));
    if (!word.held()) return "";
    if (slot < most_named) text += (slot > 0 ? ", " : "") + holder_of(entry);
  }
  const std::uint32_t more = region.slot_count - std::min(region.slot_count, most_named);
  return text + (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

}  // namespace guest
