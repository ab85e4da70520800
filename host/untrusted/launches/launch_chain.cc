#include "host/untrusted/launches/launch_chain.h"

#include <cstring>

#include "host/session/graphs/captures.h"
#include "ring/api/call.h"

namespace host {

bool LaunchChain::may_be_in_graph() const {
  return session_.memory.kept_graphs.may_use_graphs() && !session_.graphs.captures.any() &&
         !session_.memory.shadow_copies.any();
}

bool LaunchChain::takes(const ring::RecordHeader& header, std::span<const std::byte> record) {
  constexpr std::size_t fixed = sizeof header + sizeof(api::LaunchRecord);
  if (header.call != api::id_of::cuLaunchKernel || (header.flags & ring::flag_wants_reply) != 0) return false;
  if (record.size() < fixed || record.size() > PendingLaunch::most_bytes || !may_be_in_graph()) return false;
  api::LaunchRecord launch;
  std::memcpy(&launch, record.data() + sizeof header, sizeof launch);
  const std::size_t room = record.size() - fixed;
  if (launch.attributes != 0 || launch.used_extra > 1 || launch.param_bytes > room ||
      room - ring::padded(launch.param_bytes) >= 16)
    return false;
  next_ = {.function = launch.function,
           .handle = session_.objects.find(launch.function, api::Handle::Function),
           .grid = {launch.grid[0], launch.grid[1], launch.grid[2]},
           .block = {launch.block[0], launch.block[1], launch.block[2]},
           .shared = launch.shared,
           .param_bytes = launch.param_bytes};
  return next_.handle != nullptr && find_stream(launch.stream, header.flags);
}

bool LaunchChain::find_stream(std::uint64_t id, std::uint16_t flags) {
  const unsigned context = ring::context_of(flags);
  next_stream_ = {.id = id, .handle = nullptr, .context = context};
  if (api::special_stream(id)) {
    const bool per_thread = (flags & ring::flag_per_thread) != 0;
    next_stream_.handle = Captures::in_thread(reinterpret_cast<CUstream>(id), per_thread);
    next_stream_.id = reinterpret_cast<std::uint64_t>(next_stream_.handle);
  } else {
    next_stream_.handle = static_cast<CUstream>(session_.objects.find(id, api::Handle::Stream));
    if (next_stream_.handle == nullptr || session_.objects.context_of(id, context) != context) return false;
  }
  // A green context is current in one thread at a time, and its streams have fewer multiprocessors.
  return session_.contexts.find_green(context) == nullptr;
}

void LaunchChain::add(const ring::RecordHeader& header, std::span<const std::byte> record) {
  if (launches_ == nullptr) launches_ = std::make_unique_for_overwrite<PendingLaunch[]>(most);
  if (count_ == 0) {
    first_ = 0;
    if (next_stream_ != stream_) index_ = 0;
    stream_ = next_stream_;
  }
  PendingLaunch& pending = *at(count_++);
  pending.header = header;
  pending.shape = next_;
  pending.hash = next_.hash();
  pending.bytes = record.size();
  std::memcpy(pending.copy.data(), record.data(), record.size());
}

// Returns the size of the next graph: a power of two that divides the index of its first launch.
std::size_t LaunchChain::bound_now() const {
  if (!session_.memory.kept_graphs.may_use_chains()) return 1;
  const std::size_t aligned = index_ == 0 ? most : std::size_t{1} << std::min(std::countr_zero(index_), 5);
  return std::min({bound_, aligned, most});
}

void LaunchChain::pop(std::size_t count) {
  first_ += count;
  count_ -= count;
  index_ += count;
}

}  // namespace host
