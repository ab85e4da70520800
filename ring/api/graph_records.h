// The records of captures and graphs: ring/api/records.h explains them.
#pragma once

#include <cstdint>
#include <tuple>

#include "ring/api/field_list.h"
#include "ring/api/stream_records.h"

namespace api {

// The reply of cuStreamEndCapture. The graph's id is 0 if there is no graph. `over`: the stream is no longer captured.
// A reply with an error contains these members, too.
struct EndCaptureReply {
  std::uint64_t graph;
  std::uint64_t over;

  static constexpr std::tuple fields{field::Made{Handle::Graph, &EndCaptureReply::graph},
                                     field::Number{"", &EndCaptureReply::over}};
};
struct EndCaptureRecord {
  std::uint64_t stream;

  static constexpr std::tuple fields{field::Stream{&EndCaptureRecord::stream}};
  using Reply = EndCaptureReply;
};

// Two words follow for each dependency: a node's id, and the edge's data (CUgraphEdgeData).
struct CaptureInfoReply {
  std::uint64_t status, number, graph, bytes;

  static constexpr std::tuple fields{
      field::Number{"status", &CaptureInfoReply::status}, field::Number{"number", &CaptureInfoReply::number},
      field::Made{Handle::Graph, &CaptureInfoReply::graph}, field::Words{"dependencies", &CaptureInfoReply::bytes}};
};
struct CaptureInfoRecord {
  std::uint64_t stream;

  static constexpr std::tuple fields{field::Stream{&CaptureInfoRecord::stream}};
  using Reply = CaptureInfoReply;
};

// The largest number of list elements in one reply.
inline constexpr std::uint64_t list_page = 2048;

// `all`: the number of elements in the list. Some of the elements follow: a node's id and, for a list of edges, a
// second id and the edge's data.
struct ListReply {
  std::uint64_t all, bytes;

  static constexpr std::tuple fields{field::Number{"all", &ListReply::all},
                                     field::Words{"elements", &ListReply::bytes}};
};
// A part of a list, from element `first` on.
struct GraphListRecord {
  std::uint64_t graph, first;

  static constexpr std::tuple fields{field::Id{Handle::Graph, &GraphListRecord::graph},
                                     field::Number{"first", &GraphListRecord::first}};
  using Reply = ListReply;
};
struct NodeListRecord {
  std::uint64_t node, first;

  static constexpr std::tuple fields{field::Id{Handle::GraphNode, &NodeListRecord::node},
                                     field::Number{"first", &NodeListRecord::first}};
  using Reply = ListReply;
};

// For cuUserObjectCreate. `token`: the guest's number for the destructor and its argument (ring/queue/callback_slot.h).
// The object ends when the driver calls the destructor.
struct UserObjectRecord {
  std::uint64_t object, token;
  std::uint32_t references, flags;

  static constexpr std::tuple fields{
      field::Proposed{Handle::UserObject, &UserObjectRecord::object}, field::Number{"token", &UserObjectRecord::token},
      field::Number{"references", &UserObjectRecord::references}, field::Number{"flags", &UserObjectRecord::flags}};
};

// For cuGraphInstantiateWithParams. A reply with an error contains these members, too. A node's id is 0 if there is no
// node.
struct InstantiateReply {
  std::uint64_t result, node;

  static constexpr std::tuple fields{field::Number{"result", &InstantiateReply::result},
                                     field::Made{Handle::GraphNode, &InstantiateReply::node}};
};
// Makes an executable graph, which the graph does not own.
struct InstantiateRecord {
  std::uint64_t graph, exec, flags, upload_stream;

  static constexpr std::tuple fields{field::MaybeId{"graph", Handle::Graph, &InstantiateRecord::graph},
                                     field::Proposed{Handle::GraphExec, &InstantiateRecord::exec},
                                     field::Number{"flags", &InstantiateRecord::flags},
                                     field::Stream{&InstantiateRecord::upload_stream, "upload_stream"}};
  using Reply = InstantiateReply;
};

// For cuGraphExecUpdate. A reply with an error contains these members, too.
struct ExecUpdateReply {
  std::uint64_t result, node, from;

  static constexpr std::tuple fields{field::Number{"result", &ExecUpdateReply::result},
                                     field::Made{Handle::GraphNode, &ExecUpdateReply::node},
                                     field::Made{Handle::GraphNode, &ExecUpdateReply::from}};
};
struct ExecUpdateRecord {
  std::uint64_t exec, graph;

  static constexpr std::tuple fields{field::Id{Handle::GraphExec, &ExecUpdateRecord::exec},
                                     field::Id{Handle::Graph, &ExecUpdateRecord::graph}};
  using Reply = ExecUpdateReply;
};

// ---- single nodes --------------------------------------------------------------------------------------------------

struct NodeReply {
  std::uint64_t node;

  static constexpr std::tuple fields{field::Made{Handle::GraphNode, &NodeReply::node}};
};

// A kernel node: like a launch, without a stream. The packed parameters follow. The driver runs the function or, if
// there is no function, the kernel. The driver reports both.
struct KernelNodeParams {
  std::uint64_t function, kernel;
  std::uint32_t grid[3], block[3];
  std::uint32_t shared, param_bytes;
  std::uint32_t used_extra, pad;

  bool operator==(const KernelNodeParams&) const = default;
  static constexpr auto with(auto... ids) {
    return std::tuple{ids...,
                      field::MaybeId{"function", Handle::Function, &KernelNodeParams::function},
                      field::MaybeId{"kernel", Handle::Kernel, &KernelNodeParams::kernel},
                      field::Triple{"grid", &KernelNodeParams::grid},
                      field::Triple{"block", &KernelNodeParams::block},
                      field::Number{"shared", &KernelNodeParams::shared},
                      field::Flag{&KernelNodeParams::used_extra},
                      field::Zero{&KernelNodeParams::pad},
                      field::Parameters{"parameters", &KernelNodeParams::param_bytes}};
  }
};
struct AddKernelNodeRecord : KernelNodeParams {
  std::uint64_t graph, dependencies;

