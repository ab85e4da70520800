#include "host/broker/ops/metric_groups.h"

#include <chrono>

namespace host::broker {
namespace {

namespace f = ring::metrics;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

std::uint64_t whole(std::int64_t number) { return static_cast<std::uint64_t>(number); }

// ---- the broker's --------------------------------------------------------------------------------------------------

constexpr Reading<BrokerStatus> of_broker[] = {
    {f::up_s, [](const BrokerStatus& b) -> Number { return seconds(b.up); }}};

constexpr Reading<BrokerStatus> of_loop[] = {
    {f::iterations, [](const BrokerStatus& b) -> Number { return b.iterations.count; }},
    {f::iterations_over_50_ms, [](const BrokerStatus& b) -> Number { return b.iterations.beyond; }},
    {f::longest_iteration_ms, [](const BrokerStatus& b) -> Number {
       return std::chrono::duration<double, std::milli>(b.iterations.longest).count();
     }}};

constexpr MetricGroup<BrokerStatus> broker_groups[] = {
    {"", "broker_", of_broker, [](const BrokerStatus&) { return true; }},
    {"loop", "broker_loop_", of_loop, [](const BrokerStatus&) { return true; }}};

// ---- a VM's --------------------------------------------------------------------------------------------------------

constexpr Reading<VmStatus> of_vm[] = {
    {f::connections, [](const VmStatus& vm) -> Number { return std::uint64_t{vm.connections}; }},
    {f::region_bytes, [](const VmStatus& vm) -> Number { return vm.region_bytes; }},
    {f::gpus_missing, [](const VmStatus& vm) -> Number { return vm.gpus_missing; }}};

constexpr Reading<VmStatus> of_gpu_memory[] = {
    {f::used_bytes, [](const VmStatus& vm) -> Number { return vm.counters.device_memory; }},
    {f::total_bytes, [](const VmStatus& vm) -> Number { return vm.gpu_memory; }}};

constexpr Reading<VmStatus> of_control_group[] = {
    {f::memory_max_bytes, [](const VmStatus& vm) -> Number { return whole(vm.bounds.memory_max); }},
    {f::memory_bytes, [](const VmStatus& vm) -> Number { return vm.bounds.use.memory_bytes; }},
    {f::oom_kills, [](const VmStatus& vm) -> Number { return vm.bounds.use.oom_kills; }},
    {f::pids_max, [](const VmStatus& vm) -> Number { return whole(vm.bounds.pids_max); }},
    {f::pids, [](const VmStatus& vm) -> Number { return vm.bounds.use.pids; }},
    {f::cpu_max, [](const VmStatus& vm) -> Number { return static_cast<double>(vm.bounds.cpu_max) / 1000; }},
    {f::throttled_s,
     [](const VmStatus& vm) -> Number { return static_cast<double>(vm.bounds.use.throttled_us) / 1e6; }}};

constexpr Reading<VmStatus> of_gpu_time[] = {
    {f::gpu_time::weight,
     [](const VmStatus& vm) -> Number { return static_cast<std::uint64_t>(vm.gpu_time->share.weight); }},
    {f::gpu_time::had_s, [](const VmStatus& vm) -> Number { return seconds(vm.gpu_time->account.had); }},
    {f::gpu_time::waited_s, [](const VmStatus& vm) -> Number { return seconds(vm.gpu_time->account.waited); }},
    {f::gpu_time::leases, [](const VmStatus& vm) -> Number { return vm.gpu_time->account.leases; }},
    {f::gpu_time::preempted, [](const VmStatus& vm) -> Number { return vm.gpu_time->account.preempted; }}};

constexpr MetricGroup<VmStatus> vm_groups[] = {
    {"", "vm_", of_vm, [](const VmStatus&) { return true; }},
    {"gpu_memory", "vm_gpu_memory_", of_gpu_memory, [](const VmStatus&) { return true; }},
    {"gpu_time", "vm_gpu_time_", of_gpu_time, [](const VmStatus& vm) { return vm.gpu_time.has_value(); }},
    {"bounds", "vm_workers_", of_control_group, [](const VmStatus& vm) { return !vm.bounds.group.empty(); }}};

constexpr Reading<QuotaStatus> of_quota[] = {
    {f::on_gpu::quota_bytes, [](const QuotaStatus& q) -> Number { return q.quota; }},
    {f::on_gpu::used_bytes, [](const QuotaStatus& q) -> Number { return q.used; }},
    {f::on_gpu::peak_bytes, [](const QuotaStatus& q) -> Number { return q.peak; }}};

constexpr Reading<WorkerEnds> of_ends[] = {
    {f::orderly, [](const WorkerEnds& ends) -> Number { return ends.orderly; }},
    {f::protocol_broken, [](const WorkerEnds& ends) -> Number { return ends.protocol_broken; }},
    {f::killed_by_broker, [](const WorkerEnds& ends) -> Number { return ends.killed_by_broker; }},
    {f::signal, [](const WorkerEnds& ends) -> Number { return ends.signal; }},
    {f::other_code, [](const WorkerEnds& ends) -> Number { return ends.other_code; }}};

// ---- a session's ---------------------------------------------------------------------------------------------------

constexpr Reading<SlotStatus> of_slot[] = {
    {f::claimed_s, [](const SlotStatus& slot) -> Number { return seconds(slot.claimed_for); }}};

constexpr MetricGroup<SlotStatus> slot_groups[] = {
    {"", "session_", of_slot, [](const SlotStatus& slot) { return slot.word.held(); }}};

constexpr Reading<Counters> of_work[] = {
    {f::calls, [](const Counters& c) -> Number { return c.calls; }},
    {f::posted, [](const Counters& c) -> Number { return c.calls - c.waited; }},
    {f::waited, [](const Counters& c) -> Number { return c.waited; }},
    {f::submitted, [](const Counters& c) -> Number { return c.submitted; }},
    {f::record_bytes, [](const Counters& c) -> Number { return c.record_bytes; }},
    {f::reply_bytes, [](const Counters& c) -> Number { return c.reply_bytes; }},
    {f::to_device_bytes, [](const Counters& c) -> Number { return c.to_device; }},
    {f::from_device_bytes, [](const Counters& c) -> Number { return c.from_device; }},
    {f::spun, [](const Counters& c) -> Number { return c.spun; }},
    {f::parked, [](const Counters& c) -> Number { return c.parked; }},
    {f::woken, [](const Counters& c) -> Number { return c.woken; }}};

constexpr Reading<Counters> of_held[] = {
    {f::device_memory_bytes, [](const Counters& c) -> Number { return c.device_memory; }}};

}  // namespace

std::span<const MetricGroup<BrokerStatus>> groups_of_broker() { return broker_groups; }
std::span<const MetricGroup<VmStatus>> groups_of_vm() { return vm_groups; }
std::span<const MetricGroup<SlotStatus>> groups_of_slot() { return slot_groups; }
std::span<const Reading<QuotaStatus>> quota_metrics() { return of_quota; }
std::span<const Reading<Counters>> work_metrics() { return of_work; }
std::span<const Reading<Counters>> held_metrics() { return of_held; }
std::span<const Reading<WorkerEnds>> end_metrics() { return of_ends; }

}  // namespace host::broker
