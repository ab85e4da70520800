#include "host/broker/ops/status.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "host/broker/ops/metric_groups.h"
#include "host/jail/layer.h"

namespace host::broker {
namespace {

using nlohmann::json;

constexpr int format = 1;

template <class Of>
void add(json& into, std::span<const Reading<Of>> readings, const Of& of) {
  for (const Reading<Of>& reading : readings)
    std::visit([&](auto number) { into[reading.metric.key] = number; }, reading.of(of));
}

template <class Of>
void add(json& into, std::span<const MetricGroup<Of>> groups, const Of& of) {
  for (const MetricGroup<Of>& group : groups)
    if (group.there(of)) add(*group.key == '\0' ? into : into[group.key], group.readings, of);
}

json counters_as_json(const Counters& counters) {
  json out;
  add(out, work_metrics(), counters);
  add(out, held_metrics(), counters);
  return out;
}

json slot_as_json(std::size_t index, const SlotStatus& slot) {
  json out = {{"slot", index}, {"state", name_of(slot.word.state)}, {"epoch", slot.word.epoch}};
  if (slot.worker != 0) {
    out["worker"] = slot.worker;
    out["counters"] = counters_as_json(slot.counters);
  }
  if (slot.jail.reported) {
    out["jail"] = {{"layers", names_of_layers(slot.jail.layers)}, {"missing", slot.jail.missing}};
  }
  if (slot.word.held()) {
    out["owner"] = {{"process", slot.owner.pid}, {"peer", slot.owner.peer}, {"program", slot.program}};
  }
  if (slot.pinned) out["pinned"] = true;
  add(out, groups_of_slot(), slot);
  return out;
}

json failures_as_json(const WorkerEnds& ends) {
  json all = json::array();
  for (const WorkerFailure& f : ends.failures)
    all.push_back({{"worker", f.worker},
                   {"slot", f.slot},
                   {f.by_signal ? "signal_number" : "exit_code", f.number},
                   {"how", f.how}});
  return all;
}

json ends_as_json(const WorkerEnds& ends) {
  json out = {
      {"last_reason", ends.last_reason}, {"last_signal", ends.last_signal}, {"failures", failures_as_json(ends)}};
  add(out, end_metrics(), ends);
  return out;
}

// The array is indexed by the guest's ordinals, with "all_gpus" by the host's. A MIG device has a UUID only.
json gpus_as_json(const VmGpus& gpus) {
  json all = json::array();
  for (const Gpu& gpu : gpus.list) {
    json one = json::object();
    if (gpu.index) one["index"] = *gpu.index;
    if (!gpu.uuid.empty()) one["uuid"] = gpu.uuid;
    if (!gpu.pci.empty()) one["pci"] = gpu.pci;
    all.push_back(std::move(one));
  }
  return all;
}

// Without the usage of its control group.
json bounds_as_json(const BoundsStatus& b) {
  json out = {
      {"session_image_bytes", b.session_image_bytes}, {"session_objects", b.session_objects}, {"group", b.group}};
  if (b.group.empty()) out["group_missing"] = b.missing;
  return out;
}

// The VM's limit and use of each GPU; a null quota means none. `missing`: why it is not measured.
json quotas_as_json(const std::vector<QuotaStatus>& quotas) {
  json all = json::array();
  for (const QuotaStatus& q : quotas) {
    json one = {{"gpu", q.gpu}, {"measured", q.missing.empty()}, {"missing", q.missing}};
    add(one, quota_metrics(), q);
    if (q.quota == 0) one[ring::metrics::on_gpu::quota_bytes.key] = nullptr;
    all.push_back(std::move(one));
  }
  return all;
}

json vm_as_json(const VmStatus& vm) {
  json out = {{"name", vm.name},
              {"socket", vm.socket},
              {"memory", vm.memory},
              {"slot_bytes", vm.slot_bytes},
              {"all_gpus", vm.gpus.all},
              {"gpus", gpus_as_json(vm.gpus)},
              {"placement", vm.gpus.placement.empty() ? "fixed" : vm.gpus.placement},
              {"jail", vm.jail},
              {"spin_threads", vm.spin_threads},
              {"spin_us", vm.spin_us},
              {"wait_spin_ms", vm.wait_spin_ms},
              {"counters", counters_as_json(vm.counters)},
              {"worker_ends", ends_as_json(vm.ends)},
              {"bounds", bounds_as_json(vm.bounds)},
              {"gpu_quotas", quotas_as_json(vm.quotas)},
              {"slots", json::array()}};
  add(out, groups_of_vm(), vm);
  for (std::size_t k = 0; k < vm.slots.size(); ++k) out["slots"].push_back(slot_as_json(k, vm.slots[k]));
  return out;
}

}  // namespace

const char* name_of(ring::SlotState state) {
  switch (state) {
    case ring::SlotState::Empty: return "empty";
    case ring::SlotState::Starting: return "starting";
    case ring::SlotState::Ready: return "ready";
    case ring::SlotState::Claimed: return "claimed";
    case ring::SlotState::Released: return "released";
    case ring::SlotState::Dead: return "dead";
  }
  return "?";
}

std::vector<std::string> names_of_layers(std::uint32_t layers) {
  std::vector<std::string> names;
  for (std::uint32_t bit = 1; bit <= jail::all_layers; bit <<= 1)
    if ((layers & bit) != 0) names.emplace_back(jail::name_of(static_cast<jail::Layer>(bit)));
  return names;
}

const char* name_of(scheduler::Scheduler::Sharing sharing) {
  switch (sharing) {
    case scheduler::Scheduler::Sharing::Unswitched: return "time slices";
    case scheduler::Scheduler::Sharing::Alone: return "alone";
    case scheduler::Scheduler::Sharing::Leases: return "leases";
  }
  return "?";
}

std::string status_as_json(const BrokerStatus& status) {
  json out = {{"format", format},          {"version", status.version}, {"process", getpid()},
              {"library", status.library}, {"gpus", json::array()},     {"vms", json::array()}};
  add(out, groups_of_broker(), status);
  for (const GpuSharing& gpu : status.gpus)
    out["gpus"].push_back({{"gpu", gpu.gpu}, {"sharing", name_of(gpu.sharing)}});
  out["gpu_time_missing"] = status.gpu_time_missing;
  for (const VmStatus& vm : status.vms) out["vms"].push_back(vm_as_json(vm));
  return out.dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
}

std::string status_path(const std::string& runtime_dir) { return runtime_dir + "/ivgpud.status"; }

}  // namespace host::broker
