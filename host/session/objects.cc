#include "host/session/objects.h"

#include <sys/mman.h>

#include <new>

#include "ring/base/mutex.h"

namespace host {

using api::Id;

namespace {

constexpr std::uint64_t being_put = 1;  // placeholder for an id, since no id has index 0
// The worker reuses an index of its half only after it has used this many other indices. By then a guest thread that
// closed the old object has recorded the close.
constexpr std::size_t found_between = 4096;

}  // namespace

Objects::Objects() {
  void* at = mmap(nullptr, (std::size_t{Id::max_index} + 1) * sizeof(Entry), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  entries_ = static_cast<Entry*>(at);  // zero pages are empty entries
}

Objects::~Objects() { munmap(entries_, (std::size_t{Id::max_index} + 1) * sizeof(Entry)); }

bool Objects::put(std::uint64_t id, api::Handle kind, void* handle, Place place) {
  const Id parts = Id::of(id);
  if (parts.kind != kind || parts.kind == api::Handle::None || !Id::of_guest(parts.index)) return false;
  if (place.owner != 0 && !api::may_own(Id::of(place.owner).kind, kind)) return false;
  if (!fill(id, handle, place)) return false;
  std::uint32_t seen = highest_.load(std::memory_order_relaxed);
  while (seen < parts.index && !highest_.compare_exchange_weak(seen, parts.index, std::memory_order_relaxed)) {
  }
  return true;
}

// Returns false if the entry is taken.
bool Objects::fill(std::uint64_t id, void* handle, Place place) {
  Entry& entry = entries_[Id::of(id).index];
  std::uint64_t empty = 0;  // if two channels use this entry at the same time, one of them succeeds
  if (!entry.id.compare_exchange_strong(empty, being_put, std::memory_order_relaxed)) return false;
  count_.fetch_add(1, std::memory_order_relaxed);
  entry.puts.fetch_add(1, std::memory_order_release);     // edge G
  entry.handle.store(handle, std::memory_order_release);  // edge G
  entry.owner.store(place.owner, std::memory_order_relaxed);
  entry.context.store(context_of(place.owner, place.context), std::memory_order_relaxed);
  entry.given.store(1, std::memory_order_relaxed);
  entry.id.store(id, std::memory_order_release);  // edge H
  if (place.owner != 0) enlist(id, place.owner);
  return true;
}

std::uint64_t Objects::put_once(std::uint64_t id, api::Handle kind, void* handle, Place place) {
  ring::MutexLock lock(once_mutex_);
  std::uint64_t& known = once_[handle];
  if (Id::of(known).kind == kind && find(known, kind) == handle) return known;
  known = put(id, kind, handle, place) ? id : 0;
  if (known != 0) return known;
  once_.erase(handle);
  return 0;
}

bool Objects::put_new(std::uint64_t id, api::Handle kind, void* handle, Place place) {
  if (api::kind_of(kind).given == api::once) return put(id, kind, handle, place);
  ring::MutexLock lock(once_mutex_);
  if (!put(id, kind, handle, place)) return false;
  once_[handle] = id;
  return true;
}

std::uint64_t Objects::put_found(api::Handle kind, void* handle, Place place) {
  ring::MutexLock lock(once_mutex_);
  std::uint64_t& known = once_[handle];
  if (Id::of(known).kind == kind && find(known, kind) == handle) {
    entries_[Id::of(known).index].given.fetch_add(1, std::memory_order_relaxed);
    return known;
  }
  std::uint32_t index = Id::first_of_worker + found_.load(std::memory_order_relaxed);
  if (found_before_.size() > found_between || index > Id::max_index) {
    if (found_before_.empty()) {
      once_.erase(handle);
      return 0;
    }
    index = found_before_.front();
    found_before_.pop_front();
  } else {
    found_.fetch_add(1, std::memory_order_relaxed);
  }
  const Id id{kind, index, entries_[index].puts.load(std::memory_order_relaxed) % Id::generations};
  fill(id.value(), handle, place);
  return known = id.value();
}

// For kinds whose handles the driver never returns twice, there is no map by handle, and the search visits all objects.
std::uint64_t Objects::id_of(api::Handle kind, void* handle) {
  if (api::kind_of(kind).given == api::once) {
    std::uint64_t known = 0;
    each([&](std::uint64_t id, const Entry&) {
      if (Id::of(id).kind == kind && find(id, kind) == handle) known = id;
    });
    return known;
  }
  ring::MutexLock lock(once_mutex_);
  const auto at = once_.find(handle);
  return at != once_.end() && Id::of(at->second).kind == kind && find(at->second, kind) == handle ? at->second : 0;
}

std::uint32_t Objects::context_of(std::uint64_t id, std::uint32_t otherwise) const {
  const Entry& entry = entries_[Id::of(id).index];
  const bool has_one = id != 0 && api::ends_with_context(Id::of(id).kind);
  return has_one && entry.id.load(std::memory_order_acquire) == id ? entry.context.load(std::memory_order_relaxed)
                                                                   : otherwise;
}

std::uint64_t Objects::owner_of(std::uint64_t id) const {
  const Entry& entry = entries_[Id::of(id).index];
  return entry.id.load(std::memory_order_acquire) == id ? entry.owner.load(std::memory_order_relaxed) : 0;
}

bool Objects::keep(std::uint64_t id) {
  Entry& entry = entries_[Id::of(id).index];
  ring::MutexLock lock(once_mutex_);
  if (entry.id.load(std::memory_order_relaxed) != id) return false;  // another channel has closed the object
  entry.given.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool Objects::close(std::uint64_t id) {
  const Id parts = Id::of(id);
  if (api::kind_of(parts.kind).given == api::counted) {
    ring::MutexLock lock(once_mutex_);
    // Another channel has closed the object.
    if (entries_[parts.index].id.load(std::memory_order_relaxed) != id) return false;
    if (entries_[parts.index].given.fetch_sub(1, std::memory_order_relaxed) > 1) return false;
  }
  return drop(id);
}

void* Objects::find(std::uint64_t id, api::Handle wanted) const {
  const Id parts = Id::of(id);
  if (parts.index == 0 || !api::accepts(wanted, parts.kind)) return nullptr;
  const Entry& entry = entries_[parts.index];
  const std::uint32_t puts = entry.puts.load(std::memory_order_acquire);  // edge G
  if (entry.id.load(std::memory_order_acquire) != id) return nullptr;     // edge H
  void* const handle = entry.handle.load(std::memory_order_acquire);      // edge G
  return entry.puts.load(std::memory_order_relaxed) == puts ? handle : nullptr;
}

bool Objects::drop(std::uint64_t id) { return take_out(id, nullptr); }

// Removes an object. `owned`, if not null, receives the ids that the object owned.
bool Objects::take_out(std::uint64_t id, std::vector<std::uint64_t>* owned) {
  const Id parts = Id::of(id);
  if (parts.index == 0) return false;
  void* const handle = find(id, parts.kind);
  if (!(api::has_family(parts.kind) ? clear_with_family(id, owned) : clear(id))) return false;
  count_.fetch_sub(1, std::memory_order_relaxed);
  forget_handle(id, handle);
  return true;
}

bool Objects::clear(std::uint64_t id) {
  return entries_[Id::of(id).index].id.compare_exchange_strong(id, 0, std::memory_order_relaxed);
}

// ---- families ------------------------------------------------------------------------------------------------------

// Adds an object to its owner's list, unless another channel has dropped the object or the owner meanwhile.
void Objects::enlist(std::uint64_t id, std::uint64_t owner) {
  const std::uint32_t index = Id::of(id).index, under = Id::of(owner).index;
  ring::MutexLock lock(family_mutex_);
  Entry& entry = entries_[index];
  Entry& parent = entries_[under];
  if (entry.id.load(std::memory_order_relaxed) != id || parent.id.load(std::memory_order_relaxed) != owner) return;
  entry.listed_under = under;
  entry.next = parent.first_owned;
  if (entry.next != 0) entries_[entry.next].previous = index;
  parent.first_owned = index;
}

void Objects::unlist(std::uint32_t index) {
  Entry& entry = entries_[index];
  if (entry.listed_under == 0) return;
  (entry.previous == 0 ? entries_[entry.listed_under].first_owned : entries_[entry.previous].next) = entry.next;
  if (entry.next != 0) entries_[entry.next].previous = entry.previous;
  entry.next = entry.previous = entry.listed_under = 0;
}

// Drops an object. The objects that it owned then have no owner.
bool Objects::clear_with_family(std::uint64_t id, std::vector<std::uint64_t>* owned) {
  const std::uint32_t index = Id::of(id).index;
  Entry& entry = entries_[index];
  ring::MutexLock lock(family_mutex_);
  if (entry.id.load(std::memory_order_relaxed) != id) return false;
  unlist(index);
  while (const std::uint32_t child = entry.first_owned) {
    if (owned != nullptr) owned->push_back(entries_[child].id.load(std::memory_order_relaxed));
    unlist(child);
  }
  return clear(id);
}

// Removes the entry of put_once() for a handle that has ended. Without this step the map would grow, since the driver
// may never return the handle again.
void Objects::forget_handle(std::uint64_t id, void* handle) {
  const Id parts = Id::of(id);
  if (api::kind_of(parts.kind).given == api::once) return;
  ring::MutexLock lock(once_mutex_);
  if (!Id::of_guest(parts.index)) found_before_.push_back(parts.index);
  if (const auto at = once_.find(handle); at != once_.end() && at->second == id) once_.erase(at);
}

// Calls f(id, entry) for each object.
template <class F>
void Objects::each(F f) {
  const auto look_from = [&](std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t i = first; i < first + count; ++i)
      if (const std::uint64_t id = entries_[i].id.load(std::memory_order_acquire); id > being_put)  // edge H
        f(id, entries_[i]);
  };
  look_from(1, highest_.load(std::memory_order_relaxed));
  look_from(Id::first_of_worker, found_.load(std::memory_order_relaxed));
}

std::vector<std::uint64_t> Objects::drop_with_owned(std::uint64_t id) {
  std::vector<std::uint64_t> going{id};
  for (std::size_t next = 0; next < going.size(); ++next) take_out(going[next], &going);
  return going;
}

std::vector<std::uint64_t> Objects::drop_context(std::uint32_t context) {
  std::vector<std::uint64_t> gone;
  each([&](std::uint64_t id, const Entry& entry) {
    if (!api::ends_with_context(Id::of(id).kind) || entry.context.load(std::memory_order_relaxed) != context) return;
    const auto with_it = drop_with_owned(id);
    gone.insert(gone.end(), with_it.begin(), with_it.end());
  });
  return gone;
}

std::vector<void*> Objects::handles_in(std::uint32_t context, api::Handle kind) {
  std::vector<void*> all;
  each([&](std::uint64_t id, const Entry& entry) {
    if (Id::of(id).kind != kind || entry.context.load(std::memory_order_relaxed) != context) return;
    if (void* const handle = find(id, kind)) all.push_back(handle);
  });
  return all;
}

}  // namespace host
