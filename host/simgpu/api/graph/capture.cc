// Captures: creates nodes for commands, refuses calls during a capture, and extends captures to other streams.
#include "host/simgpu/api/graph/capture.h"

#include <algorithm>

#include "ring/base/mutex.h"

namespace simgpu {
namespace {

bool is_blocking_stream(const Stream& stream) { return (stream.flags & CU_STREAM_NON_BLOCKING) == 0; }

bool none_open(const Driver& driver) { return driver.captures_open.load(std::memory_order_acquire) == 0; }

CUresult refuse(Capture& capture, CUresult code) {
  const CUresult result = capture.invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : code;
  capture.invalid = true;
  return result;
}

// Returns an open capture in a blocking stream of the context, or null.
Capture* blocking_capture(Driver& driver, const Context& context) REQUIRES(driver.graph_mutex) {
  for (const std::shared_ptr<Capture>& capture : driver.captures)
    for (const std::shared_ptr<Stream>& stream : capture->streams)
      if (stream->context.get() == &context && is_blocking_stream(*stream)) return capture.get();
  return nullptr;
}

bool is_recorded(Event& event) {
  const ring::MutexLock lock(event.mutex);
  return event.record != nullptr;
}

// A kernel node takes its stream's priority.
void add_priority(const Stream& stream, NodeWork& work) {
  auto* const kernel = std::get_if<KernelWork>(&work);
  const int priority = stream.priority.load(std::memory_order_relaxed);
  if (kernel == nullptr || priority == 0) return;
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attribute.value.priority = priority;
  kernel->attributes.push_back(attribute);
}

}  // namespace

void join_tips(CaptureTips& tips, const CaptureTips& more) {
  for (const CaptureTip& tip : more) {
    const auto same = [&](const CaptureTip& known) { return known.node == tip.node; };
    if (std::none_of(tips.begin(), tips.end(), same)) tips.push_back(tip);
  }
}

bool has_blocking_capture(Driver& driver, const Context& context) {
  return blocking_capture(driver, context) != nullptr;
}

bool is_captured(Driver& driver, Stream& stream) {
  if (none_open(driver)) return false;
  const ring::RecursiveLock lock(driver.graph_mutex);
  return stream.captured != nullptr;
}

CUresult capture_node(Driver& driver, Stream& stream, NodeWork work, const CUgraphEdgeData& between) {
  const ring::RecursiveLock lock(driver.graph_mutex);
  StreamCapture& captured = *stream.captured;
  if (captured.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<Edge> before;
  for (const CaptureTip& tip : captured.tips) {
    const bool early = !is_plain(between) && std::holds_alternative<KernelWork>(tip.node->work);
    before.push_back({tip.node.get(), early ? between : tip.data});
  }
  add_priority(stream, work);
  GraphNode& node = append_node(driver, *captured.capture->graph, std::move(work), before);
  captured.tips = {{node.shared_from_this(), {}}};
  return CUDA_SUCCESS;
}

CUresult refuse_in_capture(Driver& driver, Stream& stream) {
  if (none_open(driver)) return CUDA_SUCCESS;
  const ring::RecursiveLock lock(driver.graph_mutex);
  if (stream.captured != nullptr) return refuse(*stream.captured->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (stream.handle != CU_STREAM_LEGACY) return CUDA_SUCCESS;
  Capture* const blocking = blocking_capture(driver, *stream.context);
  if (blocking == nullptr) return CUDA_SUCCESS;
  blocking->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult refuse_invalidated(Driver& driver, Stream& stream) {
  if (none_open(driver)) return CUDA_SUCCESS;
  const ring::RecursiveLock lock(driver.graph_mutex);
  const bool invalid = stream.captured != nullptr && stream.captured->capture->invalid;
  return invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

void invalidate_capture(Driver& driver, Stream& stream) {
  if (none_open(driver)) return;
  const ring::RecursiveLock lock(driver.graph_mutex);
  if (stream.captured != nullptr) stream.captured->capture->invalid = true;
}

CUresult refuse_as_unsafe() noexcept {
  Driver* const driver = Driver::get();
  if (driver == nullptr || driver->in_callback() || none_open(*driver)) return CUDA_SUCCESS;
  const ThreadState& thread = driver->thread();
  if (thread.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  const bool minds_others = thread.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
  const ring::RecursiveLock lock(driver->graph_mutex);
  CUresult result = CUDA_SUCCESS;
  for (const std::shared_ptr<Capture>& capture : driver->captures) {
    const bool own = capture->thread == thread.id && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool global = minds_others && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !global) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult refuse_in_capturing(Driver& driver, const Context& context, const GreenContext* green) {
  if (none_open(driver)) return CUDA_SUCCESS;
  const ring::RecursiveLock lock(driver.graph_mutex);
  CUresult result = CUDA_SUCCESS;
  for (const std::shared_ptr<Capture>& capture : driver.captures) {
    const auto concerned = [&](const std::shared_ptr<Stream>& stream) {
      return stream->context.get() == &context && (green == nullptr || stream->green.get() == green);
    };
    if (std::none_of(capture->streams.begin(), capture->streams.end(), concerned)) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult refuse_question(Driver& driver, Stream& stream) {
  if (!is_captured(driver, stream)) {
    if (const CUresult unsafe = refuse_as_unsafe(); unsafe != CUDA_SUCCESS) return unsafe;
  }
  return refuse_in_capture(driver, stream);
}

CUresult refuse_event_question(Driver& driver, Event& event) {
  const ring::RecursiveLock lock(driver.graph_mutex);
  if (event.captured == nullptr) return refuse_as_unsafe();
  if (event.captured->capture->ended) return CUDA_ERROR_INVALID_VALUE;
  event.captured->capture->invalid = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult refuse_captured(Driver& driver, Event& event) {
  const ring::RecursiveLock lock(driver.graph_mutex);
  if (event.captured == nullptr) return CUDA_SUCCESS;
  if (event.captured->capture->ended) return CUDA_ERROR_INVALID_VALUE;
  return refuse(*event.captured->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult capture_record(Driver& driver, Stream& stream, const std::shared_ptr<Event>& event, bool external) {
  const ring::RecursiveLock lock(driver.graph_mutex);
  if (external) return capture_node(driver, stream, EventRecord{event});
  const StreamCapture& captured = *stream.captured;
  if (captured.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event->captured = std::make_shared<EventCapture>(EventCapture{captured.capture, captured.tips});
  const ring::MutexLock event_lock(event->mutex);
  event->record = nullptr;
  return CUDA_SUCCESS;
}

bool capture_wait(Driver& driver, const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event,
                  bool external, CUresult& result) {
  const ring::RecursiveLock lock(driver.graph_mutex);
  const std::shared_ptr<StreamCapture>& captured = stream->captured;
  const std::shared_ptr<EventCapture>& recorded = event->captured;
  if (captured == nullptr && recorded == nullptr) return false;
  result = CUDA_SUCCESS;
  if (captured != nullptr && captured->capture->invalid)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else if (captured != nullptr && external)
    result = capture_node(driver, *stream, EventWait{event});
  else if (recorded == nullptr)
    result = is_recorded(*event) ? refuse(*captured->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION) : CUDA_SUCCESS;
  else if (external)
    result = CUDA_ERROR_ILLEGAL_STATE;
  else if (recorded->capture->ended)
    result = captured == nullptr ? CUDA_ERROR_INVALID_VALUE : refuse(*captured->capture, CUDA_ERROR_INVALID_VALUE);
  else if (recorded->capture->invalid)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else if (captured != nullptr && captured->capture != recorded->capture) {
    refuse(*recorded->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    result = refuse(*captured->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  } else if (captured != nullptr) {
    join_tips(captured->tips, recorded->tips);
  } else if (stream->handle == CU_STREAM_LEGACY) {
    result = refuse(*recorded->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  } else {
    stream->captured = std::make_shared<StreamCapture>();
    stream->captured->capture = recorded->capture;
    stream->captured->tips = recorded->tips;
    recorded->capture->streams.push_back(stream);
  }
  return true;
}

void close_capture(Driver& driver, Capture& capture) {
  capture.ended = true;
  capture.graph->captured_into = false;
  for (const std::shared_ptr<Stream>& stream : capture.streams) stream->captured = nullptr;
  capture.streams.clear();
  capture.graph = nullptr;
  driver.captures_open.fetch_sub(1, std::memory_order_acq_rel);
  std::erase_if(driver.captures, [&](const std::shared_ptr<Capture>& other) { return other.get() == &capture; });
}

void drop_capture(Driver& driver, Capture& capture) {
  drop_handles(driver, *capture.graph);
  close_capture(driver, capture);
}

void forget_stream(Driver& driver, Stream& stream) {
  const ring::RecursiveLock lock(driver.graph_mutex);
  if (stream.captured == nullptr) return;
  const std::shared_ptr<Capture> capture = stream.captured->capture;
  if (capture->streams.front().get() == &stream) drop_capture(driver, *capture);
}

void forget_captures(Driver& driver, const Context& context) {
  const ring::RecursiveLock lock(driver.graph_mutex);
  const std::vector<std::shared_ptr<Capture>> open = driver.captures;
  for (const std::shared_ptr<Capture>& capture : open) {
    const auto concerned = [&](const std::shared_ptr<Stream>& stream) { return stream->context.get() == &context; };
    if (std::any_of(capture->streams.begin(), capture->streams.end(), concerned)) drop_capture(driver, *capture);
  }
}

}  // namespace simgpu
