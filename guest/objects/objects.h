// The objects that this process has created: handles (ids) and the parameter layouts of kernels. With them the guest
// finds the errors that CUDA reports at once, without a round trip.
//
// Thread-safety: find() is lock-free; the rest takes a lock. `last_use` keeps the order of host threads: it holds
// channel and position of the last posted call that named the object (guest/session/order.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "guest/objects/known_done.h"
#include "guest/objects/memory/last_use.h"
#include "ring/abi/old_launch.h"
#include "ring/api/fields.h"
#include "ring/api/id.h"
#include "ring/base/mutex.h"

namespace guest {

struct Context;  // guest/process/context.h

// The data to check and pack launches of a function. Never destroyed, since a program may race an unload with a launch.
struct FunctionInfo {
  std::string name;
  std::vector<api::ParameterPlace> params;
  std::uint32_t param_bytes = 0;
  std::uint32_t max_threads = 0, static_shared = 0;
  std::atomic<std::uint32_t> max_dynamic_shared{0};
  cuabi::OldLaunch old_launch;

  // Whether the driver is known to accept a block of this shape. A kernel may demand one shape (.reqntid), which only a
  // launch shows. A kernel that has run with two shapes demands none.
  bool accepts(unsigned x, unsigned y, unsigned z) const {
    const std::uint64_t known = shape.load(std::memory_order_relaxed);
    return known == any_shape || known == packed(x, y, z);
  }
  // Records that the driver accepted a launch with this block and this much dynamic shared memory.
  void learn(unsigned x, unsigned y, unsigned z, unsigned shared) {
    std::uint64_t none = 0;
    if (!shape.compare_exchange_strong(none, packed(x, y, z), std::memory_order_relaxed) && none != packed(x, y, z))
      shape.store(any_shape, std::memory_order_relaxed);
    if (shared > max_dynamic_shared.load(std::memory_order_relaxed))
      max_dynamic_shared.store(shared, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t any_shape = ~std::uint64_t{0};
  static constexpr std::uint64_t packed(std::uint64_t x, std::uint64_t y, std::uint64_t z) {
    return x | y << 21 | z << 42;  // a block's sides are far below 2^21
  }
  std::atomic<std::uint64_t> shape{0};  // 0: no launch was accepted yet
};

struct alignas(64) Object {
  std::atomic<std::uint64_t> id{0};  // 0: free
  LastUse last_use;
  KnownDone done;           // of a stream or an event
  std::uint64_t owner = 0;  // module or library of a function, library of a module
  FunctionInfo* function = nullptr;
  std::uint32_t flags = 0;                  // of a stream
  std::int32_t priority = 0;                // of a stream
  Context* context = nullptr;               // its creator; null: none
  std::atomic<std::uint32_t> given{0};      // how often the program got its handle, for kinds that count
  std::atomic<bool> begins_capture{false};  // of a stream: a capture began in it and has not ended
  std::atomic<bool> in_capture{false};      // of an event: last recorded while a capture was open
  std::uint32_t device = 0;                 // of a memory object or pool: its location
};

class Objects {
 public:
  explicit Objects(Executed executed = nothing_under_way);
  ~Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  // A new object. Its id is valid at once, so the caller keeps it private until the creation was posted or has
  // succeeded. Null: all of the guest's indices are in use.
  Object* create(api::Handle kind, Context* context);
  // By the program's handle. Null: never issued, destroyed, or of another kind.
  Object* find(const void* handle, api::Handle wanted) {
    const auto value = reinterpret_cast<std::uint64_t>(handle);
    const api::Id id = api::Id::of(value);
    if (id.index == 0 || !api::accepts(wanted, id.kind)) return nullptr;
    Object& object = table_[id.index];
    return object.id.load(std::memory_order_acquire) == value ? &object : nullptr;
  }
  // Records an object that the driver has found, by the worker's id. Null: the id is invalid. The worker reuses an
  // index once its object has ended, so an older object here with that index has ended.
  Object* adopt(std::uint64_t id, api::Handle kind, Context* context, std::uint32_t device = 0);
  // Keeps the object beyond the program's handles, until another close(). False: the object has ended.
  bool keep(Object& object, std::uint64_t id);
  // The program has closed a handle: ends the object with this id, unless its kind counts handles and others are left.
  void close(Object& object, std::uint64_t id, Use last);
  // Ends an object. Its index is reused once the record at `last` has been executed. Exception: the wait for the
  // object's creation was given up (guest/session/channel.cc). The host may then have the object, so its id is never
  // reused. The program gets it only if a later lookup finds the same function or module. It ends with its owner, its
  // context's reset, or the session.
  void retire(Object& object, Use last);
  // The same for an object that has ended with its context. The driver reports that for a stream or an event that a
  // program still names.
  void retire_with_context(Object& object, Use last);
  // Whether the object of this handle has ended with its context. False if its index was reused since then.
  bool went_with_context(const void* handle);
  // The context of the object that a handle names. Null: there is no such object, or it has no context.
  Context* context_of(const void* handle) {
    const auto value = reinterpret_cast<std::uint64_t>(handle);
    const Object& object = table_[api::Id::of(value).index];
    return value != 0 && object.id.load(std::memory_order_acquire) == value ? object.context : nullptr;
  }
  // The context of an object found through `owner`: the owner's, if contexts own its kind; else the current one.
  static Context* context_in(const Object& owner, Context* current) {
    const api::Handle kind = api::Id::of(owner.id.load(std::memory_order_relaxed)).kind;
    return api::ends_with_context(kind) ? owner.context : current;
  }
  // `owned` ends with `owner` from now on, in the context of context_in(). Preconditions: it has no owner.
  void give(Object& owned, const Object& owner);
  // The objects that an object owns, recursively. The time is proportional to their number.
  std::vector<Object*> owned_by(const Object& object);
  // Keeps a function's layout for the process's lifetime. The table refers to it, so that no leak checker reports it.
  FunctionInfo* new_function();
  // The objects that end with a context (ring/api/handles.def).
  std::vector<Object*> of_context(const Context& context);

 private:
  struct Retired {
    std::uint32_t index;
    Use last;
  };
  // The data kept for an object. The list members link objects by owner: indices, 0 for none.
  struct Keeping {
    std::uint32_t generation = 0;
    std::uint32_t first_owned = 0, next = 0, previous = 0, listed_under = 0;
    std::uint64_t went_with_context = 0;  // id of the index's last object, if that ended with its context
  };
  Object* reuse() REQUIRES(mutex_);
  Keeping& kept(std::uint32_t index) REQUIRES(mutex_);
  void start(Object& object, api::Id id, Context* context, std::uint32_t device = 0) REQUIRES(mutex_);
  std::uint32_t index_of(const Object& object) const { return static_cast<std::uint32_t>(&object - table_); }
  void unlist(std::uint32_t index) REQUIRES(mutex_);

  const Executed executed_;
  Object* table_;
  ring::Mutex mutex_;
  std::uint32_t next_index_ GUARDED_BY(mutex_) = 1;
  std::vector<Keeping> kept_ GUARDED_BY(mutex_);            // by index
  std::vector<Keeping> kept_of_worker_ GUARDED_BY(mutex_);  // by index, from the worker's first
  std::deque<Retired> retired_ GUARDED_BY(mutex_);
  std::deque<FunctionInfo> functions_ GUARDED_BY(mutex_);
};

}  // namespace guest
