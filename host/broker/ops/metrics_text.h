// The text that Prometheus reads, in its format 0.0.4: families of samples, each with its help and its type in front.
// A family is named by its first sample, and its others may come in any order.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/broker/ops/figures.h"

namespace host::broker {

class MetricsText {
 public:
  // A label's value may be any text of anybody.
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // A name's help and kind are those of its first sample. Preconditions: name and labels' names are the format's words,
  // and no two samples of a name have the same labels.
  void add(const std::string& name, ring::FigureKind kind, const char* help, const Labels& labels, Number value);
  std::string text() const;

 private:
  struct Family {
    std::string head, samples;
  };
  std::vector<Family> families_;
  std::unordered_map<std::string, std::size_t> places_;
};

// The metric of a figure: `prefix`, then its key with the unit in words.
std::string metric_name(std::string_view prefix, const ring::Figure& figure);

}  // namespace host::broker
