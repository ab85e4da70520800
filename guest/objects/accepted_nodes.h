// The kernels that the driver has accepted for nodes of executable graphs. The driver accepts the same kernel with the
// same launch shape again, whatever the parameters are. The guest therefore posts calls that set such a kernel.
//
// Thread-safety: any thread. If two threads set the same node, the program must order the threads.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "ring/api/graph_records.h"
#include "ring/base/mutex.h"

namespace guest {

class AcceptedNodes {
 public:
  // `context`: the context in which the node will run.
  bool has(const api::ExecKernelNodeRecord& record, unsigned context) {
    const ring::MutexLock lock(mutex_);
    const auto found = accepted_.find({record.exec, record.node});
    return found != accepted_.end() && found->second == Kernel(record, context);
  }
  void add(const api::ExecKernelNodeRecord& record, unsigned context) {
    const ring::MutexLock lock(mutex_);
    accepted_.insert_or_assign({record.exec, record.node}, Kernel(record, context));
  }
  // Called when the executable graph was destroyed or updated.
  void forget(std::uint64_t exec) {
    const ring::MutexLock lock(mutex_);
    accepted_.erase(accepted_.lower_bound({exec, 0}), accepted_.lower_bound({exec + 1, 0}));
  }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // the ids of the executable graph and of the node
  using Kernel = std::pair<api::KernelNodeParams, unsigned>;
  ring::Mutex mutex_;
  std::map<Key, Kernel> accepted_ GUARDED_BY(mutex_);
};

}  // namespace guest
