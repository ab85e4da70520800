#include "guest/marshal/new_memory.h"

#include "guest/base/log.h"
#include "guest/marshal/marshal.h"
#include "ring/api/known_ids.h"

namespace guest {
namespace {

// Sends a call whose record contains only slots, and waits for the reply.
template <std::size_t N>
void send_slots(int call, Context& context, const std::array<std::uint64_t, N>& slots) {
  const auto write = [&](ring::Writer& w) {
    for (const std::uint64_t slot : slots) w.slot(slot);
  };
  send(this_channel(), sending(call, api::Way::Waited, context, sizeof slots, Earlier::Left), write, read_nothing);
}

}  // namespace

// Reports each place once: the worker then keeps the driver from using the place until the session ends. If the worker
// is too old for this call, the guest sends no report. If the worker refuses the report, the guest still asks the
// driver for other memory.
void NewMemory::report_to_worker(std::uint64_t start, std::uint64_t bytes) {
  if (!session()->slot().serves(api::id_of::exclude)) return;
  const auto there = session()->memory.occupied.around(start, bytes);
  if (there) send_slots<2>(api::id_of::exclude, context_, {there->start, there->end - there->start});
}

bool NewMemory::keep(std::uint64_t start, std::uint64_t bytes, CUresult& result) {
  if (start == 0 || session()->memory.addresses.reserve(start, bytes)) return true;
  log(Level::Debug, "device memory at %llx collides with a mapping of this process",
      static_cast<unsigned long long>(start));
  ++count_;
  if (range_ == api::Range::Made || bytes >= least_large) give_back(start, bytes);
  report_to_worker(start, bytes);
  if (count_ < most_) return false;
  result = CUDA_ERROR_OUT_OF_MEMORY;
  return true;
}

NewMemory::~NewMemory() {
  for (const auto& [start, bytes] : to_give_back_) {
    if (range_ == api::Range::Made)
      send_slots<2>(api::id_of::cuMemAddressFree, context_, {start, bytes});
    else
      send_slots<1>(api::id_of::cuMemFree_v2, context_, {start});
  }
}

}  // namespace guest
