// The metrics that ivgpud reports. Each metric is described once, in this file.
//
// The broker collects the metrics (host/broker/ops/metric_groups.h) and makes the status document and Prometheus
// metrics of them; `ivgpu status` and `ivgpu top` show them. All these programs include this file, which has only
// constants.
//
// A key is a field of the status document and, with its unit written out, the end of a metric's name: "throttled_s" of
// a VM's workers is ivgpu_vm_workers_throttled_seconds_total. Hence a key ends with its unit.
//
// ```cpp
// static_assert(ring::metrics::calls.kind == ring::MetricKind::Counter);
// std::string_view stem_of(const ring::Metric& metric) {  // of the metric's name
//   return *metric.metric != '\0' ? metric.metric : metric.key;
// }
// ```
#pragma once

#include <cstdint>
#include <string_view>

namespace ring {

enum class Unit : std::uint8_t {
  Number,        // a number of things
  Bytes,         // the key ends with "_bytes"
  Seconds,       // the key ends with "_s"
  Milliseconds,  // the key ends with "_ms"
};

enum class MetricKind : std::uint8_t {
  Counter,  // only grows while the measured object exists
  Gauge,    // the current value
};

struct Metric {
  const char* key;
  const char* metric;  // replaces the key if the key is unclear by itself; "": use the key
  Unit unit;
  MetricKind kind;
  const char* title;  // heads the metric's column or line of text; "": none
  const char* help;   // one sentence
};

constexpr bool ends_with_its_unit(const Metric& metric) {
  const std::string_view key = metric.key;
  switch (metric.unit) {
    case Unit::Number: return true;
    case Unit::Bytes: return key.ends_with("_bytes");
    case Unit::Seconds: return key.ends_with("_s");
    case Unit::Milliseconds: return key.ends_with("_ms");
  }
  return false;
}

namespace metrics {

using enum Unit;
using enum MetricKind;

#define IVGPU_METRIC(key, ...)                    \
  inline constexpr Metric key{#key, __VA_ARGS__}; \
  static_assert(ends_with_its_unit(key), #key)

// The work of one worker, and of all workers that a VM has had.
IVGPU_METRIC(calls, "", Number, Counter, "calls",
             "Driver calls that reached a worker; those that the guest's library answers are not among them.");
IVGPU_METRIC(posted, "posted_calls", Number, Counter, "posted", "Calls that the guest did not wait for.");
IVGPU_METRIC(waited, "waited_calls", Number, Counter, "waited", "Calls that the guest waited for.");
IVGPU_METRIC(submitted, "submitted_calls", Number, Counter, "submitted", "Calls that gave the GPU something to do.");
IVGPU_METRIC(record_bytes, "", Bytes, Counter, "ring in", "Bytes of calls, through the request rings.");
IVGPU_METRIC(reply_bytes, "", Bytes, Counter, "ring out", "Bytes of answers, into the mailboxes.");
IVGPU_METRIC(to_device_bytes, "", Bytes, Counter, "to GPU", "Bytes that copies have moved to the GPU.");
IVGPU_METRIC(from_device_bytes, "", Bytes, Counter, "from GPU", "Bytes that copies have moved from the GPU.");
IVGPU_METRIC(spun, "polled_waits", Number, Counter, "spun", "Waits for a record that polling has covered.");
IVGPU_METRIC(parked, "parked_waits", Number, Counter, "parked", "Waits for a record that ended in sleep.");
IVGPU_METRIC(woken, "guest_wakeups", Number, Counter, "woken", "How often a worker has woken its guest.");

// The resources that a session uses.
IVGPU_METRIC(device_memory_bytes, "", Bytes, Gauge, "GPU memory", "Memory of the GPU that is held.");
IVGPU_METRIC(claimed_s, "", Seconds, Gauge, "", "How long a program has held the slot.");

// The resources that a VM uses.
IVGPU_METRIC(connections, "", Number, Gauge, "", "Connections to the VM's socket.");
IVGPU_METRIC(region_bytes, "", Bytes, Gauge, "", "Memory that the VM shares with its workers.");
IVGPU_METRIC(gpus_missing, "", Number, Gauge, "",
             "GPUs of the VM that its newest worker has not found; the log names them.");
IVGPU_METRIC(used_bytes, "", Bytes, Gauge, "", "GPU memory that the VM's programs hold.");
IVGPU_METRIC(total_bytes, "", Bytes, Gauge, "", "Memory of the VM's GPUs; 0: no worker has reported it yet.");

// The memory of a VM on one GPU.
namespace on_gpu {
IVGPU_METRIC(quota_bytes, "", Bytes, Gauge, "", "Memory of the GPU that the VM may hold; 0: no bound.");
IVGPU_METRIC(used_bytes, "charged_bytes", Bytes, Gauge, "",
             "Memory of the GPU that counts against the quota: the programs', and what the driver takes for them.");
IVGPU_METRIC(peak_bytes, "charged_peak_bytes", Bytes, Gauge, "", "The most that has counted against the quota so far.");
}  // namespace on_gpu

// The GPU time of a VM, on all of its GPUs together.
namespace gpu_time {
IVGPU_METRIC(weight, "", Number, Gauge, "", "The VM's weight.");
IVGPU_METRIC(had_s, "", Seconds, Counter, "",
             "GPU time that the VM has had: its leases, divided where VMs share one; alone, while it wanted the GPU.");
IVGPU_METRIC(waited_s, "", Seconds, Counter, "", "How long the VM has wanted a GPU and waited for a lease.");
IVGPU_METRIC(leases, "", Number, Counter, "", "Leases that the VM has got.");
IVGPU_METRIC(preempted, "preempted_leases", Number, Counter, "", "Leases of the VM that ended early for another VM.");
}  // namespace gpu_time
// Shown as a column of `ivgpu top`.
IVGPU_METRIC(gpu_time_s, "", Seconds, Counter, "GPU time", "Time that a VM's processes have had of its GPUs.");

// The resources of all workers of a VM together, measured by their control group.
IVGPU_METRIC(memory_max_bytes, "", Bytes, Gauge, "", "Memory of the host that the VM's workers may have; 0: no bound.");
IVGPU_METRIC(memory_bytes, "", Bytes, Gauge, "", "Memory of the host that the VM's workers have.");
IVGPU_METRIC(oom_kills, "", Number, Counter, "", "Workers of the VM killed because they wanted more memory.");
IVGPU_METRIC(pids_max, "", Number, Gauge, "", "Threads that the VM's workers may have; 0: no bound.");
IVGPU_METRIC(pids, "", Number, Gauge, "", "Threads that the VM's workers have.");
IVGPU_METRIC(cpu_max, "", Number, Gauge, "", "Processors that the VM's workers may use; 0: no bound.");
IVGPU_METRIC(throttled_s, "", Seconds, Counter, "", "How long the VM's workers were held back by that bound.");

// The ways in which a VM's workers have ended.
IVGPU_METRIC(orderly, "", Number, Counter, "in order", "With exit code 0.");
IVGPU_METRIC(protocol_broken, "", Number, Counter, "protocol broken", "The guest broke the protocol.");
IVGPU_METRIC(killed_by_broker, "", Number, Counter, "killed by the broker",
             "The broker killed one that did not end, or was not ready, or lied.");
IVGPU_METRIC(signal, "", Number, Counter, "by another signal", "By a signal that the broker did not send.");
IVGPU_METRIC(other_code, "", Number, Counter, "with another exit code", "With another exit code.");

// The broker's own metrics.
IVGPU_METRIC(up_s, "", Seconds, Gauge, "", "How long the broker has run.");
IVGPU_METRIC(iterations, "", Number, Counter, "", "Iterations of the broker's event loop.");
IVGPU_METRIC(iterations_over_50_ms, "long_iterations", Number, Counter, "",
             "Iterations that took over 50 ms of the processor's time, more than one VM may cost the others.");
IVGPU_METRIC(longest_iteration_ms, "", Milliseconds, Gauge, "",
             "The processor's time of the longest iteration; no VM is answered meanwhile.");

#undef IVGPU_METRIC

}  // namespace metrics
}  // namespace ring
