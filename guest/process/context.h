// Contexts of this process: each device's primary one, and those that the program has created, green ones among them. The
// worker has the driver's contexts, under the number that each record carries in its header.
//
// A green context is a part of its device's primary one: it has streams of its own, and shares everything else with it.
//
// A Context object lives as long as the process, since a program may name a context that has ended: CUDA then reports
// CUDA_ERROR_CONTEXT_IS_DESTROYED and not an unknown handle. The number of an ended context is given to another.
//
// Thread-safety: any thread. `uses` and the flags are atomic; null_stream and `done` say in their types how they are
// shared. A context begins and ends under `mutex`. The other members are fixed once the context has a handle.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <vector>

#include "guest/objects/known_done.h"
#include "guest/objects/objects.h"
#include "ring/api/cuda.h"

namespace guest {

struct Context {
  // An id of the same form as other handles'. No other context ever has it.
  CUcontext handle = nullptr;
  std::uint32_t device = 0;                  // the guest's ordinal
  std::uint32_t number = 0;                  // in records: the host's device, or from first_created_context on
  bool created = false;                      // by cuCtxCreate; false: the device's primary one, or a green one
  CUgreenCtx green = nullptr;                // the other handle of a green one
  Context* home = this;                      // whose memory, modules and events it uses: of a green one the primary
  unsigned api_version = 0;                  // cuCtxGetApiVersion
  std::uint64_t id = 0;                      // cuCtxGetId
  std::atomic<unsigned> flags{0};            // as the program has set them
  std::atomic<unsigned> flags_of_device{0};  // of a primary one: those for the device's next one
  // The number of times that it was retained or attached, less the releases. 0: it does not live.
  std::atomic<std::uint32_t> uses{0};
  std::mutex mutex;
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
// The context of a new object that is made in `context`.
Context* keeper(api::Handle kind, Context& context);
// The calling thread's current context, or null.
Context* current_context();

// A new context for cuCtxCreate. It has a number and a handle, and lives from begin() on. Null: all numbers are taken,
// which the log says.
Context* new_context(std::uint32_t device);
// The same for cuGreenCtxCreate.
Context* new_green_context(std::uint32_t device);
// Call it when the worker has created the context: it lives from now on.
void begin(Context& context);
// Call it when the context has ended, or could not be created: its number is free from now on.
void end(Context& context);

// CUDA_SUCCESS if it lives. Else CUDA_ERROR_CONTEXT_IS_DESTROYED, or the fault that has ended it.
CUresult state_of(const Context& context);

// The checks at the start of a call that crosses the ring. Finds the calling thread's context; else returns the error
// of the call.
CUresult enter(Context*& context);
// The same for a call that names objects. If no context is current, the first object that has a context decides.
CUresult enter(Context*& context, std::initializer_list<const void*> named);
// The same for a call that needs no context: finds the current one, or the first device's primary one. A fault of the
// context is no error here.
CUresult enter_without_context(Context*& context);

}  // namespace guest
