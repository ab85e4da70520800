#include "host/untrusted/launches/graph_cache.h"

#include <algorithm>

namespace host {
GraphCache::GraphCache(Session& session) : session_(session), kept_(session.memory.kept_graphs) { kept_.add(*this); }

GraphCache::~GraphCache() {
  kept_.remove(*this);
  end_all();
}

LaunchGraph* GraphCache::find(std::uint64_t key, LaunchStream stream, std::span<const PendingLaunch> launches) {
  if (kept_.generation() != generation_) end_outdated();
  const auto found = graphs_.find(key);
  if (found == graphs_.end() || !found->second->serves(stream, launches)) return nullptr;
  found->second->last_use = ++uses_;
  return found->second.get();
}

// Launches that share a counter with others lose their count. They then get their graph later, or never.
void GraphCache::count(std::uint64_t key, LaunchStream stream, std::span<const PendingLaunch> launches) {
  if (counts_.empty()) counts_.resize(counters);
  Count& count = count_of(key);
  if (count.tag != tag_of(key)) count = {.tag = tag_of(key), .times = 0};
  if (count.times == never || ++count.times < times_before_graph) return;
  // The longest launches are wanted first, since they come first.
  if (!wanted_.empty() || Clock::now() < next_graph_) return;
  wanted_key_ = key;
  wanted_stream_ = stream;
  wanted_.assign(launches.begin(), launches.end());
}

void GraphCache::make_wanted() {
  const auto begin = Clock::now();
  {
    // Until the graph is known to end_all(), no other channel may unload a function of it.
    const auto beside = session_.making();
    const ring::MutexLock lock(mutex_);
    const bool alive = std::ranges::all_of(wanted_, [&](const PendingLaunch& launch) {
      return session_.objects.find(launch.shape.function, api::Handle::Function) == launch.shape.handle;
    });
    if (alive && session_.contexts.make_current(wanted_stream_.context) == CUDA_SUCCESS) {
      if (kept_.generation() != generation_) end_outdated();
      if (const auto place = find_place(static_cast<unsigned>(session_.contexts.device_of(wanted_stream_.context)))) {
        auto graph = LaunchGraph::make(session_.driver, kept_, *place, wanted_stream_, wanted_);
        Count& count = count_of(wanted_key_);
        if (count.tag == tag_of(wanted_key_)) count.times = graph != nullptr ? 0 : never;
        if (graph != nullptr) {
          graph->last_use = ++uses_;
          graphs_[wanted_key_] = std::move(graph);
        }
      }
    }
  }
  wanted_.clear();
  const auto end = Clock::now();
  next_graph_ = end + part_of_processor * (end - begin);
}

std::optional<KeptGraphs::Place> GraphCache::find_place(unsigned device) {
  auto place = kept_.reserve(device);
  if (place || graphs_.empty()) return place;
  graphs_.erase(std::ranges::min_element(graphs_, {}, [](const auto& kept) { return kept.second->last_use; }));
  return kept_.reserve(device);
}

void GraphCache::end_outdated() {
  generation_ = kept_.generation();
  graphs_.clear();
}

void GraphCache::end_all() {
  const ring::MutexLock lock(mutex_);
  graphs_.clear();
}

}  // namespace host
