#include "guest/session/arena_binding.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "guest/base/log.h"
#include "guest/base/switches.h"
#include "guest/session/order.h"
#include "guest/session/send.h"
#include "ring/api/call.h"
#include "ring/api/records.h"

namespace guest {
namespace {

// The bytes of the arena that hello registers with the GPU: the staging chunks and a little pinned memory.
constexpr std::uint64_t first_pin_bytes = 16 << 20;

// Sends a record that no program calls, through a borrowed channel.
template <class Record, class Read>
Sent ask(Channels& channels, int call, const Record& record, Read read) {
  Channel& c = channels.acquire();
  const Sent sent = send(
      c, {.call = call, .flags = ring::flag_wants_reply, .payload = sizeof record},
      [&](ring::Writer& w) { w.bytes(&record, sizeof record); }, read);
  channels.release(c);
  return sent;
}

}  // namespace

bool ArenaBinding::map(Region& region, std::uint64_t offset, std::uint64_t bytes) {
  bytes_ = bytes;
  base_ = map_at_window(region, offset);
  if (base_ == nullptr) {
    log(Level::Error, "cannot map the arena: %s", std::strerror(errno));
    return false;
  }
  // After a fork only the parent has the pinned memory.
  if (region.module() != nullptr) madvise(base_, bytes_, MADV_DONTFORK);
  static_assert(ring::min_arena_bytes == Arena::staging_bytes + ring::huge_page);
  if (bytes_ < ring::min_arena_bytes) {
    log(Level::Error, "the arena of %llu bytes is too small: give the VM a larger region or fewer slots",
        static_cast<unsigned long long>(bytes_));
    return false;
  }
  return true;
}

std::byte* ArenaBinding::map_at_window(Region& region, std::uint64_t offset) {
  for (window_ = 0; window_ < ring::window_count && bytes_ <= ring::window_bytes && !region.same_address_space();
       ++window_)
    if (std::byte* at = region.map(offset, bytes_,
                                   reinterpret_cast<void*>(ring::window_address(static_cast<std::uint32_t>(window_)))))
      return at;
  window_ = ring::window_count;
  if (!region.same_address_space())
    log(Level::Warn,
        "none of the address windows for pinned memory is free in this process: its device addresses differ");
  return region.map(offset, bytes_, nullptr);
}

std::uint64_t ArenaBinding::first_pin() const {
  return std::min<std::uint64_t>(first_pin_bytes, bytes_ / ring::huge_page * ring::huge_page);
}

bool ArenaBinding::bind() {
  const api::HelloRecord record{.window = window_, .pin_bytes = first_pin()};
  const Sent sent = ask(channels_, api::id_of::hello, record, [&](CUresult result, ring::SharedReader& r) {
    if (result == CUDA_SUCCESS) device_address_ = r.read<api::HelloReply>().arena_address;
  });
  if (sent.result != CUDA_SUCCESS && liveness_.usable())
    log(Level::Error, "the worker refused the session with CUDA error %d", sent.result);
  return sent.result == CUDA_SUCCESS && switch_worker_off();
}

// The worker's optimisations are on unless the guest switches them off. Returns false if the session is lost.
bool ArenaBinding::switch_worker_off() {
  const std::uint64_t off = (switches().launch_graphs ? 0 : ring::switch_launch_graphs) |
                            (switches().launch_chains ? 0 : ring::switch_launch_chains);
  if (off == 0 || !slot_.serves(api::id_of::switch_off)) return true;
  const api::SwitchOffRecord record{.switches = off};
  return ask(channels_, api::id_of::switch_off, record, read_nothing).result == CUDA_SUCCESS;
}

std::unique_ptr<Arena> ArenaBinding::make() {
  return std::make_unique<Arena>(
      base_, bytes_, first_pin(), slot_.serves(api::id_of::join_arena),
      [this](std::uint64_t start, std::uint64_t end, bool join) { return ask_for(start, end, join); }, executed);
}

Segments::Registered ArenaBinding::ask_for(std::uint64_t start, std::uint64_t end, bool join) {
  const api::PinArenaRecord record{.offset = start, .bytes = end - start};
  const Sent sent = ask(channels_, join ? api::id_of::join_arena : api::id_of::pin_arena, record, read_nothing);
  if (sent.unanswered) return Segments::Registered::Unknown;
  // ALREADY_REGISTERED: the worker has executed an earlier request for this range after the guest gave up waiting for
  // it. The arena requests only such a range twice.
  const bool done = sent.result == CUDA_SUCCESS || sent.result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  return done ? Segments::Registered::Yes : Segments::Registered::No;
}

void ArenaBinding::unmap() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

}  // namespace guest
