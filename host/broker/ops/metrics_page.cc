// Prints docs/metrics.md from the lists that make the metrics (metrics.cc). A test checks that the page is current.
#include <fmt/format.h>

#include "host/broker/ops/metrics.h"

namespace {

constexpr const char* head = R"(# Metrics

`ivgpud` gives Prometheus, and whoever reads its text format 0.0.4, the figures of its VMs and their sessions. The key
[`metrics`](configuration.md) says where; without it there are none.

```toml
[broker]
metrics = "127.0.0.1:9910"            # or "[::1]:9910", or "/run/ivgpu/metrics"

[vm.train]
```

```yaml
scrape_configs:                       # of prometheus.yml
  - job_name: ivgpu
    static_configs: [{targets: ["127.0.0.1:9910"]}]
```

`ivgpu reload` brings the endpoint up, and takes it away, while VMs run. It answers GET /metrics, one request for each
connection, and makes the page five times a second at most.

* An address of the loopback is open to every user of the machine, and to guests of a QEMU with user networking, which
  reach it as 10.0.2.2. A socket has the permissions of `socket_mode`, `socket_owner` and `socket_group`, as the one for
  `ivgpu status` has: `curl --unix-socket /run/ivgpu/metrics http://localhost/metrics`. Who reads either sees the names
  of VMs and programs, and what they do.
* No other address is taken. For a Prometheus on another machine, put a proxy with TLS and a password in front.
* A counter of a session is its worker's and goes with it; a VM's counters go on, and count workers that have ended.
* `program` is what a program calls itself, and stands in one metric alone. A guest can begin sessions under many
  numbers and names; a Prometheus that must not keep these drops `ivgpu_session_.*` by `metric_relabel_configs`.

```
# calls a second, by VM
rate(ivgpu_vm_calls_total[1m])
# GPU memory of each session, with the program's name
ivgpu_session_device_memory_bytes * on (vm, slot, process) group_left (program) ivgpu_session_info
# the part of a GPU that each VM has
sum by (vm) (rate(ivgpu_vm_gpu_time_had_seconds_total[1m]))
# workers that failed
increase(ivgpu_vm_worker_ends_total{end=~"signal|other_code"}[1h]) > 0
```

This page is made from the lists that the metrics are made of (`ring/ops/metrics.h`, `host/broker/ops/metric_groups.cc`), by
`build/host/broker/metrics`. `ivgpu status --json` has the same figures.

| metric | type | labels | is |
|---|---|---|---|
)";

}  // namespace

int main() {
  fmt::print("{}", head);
  for (const host::broker::MetricInWords& metric : host::broker::metrics_in_words())
    fmt::print("| `{}` | {} | {} | {} |\n", metric.name, metric.kind == ring::MetricKind::Counter ? "counter" : "gauge",
               metric.labels, metric.help);
}
