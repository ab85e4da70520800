// The objects of one guest process in its worker: maps ids to the driver's handles.
//
// Arguments must be checked values. Lookups are lock-free; any thread may call it. If one channel destroys an object
// that another uses, the two race in the driver, as two threads of a native program would. That harms no other session,
// since the worker holds only this session's data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "ring/api/id.h"
#include "ring/base/mutex.h"

namespace host {

// Ordering: an entry has two edges, both put -> find. H: the handle is written before the id that makes it visible. G:
// the entry is taken before it is counted, and counted before the handle is written. A reader that reads the count, an
// id, a handle and the same count again therefore has a matching pair (tests/unit/session/objects_test.cc interrupts
// both).
class Objects {
 public:
  Objects();
  ~Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  // An object's context number, and the id of the object with which it ends (a function's module; 0: none). An object
  // found in another object has that object's context, whichever context was current.
  struct Place {
    std::uint32_t context = 0;
    std::uint64_t owner = 0;
  };
  // Adds an object. False if the id is malformed, of another kind, in use, or has an index that the guest may not
  // choose. Only a broken guest sends these.
  bool put(std::uint64_t id, api::Handle kind, void* handle, Place place);
  // Adds a handle that the driver may have given before, as a function's. Returns the id by which the session knows the
  // handle: `id` or an earlier one. 0 where put() returns false.
  std::uint64_t put_once(std::uint64_t id, api::Handle kind, void* handle, Place place);
  // Adds an object that a call has just made. If its handle was known before, that object has ended since.
  bool put_new(std::uint64_t id, api::Handle kind, void* handle, Place place);
  // The id of a handle that the driver has found: the known one, or a new one from the worker's half. 0: that half is
  // full.
  std::uint64_t put_found(api::Handle kind, void* handle, Place place);
  // The id of an object by its handle; 0 if unknown. Only for kinds whose handles may repeat.
  std::uint64_t id_of(api::Handle kind, void* handle);
  // True if the object ends with an owner.
  bool is_owned(std::uint64_t id) const { return owner_of(id) != 0; }
  // The owner's id; 0 if there is none, or no object.
  std::uint64_t owner_of(std::uint64_t id) const;
  // The context of an object that ends with one (ring/api/handles.def); `otherwise` for other objects, and for 0.
  std::uint32_t context_of(std::uint64_t id, std::uint32_t otherwise) const;
  // Counts the driver's handle once more, so that it takes one more close() to drop the object. False if the id is
  // gone.
  bool keep(std::uint64_t id);
  // Drops an object that the guest has closed, unless the driver has given its handle more often (kinds that count).
  // True if dropped.
  bool close(std::uint64_t id);
  // The driver's handle, or null. `wanted` may be Function for a kernel's id.
  void* find(std::uint64_t id, api::Handle wanted) const;
  bool drop(std::uint64_t id);
  // Drops an object, the objects that it owns, and theirs in turn. Returns the dropped ids, owners first. The time it
  // takes is proportional to their number.
  std::vector<std::uint64_t> drop_with_owned(std::uint64_t id);
  // Drops the objects that end with a context (ring/api/handles.def), and those that they own. Returns the dropped ids.
  std::vector<std::uint64_t> drop_context(std::uint32_t context);
  // The handles of a context's objects of this kind; concurrent changes may be missed.
  std::vector<void*> handles_in(std::uint32_t context, api::Handle kind);
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<std::uint64_t> id;
    std::atomic<void*> handle;
    std::atomic<std::uint64_t> owner;
    std::atomic<std::uint32_t> context;
    std::atomic<std::uint32_t> puts;   // objects put into this entry so far
    std::atomic<std::uint32_t> given;  // how often the driver has given the handle, for kinds that count
    // Links of the lists by owner: indices, 0 for none; under family_mutex_. An object is in its owner's list only while
    // both are in the table. It joins after its id became visible, and leaves before its id goes.
    std::uint32_t first_owned, next, previous, listed_under;
  };
  template <class F>
  void each(F f);
  void enlist(std::uint64_t id, std::uint64_t owner);
  void unlist(std::uint32_t index) REQUIRES(family_mutex_);
  bool fill(std::uint64_t id, void* handle, Place place);
  bool take_out(std::uint64_t id, std::vector<std::uint64_t>* owned);
  bool clear(std::uint64_t id);
  bool clear_with_family(std::uint64_t id, std::vector<std::uint64_t>* owned);
  void forget_handle(std::uint64_t id, void* handle);

  // One mapping with space for every index; pages are allocated on first use.
  Entry* entries_ = nullptr;
  std::atomic<std::uint32_t> highest_{0};  // of the guest's half
  // Of the worker's half. found_ changes under once_mutex_ and only grows.
  std::atomic<std::uint32_t> found_{0};
  std::deque<std::uint32_t> found_before_ GUARDED_BY(once_mutex_);
  std::atomic<std::uint64_t> count_{0};
  ring::Mutex family_mutex_ ACQUIRED_AFTER(once_mutex_);
  ring::Mutex once_mutex_;
  // Ids by handle; valid only if the id still has the handle.
  std::unordered_map<void*, std::uint64_t> once_ GUARDED_BY(once_mutex_);
};

}  // namespace host
