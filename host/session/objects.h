// The objects of one guest process in its worker: the driver's handles behind its ids.
//
// It takes only checked values. Lookups are lock-free; any thread may call it. If one channel destroys the object that
// another uses, the two race in the driver, as two threads of a native program would. That harms no other session,
// since the worker holds only this session's data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "ring/api/id.h"

namespace host {

// The table from ids to handles. Ordering: two edges of an entry, both put -> find. H: the handle is written before the
// id that makes it visible. G: the entry is taken before it is counted, and counted before the handle is written. So a
// reader that reads the count, an id, a handle and the same count again has a matching pair
// (tests/unit/session/objects_test.cc interrupts both).
class Objects {
 public:
  Objects();
  ~Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  // An object's owners: the number of its context, and the id of the object that it ends with (a function's module; 0:
  // none). What is found in an object of a context is in that one, whichever context was current.
  struct Place {
    std::uint32_t context = 0;
    std::uint64_t owner = 0;
  };
  // Adds an object. False: the id is malformed, of another kind, taken, or of an index that the guest may not choose.
  // Only a broken guest sends such an id.
  bool put(std::uint64_t id, api::Handle kind, void* handle, Place place);
  // The same for a handle that the driver may have given before, such as a function's. Returns the id by which the
  // session knows the handle: `id` or an earlier one. 0: as put()'s false.
  std::uint64_t put_once(std::uint64_t id, api::Handle kind, void* handle, Place place);
  // The same for an object that a call has just made. If the driver has given its handle before, the object that had it has
  // ended since.
  bool put_new(std::uint64_t id, api::Handle kind, void* handle, Place place);
  // The id of a handle that the driver has found: the one by which the session knows it, or a new one of the worker's half.
  // 0: all of these are in use.
  std::uint64_t put_found(api::Handle kind, void* handle, Place place);
  // The id of an object that the session has, by its handle. 0: it has none. Only for kinds whose handles may come again.
  std::uint64_t id_of(api::Handle kind, void* handle);
  // Whether an object goes with another that owns it.
  bool is_owned(std::uint64_t id) const { return owner_of(id) != 0; }
  // The id of that other. 0: there is none, or no such object.
  std::uint64_t owner_of(std::uint64_t id) const;
  // The context of an object that ends with one (ring/api/handles.def). Of any other, and of 0: `otherwise`.
  std::uint32_t context_of(std::uint64_t id, std::uint32_t otherwise) const;
  // The object must stay beyond the handles that the guest has, until another close(). False: there is none of this id any
  // more.
  bool keep(std::uint64_t id);
  // Drops an object that the guest has closed, unless its kind counts and the driver has given it more often. Whether it is
  // gone.
  bool close(std::uint64_t id);
  // The driver's handle, or null. `wanted` may be Function for a kernel's id.
  void* find(std::uint64_t id, api::Handle wanted) const;
  bool drop(std::uint64_t id);
  // Drops an object, the objects that it owns, and theirs in turn. Returns the dropped ids, owners first. The time it
  // takes is proportional to their number.
  std::vector<std::uint64_t> drop_with_owned(std::uint64_t id);
  // Drops the objects that end with a context (ring/api/handles.def), and those that they own. Returns the dropped ids.
  std::vector<std::uint64_t> drop_context(std::uint32_t context);
  // The handles of a context's objects of this kind, at some time during the call.
  std::vector<void*> handles_in(std::uint32_t context, api::Handle kind);
  // The number of objects.
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<std::uint64_t> id;
    std::atomic<void*> handle;
    std::atomic<std::uint64_t> owner;
    std::atomic<std::uint32_t> context;
    std::atomic<std::uint32_t> puts;   // how often an object was put in this entry
    std::atomic<std::uint32_t> given;  // how often the driver has given the handle, of a kind that counts that
    // Links of the lists by owner: indices, 0 for none; under family_mutex_. An object is in its owner's list while
    // both are in the table: it enters the list after its id became visible, and leaves it before its id goes.
    std::uint32_t first_owned, next, previous, listed_under;
  };
  template <class F>
  void each(F f);
  void enlist(std::uint64_t id, std::uint64_t owner);
  void unlist(std::uint32_t index);
  bool fill(std::uint64_t id, void* handle, Place place);
  bool take_out(std::uint64_t id, std::vector<std::uint64_t>* owned);
  bool clear(std::uint64_t id);
  bool clear_with_family(std::uint64_t id, std::vector<std::uint64_t>* owned);
  void forget_handle(std::uint64_t id, void* handle);

  // One mapping that has room for every index. Its pages take memory only once their indices are used.
  Entry* entries_ = nullptr;
  std::atomic<std::uint32_t> highest_{0};  // of the guest's half
  // Of the worker's half; under once_mutex_, but for the number, which grows only.
  std::atomic<std::uint32_t> found_{0};
  std::deque<std::uint32_t> found_before_;
  std::atomic<std::uint64_t> count_{0};
  std::mutex family_mutex_;  // never held while once_mutex_ is taken
  std::mutex once_mutex_;
  std::unordered_map<void*, std::uint64_t> once_;  // ids by handle; an entry counts only if the id still has the handle
};

}  // namespace host
