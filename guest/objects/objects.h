// The objects that this process has created: handles (ids) and the parameter layouts of kernels. This data lets the
// guest find the errors that CUDA reports at once, without a round trip.
//
// Thread-safety: find() is lock-free; the other functions take a lock. `last_use` preserves the order of host threads:
// it has the channel and position of the last posted call that used the object (guest/session/order.h).
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

struct Context;  // defined in guest/process/context.h

// The data to check and pack launches of a function. Never destroyed, since a program's launch may race with an unload.
struct FunctionInfo {
  std::string name;
  std::vector<api::ParameterPlace> params;
  std::uint32_t param_bytes = 0;
  std::uint32_t max_threads = 0, static_shared = 0;
  std::atomic<std::uint32_t> max_dynamic_shared{0};
  cuabi::OldLaunch old_launch;

  // Returns whether the driver certainly accepts a block of this shape. A kernel may require one shape (.reqntid),
  // which only a launch reveals. A kernel that has run with two shapes requires none.
  bool accepts(unsigned x, unsigned y, unsigned z) const {
    const std::uint64_t known = shape.load(std::memory_order_relaxed);
    return known == any_shape || known == packed(x, y, z);
  }
  // Records that the driver has accepted a launch with this block and this much dynamic shared memory.
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
    return x | y << 21 | z << 42;  // the sides of a block are far below 2^21
  }
  std::atomic<std::uint64_t> shape{0};  // 0: the driver has accepted no launch yet
};

struct alignas(64) Object {
  std::atomic<std::uint64_t> id{0};  // 0: free
  LastUse last_use;
  KnownDone done;           // for a stream or an event
  std::uint64_t owner = 0;  // for a function, its module or library; for a module, its library
  FunctionInfo* function = nullptr;
  std::uint32_t flags = 0;                  // for a stream
  std::int32_t priority = 0;                // for a stream
  Context* context = nullptr;               // the context that created the object; null: none
  std::atomic<std::uint32_t> given{0};      // how often the program got the handle, for kinds whose handles are counted
  std::atomic<bool> begins_capture{false};  // for a stream: a capture began in the stream and has not ended
  std::atomic<bool> in_capture{false};      // for an event: last recorded while a capture was open
  std::uint32_t device = 0;                 // for a memory object or pool: its location
};

class Objects {
 public:
  explicit Objects(Executed executed = nothing_under_way);
  ~Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  // Creates an object. The object's id is valid at once, so the caller keeps it private until the creation was posted
  // or has succeeded. Returns null if all of the guest's indices are in use.
  Object* create(api::Handle kind, Context* context);
  // Finds an object by the program's handle. Returns null if the handle was never issued, was destroyed, or belongs to
  // another kind.
  Object* find(const void* handle, api::Handle wanted) {
    const auto value = reinterpret_cast<std::uint64_t>(handle);
    const api::Id id = api::Id::of(value);
    if (id.index == 0 || !api::accepts(wanted, id.kind)) return nullptr;
    Object& object = table_[id.index];
    return object.id.load(std::memory_order_acquire) == value ? &object : nullptr;
  }
  // Records an object that the driver has found, by the worker's id. Returns null if the id is invalid. The worker
  // reuses an index once its object has ended, so an older object with the same index has ended.
  Object* adopt(std::uint64_t id, api::Handle kind, Context* context, std::uint32_t device = 0);
  // Keeps the object alive beyond the program's handles, until a matching close(). Returns false if the object has
  // ended.
  bool keep(Object& object, std::uint64_t id);
  // Called after the program has closed a handle. Ends the object with this id, unless the kind counts its handles and
  // other handles are left.
  void close(Object& object, std::uint64_t id, Use last);
  // Ends an object. The object's index is reused once the worker has executed the record at `last`. Exception: if the
  // guest gave up waiting for the object's creation (guest/session/channel.cc), the host may have the object, so its id
  // is never reused. The program gets this object only if a later lookup finds the same function or module. The object
  // ends with its owner, its context's reset, or the session.
  void retire(Object& object, Use last);
  // Like retire(), for an object that has ended with its context. The driver returns a special error for such a stream
  // or event.
  void retire_with_context(Object& object, Use last);
  // Returns whether the object of this handle has ended with its context. Returns false if the object's index was
  // reused since then.
  bool went_with_context(const void* handle);
  // Returns the context of a handle's object. Returns null if there is no such object, or if the object has no context.
  Context* context_of(const void* handle) {
    const auto value = reinterpret_cast<std::uint64_t>(handle);
    const Object& object = table_[api::Id::of(value).index];
    return value != 0 && object.id.load(std::memory_order_acquire) == value ? object.context : nullptr;
  }
  // Returns the context of an object that was found through `owner`: the owner's context, if contexts own objects of
  // its kind, else the current context.
  static Context* context_in(const Object& owner, Context* current) {
    const api::Handle kind = api::Id::of(owner.id.load(std::memory_order_relaxed)).kind;
    return api::ends_with_context(kind) ? owner.context : current;
  }
  // Makes `owned` end with `owner` from now on, in the context of context_in(). Preconditions: `owned` has no owner.
  void give(Object& owned, const Object& owner);
  // Returns the objects that an object owns, recursively. The time is proportional to the number of these objects.
  std::vector<Object*> owned_by(const Object& object);
  // Creates a function's layout, which exists until the process ends. The table refers to the layout, so that no leak
  // checker reports it.
  FunctionInfo* new_function();
  // Returns the objects that end with a context (ring/api/handles.def).
  std::vector<Object*> of_context(const Context& context);

 private:
  struct Retired {
    std::uint32_t index;
    Use last;
  };
  // The data kept for an object. The list members link the objects of one owner; they are indices, 0 for none.
  struct Keeping {
    std::uint32_t generation = 0;
    std::uint32_t first_owned = 0, next = 0, previous = 0, listed_under = 0;
    std::uint64_t went_with_context = 0;  // the id of the index's last object, if that object ended with its context
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
  std::vector<Keeping> kept_ GUARDED_BY(mutex_);            // indexed by the guest's indices
  std::vector<Keeping> kept_of_worker_ GUARDED_BY(mutex_);  // indexed by the worker's indices, from the first on
  std::deque<Retired> retired_ GUARDED_BY(mutex_);
  std::deque<FunctionInfo> functions_ GUARDED_BY(mutex_);
};

}  // namespace guest
