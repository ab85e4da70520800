// What a VM's earlier workers leave for `ivgpu status` and the log: their counters, how they ended, and the jail that
// the last one has reported.
//
// Callers: the other parts of the same Vm, in the broker's event loop. The context outlives it.
//
// Trust: a worker's text was escaped on arrival. The list of failures is bounded, however often a guest crashes workers.
#pragma once

#include <cstdint>
#include <string>

#include "host/broker/ops/status.h"
#include "host/broker/vm/vm_context.h"
#include "host/broker/worker/telemetry.h"
#include "host/broker/worker/worker_process.h"

namespace host::broker {

// "was killed by signal 9: its last words"
std::string end_in_words(const WorkerProcess::Exit& exit);

class WorkerHistory {
 public:
  explicit WorkerHistory(const VmContext& context) : context_(context) {}

  // Adds the counters of a worker that has gone; the memory that it held has been freed.
  void add(Counters last);
  // The worker of slot k has ended.
  void add_end(std::uint32_t k, const WorkerProcess::Exit& exit);
  // Logs the jail of the first ready worker, and the jail of a later one that differs.
  void report_jail(const WorkerJail& jail);

  const Counters& counters() const { return counters_; }
  const WorkerEnds& ends() const { return ends_; }

 private:
  void add_failure(std::uint32_t k, const WorkerProcess::Exit& exit);

  const VmContext& context_;
  Counters counters_;
  WorkerEnds ends_;  // of the same workers
  WorkerJail jail_reported_;
};

}  // namespace host::broker
