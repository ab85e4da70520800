// The records of captures and graphs: ring/api/records.h explains them.
#pragma once

#include <cstdint>
#include <tuple>

#include "ring/api/field_list.h"
#include "ring/api/stream_records.h"

namespace api {

// The graph's id is 0 if there is none. `over`: the stream is no longer captured. A reply with an error has these, too.
struct EndCaptureReply {
  std::uint64_t graph;
  std::uint64_t over;

  static constexpr std::tuple fields{field::made(Handle::Graph, &EndCaptureReply::graph),
                                     field::unsaid(&EndCaptureReply::over)};
};
struct EndCaptureRecord {
  std::uint64_t stream;

  static constexpr std::tuple fields{field::stream(&EndCaptureRecord::stream)};
  using Reply = EndCaptureReply;
};

// For each dependency two words follow: a node's id, and the edge's data (CUgraphEdgeData).
struct CaptureInfoReply {
  std::uint64_t status, number, graph, bytes;

  static constexpr std::tuple fields{
      field::number("status", &CaptureInfoReply::status), field::number("number", &CaptureInfoReply::number),
      field::made(Handle::Graph, &CaptureInfoReply::graph), field::words("dependencies", &CaptureInfoReply::bytes)};
};
struct CaptureInfoRecord {
  std::uint64_t stream;

  static constexpr std::tuple fields{field::stream(&CaptureInfoRecord::stream)};
  using Reply = CaptureInfoReply;
};

// The most elements of a list in one reply.
inline constexpr std::uint64_t list_page = 2048;

// `all`: the number of elements in the list. Some of them follow: a node's id; with edges, a second id and the data.
struct ListReply {
  std::uint64_t all, bytes;

  static constexpr std::tuple fields{field::number("all", &ListReply::all),
                                     field::words("elements", &ListReply::bytes)};
};
// A page of a list, from element `first` on.
struct GraphListRecord {
  std::uint64_t graph, first;

  static constexpr std::tuple fields{field::id(Handle::Graph, &GraphListRecord::graph),
                                     field::number("first", &GraphListRecord::first)};
  using Reply = ListReply;
};
struct NodeListRecord {
  std::uint64_t node, first;

  static constexpr std::tuple fields{field::id(Handle::GraphNode, &NodeListRecord::node),
                                     field::number("first", &NodeListRecord::first)};
  using Reply = ListReply;
};

// cuUserObjectCreate. `token`: the guest's name for the destructor and its argument (ring/queue/callback_slot.h). The object
// ends when the driver calls the destructor.
struct UserObjectRecord {
  std::uint64_t object, token;
  std::uint32_t references, flags;

  static constexpr std::tuple fields{
      field::proposed(Handle::UserObject, &UserObjectRecord::object), field::number("token", &UserObjectRecord::token),
      field::number("references", &UserObjectRecord::references), field::number("flags", &UserObjectRecord::flags)};
};

// For cuGraphInstantiateWithParams. A reply with an error has these, too. A node's id is 0 if there is none.
struct InstantiateReply {
  std::uint64_t result, node;

  static constexpr std::tuple fields{field::number("result", &InstantiateReply::result),
                                     field::made(Handle::GraphNode, &InstantiateReply::node)};
};
// The graph does not own the executable.
struct InstantiateRecord {
  std::uint64_t graph, exec, flags, upload_stream;

  static constexpr std::tuple fields{field::maybe_id("graph", Handle::Graph, &InstantiateRecord::graph),
                                     field::proposed(Handle::GraphExec, &InstantiateRecord::exec),
                                     field::number("flags", &InstantiateRecord::flags),
                                     field::stream(&InstantiateRecord::upload_stream, "upload_stream")};
  using Reply = InstantiateReply;
};

// A reply with an error has these, too.
struct ExecUpdateReply {
  std::uint64_t result, node, from;

  static constexpr std::tuple fields{field::number("result", &ExecUpdateReply::result),
                                     field::made(Handle::GraphNode, &ExecUpdateReply::node),
                                     field::made(Handle::GraphNode, &ExecUpdateReply::from)};
};
struct ExecUpdateRecord {
  std::uint64_t exec, graph;

  static constexpr std::tuple fields{field::id(Handle::GraphExec, &ExecUpdateRecord::exec),
                                     field::id(Handle::Graph, &ExecUpdateRecord::graph)};
  using Reply = ExecUpdateReply;
};

// ---- nodes by hand -------------------------------------------------------------------------------------------------

struct NodeReply {
  std::uint64_t node;

  static constexpr std::tuple fields{field::made(Handle::GraphNode, &NodeReply::node)};
};

// A kernel node: like a launch, without a stream. Its packed parameters follow. The driver runs the function, or
// without one the kernel, and reports both.
struct KernelNodeParams {
  std::uint64_t function, kernel;
  std::uint32_t grid[3], block[3];
  std::uint32_t shared, param_bytes;
  std::uint32_t used_extra, pad;

  bool operator==(const KernelNodeParams&) const = default;
  static constexpr auto with(auto... ids) {
    return std::tuple{ids...,
                      field::maybe_id("function", Handle::Function, &KernelNodeParams::function),
                      field::maybe_id("kernel", Handle::Kernel, &KernelNodeParams::kernel),
                      field::triple("grid", &KernelNodeParams::grid),
                      field::triple("block", &KernelNodeParams::block),
                      field::number("shared", &KernelNodeParams::shared),
                      field::flag(&KernelNodeParams::used_extra),
                      field::zero(&KernelNodeParams::pad),
                      field::parameters("parameters", &KernelNodeParams::param_bytes)};
  }
};
struct AddKernelNodeRecord : KernelNodeParams {
  std::uint64_t graph, dependencies;

