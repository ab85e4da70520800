// Contexts of this process: each device's primary one, and those that the program has created. The worker has the real
// ones, under the number that each record carries in its header.
//
// A Context object lives for ever, since a program may name one that is gone: CUDA then says that it is destroyed, and
// not that it is none. Its number is given to another context when it has ended.
//
// Thread-safety: any thread. `uses`, `flags` and what is remembered are atomic or say themselves how they are shared;
// what begins and ends a context is under `mutex`.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <mutex>

#include "guest/objects/known_done.h"
#include "guest/objects/objects.h"
#include "ring/api/cuda.h"

namespace guest {

struct Context {
  // An id as any handle's, which no other context ever has.
  CUcontext handle = nullptr;
  std::uint32_t device = 0;                  // the guest's ordinal
  std::uint32_t number = 0;                  // in records: a device of the host, or from first_created on
  bool created = false;                      // by the program; else it is the device's primary one
  unsigned api_version = 0;                  // cuCtxGetApiVersion
  std::uint64_t id = 0;                      // cuCtxGetId
  std::atomic<unsigned> flags{0};            // as the program has set them
  std::atomic<unsigned> flags_of_device{0};  // of a primary one: what its device has for the next
  // How often it was retained or attached; 0: it does not live.
  std::atomic<std::uint32_t> uses{0};
  std::mutex mutex;
  // What is remembered of its NULL stream, and of everything in it.
  Object null_stream;
  KnownDone done;

  bool lives() const { return uses.load(std::memory_order_relaxed) != 0; }
};

// The device's primary context. Preconditions: the process is initialised; ordinal < device_count().
Context& primary(std::uint32_t ordinal);
// By handle; null: it never was one. One that has ended is found, too.
Context* find_context(CUcontext handle);
// The calling thread's; null: none.
Context* current_context();

// A context that the program creates: it has a number and a handle, and lives only when begin() is called. Null: as many
// live as records have numbers for.
Context* new_context(std::uint32_t device);
// The worker has it.
void begin(Context& context);
// It has ended, or was never begun: its number is free.
void end(Context& context);

// Whether it lives: CUDA_SUCCESS, CONTEXT_IS_DESTROYED, or the fault that has ended it.
CUresult state_of(const Context& context);

// Context and fault checks of a call that crosses the ring: finds the calling thread's context, or the error to return.
CUresult enter(Context*& context);
// The same for a call that names objects of contexts: where none is current, that of the first that has one counts.
CUresult enter(Context*& context, std::initializer_list<const void*> named);
// The same for a call that needs no context: the current one, or the first device's. Faults of a context are not its.
CUresult enter_without_context(Context*& context);

}  // namespace guest
