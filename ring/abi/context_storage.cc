// The list of entries only grows; a later put rewrites an unused entry. Readers detect a concurrent rewrite by an
// entry's sequence number:
//
//   A  a writer makes the number odd, then stores each field with release; a reader acquires the fields. A reader that
//      saw any new field also sees the odd number at its second look.
//   B  a writer makes the number even after the last field (release); a reader's first look acquires the fields.
//   C  a new entry is linked after it is filled (release); a reader follows the link with acquire.
//
// Entries are never freed: their number is the largest number that was ever used at once.
#include "ring/abi/context_storage.h"

#include <atomic>
#include <cstdint>
#include <new>

#include "ring/abi/backend.h"
#include "ring/base/mutex.h"

namespace cuabi {
namespace {

constinit ring::Mutex writers;

struct Entry {
  std::atomic<std::uint32_t> sequence{0};
  std::atomic<CUcontext> context{nullptr};  // NULL: the entry is unused
  std::atomic<void*> key{nullptr};
  std::atomic<void*> value{nullptr};
  StorageDestructor destructor GUARDED_BY(writers) = nullptr;
  Entry* next = nullptr;  // constant once the entry is linked
};

constinit std::atomic<Entry*> head{nullptr};

void rewrite(Entry& entry, CUcontext context, void* key, void* value, StorageDestructor destructor) REQUIRES(writers) {
  const std::uint32_t before = entry.sequence.load(std::memory_order_relaxed);
  entry.sequence.store(before + 1, std::memory_order_relaxed);
  entry.context.store(context, std::memory_order_release);  // edge A
  entry.key.store(key, std::memory_order_release);          // edge A
  entry.value.store(value, std::memory_order_release);      // edge A
  entry.destructor = destructor;
  entry.sequence.store(before + 2, std::memory_order_release);  // edge B
}

Entry* find_locked(CUcontext context, const void* key) REQUIRES(writers) {
  for (Entry* e = head.load(std::memory_order_relaxed); e != nullptr; e = e->next)
    if (e->context.load(std::memory_order_relaxed) == context && e->key.load(std::memory_order_relaxed) == key)
      return e;
  return nullptr;
}

Entry* unused_locked() REQUIRES(writers) {
  for (Entry* e = head.load(std::memory_order_relaxed); e != nullptr; e = e->next)
    if (e->context.load(std::memory_order_relaxed) == nullptr) return e;
  return nullptr;
}

bool append_locked(CUcontext context, void* key, void* value, StorageDestructor destructor) REQUIRES(writers) {
  auto* entry = new (std::nothrow) Entry;
  if (entry == nullptr) return false;
  rewrite(*entry, context, key, value, destructor);
  entry->next = head.load(std::memory_order_relaxed);
  head.store(entry, std::memory_order_release);  // edge C
  return true;
}

// Resolves a caller's context. If the result is null, the caller returns `error`.
CUcontext meant(CUcontext context, CUresult* error) {
  const Backend* b = backend();
  *error = b == nullptr ? CUDA_ERROR_NOT_INITIALIZED : b->ready();
  if (*error != CUDA_SUCCESS) return nullptr;
  if (context == nullptr || reinterpret_cast<std::uintptr_t>(context) == UINTPTR_MAX) context = b->current_context();
  if (context == nullptr) *error = CUDA_ERROR_INVALID_CONTEXT;
  return context;
}

}  // namespace

CUresult storage_put(CUcontext context, void* key, void* value, StorageDestructor destructor) {
  CUresult error;
  context = meant(context, &error);
  if (context == nullptr) return error;
  if (!backend()->context_exists(context)) return CUDA_ERROR_INVALID_CONTEXT;
  const ring::MutexLock lock(writers);
  if (find_locked(context, key) != nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (Entry* entry = unused_locked()) {
    rewrite(*entry, context, key, value, destructor);
    return CUDA_SUCCESS;
  }
  return append_locked(context, key, value, destructor) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult storage_delete(CUcontext context, void* key) {
  CUresult error;
  context = meant(context, &error);
  if (context == nullptr) return error;
  const ring::MutexLock lock(writers);
  Entry* entry = find_locked(context, key);
  if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  rewrite(*entry, nullptr, nullptr, nullptr, nullptr);
  return CUDA_SUCCESS;
}

CUresult storage_get(void** value, CUcontext context, void* key) {
  CUresult error;
  context = meant(context, &error);
  if (context == nullptr) return error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const Entry* e = head.load(std::memory_order_acquire); e != nullptr;) {   // edge C
    const std::uint32_t before = e->sequence.load(std::memory_order_acquire);    // edge B
    const bool match = e->context.load(std::memory_order_acquire) == context &&  // edge A
                       e->key.load(std::memory_order_acquire) == key;            // edge A
    void* const found = e->value.load(std::memory_order_acquire);                // edge A
    if ((before & 1) != 0 || e->sequence.load(std::memory_order_relaxed) != before) continue;
    if (match) {
      *value = found;
      return CUDA_SUCCESS;
    }
    e = e->next;
  }
  return CUDA_ERROR_INVALID_HANDLE;
}

void storage_release(CUcontext context) {
  // The destructors run one at a time and outside the lock, because a destructor may call these functions.
  for (;;) {
    void* key = nullptr;
    void* value = nullptr;
    StorageDestructor destructor = nullptr;
    {
      const ring::MutexLock lock(writers);
      Entry* entry = head.load(std::memory_order_relaxed);
      while (entry != nullptr && entry->context.load(std::memory_order_relaxed) != context) entry = entry->next;
      if (entry == nullptr) return;
      key = entry->key.load(std::memory_order_relaxed);
      value = entry->value.load(std::memory_order_relaxed);
      destructor = entry->destructor;
      rewrite(*entry, nullptr, nullptr, nullptr, nullptr);
    }
    if (destructor != nullptr) destructor(context, key, value);
  }
}

}  // namespace cuabi
