// What the broker knows of its VMs and their sessions as Prometheus's text: the figures of host/broker/ops/figures.h, and
// labels that say whose they are.
#pragma once

#include <string>
#include <vector>

#include "host/broker/ops/status.h"
#include "ring/ops/figures.h"

namespace host::broker {

std::string metrics_as_text(const BrokerStatus& status);

// A metric in words, for docs/metrics.md.
struct MetricInWords {
  std::string name, labels, help;  // labels: "vm, slot"
  ring::FigureKind kind;
};
std::vector<MetricInWords> metrics_in_words();

}  // namespace host::broker
