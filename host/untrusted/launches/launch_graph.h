// A graph of kernels that a channel keeps: its nodes run one after the other, and a launch sets the nodes' parameters.
//
// A launch may also set the nodes' grids, blocks and shared memory. Such a launch costs more than half of cuLaunchKernel
// for each kernel, while new parameters alone cost a fifth (an H200, 2026-11-28). Most graphs therefore serve one
// sequence of shapes, and only sequences whose shapes change get a graph for any shapes.
//
// One thread at a time uses this object. The creating thread's context must be current at every use; the graph must end
// before its context and its functions' modules do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "host/driver/driver.h"
#include "host/session/graphs/kept_graphs.h"
#include "host/untrusted/launches/pending_launch.h"

namespace host {

// Which launches a graph serves: those of the same shapes, or those of the same functions.
enum class Shapes : std::uint8_t { Same, Any };

class LaunchGraph {
 public:
  // Returns null if the driver has no such graph, for example because a kernel needs a cluster. `shapes`: of launches
  // that the driver has accepted. The graph takes over the reserved place.
  static std::unique_ptr<LaunchGraph> make(const Driver& driver, KeptGraphs& kept, KeptGraphs::Place place,
                                           LaunchStream stream, Shapes shapes, std::span<const PendingLaunch> launches);
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;

  // Returns whether the graph runs these launches.
  bool serves(LaunchStream stream, Shapes shapes, std::span<const PendingLaunch> launches) const;
  // Sets the parameters and launches. If the result is an error, no kernel was launched. Precondition: serves().
  CUresult launch(std::span<const PendingLaunch> launches);

  std::uint64_t last_use = 0;  // for the cache

 private:
  struct Node {
    CUgraphNode node = nullptr;
    CUfunction function = nullptr;
    LaunchShape shape;
    std::vector<std::byte> parameters;  // as the driver has them
  };

  LaunchGraph(const Driver& driver, KeptGraphs& kept, KeptGraphs::Place place, LaunchStream stream, Shapes shapes)
      : driver_(driver), kept_(kept), place_(place), stream_(stream), shapes_(shapes) {}
  CUresult add(const PendingLaunch& launch);
  CUresult set(Node& node, const PendingLaunch& launch);

  const Driver& driver_;
  KeptGraphs& kept_;
  const KeptGraphs::Place place_;
  const LaunchStream stream_;
  const Shapes shapes_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  std::vector<Node> nodes_;
};

}  // namespace host
