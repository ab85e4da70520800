// The order between streams. predecessors() implements the rules of the legacy stream.
#include "host/simgpu/api/stream/streams.h"

#include <algorithm>

#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/memory/memory_pool.h"
#include "ring/base/mutex.h"

namespace simgpu {
namespace {

bool is_blocking(const Stream& stream) { return (stream.flags & CU_STREAM_NON_BLOCKING) == 0; }
bool is_legacy(const Stream& stream) { return stream.handle == CU_STREAM_LEGACY; }

thread_local std::uint64_t commands = 0;

// Returns the work that new work of the stream must wait for. The caller holds Schedule::order().
std::vector<Ticket> predecessors(Stream& stream) {
  Context& context = *stream.context;
  std::vector<Ticket> out{stream.last, context.gate};
  if (stream.green != nullptr) out.push_back(stream.green->gate);
  if (is_legacy(stream)) {
    for (const auto& other : context.streams)
      if (is_blocking(*other)) out.push_back(other->last);
  } else if (is_blocking(stream) && context.legacy != nullptr) {
    out.push_back(context.legacy->last);
  }
  return out;
}

// Drops destroyed streams without unfinished work. The caller holds Schedule::order().
void drop_finished(Context& context) {
  std::erase_if(context.streams, [](const std::shared_ptr<Stream>& stream) {
    return stream->destroyed && (stream->last == nullptr || stream->last->done());
  });
}

// The caller holds Schedule::order().
Ticket append_in_order(Driver& driver, Stream& stream, std::function<void()> work, const std::vector<Ticket>& after,
                       Schedule::Who who) {
  drop_finished(*stream.context);
  std::vector<Ticket> all = predecessors(stream);
  all.insert(all.end(), after.begin(), after.end());
  stream.last = driver.schedule.submit(std::move(work), all, who);
  return stream.last;
}

Ticket append(Driver& driver, Stream& stream, std::function<void()> work, const std::vector<Ticket>& after,
              Schedule::Who who) {
  const ring::MutexLock order(driver.schedule.order());
  return append_in_order(driver, stream, std::move(work), after, who);
}

// Throws if a capture forbids the command. Commands that a capture turns into nodes do not reach this function.
void may_put(Driver& driver, Stream& stream) {
  if (const CUresult error = refuse_in_capture(driver, stream); error != CUDA_SUCCESS) throw CallRefused{error};
}

Ticket submit(Driver& driver, Stream& stream, std::function<void()> work, Run run, const std::vector<Ticket>& after,
              Schedule::Who who) {
  may_put(driver, stream);
  ++commands;
  return append(driver, stream, guarded(driver, *stream.context, std::move(work), run), after, who);
}

// The caller holds Schedule::order().
std::vector<Ticket> all_of(Context& context) {
  std::vector<Ticket> out{context.recorded};
  if (context.legacy != nullptr) out.push_back(context.legacy->last);
  for (const auto& stream : context.streams) out.push_back(stream->last);
  return out;
}

std::shared_ptr<Stream> own_stream(Driver& driver, Context& context) {
  std::shared_ptr<Stream>& mine = driver.thread().streams[&context];
  if (mine == nullptr || mine->destroyed) {
    mine = make_stream(driver, driver.current_shared(), CU_STREAM_DEFAULT, 0);
    mine->handle = CU_STREAM_PER_THREAD;
  }
  return mine;
}

}  // namespace

std::uint64_t ivgpu_sim_commands() { return commands; }

std::shared_ptr<Stream> make_stream(Driver& driver, const std::shared_ptr<Context>& context, unsigned flags,
                                    int priority) {
  auto stream = std::make_shared<Stream>();
  stream->context = context;
  stream->green = green_of(driver, context);
  stream->id = driver.next_id();
  stream->flags = flags;
  stream->priority = priority;
  const ring::MutexLock order(driver.schedule.order());
  drop_finished(*context);
  context->streams.push_back(stream);
  return stream;
}

std::shared_ptr<Stream> stream_of(Driver& driver, Context& context, CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) {
    const ring::MutexLock order(driver.schedule.order());
    return context.legacy;
  }
  if (handle == CU_STREAM_PER_THREAD) return own_stream(driver, context);
  std::shared_ptr<Stream> stream = driver.streams.find(handle);
  return stream == nullptr || stream->context.get() != &context ? nullptr : stream;
}

Ticket post(Driver& driver, Stream& stream, std::function<void()> work, Run run, const std::vector<Ticket>& after) {
  return submit(driver, stream, std::move(work), run, after, Schedule::Who::Pool);
}

std::function<void()> guarded(Driver& driver, const Context& context, std::function<void()> work, Run run) {
  return [&driver, &time = context.device.time, work = std::move(work), run] {
    if (time.is_lost()) driver.fail({.code = CUDA_ERROR_UNKNOWN, .what = "the GPU has disappeared."});
    if (work && (run == Run::Always || driver.fault() == CUDA_SUCCESS)) work();
  };
}

Ticket post_pieces(Driver& driver, Stream& stream, const std::vector<Ticket>& after,
                   const std::function<Ticket(const Ticket& begin)>& submit) {
  may_put(driver, stream);
  ++commands;
  const ring::MutexLock order(driver.schedule.order());
  const Ticket begin = append_in_order(driver, stream, {}, after, Schedule::Who::Pool);
  stream.last = submit(begin);
  return stream.last;
}

void come_after(Driver& driver, Stream& stream, const Ticket& until) {
  append(driver, stream, {}, {until}, Schedule::Who::Pool);
}

void run_now(Driver& driver, Stream& stream, std::function<void()> work) {
  driver.schedule.run_here(submit(driver, stream, std::move(work), Run::UnlessFailed, {}, Schedule::Who::Submitter));
}

std::vector<Ticket> pending(Driver& driver, Stream& stream) {
  const ring::MutexLock order(driver.schedule.order());
  return is_legacy(stream) ? predecessors(stream) : std::vector<Ticket>{stream.last};
}

std::vector<Ticket> pending(Driver& driver, Context& context) {
  const ring::MutexLock order(driver.schedule.order());
  return all_of(context);
}

void hold_back(Driver& driver, Context& context, const Ticket& until) {
  if (until == nullptr) return;
  ++commands;
  if (until->done()) return;
  const ring::MutexLock order(driver.schedule.order());
  context.gate = driver.schedule.submit({}, {context.gate, until}, Schedule::Who::Pool);
}

void hold_back(Driver& driver, GreenContext& green, const Ticket& until) {
  if (until == nullptr) return;
  ++commands;
  if (until->done()) return;
  const ring::MutexLock order(driver.schedule.order());
  green.gate = driver.schedule.submit({}, {green.gate, until}, Schedule::Who::Pool);
}

Ticket record_all(Driver& driver, GreenContext& green) {
  const ring::MutexLock order(driver.schedule.order());
  ++commands;
  std::vector<Ticket> all{green.gate};
  for (const auto& stream : green.primary->streams)
    if (stream->green.get() == &green) all.push_back(stream->last);
  return driver.schedule.submit({}, all, Schedule::Who::Pool);
}

Ticket record_all(Driver& driver, Context& context) {
  const ring::MutexLock order(driver.schedule.order());
  ++commands;
  context.recorded = driver.schedule.submit({}, all_of(context), Schedule::Who::Pool);
  return context.recorded;
}

CUresult wait_for(Driver& driver, const std::vector<Ticket>& work) {
  for (const Ticket& ticket : work) driver.schedule.wait(ticket);
  trim_pools(driver);
  driver.flush_output();
  return driver.fault();
}

}  // namespace simgpu
