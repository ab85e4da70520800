// The objects of one guest process in its worker. This class maps ids to the driver's handles.
//
// Arguments must be checked values. Lookups are lock-free; any thread may call this class. If one channel destroys an
// object that another channel uses, both calls race in the driver, as two threads of a native program would. That harms
// no other session, since the worker holds only this session's data.
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

// Ordering: an entry has two edges, both put -> find. H: put() writes the handle before the id that makes the handle
// visible. G: put() takes the entry before it counts the put, and counts the put before it writes the handle. A reader
// that reads the count, an id, a handle and the same count again therefore has a matching pair
// (tests/unit/session/objects_test.cc interrupts both).
class Objects {
 public:
  Objects();
  ~Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  // An object's context number, and the id of the object with which it ends, for example a function's module; 0: none.
  // An object found in another object has that object's context, whichever context was current.
  struct Place {
    std::uint32_t context = 0;
    std::uint64_t owner = 0;
  };
  // Adds an object. Returns false if the id is malformed, of another kind, in use, or has an index that the guest may
  // not choose. Only an incorrect guest sends such an id.
  bool put(std::uint64_t id, api::Handle kind, void* handle, Place place);
  // Adds a handle that the driver may have returned before, for example a function's. Returns the id by which the
  // session knows the handle: `id` or an earlier one. Returns 0 where put() returns false.
  std::uint64_t put_once(std::uint64_t id, api::Handle kind, void* handle, Place place);
  // Adds an object that a call has just made. If the session already knows the handle, the older object with this
  // handle has ended.
  bool put_new(std::uint64_t id, api::Handle kind, void* handle, Place place);
  // Returns the id of a handle that the driver has found: the known id, or a new id from the worker's half. Returns 0
  // if the worker's half is full.
  std::uint64_t put_found(api::Handle kind, void* handle, Place place);
  // Returns the id of an object by its handle; 0 if unknown. Only for kinds whose handles the driver may return again.
  std::uint64_t id_of(api::Handle kind, void* handle);
  // Returns whether the object ends with an owner.
  bool is_owned(std::uint64_t id) const { return owner_of(id) != 0; }
  // Returns the owner's id; 0 if there is no owner or no object.
  std::uint64_t owner_of(std::uint64_t id) const;
  // Returns the context of an object that ends with a context (ring/api/handles.def); `otherwise` for other objects,
  // and for id 0.
  std::uint32_t context_of(std::uint64_t id, std::uint32_t otherwise) const;
  // Counts the driver's handle once more, so that the object needs one more close() to be dropped. Returns false if the
  // id has ended.
  bool keep(std::uint64_t id);
  // Drops an object that the guest has closed, unless the driver has returned the object's handle more often (for kinds
  // that count). Returns whether the object was dropped.
  bool close(std::uint64_t id);
  // Returns the driver's handle, or null. `wanted` may be Function for a kernel's id.
  void* find(std::uint64_t id, api::Handle wanted) const;
  bool drop(std::uint64_t id);
  // Drops an object and, recursively, the objects that it owns. Returns the dropped ids, owners first. The time is
  // proportional to their number.
  std::vector<std::uint64_t> drop_with_owned(std::uint64_t id);
  // Drops the objects that end with a context (ring/api/handles.def), and the objects that they own. Returns the
  // dropped ids.
  std::vector<std::uint64_t> drop_context(std::uint32_t context);
  // Returns the handles of a context's objects of this kind. Concurrent changes may be missed.
  std::vector<void*> handles_in(std::uint32_t context, api::Handle kind);
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<std::uint64_t> id;
    std::atomic<void*> handle;
    std::atomic<std::uint64_t> owner;
    std::atomic<std::uint32_t> context;
    std::atomic<std::uint32_t> puts;   // how many objects were put into this entry so far
    std::atomic<std::uint32_t> given;  // how often the driver has given the handle, for kinds that count
    // Links of the lists by owner, which family_mutex_ guards. Links are indices, 0 for none. An object is in its
    // owner's list only while both are in the table. It joins the list after its id has become visible, and leaves the
    // list before its id is removed.
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
  std::atomic<std::uint32_t> highest_{0};  // highest index used in the guest's half
  // The number of indices used in the worker's half. found_ changes under once_mutex_ and only grows.
  std::atomic<std::uint32_t> found_{0};
  std::deque<std::uint32_t> found_before_ GUARDED_BY(once_mutex_);
  std::atomic<std::uint64_t> count_{0};
  ring::Mutex family_mutex_ ACQUIRED_AFTER(once_mutex_);
  ring::Mutex once_mutex_;
  // Ids by handle. An entry is valid only if the id still has the handle.
  std::unordered_map<void*, std::uint64_t> once_ GUARDED_BY(once_mutex_);
};

}  // namespace host
