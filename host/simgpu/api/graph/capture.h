// Stream capture: commands for a captured stream become nodes of a graph.
//
// A capture begins in one stream. Another stream joins the capture by waiting for an event that was recorded in a
// captured stream. Each stream keeps the nodes on which its next node depends. A call that cannot be captured, or that
// the capture mode prohibits, fails and invalidates the capture (docs/design/021-prohibited-in-capture.md).
//
// Driver::graph_mutex protects all state of captures.
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
  std::vector<std::shared_ptr<Stream>> streams;  // the first stream is the capture's origin
};

// The state of a captured stream.
struct StreamCapture {
  std::shared_ptr<Capture> capture;
  CaptureTips tips;
  // cuStreamGetCaptureInfo returned pointers into these vectors.
  std::vector<CUgraphNode> given_nodes;
  std::vector<CUgraphEdgeData> given_edges;
};

// The nodes on which a wait for this event depends, if the event was last recorded in a captured stream.
struct EventCapture {
  std::shared_ptr<Capture> capture;
  CaptureTips tips;
};

// Returns true if commands for the stream become nodes. Another thread may begin a capture immediately afterwards: in
// that case the program has not ordered the two calls.
bool is_captured(Driver& driver, Stream& stream);

// Adds a node to the captured stream's graph. Edges from kernel nodes get the data `between`.
CUresult capture_node(Driver& driver, Stream& stream, NodeWork work, const CUgraphEdgeData& between = {});

// For commands that cannot become nodes. If the stream is captured, fails and invalidates the capture. A legacy stream
// that would wait for a captured stream has the same effect.
CUresult refuse_in_capture(Driver& driver, Stream& stream);

// For kernel launches: fails if the stream's capture is invalid. If a launch fails, the caller invalidates the capture.
CUresult refuse_invalidated(Driver& driver, Stream& stream);
void invalidate_capture(Driver& driver, Stream& stream);

// Returns an error if a capture mode prohibits the call (`unsafe` in ring/api/driver.def). Call this function before
// every other check.
CUresult refuse_as_unsafe() noexcept;
// For calls on a whole context (`whole_context` in ring/api/driver.def) or on a green context: returns an error if a
// stream of that context is captured.
CUresult refuse_in_capturing(Driver& driver, const Context& context, const GreenContext* green = nullptr);
// For queries of a stream and waits for a stream: returns an error if the stream is captured.
CUresult refuse_question(Driver& driver, Stream& stream);
// For queries of an event and waits for an event: returns an error if the event belongs to a capture.
CUresult refuse_event_question(Driver& driver, Event& event);

// For a context that waits for an event: returns an error if the event belongs to a capture.
CUresult refuse_captured(Driver& driver, Event& event);

CUresult capture_record(Driver& driver, Stream& stream, const std::shared_ptr<Event>& event, bool external);
// Handles a stream's wait for an event if the stream or the event is captured; else returns false.
bool capture_wait(Driver& driver, const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event,
                  bool external, CUresult& result);

// Returns true if the context's legacy stream would wait for a captured stream.
bool has_blocking_capture(Driver& driver, const Context& context) REQUIRES(driver.graph_mutex);

void join_tips(CaptureTips& tips, const CaptureTips& more);

// These functions drop the captures of a destroyed stream or of an ended context.
void forget_stream(Driver& driver, Stream& stream);
void forget_captures(Driver& driver, const Context& context);

// Ends a capture; its streams then execute commands again.
void close_capture(Driver& driver, Capture& capture) REQUIRES(driver.graph_mutex);
// Ends a capture without yielding a graph. Destroys the graph, even one that cuStreamBeginCaptureToGraph received.
void drop_capture(Driver& driver, Capture& capture) REQUIRES(driver.graph_mutex);

}  // namespace simgpu
