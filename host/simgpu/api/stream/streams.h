// Putting work into streams. A stream is a chain of work; the legacy stream's pieces also come after everything before
// them in the context's blocking streams, and before everything that follows there.
#pragma once

#include "host/simgpu/api/objects.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "host/simgpu/api/driver.h"

namespace simgpu {

// Work that must run even after a kernel failed (callbacks that get the error, the freeing of memory).
enum class Run { UnlessFailed, Always };

// NULL and CU_STREAM_LEGACY are the context's legacy stream, CU_STREAM_PER_THREAD the calling thread's own. Null for a
// stream that is destroyed or of another context.
std::shared_ptr<Stream> stream_of(Driver& driver, Context& context, CUstream handle);

// A call that takes a stream: with_context_of, where the special streams are the current context's.
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

// Asynchronously; `after` holds the work that it must wait for beside the stream's own order.
Ticket post(Driver& driver, Stream& stream, std::function<void()> work, Run run = Run::UnlessFailed,
            const std::vector<Ticket>& after = {});

// Work as streams do it: not on a GPU that has disappeared, nor after a failure, unless it must be.
std::function<void()> guarded(Driver& driver, const Context& context, std::function<void()> work, Run run);

// Several pieces as one command. `submit` gets the piece that all of them come after, and returns one that is done when
// all of them are.
Ticket post_pieces(Driver& driver, Stream& stream, const std::vector<Ticket>& after,
                   const std::function<Ticket(const Ticket& begin)>& submit);

// Later work of the stream comes after this piece, too. That is an order between streams, and no command.
void come_after(Driver& driver, Stream& stream, const Ticket& until);

// In the stream's order, but on the calling thread, which waits until it is done.
void run_now(Driver& driver, Stream& stream, std::function<void()> work);

// How many commands the calling thread has put into streams. Exported for tests (tests/contract/): which calls do so is
// part of the contract, and no call of the API shows it.
extern "C" __attribute__((visibility("default"))) std::uint64_t ivgpu_sim_commands();

// The work that must be done before the stream counts as idle.
std::vector<Ticket> pending(Driver& driver, Stream& stream);
std::vector<Ticket> pending(Driver& driver, Context& context);

// A piece that is done when all work that the context has now is.
Ticket record_all(Driver& driver, Context& context);

Ticket record_all(Driver& driver, GreenContext& green);

// Work that is given to the context from now on comes after this piece, too.
void hold_back(Driver& driver, Context& context, const Ticket& until);
void hold_back(Driver& driver, GreenContext& green, const Ticket& until);

// Waits for all of them, lets device printf out, and returns the error of a kernel that has failed.
CUresult wait_for(Driver& driver, const std::vector<Ticket>& work);

inline constexpr int greatest_stream_priority = -5;

std::shared_ptr<Stream> make_stream(Driver& driver, const std::shared_ptr<Context>& context, unsigned flags,
                                    int priority);

// The same stream for the _ptsz and _ptds forms of the calls, where NULL is the thread's own.
inline CUstream own(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }

}  // namespace simgpu
