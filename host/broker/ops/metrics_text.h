// Builds text in Prometheus's format 0.0.4: families of samples, each after its help and type. The first sample of a
// name creates its family; samples may come in any order.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/broker/ops/metric_groups.h"

namespace host::broker {

class MetricsText {
 public:
  // A label's value may be any text.
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // The first sample of a name sets its help and kind. Precondition: name and label names are valid in the format, and
  // no two samples of a name have equal labels.
  void add(const std::string& name, ring::MetricKind kind, const char* help, const Labels& labels, Number value);
  std::string text() const;

 private:
  struct Family {
    std::string head, samples;
  };
  std::vector<Family> families_;
  std::unordered_map<std::string, std::size_t> places_;
};

// The metric of a figure: `prefix`, then its key with the unit spelled out.
std::string metric_name(std::string_view prefix, const ring::Metric& metric);

}  // namespace host::broker