  static constexpr auto fields =
      with(field::Id{Handle::Graph, &AddKernelNodeRecord::graph},
           field::Ids{"dependencies", Handle::GraphNode, &AddKernelNodeRecord::dependencies});
  using Reply = NodeReply;
};
struct SetKernelNodeRecord : KernelNodeParams {
  std::uint64_t node;

  static constexpr auto fields = with(field::Id{Handle::GraphNode, &SetKernelNodeRecord::node});
};
struct ExecKernelNodeRecord : KernelNodeParams {
  std::uint64_t exec, node;

  static constexpr auto fields = with(field::Id{Handle::GraphExec, &ExecKernelNodeRecord::exec},
                                      field::Id{Handle::GraphNode, &ExecKernelNodeRecord::node});
};
// The packed parameters follow the reply, padded to a multiple of 8 bytes.
struct KernelNodeReply {
  std::uint64_t function, kernel;
  std::uint32_t grid[3], block[3];
  std::uint32_t shared, param_bytes;
  std::uint64_t used_extra, bytes;

  static constexpr std::tuple fields{field::Made{Handle::Function, &KernelNodeReply::function},
                                     field::Made{Handle::Kernel, &KernelNodeReply::kernel},
                                     field::Triple{"grid", &KernelNodeReply::grid},
                                     field::Triple{"block", &KernelNodeReply::block},
                                     field::Number{"shared", &KernelNodeReply::shared},
                                     field::Number{"", &KernelNodeReply::param_bytes},
                                     field::Number{"", &KernelNodeReply::used_extra},
                                     field::Words{"parameters", &KernelNodeReply::bytes}};
};
struct GetNodeRecord {
  std::uint64_t node;

  static constexpr std::tuple fields{field::Id{Handle::GraphNode, &GetNodeRecord::node}};
  using Reply = KernelNodeReply;
};

// Attributes of kernel nodes, sent like a stream's attributes (ring/api/stream_records.h).
struct SetNodeAttributeRecord {
  std::uint64_t node;
  std::uint32_t attributes, pad;

  static constexpr std::tuple fields{field::Id{Handle::GraphNode, &SetNodeAttributeRecord::node},
                                     field::Between{"", &SetNodeAttributeRecord::attributes, 1, 1},
                                     field::Zero{&SetNodeAttributeRecord::pad},
                                     field::Attributes{&SetNodeAttributeRecord::attributes}};
};
struct GetNodeAttributeRecord {
  std::uint64_t node;
  std::uint32_t tag, pad;

  static constexpr std::tuple fields{field::Id{Handle::GraphNode, &GetNodeAttributeRecord::node},
                                     field::Number{"attribute", &GetNodeAttributeRecord::tag},
                                     field::Zero{&GetNodeAttributeRecord::pad}};
  using Reply = StreamAttributeReply;
};

// A host node. `token`: the guest's number for the function and its argument (ring/queue/callback_slot.h).
struct AddHostNodeRecord {
  std::uint64_t graph, dependencies, token;

  static constexpr std::tuple fields{field::Id{Handle::Graph, &AddHostNodeRecord::graph},
                                     field::Number{"token", &AddHostNodeRecord::token},
                                     field::Ids{"dependencies", Handle::GraphNode, &AddHostNodeRecord::dependencies}};
  using Reply = NodeReply;
};
struct SetHostNodeRecord {
  std::uint64_t node, token;

  static constexpr std::tuple fields{field::Id{Handle::GraphNode, &SetHostNodeRecord::node},
                                     field::Number{"token", &SetHostNodeRecord::token}};
};
struct ExecHostNodeRecord {
  std::uint64_t exec, node, token;

  static constexpr std::tuple fields{field::Id{Handle::GraphExec, &ExecHostNodeRecord::exec},
                                     field::Id{Handle::GraphNode, &ExecHostNodeRecord::node},
                                     field::Number{"token", &ExecHostNodeRecord::token}};
};
struct HostNodeReply {
  std::uint64_t token;

  static constexpr std::tuple fields{field::Number{"token", &HostNodeReply::token}};
};
struct GetHostNodeRecord {
  std::uint64_t node;

  static constexpr std::tuple fields{field::Id{Handle::GraphNode, &GetHostNodeRecord::node}};
  using Reply = HostNodeReply;
};

// ---- conditional nodes ---------------------------------------------------------------------------------------------

// The ids of the node's body graphs follow the reply.
struct ConditionalNodeReply {
  std::uint64_t node, bytes;

  static constexpr std::tuple fields{field::Made{Handle::GraphNode, &ConditionalNodeReply::node},
                                     field::Words{"bodies", &ConditionalNodeReply::bytes}};
};
inline constexpr std::uint64_t max_bodies = 1024;  // of one node; the driver has no bound
// cuGraphAddNode_v2 for a conditional node. For other kinds of nodes, the guest sends the call for that kind.
struct AddConditionalNodeRecord {
  std::uint64_t graph, dependencies, handle;
  std::uint32_t type, bodies;

  static constexpr std::tuple fields{
      field::Id{Handle::Graph, &AddConditionalNodeRecord::graph},
      field::Number{"handle", &AddConditionalNodeRecord::handle},
      field::Number{"type", &AddConditionalNodeRecord::type},
      field::Number{"bodies", &AddConditionalNodeRecord::bodies},
      field::Ids{"dependencies", Handle::GraphNode, &AddConditionalNodeRecord::dependencies}};
  using Reply = ConditionalNodeReply;
};

}  // namespace api
