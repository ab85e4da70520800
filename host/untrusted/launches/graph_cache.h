// The graphs of kernels that one channel keeps, and the choice of what to keep: a graph is made for launches that the
// channel has issued several times, and the least recently used graph makes room for it.
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
    const std::uint64_t key = key_of(stream, launches);
    {
      const ring::MutexLock lock(mutex_);
      if (LaunchGraph* const graph = find(key, stream, launches)) {
        before();
        if (graph->launch(launches) == CUDA_SUCCESS) return true;
        graphs_.erase(key);
        return false;
      }
    }
    count(key, stream, launches);
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
  // Making graphs may use one part in so many of a processor.
  static constexpr int part_of_processor = 20;
  static constexpr std::size_t counters = 4096;  // a power of two; launches with the same counter share it

  // How often launches were issued without a graph. A hash of other launches replaces the count.
  struct Count {
    std::uint32_t tag = 0;
    std::uint32_t times = 0;
  };
  static constexpr std::uint32_t never = ~std::uint32_t{0};  // a count: the driver has no such graph

  static std::uint64_t key_of(LaunchStream stream, std::span<const PendingLaunch> launches) {
    std::uint64_t key = mixed(stream.id, launches.size() << 8 | stream.context);
    for (const PendingLaunch& launch : launches) key = mixed(key, launch.hash);
    return key;
  }
  LaunchGraph* find(std::uint64_t key, LaunchStream stream, std::span<const PendingLaunch> launches) REQUIRES(mutex_);
  Count& count_of(std::uint64_t key) { return counts_[key & (counters - 1)]; }
  static std::uint32_t tag_of(std::uint64_t key) { return static_cast<std::uint32_t>(key >> 32); }
  void count(std::uint64_t key, LaunchStream stream, std::span<const PendingLaunch> launches);
  void end_outdated() REQUIRES(mutex_);
  std::optional<KeptGraphs::Place> find_place(unsigned device) REQUIRES(mutex_);

  Session& session_;
  KeptGraphs& kept_;
  std::vector<Count> counts_;
  // The launches for which a graph is to be made.
  std::uint64_t wanted_key_ = 0;
  LaunchStream wanted_stream_;
  std::vector<PendingLaunch> wanted_;
  Clock::time_point next_graph_;
  std::uint64_t uses_ = 0;
  ring::Mutex mutex_;
  std::uint64_t generation_ GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<LaunchGraph>> graphs_ GUARDED_BY(mutex_);
};

}  // namespace host
