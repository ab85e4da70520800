// Puts work into streams, which are chains of work. Work of the legacy stream follows all earlier work of the context's
// blocking streams and precedes all their later work.
#pragma once

#include "host/simgpu/api/objects.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "host/simgpu/api/driver.h"

namespace simgpu {

// Work that must run even after a failed kernel, such as error callbacks and frees.
enum class Run { UnlessFailed, Always };

// NULL and CU_STREAM_LEGACY are the context's legacy stream, CU_STREAM_PER_THREAD the calling thread's. Returns null
// for a destroyed stream or one of another context.
std::shared_ptr<Stream> stream_of(Driver& driver, Context& context, CUstream handle);

// with_context_of for streams; special streams belong to the current context.
template <class F>
CUresult with_context_of(CUstream handle, F&& call) noexcept {
  const bool special = handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  if (special || handle == nullptr) return with_context(call);
  return with_context_of(&Driver::streams, handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<Stream> stream = driver.streams.find(handle);
    const bool ended =
        stream != nullptr && stream->green != nullptr && stream->green->ended.load(std::memory_order_acquire);
    return ended ? CUDA_ERROR_CONTEXT_IS_DESTROYED : call(driver, context);
  });
}

// Enqueues work that waits for `after` in addition to the stream's order.
Ticket post(Driver& driver, Stream& stream, std::function<void()> work, Run run = Run::UnlessFailed,
            const std::vector<Ticket>& after = {});

// Wraps work so that it is skipped if the GPU is lost or a kernel failed, unless `run` is Always.
std::function<void()> guarded(Driver& driver, const Context& context, std::function<void()> work, Run run);

// Enqueues several work items as one command. `submit` gets the item that precedes all of them and returns an item that
// follows all of them.
Ticket post_pieces(Driver& driver, Stream& stream, const std::vector<Ticket>& after,
                   const std::function<Ticket(const Ticket& begin)>& submit);

// Makes later work of the stream wait for `until` as well. This orders streams and is no command.
void come_after(Driver& driver, Stream& stream, const Ticket& until);

// Runs in stream order on the calling thread, which waits for the end.
void run_now(Driver& driver, Stream& stream, std::function<void()> work);

// The number of commands that the calling thread enqueued. Exported for tests (tests/contract/): the contract includes
// which calls enqueue commands, and no API call shows that.
extern "C" __attribute__((visibility("default"))) std::uint64_t ivgpu_sim_commands();

// The work that must end before the stream is idle.
std::vector<Ticket> pending(Driver& driver, Stream& stream);
std::vector<Ticket> pending(Driver& driver, Context& context);

// A work item that is done when all present work of the context is.
Ticket record_all(Driver& driver, Context& context);

Ticket record_all(Driver& driver, GreenContext& green);

// Makes the context's later work wait for `until` as well.
void hold_back(Driver& driver, Context& context, const Ticket& until);
void hold_back(Driver& driver, GreenContext& green, const Ticket& until);

// Waits for all work, flushes device printf, and returns the error of a failed kernel.
CUresult wait_for(Driver& driver, const std::vector<Ticket>& work);

inline constexpr int greatest_stream_priority = -5;

std::shared_ptr<Stream> make_stream(Driver& driver, const std::shared_ptr<Context>& context, unsigned flags,
                                    int priority);

// The stream for the _ptsz and _ptds forms, in which NULL is the thread's own stream.
inline CUstream own(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }

}  // namespace simgpu
