#include "host/broker/vm/vm_record.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "host/base/sealed_memory.h"
#include "host/broker/worker/worker_message.h"

namespace host::broker {
namespace {

constexpr std::uint64_t record_magic = 0x314d5654'5352'4749;  // "IGRSTVM1"
// Version of SavedVm, and of all communication between a broker and an earlier broker's worker: the messages of
// host/base/process/control.h, the liveness pipe, the pages of telemetry and of GPU time.
constexpr std::uint32_t record_version = 3;
// A change of these sizes needs a new version.
static_assert(sizeof(SavedSlot) == 32 + ring::max_devices * 8 + sizeof(worker::ReadyMessage) &&
              sizeof(SavedVm) == 48 + ring::max_slots * sizeof(SavedSlot));

// At a thousand connections a second the numbers last for millennia.
constexpr std::uint64_t last_channel = 1ULL << 48;

bool is_good(const SavedSlot& slot) {
  if (slot.channel > last_channel) return false;
  if (ring::SlotWord::of(slot.word).state > ring::SlotState::Dead || slot.worker < 0 || slot.worker == 1) return false;
  return slot.worker == 0 || slot.ready == not_ready ||
         parse_ready(&slot.reported, sizeof slot.reported, 0).has_value();
}

}  // namespace

SavedVm* VmRecord::map(const Fd& memfd) { return static_cast<SavedVm*>(map_memory(memfd, sizeof(SavedVm))); }

Result<std::unique_ptr<VmRecord>> VmRecord::create(const std::string& vm, std::uint64_t configuration,
                                                   std::uint32_t slots, std::uint64_t generation) {
  Fd memfd = make_sealed_memory("ivgpud:" + vm, sizeof(SavedVm));
  SavedVm* const saved = memfd && seal_for_good(memfd, true) ? map(memfd) : nullptr;
  if (saved == nullptr)
    return Error{fmt::format("VM {}: its record for the next broker cannot be made: {}", vm, std::strerror(errno))};
  *saved = {};
  saved->version = record_version;
  saved->bytes = sizeof(SavedVm);
  saved->configuration = configuration;
  saved->generation = generation;
  saved->slots = slots;
  std::atomic_signal_fence(std::memory_order_release);  // a broker killed before this point leaves no record
  saved->magic = record_magic;
  return std::unique_ptr<VmRecord>(new VmRecord(std::move(memfd), saved));
}

Result<std::unique_ptr<VmRecord>> VmRecord::adopt(Fd memfd, std::uint64_t configuration, std::uint32_t slots) {
  if (!has_size(memfd, sizeof(SavedVm))) return Error{"the record of the ivgpud before this one is of another release"};
  SavedVm* const saved = map(memfd);
  if (saved == nullptr) return Error{"the record of the ivgpud before this one cannot be mapped"};
  std::unique_ptr<VmRecord> record(new VmRecord(std::move(memfd), saved));
  if (saved->magic != record_magic || saved->version != record_version || saved->bytes != sizeof(SavedVm))
    return Error{"the record of the ivgpud before this one is of another release"};
  if (saved->configuration != configuration || saved->slots != slots)
    return Error{"keys that need a restart are others by now"};
  if (!std::all_of(std::begin(saved->slot), std::begin(saved->slot) + slots, is_good))
    return Error{"the record of the ivgpud before this one makes no sense"};
  return record;
}

VmRecord::~VmRecord() { munmap(saved_, sizeof(SavedVm)); }

}  // namespace host::broker
