// Prints the broker's state as Prometheus text: the metrics of host/broker/ops/metric_groups.h, with labels that name VM and
// session.
#pragma once

#include <string>
#include <vector>

#include "host/broker/ops/status.h"
#include "ring/ops/metrics.h"

namespace host::broker {

std::string metrics_as_text(const BrokerStatus& status);

// A metric as text, for docs/metrics.md.
struct MetricInWords {
  std::string name, labels, help;  // labels: "vm, slot"
  ring::MetricKind kind;
};
std::vector<MetricInWords> metrics_in_words();

}  // namespace host::broker
