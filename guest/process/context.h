// Contexts of this process: each device's primary one, and those that the program has created, green ones included. The
// worker holds the driver's contexts, under the number in each record's header.
//
// A green context belongs to its device's primary context: it has streams of its own and shares everything else.
//
// A Context object is never destroyed, since a program may name an ended context: CUDA then reports
// CUDA_ERROR_CONTEXT_IS_DESTROYED and not an unknown handle. The number of an ended context is reused.
//
// Thread-safety: any thread. `uses` and the flags are atomic; the types of null_stream and `done` state their rules. A
// context begins and ends under `mutex`. The other members are fixed once the context has a handle.
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
  // An id of the same form as other handles'. No handle is used twice.
  CUcontext handle = nullptr;
  std::uint32_t device = 0;                  // the guest's ordinal
  std::uint32_t number = 0;                  // in records: the host's device, or first_created_context and up
  bool created = false;                      // by cuCtxCreate; false: a primary or green context
  CUgreenCtx green = nullptr;                // a green context's second handle
  Context* home = this;                      // owns its memory, modules and events; of a green one the primary
  unsigned api_version = 0;                  // cuCtxGetApiVersion
  std::uint64_t id = 0;                      // cuCtxGetId
  std::atomic<unsigned> flags{0};            // as the program has set them
  std::atomic<unsigned> flags_of_device{0};  // of a primary context: the flags of the device's next one
  // How often it was retained or attached, less the releases. 0: the context is not alive.
  std::atomic<std::uint32_t> uses{0};
  ring::Mutex mutex;
  // The last use of its NULL stream, and whether everything in it is known to be done.
  Object null_stream;
  KnownDone done;

  bool lives() const { return uses.load(std::memory_order_relaxed) != 0; }
};

// The device's primary context. Preconditions: the process is initialised; ordinal < device_count().
Context& primary(std::uint32_t ordinal);
// By handle, ended contexts included. Null: no context ever had the handle.
Context* find_context(CUcontext handle);
// The same for a green context.
Context* find_context(CUgreenCtx handle);
// The living green contexts of a device's primary one.
std::vector<Context*> greens_of(const Context& primary);
// The context that will own a new object made in `context`.
Context* owning_context(api::Handle kind, Context& context);
// The calling thread's current context, or null.
Context* current_context();

// A new context for cuCtxCreate. It has a number and a handle; begin() makes it live. Null: all numbers are in use,
// which the log reports.
Context* new_context(std::uint32_t device);
// The same for cuGreenCtxCreate.
Context* new_green_context(std::uint32_t device);
// Called when the worker has created the context: it is alive from now on.
void begin(Context& context);
// Called when the context has ended or could not be created. Frees its number.
void end(Context& context);

// CUDA_SUCCESS if the context is alive. Else CUDA_ERROR_CONTEXT_IS_DESTROYED, or the fault that ended it.
CUresult state_of(const Context& context);

// The checks at the start of a call that crosses the ring. Finds the calling thread's context, or returns the call's
// error.
CUresult enter(Context*& context);
// The same for a call that names objects. If no context is current, it uses the first named object's context.
CUresult enter(Context*& context, std::initializer_list<const void*> named);
// The same for a call that needs no context: finds the current context, or else the first device's primary one. Ignores
// a fault of the context.
CUresult enter_without_context(Context*& context);

}  // namespace guest
