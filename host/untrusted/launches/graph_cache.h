// The graphs of kernels that one channel keeps, and the choice of what to keep: a graph is made for launches that the
// channel has issued several times. A graph makes room for it only if that graph was not used in the meantime, so that
// a program with more sequences than graphs keeps those that it has.
//
// Only the channel's thread calls launch() and consider(). Any thread may call end_all().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "host/session/session.h"
#include "host/untrusted/launches/launch_graph.h"
#include "ring/base/mutex.h"

namespace host {

class GraphCache : public GraphCacheOfChannel {
 public:
  explicit GraphCache(Session& session);
  ~GraphCache() override;
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // Returns whether a kept graph has launched these kernels. If not, none of them was launched. `before`: called before
  // a graph is launched.
  template <class F>
  bool launch(LaunchStream stream, std::span<const PendingLaunch> launches, F before) EXCLUDES(mutex_) {
    const Sequence same{stream, Shapes::Same, launches};
    const Known known = known_of(same);
    if (known == Known::Kept) return launch_kept(same, before);
    if (launches.size() < least_of_any_shapes) return false;
    const Sequence any{stream, Shapes::Any, launches};
    if (is_kept(any)) return launch_kept(any, before);
    // Only shapes that come for the first time speak for a graph of any shapes.
    if (known == Known::New) known_of(any);
    return false;
  }
  // Must be called when the last launches for which launch() returned false have been issued. May make a graph for
  // them. `launches`: as in that call.
  bool wants_graph() const { return !wanted_.empty(); }
  void make_wanted();
  void end_all() override EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  // Launches that were issued this often without a graph get one.
  static constexpr unsigned times_before_graph = 4;
  static constexpr std::size_t counters = 4096;  // a power of two
  // Graphs of fewer kernels do not gain if their shapes change. Measured on an H200 on 2026-11-28.
  static constexpr std::size_t least_of_any_shapes = 4;

  // Launches that one graph can issue.
  struct Sequence {
    LaunchStream stream;
    Shapes shapes = Shapes::Same;
    std::span<const PendingLaunch> launches;

    std::uint64_t key() const;
  };
  enum class Known : std::uint8_t { New, Counted, Kept };
  // How often a sequence was issued without a graph. A sequence with another key replaces the count, unless a graph is
  // kept for the counted sequence.
  struct Count {
    std::uint64_t key = 0;
    std::uint64_t since = 0;  // the number of uses of graphs when the counting began
    std::uint32_t times = 0;
  };
  static constexpr std::uint32_t kept = ~std::uint32_t{0};  // a count: there is a graph
  static constexpr std::uint32_t never = kept - 1;          // a count: the driver has no such graph

  Count& count_of(std::uint64_t key) { return counts_[key & (counters - 1)]; }
  bool is_kept(const Sequence& sequence);
  // Counts a sequence that has no graph.
  Known known_of(const Sequence& sequence);
  template <class F>
  bool launch_kept(const Sequence& sequence, F before) EXCLUDES(mutex_) {
    const std::uint64_t key = sequence.key();
    const ring::MutexLock lock(mutex_);
    LaunchGraph* const graph = find(key, sequence);
    if (graph == nullptr) return false;
    before();
    if (graph->launch(sequence.launches) == CUDA_SUCCESS) return true;
    end(key);
    return false;
  }
  void want(const Sequence& sequence, const Count& count);
  LaunchGraph* find(std::uint64_t key, const Sequence& sequence) REQUIRES(mutex_);
  void make(const Sequence& sequence) REQUIRES(mutex_);
  void end(std::uint64_t key) REQUIRES(mutex_);
  void end_outdated() REQUIRES(mutex_);
  std::optional<KeptGraphs::Place> find_place(unsigned device) REQUIRES(mutex_);

  Session& session_;
  KeptGraphs& kept_;
  std::vector<Count> counts_;
  // The launches for which a graph is to be made.
  LaunchStream wanted_stream_;
  Shapes wanted_shapes_ = Shapes::Same;
  std::vector<PendingLaunch> wanted_;
  std::uint64_t wanted_since_ = 0;
  Clock::time_point next_graph_;
  std::uint64_t uses_ = 0;
  ring::Mutex mutex_;
  std::uint64_t generation_ GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<LaunchGraph>> graphs_ GUARDED_BY(mutex_);
};

}  // namespace host
