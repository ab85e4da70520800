// One broker at a time gives out a GPU by turns or by quotas: two would not know of each other, and neither could keep
// what it has promised. Who does so holds a name of the machine for each GPU, an abstract UNIX socket. The kernel takes
// the name back when the process ends, however it ends.
//
// Trust: any process of the machine may take such a name, and keep a broker from starting with it; the sentence says
// which process that is.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/broker/fd.h"
#include "host/broker/gpus.h"

namespace host::broker {

class GpuHolds {
 public:
  // Holds these, too, until this object ends. Those without a UUID are nobody's to hold, as the kernel does not know them
  // yet. False: another process holds one of them, or the kernel refuses; `error` is one sentence, and what was held
  // before is held.
  bool take(const std::vector<Gpu>& gpus, std::string& error);

 private:
  std::map<std::string, Fd> held_;  // by UUID
};

}  // namespace host::broker
