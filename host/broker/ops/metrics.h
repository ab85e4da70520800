// Prints the broker's state as Prometheus text: the metrics of host/broker/ops/figures.h, with labels that name VM and
// session.
#pragma once

#include <string>
#include <vector>

#include "host/broker/ops/status.h"
#include "ring/ops/figures.h"

namespace host::broker {

std::string metrics_as_text(const BrokerStatus& status);

// A metric as text, for docs/metrics.md.
struct MetricInWords {
  std::string name, labels, help;  // labels: "vm, slot"
  ring::FigureKind kind;
};
std::vector<MetricInWords> metrics_in_words();

}  // namespace host::broker
