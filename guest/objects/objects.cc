#include "guest/objects/objects.h"

#include <sys/mman.h>

#include "ring/layout.h"

namespace guest {

using api::Id;

Objects::Objects(Executed executed) : executed_(executed) {
  void* at = mmap(nullptr, (std::size_t{Id::max_index} + 1) * sizeof(Object), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  table_ = at == MAP_FAILED ? nullptr : static_cast<Object*>(at);  // zero pages are free objects
}

// Only a session that could not be opened is destroyed; the process's session never is.
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
  std::lock_guard lock(mutex_);
  if (table_ == nullptr) return nullptr;
  Object* object = reuse();
  if (object == nullptr) {
    if (!Id::of_guest(next_index_)) return nullptr;
    object = &table_[next_index_++];
    kept_.resize(next_index_);
  }
  const std::uint32_t index = index_of(*object);
  const Id id{kind, index, kept_[index].generation++ % Id::generations};
  object->last_use.forget();
  object->done.forget();
  object->owner = 0, object->function = nullptr, object->flags = 0, object->priority = 0,
  object->context = api::ends_with_context(kind) ? context : nullptr;
  object->id.store(id.value(), std::memory_order_release);
  return object;
}

void Objects::retire(Object& object, Use last) {
  std::lock_guard lock(mutex_);
  const std::uint32_t index = index_of(object);
  unlist(index);
  while (kept_[index].first_owned != 0) unlist(kept_[index].first_owned);
  object.id.store(0, std::memory_order_release);
  retired_.push_back({index, last});
}

void Objects::retire_with_context(Object& object, Use last) {
  const std::uint64_t id = object.id.load(std::memory_order_relaxed);
  retire(object, last);
  std::lock_guard lock(mutex_);
  kept_[index_of(object)].went_with_context = id;
}

bool Objects::went_with_context(const void* handle) {
  const auto value = reinterpret_cast<std::uint64_t>(handle);
  std::lock_guard lock(mutex_);
  const std::uint32_t index = Id::of(value).index;
  return index != 0 && index < kept_.size() && kept_[index].went_with_context == value;
}

void Objects::give(Object& owned, const Object& owner) {
  std::lock_guard lock(mutex_);
  const std::uint32_t index = index_of(owned), under = index_of(owner);
  owned.owner = owner.id.load(std::memory_order_relaxed);
  if (owned.owner == 0) return;  // another thread has ended it meanwhile
  Keeping &child = kept_[index], &parent = kept_[under];
  child.listed_under = under;
  child.next = parent.first_owned;
  if (child.next != 0) kept_[child.next].previous = index;
  parent.first_owned = index;
}

void Objects::unlist(std::uint32_t index) {
  Keeping& child = kept_[index];
  if (child.listed_under == 0) return;
  (child.previous == 0 ? kept_[child.listed_under].first_owned : kept_[child.previous].next) = child.next;
  if (child.next != 0) kept_[child.next].previous = child.previous;
  child.next = child.previous = child.listed_under = 0;
}

std::vector<Object*> Objects::owned_by(const Object& object) {
  std::lock_guard lock(mutex_);
  std::vector<Object*> owned;
  std::uint32_t from = index_of(object);
  for (std::size_t next = 0;; from = index_of(*owned[next++])) {
    for (std::uint32_t child = kept_[from].first_owned; child != 0; child = kept_[child].next)
      owned.push_back(&table_[child]);
    if (next == owned.size()) return owned;
  }
}

std::vector<Object*> Objects::of_context(const Context& context) {
  std::lock_guard lock(mutex_);
  std::vector<Object*> ending;
  for (std::uint32_t i = 1; i < next_index_; ++i) {
    const std::uint64_t id = table_[i].id.load(std::memory_order_relaxed);
    if (id != 0 && api::ends_with_context(Id::of(id).kind) && table_[i].context == &context)
      ending.push_back(&table_[i]);
  }
  return ending;
}

FunctionInfo* Objects::new_function() {
  std::lock_guard lock(mutex_);
  return &functions_.emplace_back();
}

}  // namespace guest
