// Functions that the calls about graph nodes share (kernel_node.cc, copy_node.cc, host_node.cc, any_node.cc).
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "guest/calls/found.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"
#include "ring/base/mutex.h"

namespace guest::calls {

// Memory behind the pointers that a call returns. It stays valid until the next query about the same node. The keys are
// places of the object table, so the table bounds the memory's size.
template <class T>
class KeptArrays {
 public:
  T& renew(const Object& node) {
    const ring::MutexLock lock(mutex_);
    return kept_[&node] = T();
  }

 private:
  ring::Mutex mutex_;
  std::map<const Object*, T> kept_ GUARDED_BY(mutex_);
};

inline Object* graph_object(CUgraph graph) { return session()->objects.find(graph, api::Handle::Graph); }
inline Object* node_object(CUgraphNode node) { return session()->objects.find(node, api::Handle::GraphNode); }
inline Object* exec_object(CUgraphExec exec) { return session()->objects.find(exec, api::Handle::GraphExec); }

// The nodes on which a new node depends.
struct Dependencies {
  const CUgraphNode* nodes;
  std::size_t count;

  bool known() const {
    if (count > ring::max_record / sizeof *nodes || (count != 0 && nodes == nullptr)) return false;
    for (std::size_t i = 0; i < count; ++i)
      if (node_object(nodes[i]) == nullptr) return false;
    return true;
  }
  Part part() const { return {nodes, count * sizeof *nodes}; }  // a handle's value is the object's id
};

// Enters the context where a node runs: `handle`, or the current context if `handle` is NULL.
inline CUresult enter_for(CUcontext handle, Context*& context) {
  if (const CUresult r = enter(context); r != CUDA_SUCCESS || handle == nullptr) return r;
  context = find_context(handle);
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : state_of(*context);
}

// Adds a node. `send(parts, read)` sends the record with the graph and the dependencies.
template <class Record, class Send>
CUresult add_by(Record& record, CUgraphNode* out, CUgraph graph, const Dependencies& dependencies,
                const Part& parameters, Send send) {
  const Object* const object = graph_object(graph);
  if (out == nullptr || object == nullptr || !dependencies.known()) return CUDA_ERROR_INVALID_VALUE;
  record.graph = api::number_of(graph), record.dependencies = dependencies.count;
  const std::array parts{dependencies.part(), parameters};
  std::uint64_t id = 0;
  const auto read = [&](CUresult result, ring::SharedReader& r) {
    if (result == CUDA_SUCCESS) id = r.slot();
  };
  if (const CUresult r = send(parts, read).result; r != CUDA_SUCCESS) return r;
  if (found_node(id, object) == nullptr) return lose_to_unsound_reply();
  *out = reinterpret_cast<CUgraphNode>(id);
  return CUDA_SUCCESS;
}

// Adds a node by a call that has a line in the table.
template <class Record>
CUresult add(int call, Context& context, Record& record, CUgraphNode* out, CUgraph graph,
             const Dependencies& dependencies, const Part& parameters = {}) {
  return add_by(record, out, graph, dependencies, parameters, [&](std::span<const Part> parts, auto read) {
    return cross({.call = call, .context = context}, record, parts, read);
  });
}

// A type of version 2 in cuda.h begins with the members of the older version.
template <class To, class From>
To first_of(const From& from) {
  To to;
  static_assert(sizeof to <= sizeof from);
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace guest::calls
