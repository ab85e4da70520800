// The launches that a channel has taken from its ring and issues together, as few graphs. This class decides which
// launches belong together, and keeps their order.
//
// A launch never waits for later launches that are not yet in the ring: the first launch of a busy time is issued
// alone, and the bound then doubles with each issue, while the GPU has work.
//
// Graphs have 1, 2, 4 ... 32 kernels. A graph of n kernels begins at a multiple of n, counted from the last record that
// was no launch. A loop over L kernels therefore needs at most about 2 L graphs, wherever the ring runs empty.
//
// Only the channel's thread uses this class.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "host/untrusted/launches/graph_cache.h"

namespace host {

class LaunchChain {
 public:
  // The most kernels of a graph. Measured on an H200: chains of 32 cost 0.57 us a kernel, chains of 64 0.55 us.
  static constexpr std::size_t most = 32;

  explicit LaunchChain(Session& session) : session_(session), cache_(session) {}

  // Returns whether the record is a launch that may be in a graph. The record's flags and position must have been
  // checked.
  bool takes(const ring::RecordHeader& header, std::span<const std::byte> record);
  // Returns whether the launch of takes() fits behind the launches that wait. If not, they must be issued before add().
  bool fits() const { return count_ == 0 || (next_stream_ == stream_ && first_ + count_ < most); }
  // Adds the launch of takes().
  void add(const ring::RecordHeader& header, std::span<const std::byte> record);
  // Returns whether the launches must be issued now. `more`: whether the ring has another record.
  bool is_due(bool more) const { return count_ != 0 && (!more || count_ >= bound_now()); }
  bool empty() const { return count_ == 0; }
  // The launches that wait, in order. They stay valid until pop() removes them.
  std::span<const PendingLaunch> waiting() const { return {at(0), count_}; }

  // Issues the first launches as a graph, and returns their number. Returns 0 if no graph is kept for them: the caller
  // must then issue the first launch by itself. `before`: called with the number before the graph's launch.
  // Precondition: the launches' context is current.
  template <class F>
  std::size_t launch_graph(F before) {
    const std::size_t most_now = std::bit_floor(std::min(bound_now(), count_));
    bound_ = std::min(bound_ * 2, most);
    for (std::size_t size = most_now; size != 0; size /= 2)
      if ((size > 1 || session_.memory.kept_graphs.may_launch_single()) &&
          cache_.launch(stream_, waiting().first(size), [&] { before(size); }))
        return size;
    return 0;
  }
  // Removes the first launches, which have been issued.
  void pop(std::size_t count);

  // Called when all launches have been issued. May make a graph.
  void issued() {
    if (cache_.wants_graph()) [[unlikely]]
      cache_.make_wanted();
  }
  // Called when another record is executed, and when the ring is empty.
  void other_record() { index_ = 0; }
  void ring_is_empty() { bound_ = 1; }

 private:
  PendingLaunch* at(std::size_t i) const { return &launches_[first_ + i]; }
  std::size_t bound_now() const;
  bool may_be_in_graph() const;
  bool find_stream(std::uint64_t id, std::uint16_t flags);

  Session& session_;
  GraphCache cache_;
  std::unique_ptr<PendingLaunch[]> launches_;
  std::size_t first_ = 0, count_ = 0;
  LaunchStream stream_, next_stream_;
  LaunchShape next_;
  std::uint64_t index_ = 0;  // of the first launch that waits, from the last record that was no launch
  std::size_t bound_ = 1;
};

}  // namespace host
