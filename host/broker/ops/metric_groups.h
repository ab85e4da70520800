// Reads each metric of ring/ops/metrics.h from the status. The status document (status.cc) and the Prometheus metrics
// (metrics.cc) are both made from these lists.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "host/broker/ops/status.h"
#include "ring/ops/metrics.h"

namespace host::broker {

using Number = std::variant<std::uint64_t, double>;

template <class Of>
struct Reading {
  const ring::Metric& metric;
  Number (*of)(const Of&);
};

template <class Of>
struct MetricGroup {
  const char* key;     // of the JSON object that holds them; "": the owner's own object
  const char* prefix;  // of the Prometheus names, after "ivgpu_"
  std::span<const Reading<Of>> readings;
  bool (*there)(const Of&);  // false: the object has none of them
};

std::span<const MetricGroup<BrokerStatus>> groups_of_broker();
std::span<const MetricGroup<VmStatus>> groups_of_vm();
std::span<const MetricGroup<SlotStatus>> groups_of_slot();

// A VM's memory on one GPU.
std::span<const Reading<QuotaStatus>> quota_metrics();
// Work done by one worker, or by all workers that a VM has had.
std::span<const Reading<Counters>> work_metrics();
// Resources that a session holds.
std::span<const Reading<Counters>> held_metrics();
// Ended workers by cause.
std::span<const Reading<WorkerEnds>> end_metrics();

}  // namespace host::broker
