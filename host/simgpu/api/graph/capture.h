// Stream capture: work that is put into a captured stream becomes nodes of a graph.
//
// A capture begins in one stream. A stream joins it by waiting for an event that was recorded in it. Each stream keeps
// the nodes that its next node will depend on. A call that cannot be captured fails and invalidates the capture; so does
// a call that the modes prohibit (docs/design/021-prohibited-in-capture.md).
//
// Locks: under Driver::graph_mutex.
#pragma once

#include "host/simgpu/api/graph/graph.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace simgpu {

// A node that the next one will depend on.
struct CaptureTip {
  std::shared_ptr<GraphNode> node;
  CUgraphEdgeData data;
};
using CaptureTips = std::vector<CaptureTip>;

struct Capture {
  std::uint64_t id = 0;
  std::shared_ptr<Graph> graph;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::uint64_t thread = 0;  // ThreadState::id of the thread that began it
  bool invalid = false;
  bool ended = false;
  std::vector<std::shared_ptr<Stream>> streams;  // the first is the origin
};

// A stream's part in a capture.
struct StreamCapture {
  std::shared_ptr<Capture> capture;
  CaptureTips tips;
  // cuStreamGetCaptureInfo has returned pointers to these.
  std::vector<CUgraphNode> given_nodes;
  std::vector<CUgraphEdgeData> given_edges;
};

// The nodes that an event stands for, if it was last recorded in a captured stream.
struct EventCapture {
  std::shared_ptr<Capture> capture;
  CaptureTips tips;
};

// True if work for the stream becomes nodes. Another thread may begin a capture right after; the program has not ordered
// the two calls then.
bool is_captured(Driver& driver, Stream& stream);

// Adds a node to the captured stream's graph. `between` is the data of edges from kernel nodes.
CUresult capture_node(Driver& driver, Stream& stream, NodeWork work, const CUgraphEdgeData& between = {});

// For commands that cannot be nodes. Fails, and invalidates the capture, if the stream is captured, or if it is the legacy
// stream and would wait for a captured one.
CUresult refuse_in_capture(Driver& driver, Stream& stream);

// For kernel launches, which fail at once if the stream's capture is invalid. A launch that fails invalidates it.
CUresult refuse_invalidated(Driver& driver, Stream& stream);
void invalidate_capture(Driver& driver, Stream& stream);

// For calls that the modes may prohibit (`unsafe` in ring/api/driver.def). Such a call begins with it.
CUresult refuse_as_unsafe() noexcept;
// For calls about a whole context (`whole_context` there) or a green context.
CUresult refuse_in_capturing(Driver& driver, const Context& context, const GreenContext* green = nullptr);
// For queries and waits of a stream.
CUresult refuse_question(Driver& driver, Stream& stream);
// For queries and waits of an event.
CUresult refuse_event_question(Driver& driver, Event& event);

// For a context's wait for an event.
CUresult refuse_captured(Driver& driver, Event& event);

CUresult capture_record(Driver& driver, Stream& stream, const std::shared_ptr<Event>& event, bool external);
// Handles a stream's wait for an event if either belongs to a capture; else returns false.
bool capture_wait(Driver& driver, const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event,
                  bool external, CUresult& result);

// True if the context's legacy stream would wait for a captured stream.
bool has_blocking_capture(Driver& driver, const Context& context);

void join_tips(CaptureTips& tips, const CaptureTips& more);

// Drop the captures of a stream that is destroyed, or of a context that ends.
void forget_stream(Driver& driver, Stream& stream);
void forget_captures(Driver& driver, const Context& context);

// Ends a capture: its streams run their work again.
void close_capture(Driver& driver, Capture& capture);
// The same for a capture that gives no graph. Destroys the graph, also one of cuStreamBeginCaptureToGraph.
void drop_capture(Driver& driver, Capture& capture);

}  // namespace simgpu
