#include "host/broker/config/config_changes.h"

#include <fmt/format.h>

#include <string_view>

#include "host/broker/config/config_value.h"

namespace host::broker {
namespace {

std::string line_of(const Key& key, Reload reload, const Value& before, const Value& after) {
  if (reload == Reload::Restart) return fmt::format("{} needs a restart of ivgpud", key.name);
  const std::string change = fmt::format("{} {} -> {}", key.name, in_the_file(key, before), in_the_file(key, after));
  switch (reload) {
    case Reload::NewSessions: return change + " for sessions that start from now on";
    case Reload::NewVms: return change + " for VMs that are added from now on";
    default: return change;
  }
}

// `may_change`: false if this key needs a restart in the present case, though it usually does not.
template <class Object, class MayChange>
Changes take_over_table(std::string_view table, Object& running, const Object& wanted, MayChange may_change) {
  Changes changes;
  for (const Key& key : all_keys()) {
    if (key.table != table) continue;
    const Value before = value_in(key, running), after = value_in(key, wanted);
    if (before == after) continue;
    const Reload reload = may_change(key) ? key.reload : Reload::Restart;
    changes.lines.push_back(line_of(key, reload, before, after));
    if (reload != Reload::Restart) assign(key, running, after);
    changes.now = changes.now || reload == Reload::Now;
    changes.new_sessions = changes.new_sessions || reload == Reload::NewSessions;
  }
  return changes;
}

bool any(const Key&) { return true; }

}  // namespace

std::string restart_keys_in_words(const VmOptions& options) {
  std::string text;
  for (const Key& key : all_keys())
    if (std::string_view(key.table) == "vm" && key.reload == Reload::Restart)
      text += fmt::format("{} = {}\n", key.name, in_the_file(key, value_in(key, options)));
  return text;
}

Changes take_over(BrokerOptions& running, const BrokerOptions& wanted) {
  return take_over_table("broker", running, wanted, any);
}

Changes take_over(GpuOptions& running, const GpuOptions& wanted) {
  // A worker runs under MPS for its whole life or not at all.
  const bool mps = running.policy == "mps" || wanted.policy == "mps";
  return take_over_table("gpu", running, wanted,
                         [&](const Key& key) { return !mps || std::string_view(key.name) != "policy"; });
}

Changes take_over(VmOptions& running, const VmOptions& wanted, bool keeps_gpus) {
  const bool same_region = running.region_size == wanted.region_size && running.slots == wanted.slots;
  return take_over_table("vm", running, wanted, [&](const Key& key) {
    const std::string_view name = key.name;
    return (same_region || name != "memory_max") && (!keeps_gpus || name != "gpus");
  });
}

}  // namespace host::broker
