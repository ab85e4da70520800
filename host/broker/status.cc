#include "host/broker/status.h"

#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "host/jail/layer.h"

namespace host::broker {
namespace {

using nlohmann::json;

constexpr int format = 1;

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

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

json counters_as_json(const Counters& c) {
  return {{"calls", c.calls},
          {"posted", c.calls - c.waited},
          {"waited", c.waited},
          {"submitted", c.submitted},
          {"record_bytes", c.record_bytes},
          {"reply_bytes", c.reply_bytes},
          {"to_device_bytes", c.to_device},
          {"from_device_bytes", c.from_device},
          {"device_memory_bytes", c.device_memory},
          {"spun", c.spun},
          {"parked", c.parked},
          {"woken", c.woken}};
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
    out["claimed_s"] = seconds(slot.claimed_for);
  }
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
  return {{"orderly", ends.orderly},
          {"protocol_broken", ends.protocol_broken},
          {"killed_by_broker", ends.killed_by_broker},
          {"signal", ends.signal},
          {"other_code", ends.other_code},
          {"last_reason", ends.last_reason},
          {"last_signal", ends.last_signal},
          {"failures", failures_as_json(ends)}};
}

// A place in the array is the guest's ordinal; with "all_gpus" these are the host's. A MIG device has a UUID alone.
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

json bounds_as_json(const BoundsStatus& b) {
  json out = {
      {"session_image_bytes", b.session_image_bytes}, {"session_objects", b.session_objects}, {"group", b.group}};
  if (b.group.empty()) {
    out["group_missing"] = b.missing;
    return out;
  }
  out["memory_max_bytes"] = b.memory_max;
  out["memory_bytes"] = b.use.memory_bytes;
  out["oom_kills"] = b.use.oom_kills;
  out["pids_max"] = b.pids_max;
  out["pids"] = b.use.pids;
  out["cpu_max"] = static_cast<double>(b.cpu_max) / 1000;
  out["throttled_s"] = static_cast<double>(b.use.throttled_us) / 1e6;
  return out;
}

json vm_as_json(const VmStatus& vm) {
  json out = {{"name", vm.name},
              {"socket", vm.socket},
              {"memory", vm.memory},
              {"region_bytes", vm.region_bytes},
              {"slot_bytes", vm.slot_bytes},
              {"all_gpus", vm.gpus.all},
              {"gpus", gpus_as_json(vm.gpus)},
              {"gpu_memory", {{"used_bytes", vm.counters.device_memory}, {"total_bytes", vm.gpu_memory}}},
              {"jail", vm.jail},
              {"spin_threads", vm.spin_threads},
              {"spin_us", vm.spin_us},
              {"wait_spin_ms", vm.wait_spin_ms},
              {"connections", vm.connections},
              {"counters", counters_as_json(vm.counters)},
              {"worker_ends", ends_as_json(vm.ends)},
              {"bounds", bounds_as_json(vm.bounds)},
              {"slots", json::array()}};
  for (std::size_t k = 0; k < vm.slots.size(); ++k) out["slots"].push_back(slot_as_json(k, vm.slots[k]));
  return out;
}

}  // namespace

std::vector<std::string> names_of_layers(std::uint32_t layers) {
  std::vector<std::string> names;
  for (std::uint32_t bit = 1; bit <= jail::all_layers; bit <<= 1)
    if ((layers & bit) != 0) names.emplace_back(jail::name_of(static_cast<jail::Layer>(bit)));
  return names;
}

std::string status_as_json(const BrokerStatus& status) {
  const double longest_ms = std::chrono::duration<double, std::milli>(status.turns.longest).count();
  json out = {
      {"format", format},
      {"version", status.version},
      {"process", getpid()},
      {"library", status.library},
      {"up_s", seconds(status.up)},
      {"loop",
       {{"turns", status.turns.count}, {"turns_over_50_ms", status.turns.beyond}, {"longest_turn_ms", longest_ms}}},
      {"vms", json::array()}};
  for (const VmStatus& vm : status.vms) out["vms"].push_back(vm_as_json(vm));
  return out.dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
}

std::string status_path(const std::string& runtime_dir) { return runtime_dir + "/ivgpud.status"; }

}  // namespace host::broker
