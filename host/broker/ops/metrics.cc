#include "host/broker/ops/metrics.h"

#include <algorithm>

#include "host/broker/ops/metric_groups.h"
#include "host/broker/ops/metrics_text.h"

namespace host::broker {
namespace {

using ring::MetricKind;
using Labels = MetricsText::Labels;

// Metrics use seconds where the JSON document uses milliseconds.
Number in_base_unit(const ring::Metric& metric, Number number) {
  if (metric.unit == ring::Unit::Milliseconds) return std::get<double>(number) / 1000;
  return number;
}

template <class Of>
void add(MetricsText& text, std::string_view prefix, std::span<const Reading<Of>> readings, const Of& of,
         const Labels& labels) {
  for (const auto& [metric, read] : readings)
    text.add(metric_name(prefix, metric), metric.kind, metric.help, labels, in_base_unit(metric, read(of)));
}

template <class Of>
void add(MetricsText& text, std::span<const MetricGroup<Of>> groups, const Of& of, const Labels& labels) {
  for (const MetricGroup<Of>& group : groups)
    if (group.there(of)) add(text, group.prefix, group.readings, of, labels);
}

Labels with(Labels labels, std::string_view name, std::string value) {
  labels.emplace_back(name, std::move(value));
  return labels;
}

// Metrics outside the lists of figures: those whose labels are the information, and those with a sample per
// alternative.
struct Special {
  const char *name, *labels, *help;
  MetricKind kind = MetricKind::Gauge;
};
constexpr Special build_info{"ivgpu_build_info", "version, library",
                             "The broker: its version, and the driver behind its workers. Always 1."};
constexpr Special gpu_info{"ivgpu_vm_gpu_info", "vm, ordinal, gpu, uuid, pci",
                           "A GPU of the VM: the guest's ordinal, the host's index, UUID, PCI address. Always 1."};
constexpr Special leases{"ivgpu_gpu_leases", "uuid",
                         "Whether VMs have leases of the GPU now, since more than one wants it: 1."};
constexpr Special worker_ends{"ivgpu_vm_worker_ends_total", "vm, end",
                              "Workers of the VM that have ended, by how they did.", MetricKind::Counter};
constexpr Special slots{"ivgpu_vm_slots", "vm, state", "Slots of the VM, by their state."};
constexpr Special session_info{"ivgpu_session_info", "vm, slot, process, program, worker",
                               "A session: its program, as that names itself, and its worker's process. Always 1."};

constexpr const char* prefix_of_quotas = "vm_gpu_memory_";

void add(MetricsText& text, const Special& metric, const Labels& labels, Number value = std::uint64_t{1}) {
  text.add(metric.name, metric.kind, metric.help, labels, value);
}

void add_gpus(MetricsText& text, const VmGpus& gpus, const Labels& vm) {
  for (std::size_t k = 0; k < gpus.list.size(); ++k) {
    const Gpu& gpu = gpus.list[k];
    const std::string index = gpu.index ? std::to_string(*gpu.index) : "";
    add(text, gpu_info,
        with(with(with(with(vm, "ordinal", std::to_string(k)), "gpu", index), "uuid", gpu.uuid), "pci", gpu.pci));
  }
}

void add_quotas(MetricsText& text, const std::vector<QuotaStatus>& quotas, const Labels& vm) {
  for (const QuotaStatus& quota : quotas)
    add(text, prefix_of_quotas, quota_metrics(), quota, with(vm, "uuid", quota.gpu));
}

void add_ends(MetricsText& text, const WorkerEnds& ends, const Labels& vm) {
  for (const auto& [metric, read] : end_metrics()) add(text, worker_ends, with(vm, "end", metric.key), read(ends));
}

void add_slots(MetricsText& text, const std::vector<SlotStatus>& all, const Labels& vm) {
  using enum ring::SlotState;
  for (const ring::SlotState state : {Empty, Starting, Ready, Claimed, Released, Dead}) {
    const auto count =
        std::count_if(all.begin(), all.end(), [=](const SlotStatus& slot) { return slot.word.state == state; });
    add(text, slots, with(vm, "state", name_of(state)), static_cast<std::uint64_t>(count));
  }
}

// Metrics of a claimed slot. The program's name is a label of one metric alone. A guest chooses it, and with each new
// name every metric that had it would become a new time series.
void add_session(MetricsText& text, std::size_t index, const SlotStatus& slot, const Labels& vm) {
  if (!slot.word.held()) return;
  const Labels session = with(with(vm, "slot", std::to_string(index)), "process", std::to_string(slot.owner.pid));
  add(text, session_info, with(with(session, "program", slot.program), "worker", std::to_string(slot.worker)));
  add(text, groups_of_slot(), slot, session);
  if (slot.worker == 0) return;
  add(text, "session_", work_metrics(), slot.counters, session);
  add(text, "session_", held_metrics(), slot.counters, session);
}

void add_vm(MetricsText& text, const VmStatus& vm) {
  const Labels labels = {{"vm", vm.name}};
  add(text, groups_of_vm(), vm, labels);
  add(text, "vm_", work_metrics(), vm.counters, labels);
  add_gpus(text, vm.gpus, labels);
  add_quotas(text, vm.quotas, labels);
  add_ends(text, vm.ends, labels);
  add_slots(text, vm.slots, labels);
  for (std::size_t k = 0; k < vm.slots.size(); ++k) add_session(text, k, vm.slots[k], labels);
}

// ---- documentation -------------------------------------------------------------------------------------------------

constexpr const char *of_vm = "vm", *of_session = "vm, slot, process";

void list(std::vector<MetricInWords>& all, const Special& metric) {
  all.push_back({metric.name, metric.labels, metric.help, metric.kind});
}

template <class Of>
void list(std::vector<MetricInWords>& all, std::string_view prefix, std::span<const Reading<Of>> readings,
          const char* labels) {
  for (const auto& [metric, read] : readings)
    all.push_back({metric_name(prefix, metric), labels, metric.help, metric.kind});
}

template <class Of>
void list(std::vector<MetricInWords>& all, std::span<const MetricGroup<Of>> groups, const char* labels) {
  for (const MetricGroup<Of>& group : groups) list(all, group.prefix, group.readings, labels);
}

}  // namespace

std::string metrics_as_text(const BrokerStatus& status) {
  MetricsText text;
  add(text, build_info, {{"version", status.version}, {"library", status.library}});
  add(text, groups_of_broker(), status, {});
  for (const GpuSharing& gpu : status.gpus)
    add(text, leases, {{"uuid", gpu.gpu}},
        std::uint64_t{gpu.sharing == scheduler::Scheduler::Sharing::Leases ? 1U : 0U});
  for (const VmStatus& vm : status.vms) add_vm(text, vm);
  return text.text();
}

std::vector<MetricInWords> metrics_in_words() {
  std::vector<MetricInWords> all;
  list(all, build_info);
  list(all, groups_of_broker(), "");
  list(all, leases);
  list(all, groups_of_vm(), of_vm);
  list(all, "vm_", work_metrics(), of_vm);
  list(all, gpu_info);
  list(all, prefix_of_quotas, quota_metrics(), "vm, uuid");
  for (const Special& metric : {worker_ends, slots, session_info}) list(all, metric);
  list(all, groups_of_slot(), of_session);
  list(all, "session_", work_metrics(), of_session);
  list(all, "session_", held_metrics(), of_session);
  return all;
}

}  // namespace host::broker
