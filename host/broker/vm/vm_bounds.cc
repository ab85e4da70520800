#include "host/broker/vm/vm_bounds.h"

namespace host::broker {

GroupLimits VmBounds::limits() const {
  const VmOptions& options = context_.options;
  return {.memory_bytes = options.memory_max, .pids = options.pids_max, .cpu_thousandths = options.cpu_max};
}

Result<void> VmBounds::make_group() {
  const Groups* const groups = context_.program.groups;
  if (groups == nullptr || !groups->missing().empty()) return {};
  auto group = groups->make(context_.options.name, limits());
  if (!group) return group.error();
  group_ = *std::move(group);
  return {};
}

std::string VmBounds::apply() const { return group_ ? group_->bound(limits()) : ""; }

BoundsStatus VmBounds::status() const {
  const VmOptions& options = context_.options;
  BoundsStatus bounds{.session_image_bytes = options.session_image_bytes,
                      .session_objects = options.session_objects,
                      .memory_max = options.memory_max,
                      .pids_max = options.pids_max,
                      .cpu_max = options.cpu_max,
                      .group = group_ ? group_->path() : "",
                      .missing = context_.program.groups != nullptr ? context_.program.groups->missing() : "",
                      .use = {}};
  if (group_) bounds.use = group_->use();
  return bounds;
}

}  // namespace host::broker
