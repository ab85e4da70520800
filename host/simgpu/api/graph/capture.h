// Stream capture: commands for a captured stream become nodes of a graph.
//
// A capture begins in one stream. Another stream joins by waiting for an event recorded in it. Each stream keeps the
// nodes on which its next node depends. A call that cannot be captured, or that the capture mode prohibits, fails and
// invalidates the capture (docs/design/021-prohibited-in-capture.md).
//
// Locks: under Driver::graph_mutex.
#pragma once

#include "host/simgpu/api/graph/graph.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace simgpu {

// A node on which the stream's next node depends.
struct CaptureTip {
  std::shared_ptr<GraphNode> node;
  CUgraphEdgeData data;
};
using CaptureTips = std::vector<CaptureTip>;

struct Capture {
  std::uint64_t id = 0;
  std::shared_ptr<Graph> graph;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::uint64_t thread = 0;  // ThreadState::id of the thread that began the capture
  bool invalid = false;
  bool ended = false;
  std::vector<std::shared_ptr<Stream>> streams;  // the first is the origin
};

// The capture state of a stream.
struct StreamCapture {
  std::shared_ptr<Capture> capture;
  CaptureTips tips;
  // Storage behind the pointers that cuStreamGetCaptureInfo returned.
  std::vector<CUgraphNode> given_nodes;
  std::vector<CUgraphEdgeData> given_edges;
};

// The nodes of an event that was last recorded in a captured stream.
struct EventCapture {
  std::shared_ptr<Capture> capture;
  CaptureTips tips;
};

// True if commands for the stream become nodes. Another thread may begin a capture right afterwards; the program did
// not order the two calls in that case.
bool is_captured(Driver& driver, Stream& stream);

// Adds a node to the captured stream's graph. `between` is the data of edges from kernel nodes.
CUresult capture_node(Driver& driver, Stream& stream, NodeWork work, const CUgraphEdgeData& between = {});

// For commands that cannot become nodes. If the stream is captured, or is a legacy stream that would wait for a
// captured stream, fails and invalidates the capture.
CUresult refuse_in_capture(Driver& driver, Stream& stream);

// For kernel launches: fails if the stream's capture is invalid. A failed launch invalidates the capture.
CUresult refuse_invalidated(Driver& driver, Stream& stream);
void invalidate_capture(Driver& driver, Stream& stream);

// Checks a call that a capture mode may prohibit (`unsafe` in ring/api/driver.def), before anything else.
CUresult refuse_as_unsafe() noexcept;
// For calls on a whole context (`whole_context` in ring/api/driver.def) or on a green context.
CUresult refuse_in_capturing(Driver& driver, const Context& context, const GreenContext* green = nullptr);
// For queries and waits of a stream.
CUresult refuse_question(Driver& driver, Stream& stream);
// For queries and waits of an event.
CUresult refuse_event_question(Driver& driver, Event& event);

// For a context that waits for an event.
CUresult refuse_captured(Driver& driver, Event& event);

CUresult capture_record(Driver& driver, Stream& stream, const std::shared_ptr<Event>& event, bool external);
// Handles a stream's wait for an event if either is captured; else returns false.
bool capture_wait(Driver& driver, const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event,
                  bool external, CUresult& result);

// True if the context's legacy stream would wait for a captured stream.
bool has_blocking_capture(Driver& driver, const Context& context);

void join_tips(CaptureTips& tips, const CaptureTips& more);

// Drop the captures of a destroyed stream or an ended context.
void forget_stream(Driver& driver, Stream& stream);
void forget_captures(Driver& driver, const Context& context);

// Ends a capture; its streams execute commands again.
void close_capture(Driver& driver, Capture& capture);
// Same for a capture that yields no graph. Destroys the graph, even the graph of cuStreamBeginCaptureToGraph.
void drop_capture(Driver& driver, Capture& capture);

}  // namespace simgpu
