#include "host/session/graphs/kept_graphs.h"

namespace host {

void KeptGraphs::add(GraphCacheOfChannel& cache) {
  const ring::MutexLock lock(caches_mutex_);
  caches_.push_back(&cache);
}

void KeptGraphs::remove(GraphCacheOfChannel& cache) {
  const ring::MutexLock lock(caches_mutex_);
  std::erase(caches_, &cache);
}

void KeptGraphs::end_all() {
  const ring::MutexLock lock(caches_mutex_);
  for (GraphCacheOfChannel* cache : caches_) cache->end_all();
  outdate();
}

std::optional<KeptGraphs::Place> KeptGraphs::reserve(unsigned device) {
  if (device >= ring::max_devices) return std::nullopt;
  Place place{.device = device};
  {
    const ring::MutexLock lock(accounts_mutex_);
    const Account& account = accounts_[device];
    if (account.era != 0 && memory_.taken(device) + graph_bytes > account.taken_full) return std::nullopt;
    place.era = account.era;
  }
  // A graph must not take the last memory, since take() would then give up all other graphs.
  const auto headroom = memory_.headroom(device);
  if (headroom && headroom->free < graph_bytes) return std::nullopt;
  if (count_.fetch_add(1, std::memory_order_relaxed) < most && memory_.take(device, graph_bytes)) {
    const ring::MutexLock lock(accounts_mutex_);
    Account& account = accounts_[device];
    if (account.era == place.era) {
      account.charged += graph_bytes;
      return place;
    }
    memory_.give_back(device, graph_bytes);
  }
  count_.fetch_sub(1, std::memory_order_relaxed);
  return std::nullopt;
}

void KeptGraphs::give_back(Place place) {
  count_.fetch_sub(1, std::memory_order_relaxed);
  const ring::MutexLock lock(accounts_mutex_);
  Account& account = accounts_[place.device];
  if (account.era != place.era) return;  // make_room() has given back this memory
  account.charged -= graph_bytes;
  memory_.give_back(place.device, graph_bytes);
}

void KeptGraphs::make_room(unsigned device) {
  const ring::MutexLock lock(accounts_mutex_);
  Account& account = accounts_[device];
  account.taken_full = memory_.taken(device);
  ++account.era;
  if (account.charged == 0) return;
  outdate();
  memory_.give_back(device, account.charged);
  account.charged = 0;
}

}  // namespace host
