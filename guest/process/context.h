// Contexts of this process: each device's primary context, and the contexts that the program has created, green
// contexts included. The worker owns the driver's contexts, under the number in each record's header.
//
// A green context belongs to its device's primary context: it has streams of its own and shares everything else.
//
// A Context object is never destroyed, since a program may use the handle of an ended context: CUDA then reports
// CUDA_ERROR_CONTEXT_IS_DESTROYED and not an unknown handle. The number of an ended context is reused.
//
// Thread-safety: any thread. `uses` and the flags are atomic; the types of null_stream and `done` state their rules. A
// context begins and ends under `mutex`. The other members do not change once the context has a handle.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "guest/objects/known_done.h"
#include "guest/objects/objects.h"
#include "ring/api/cuda.h"
#include "ring/base/mutex.h"

namespace guest {

struct Context {
  // An id of the same form as other handles' ids. A handle is never reused.
  CUcontext handle = nullptr;
  std::uint32_t device = 0;    // the guest's ordinal
  std::uint32_t number = 0;    // in records: the number of the host's device, or first_created_context and up
  bool created = false;        // true: by cuCtxCreate; false: a primary or green context
  CUgreenCtx green = nullptr;  // the second handle of a green context
  Context* home = this;  // the context that owns memory, modules and events; for a green context, the primary context
  unsigned api_version = 0;                  // the version that cuCtxGetApiVersion returns
  std::uint64_t id = 0;                      // the number that cuCtxGetId returns
  std::atomic<unsigned> flags{0};            // as the program has set them
  std::atomic<unsigned> flags_of_device{0};  // for a primary context: the flags of the device's next primary context
  // The number of retains or attachments, less the releases. 0: the context is not alive.
  std::atomic<std::uint32_t> uses{0};
  ring::Mutex mutex;
  // The last use of the context's NULL stream, and whether all work in the context is known to be done.
  Object null_stream;
  KnownDone done;

  bool lives() const { return uses.load(std::memory_order_relaxed) != 0; }
};

// Returns the device's primary context. Preconditions: the process is initialised; ordinal < device_count().
Context& primary(std::uint32_t ordinal);
// Finds a context by its handle, even an ended one. Returns null if no context ever had the handle.
Context* find_context(CUcontext handle);
// Finds a green context by its handle, even an ended one. Returns null if no context ever had the handle.
Context* find_context(CUgreenCtx handle);
// Returns the living green contexts of a primary context.
std::vector<Context*> greens_of(const Context& primary);
// Returns the context that will own a new object made in `context`.
Context* owning_context(api::Handle kind, Context& context);
// Returns the calling thread's current context, or null.
Context* current_context();

// Makes a context for cuCtxCreate. The context has a number and a handle; begin() makes it alive. Returns null and
// writes a log line if all numbers are in use.
Context* new_context(std::uint32_t device);
// Makes a context for cuGreenCtxCreate, as new_context() does for cuCtxCreate.
Context* new_green_context(std::uint32_t device);
// Called when the worker has created the context. The context is alive from then on.
void begin(Context& context);
// Called when the context has ended or could not be created. Frees the context's number.
void end(Context& context);

// Returns CUDA_SUCCESS if the context is alive, else CUDA_ERROR_CONTEXT_IS_DESTROYED or the fault that ended the
// context.
CUresult state_of(const Context& context);

// Makes the checks at the start of a call that crosses to the worker. Finds the calling thread's context, or returns
// the call's error.
CUresult enter(Context*& context);
// Like enter() above, for a call that names objects. If no context is current, uses the context of the first named
// object.
CUresult enter(Context*& context, std::initializer_list<const void*> named);
// Like enter(), for a call that needs no context: finds the current context, or else the first device's primary
// context. Ignores a fault of the context.
CUresult enter_without_context(Context*& context);

}  // namespace guest
