// Submits work to streams, which are chains of work. Work of the legacy stream follows all earlier work of the
// context's blocking streams and precedes all their later work.
#pragma once

#include "host/simgpu/api/objects.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "host/simgpu/api/driver.h"

namespace simgpu {

// Always is for work that must run even after a failed kernel, such as error callbacks and frees.
enum class Run { UnlessFailed, Always };

// Returns the stream of a handle. NULL and CU_STREAM_LEGACY stand for the context's legacy stream, CU_STREAM_PER_THREAD
// for the calling thread's stream. Returns null for a destroyed stream or a stream of another context.
std::shared_ptr<Stream> stream_of(Driver& driver, Context& context, CUstream handle);

// Wraps a call on a stream like the general with_context_of. The special streams belong to the current context.
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

// Submits work that follows the stream's earlier work and `after`.
Ticket post(Driver& driver, Stream& stream, std::function<void()> work, Run run = Run::UnlessFailed,
            const std::vector<Ticket>& after = {});

// Wraps work so that the work is skipped if the GPU is lost or a kernel has failed, unless `run` is Always.
std::function<void()> guarded(Driver& driver, const Context& context, std::function<void()> work, Run run);

// Submits several work items as one command. `submit` receives the item that precedes all of them, and returns an item
// that follows all of them.
Ticket post_pieces(Driver& driver, Stream& stream, const std::vector<Ticket>& after,
                   const std::function<Ticket(const Ticket& begin)>& submit);

// Makes later work of the stream wait for `until` as well. This function adds no command to the stream.
void come_after(Driver& driver, Stream& stream, const Ticket& until);

// Runs work in stream order on the calling thread, and waits for its end.
void run_now(Driver& driver, Stream& stream, std::function<void()> work);

// Returns the number of commands that the calling thread has submitted. Exported for tests (tests/contract/): the
// contract includes which calls submit commands, and no API call reports that.
extern "C" __attribute__((visibility("default"))) std::uint64_t ivgpu_sim_commands();

// Returns the work that must be done before the stream or the context is idle.
std::vector<Ticket> pending(Driver& driver, Stream& stream);
std::vector<Ticket> pending(Driver& driver, Context& context);

// Returns a work item that is done when all work submitted so far to the context is done.
Ticket record_all(Driver& driver, Context& context);

Ticket record_all(Driver& driver, GreenContext& green);

// Make all later work of the context wait for `until` as well.
void hold_back(Driver& driver, Context& context, const Ticket& until);
void hold_back(Driver& driver, GreenContext& green, const Ticket& until);

// Waits for the work, prints the output of device printf, and returns the error of a failed kernel.
CUresult wait_for(Driver& driver, const std::vector<Ticket>& work);

inline constexpr int greatest_stream_priority = -5;

std::shared_ptr<Stream> make_stream(Driver& driver, const std::shared_ptr<Context>& context, unsigned flags,
                                    int priority);

// Returns the stream for the _ptsz and _ptds variants of calls, for which NULL stands for the per-thread stream.
inline CUstream own(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }

}  // namespace simgpu
