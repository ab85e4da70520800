#include "host/untrusted/launches/graph_cache.h"

#include <algorithm>

namespace host {
GraphCache::GraphCache(Session& session) : session_(session), kept_(session.memory.kept_graphs) { kept_.add(*this); }

GraphCache::~GraphCache() {
  kept_.remove(*this);
  end_all();
}

std::uint64_t GraphCache::Sequence::key() const {
  std::uint64_t key = mixed(stream.id, launches.size() << 8 | stream.context);
  for (const PendingLaunch& launch : launches)
    key = mixed(key, shapes == Shapes::Same ? launch.hash : launch.shape.function);
  return shapes == Shapes::Same ? key : ~key;
}

bool GraphCache::is_kept(const Sequence& sequence) {
  if (counts_.empty()) return false;
  const std::uint64_t key = sequence.key();
  const Count& count = count_of(key);
  return count.key == key && count.times == kept;
}

GraphCache::Known GraphCache::known_of(const Sequence& sequence) {
  if (counts_.empty()) counts_.resize(counters);
  const std::uint64_t key = sequence.key();
  Count& count = count_of(key);
  if (count.key != key) {
    if (count.times != kept) count = {.key = key, .since = uses_, .times = 1};
    return Known::New;
  }
  if (count.times == kept) return Known::Kept;
  if (count.times != never && ++count.times >= times_before_graph) want(sequence, count);
  return Known::Counted;
}

// The longest launches are wanted first, since they come first.
void GraphCache::want(const Sequence& sequence, const Count& count) {
  if (!wanted_.empty() || Clock::now() < next_graph_) return;
  wanted_stream_ = sequence.stream;
  wanted_shapes_ = sequence.shapes;
  wanted_.assign(sequence.launches.begin(), sequence.launches.end());
  wanted_since_ = count.since;
}

LaunchGraph* GraphCache::find(std::uint64_t key, const Sequence& sequence) {
  if (kept_.generation() != generation_) end_outdated();
  const auto found = graphs_.find(key);
  if (found == graphs_.end() || !found->second->serves(sequence.stream, sequence.shapes, sequence.launches)) {
    count_of(key) = {};  // end_all() has ended the graph
    return nullptr;
  }
  found->second->last_use = ++uses_;
  return found->second.get();
}

void GraphCache::make_wanted() {
  const auto begin = Clock::now();
  const Sequence wanted{wanted_stream_, wanted_shapes_, wanted_};
  {
    // Until the graph is known to end_all(), no other channel may unload a function of it.
    const auto beside = session_.making();
    const ring::MutexLock lock(mutex_);
    const bool alive = std::ranges::all_of(wanted_, [&](const PendingLaunch& launch) {
      return session_.objects.find(launch.shape.function, api::Handle::Function) == launch.shape.handle;
    });
    if (alive && session_.contexts.make_current(wanted_stream_.context) == CUDA_SUCCESS) make(wanted);
  }
  wanted_.clear();
  const auto end = Clock::now();
  next_graph_ = end + session_.options.graph_time_part * (end - begin);
}

void GraphCache::make(const Sequence& wanted) {
  if (kept_.generation() != generation_) end_outdated();
  const std::uint64_t key = wanted.key();
  Count& count = count_of(key);
  count = {.key = key, .since = uses_, .times = 1};
  const auto device = static_cast<unsigned>(session_.contexts.device_of(wanted.stream.context));
  const auto place = find_place(device);
  if (!place) return;
  auto graph = LaunchGraph::make(session_.driver, kept_, *place, wanted.stream, wanted.shapes, wanted.launches);
  count.times = graph != nullptr ? kept : never;
  if (graph == nullptr) return;
  graph->last_use = ++uses_;
  graphs_[key] = std::move(graph);
}

std::optional<KeptGraphs::Place> GraphCache::find_place(unsigned device) {
  auto place = kept_.reserve(device);
  if (place || graphs_.empty()) return place;
  const auto oldest = std::ranges::min_element(graphs_, {}, [](const auto& kept) { return kept.second->last_use; });
  if (oldest->second->last_use >= wanted_since_) return std::nullopt;
  end(oldest->first);
  return kept_.reserve(device);
}

void GraphCache::end(std::uint64_t key) {
  graphs_.erase(key);
  count_of(key) = {};
}

void GraphCache::end_outdated() {
  generation_ = kept_.generation();
  for (Count& count : counts_)
    if (count.times == kept) count = {};
  graphs_.clear();
}

// Only the channel's thread may change its counts. It does so when it finds the new generation.
void GraphCache::end_all() {
  const ring::MutexLock lock(mutex_);
  graphs_.clear();
}

}  // namespace host