  static constexpr auto fields =
      with(field::id(Handle::Graph, &AddKernelNodeRecord::graph),
           field::ids("dependencies", Handle::GraphNode, &AddKernelNodeRecord::dependencies));
  using Reply = NodeReply;
};
struct SetKernelNodeRecord : KernelNodeParams {
  std::uint64_t node;

  static constexpr auto fields = with(field::id(Handle::GraphNode, &SetKernelNodeRecord::node));
};
struct ExecKernelNodeRecord : KernelNodeParams {
  std::uint64_t exec, node;

  static constexpr auto fields = with(field::id(Handle::GraphExec, &ExecKernelNodeRecord::exec),
                                      field::id(Handle::GraphNode, &ExecKernelNodeRecord::node));
};
// The packed parameters follow, padded to words.
struct KernelNodeReply {
  std::uint64_t function, kernel;
  std::uint32_t grid[3], block[3];
  std::uint32_t shared, param_bytes;
  std::uint64_t used_extra, bytes;

  static constexpr std::tuple fields{field::made(Handle::Function, &KernelNodeReply::function),
                                     field::made(Handle::Kernel, &KernelNodeReply::kernel),
                                     field::triple("grid", &KernelNodeReply::grid),
                                     field::triple("block", &KernelNodeReply::block),
                                     field::number("shared", &KernelNodeReply::shared),
                                     field::unsaid(&KernelNodeReply::param_bytes),
                                     field::unsaid(&KernelNodeReply::used_extra),
                                     field::words("parameters", &KernelNodeReply::bytes)};
};
struct GetNodeRecord {
  std::uint64_t node;

  static constexpr std::tuple fields{field::id(Handle::GraphNode, &GetNodeRecord::node)};
  using Reply = KernelNodeReply;
};

// Attributes of kernel nodes, like a stream's (ring/api/stream_records.h).
struct SetNodeAttributeRecord {
  std::uint64_t node;
  std::uint32_t attributes, pad;

  static constexpr std::tuple fields{field::id(Handle::GraphNode, &SetNodeAttributeRecord::node),
                                     field::between("", &SetNodeAttributeRecord::attributes, 1, 1),
                                     field::zero(&SetNodeAttributeRecord::pad),
                                     field::attributes(&SetNodeAttributeRecord::attributes)};
};
struct GetNodeAttributeRecord {
  std::uint64_t node;
  std::uint32_t tag, pad;

  static constexpr std::tuple fields{field::id(Handle::GraphNode, &GetNodeAttributeRecord::node),
                                     field::number("attribute", &GetNodeAttributeRecord::tag),
                                     field::zero(&GetNodeAttributeRecord::pad)};
  using Reply = StreamAttributeReply;
};

// A host node. `token`: the guest's name for the function and its argument (ring/queue/callback_slot.h).
struct AddHostNodeRecord {
  std::uint64_t graph, dependencies, token;

  static constexpr std::tuple fields{field::id(Handle::Graph, &AddHostNodeRecord::graph),
                                     field::number("token", &AddHostNodeRecord::token),
                                     field::ids("dependencies", Handle::GraphNode, &AddHostNodeRecord::dependencies)};
  using Reply = NodeReply;
};
struct SetHostNodeRecord {
  std::uint64_t node, token;

  static constexpr std::tuple fields{field::id(Handle::GraphNode, &SetHostNodeRecord::node),
                                     field::number("token", &SetHostNodeRecord::token)};
};
struct ExecHostNodeRecord {
  std::uint64_t exec, node, token;

  static constexpr std::tuple fields{field::id(Handle::GraphExec, &ExecHostNodeRecord::exec),
                                     field::id(Handle::GraphNode, &ExecHostNodeRecord::node),
                                     field::number("token", &ExecHostNodeRecord::token)};
};
struct HostNodeReply {
  std::uint64_t token;

  static constexpr std::tuple fields{field::number("token", &HostNodeReply::token)};
};
struct GetHostNodeRecord {
  std::uint64_t node;

  static constexpr std::tuple fields{field::id(Handle::GraphNode, &GetHostNodeRecord::node)};
  using Reply = HostNodeReply;
};

// ---- conditional nodes ---------------------------------------------------------------------------------------------

// The ids of the node's body graphs follow.
struct ConditionalNodeReply {
  std::uint64_t node, bytes;

  static constexpr std::tuple fields{field::made(Handle::GraphNode, &ConditionalNodeReply::node),
                                     field::words("bodies", &ConditionalNodeReply::bytes)};
};
inline constexpr std::uint64_t max_bodies = 1024;  // of a node; the driver has no bound
// cuGraphAddNode_v2 for a conditional node. Other kinds cross as their own calls.
struct AddConditionalNodeRecord {
  std::uint64_t graph, dependencies, handle;
  std::uint32_t type, bodies;

  static constexpr std::tuple fields{
      field::id(Handle::Graph, &AddConditionalNodeRecord::graph),
      field::number("handle", &AddConditionalNodeRecord::handle),
      field::number("type", &AddConditionalNodeRecord::type),
      field::number("bodies", &AddConditionalNodeRecord::bodies),
      field::ids("dependencies", Handle::GraphNode, &AddConditionalNodeRecord::dependencies)};
  using Reply = ConditionalNodeReply;
};

}  // namespace api
