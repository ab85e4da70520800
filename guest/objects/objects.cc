#include "guest/objects/objects.h"

#include <sys/mman.h>

#include "ring/base/mutex.h"
#include "ring/layout/layout.h"

namespace guest {

using api::Id;

Objects::Objects(Executed executed) : executed_(executed) {
  void* at = mmap(nullptr, (std::size_t{Id::max_index} + 1) * sizeof(Object), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  table_ = at == MAP_FAILED ? nullptr : static_cast<Object*>(at);  // pages of zeros are free objects
}

// Only a session that could not be opened is destroyed. The process's session is never destroyed.
Objects::~Objects() {
  if (table_ != nullptr) munmap(table_, (std::size_t{Id::max_index} + 1) * sizeof(Object));
}

Object* Objects::reuse() {
  if (retired_.empty()) return nullptr;
  if (!executed_(retired_.front().last) && !ring::wrong(ring::Mutant::early_reuse)) return nullptr;
  const std::uint32_t index = retired_.front().index;
  retired_.pop_front();
  return &table_[index];
}

Object* Objects::create(api::Handle kind, Context* context) {
  ring::MutexLock lock(mutex_);
  if (table_ == nullptr) return nullptr;
  Object* object = reuse();
  if (object == nullptr) {
    if (!Id::of_guest(next_index_)) return nullptr;
    object = &table_[next_index_++];
    kept_.resize(next_index_);
  }
  const std::uint32_t index = index_of(*object);
  start(*object, {kind, index, kept_[index].generation++ % Id::generations}, context);
  return object;
}

void Objects::start(Object& object, Id id, Context* context, std::uint32_t device) {
  object.last_use.forget();
  object.done.forget();
  object.owner = 0, object.function = nullptr, object.flags = 0, object.priority = 0,
  object.context = api::ends_with_context(id.kind) ? context : nullptr, object.device = device;
  object.begins_capture.store(false, std::memory_order_relaxed);
  object.in_capture.store(false, std::memory_order_relaxed);
  object.given.store(1, std::memory_order_relaxed);
  object.id.store(id.value(), std::memory_order_release);
}

Object* Objects::adopt(std::uint64_t id, api::Handle kind, Context* context, std::uint32_t device) {
  const Id parts = Id::of(id);
  if (table_ == nullptr || parts.kind != kind || parts.index == 0 || parts.value() != id) return nullptr;
  Object& object = table_[parts.index];
  ring::MutexLock lock(mutex_);
  if (object.id.load(std::memory_order_relaxed) == id) {
    object.given.fetch_add(1, std::memory_order_relaxed);
    return &object;
  }
  if (Id::of_guest(parts.index)) return nullptr;
  kept(parts.index);
  start(object, parts, context, device);
  return &object;
}

bool Objects::keep(Object& object, std::uint64_t id) {
  ring::MutexLock lock(mutex_);
  if (object.id.load(std::memory_order_relaxed) != id) return false;  // another thread has closed the object
  object.given.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Objects::close(Object& object, std::uint64_t id, Use last) {
  const bool counts = api::kind_of(Id::of(id).kind).given == api::counted;
  {
    ring::MutexLock lock(mutex_);
    if (object.id.load(std::memory_order_relaxed) != id) return;  // another thread has also closed the object
    if (counts && object.given.fetch_sub(1, std::memory_order_relaxed) > 1) return;
  }
  retire(object, last);
}

// Returns the data kept for the object with this index.
Objects::Keeping& Objects::kept(std::uint32_t index) {
  if (index < Id::first_of_worker) return kept_[index];
  const std::uint32_t at = index - Id::first_of_worker;
  if (at >= kept_of_worker_.size()) kept_of_worker_.resize(at + 1);
  return kept_of_worker_[at];
}

void Objects::retire(Object& object, Use last) {
  ring::MutexLock lock(mutex_);
  const std::uint32_t index = index_of(object);
  unlist(index);
  while (kept(index).first_owned != 0) unlist(kept(index).first_owned);
  object.id.store(0, std::memory_order_release);
  if (Id::of_guest(index)) retired_.push_back({index, last});
}

void Objects::retire_with_context(Object& object, Use last) {
  const std::uint64_t id = object.id.load(std::memory_order_relaxed);
  retire(object, last);
  ring::MutexLock lock(mutex_);
  kept(index_of(object)).went_with_context = id;
}

bool Objects::went_with_context(const void* handle) {
  const auto value = reinterpret_cast<std::uint64_t>(handle);
  ring::MutexLock lock(mutex_);
  const std::uint32_t index = Id::of(value).index;
  const bool is_kept =
      index < kept_.size() || (index >= Id::first_of_worker && index - Id::first_of_worker < kept_of_worker_.size());
  return index != 0 && is_kept && kept(index).went_with_context == value;
}

void Objects::give(Object& owned, const Object& owner) {
  ring::MutexLock lock(mutex_);
  const std::uint32_t index = index_of(owned), under = index_of(owner);
  owned.owner = owner.id.load(std::memory_order_relaxed);
  if (owned.owner == 0) return;  // another thread has destroyed the object
  owned.context = context_in(owner, owned.context);
  kept(index), kept(under);  // creates both first, so that the references stay valid
  Keeping &child = kept(index), &parent = kept(under);
  child.listed_under = under;
  child.next = parent.first_owned;
  if (child.next != 0) kept(child.next).previous = index;
  parent.first_owned = index;
}

void Objects::unlist(std::uint32_t index) {
  Keeping& child = kept(index);
  if (child.listed_under == 0) return;
  (child.previous == 0 ? kept(child.listed_under).first_owned : kept(child.previous).next) = child.next;
  if (child.next != 0) kept(child.next).previous = child.previous;
  child.next = child.previous = child.listed_under = 0;
}

std::vector<Object*> Objects::owned_by(const Object& object) {
  ring::MutexLock lock(mutex_);
  std::vector<Object*> owned;
  std::uint32_t from = index_of(object);
  for (std::size_t next = 0;; from = index_of(*owned[next++])) {
    for (std::uint32_t child = kept(from).first_owned; child != 0; child = kept(child).next)
      owned.push_back(&table_[child]);
    if (next == owned.size()) return owned;
  }
}

std::vector<Object*> Objects::of_context(const Context& context) {
  ring::MutexLock lock(mutex_);
  std::vector<Object*> ending;
  const auto look_from = [&](std::uint32_t first, std::size_t count) {
    for (std::uint32_t i = first; i < first + count; ++i) {
      const std::uint64_t id = table_[i].id.load(std::memory_order_relaxed);
      if (id != 0 && api::ends_with_context(Id::of(id).kind) && table_[i].context == &context)
        ending.push_back(&table_[i]);
    }
  };
  look_from(1, next_index_ - 1);
  look_from(Id::first_of_worker, kept_of_worker_.size());
  return ending;
}

FunctionInfo* Objects::new_function() {
  ring::MutexLock lock(mutex_);
  return &functions_.emplace_back();
}

}  // namespace guest
