// The objects of one guest process in its worker: the driver's handles behind its ids.
//
// Takes only checked values. Lookups are lock-free. Two channels that race on one id (one destroys what the other uses)
// race in the driver, too, as two threads of a native program would: the worker holds nothing but this session's data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "ring/api/id.h"

namespace host {

// ids -> handles. An entry's edges: H, put -> find: the handle is written before the id that makes it visible. G, put
// -> find: the entry is taken before it is counted, and counted before the handle is written. So a reader that finds an
// id, then a handle, and the same count as before the two, has a matching pair (tests/unit/session_objects.cc
// interrupts both).
class Objects {
 public:
  Objects();
  ~Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  // An object's owners: the number of the context that holds it, and the id of the object that it goes with (a function's
  // module).
  struct Place {
    std::uint32_t context = 0;
    std::uint64_t owner = 0;
  };
  // False if the id is malformed, of another kind, its index not the guest's to choose, or taken: only a broken guest
  // does that.
  bool put(std::uint64_t id, api::Handle kind, void* handle, Place place);
  // The same for a handle that the driver may have given before (a function's): returns the id by which the session
  // knows it, the one given here or an earlier one; 0 for put()'s false.
  std::uint64_t put_once(std::uint64_t id, api::Handle kind, void* handle, Place place);
  // The driver's handle, or null. `wanted` may be Function for a kernel's id.
  void* find(std::uint64_t id, api::Handle wanted) const;
  bool drop(std::uint64_t id);
  // An object and everything that goes with it, and with that. The ids that are gone, owners first. Takes as long as
  // there are such objects, however many others there are.
  std::vector<std::uint64_t> drop_with_owned(std::uint64_t id);
  // Drops the objects that end with a context (ring/api/handles.def), and those that go with them.
  std::vector<std::uint64_t> drop_context(std::uint32_t context);
  // The number of them.
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<std::uint64_t> id;
    std::atomic<void*> handle;
    std::atomic<std::uint64_t> owner;
    std::atomic<std::uint32_t> context;
    std::atomic<std::uint32_t> puts;  // how often one was put here
    // Lists by owner, as indices, 0 for none; under family_mutex_. An object is in its owner's list while both are
    // here: it is put in after its id became visible, and taken out before its id goes.
    std::uint32_t first_owned, next, previous, listed_under;
  };
  template <class F>
  void each(F f);
  void enlist(std::uint64_t id, std::uint64_t owner);
  void unlist(std::uint32_t index);
  bool take_out(std::uint64_t id, std::vector<std::uint64_t>* owned);
  bool clear(std::uint64_t id);
  bool clear_with_family(std::uint64_t id, std::vector<std::uint64_t>* owned);
  void forget_handle(std::uint64_t id, void* handle);

  // One mapping for the largest index, whoever chooses it; pages are touched as indices are used.
  Entry* entries_ = nullptr;
  std::atomic<std::uint32_t> highest_{0};
  std::atomic<std::uint64_t> count_{0};
  std::mutex family_mutex_;  // never held while once_mutex_ is taken
  std::mutex once_mutex_;
  std::unordered_map<void*, std::uint64_t> once_;  // ids by handle; an entry is believed only while it is true
};

}  // namespace host
