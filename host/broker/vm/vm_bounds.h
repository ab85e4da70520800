// The limits of a VM's workers: owns the VM's control group, if it has one.
//
// Callers: the other parts of the same Vm, in the broker's event loop. The context outlives it, and it outlives the
// workers.
#pragma once

#include <memory>
#include <string>

#include "host/base/result.h"
#include "host/broker/ops/status.h"
#include "host/broker/vm/vm_context.h"
#include "host/broker/worker/cgroup.h"

namespace host::broker {

class VmBounds {
 public:
  explicit VmBounds(const VmContext& context) : context_(context) {}

  // Makes the control group if this machine has any. The error is one sentence.
  Result<void> make_group();
  // Applies the present options. "" if the limits are in effect, else the reason.
  std::string apply() const;
  // The descriptor by which a worker joins the group; -1: no group.
  int entrance() const { return group_ ? group_->entrance() : -1; }
  BoundsStatus status() const;

 private:
  GroupLimits limits() const;

  const VmContext& context_;
  std::unique_ptr<Group> group_;  // null: none
};

}  // namespace host::broker
