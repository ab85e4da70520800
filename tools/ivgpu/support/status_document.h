// Reads the broker's status document for `ivgpu status` and `ivgpu top`: checks fields, compares it with an earlier
// document, and formats numbers and text.
//
// Trust: the broker is trusted. Text and numbers of a worker may come from its guest; the broker escapes them, but this
// code escapes them again.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "ring/ops/metrics.h"
#include "tools/ivgpu/support/error.h"

namespace ivgpu {

using nlohmann::json;

// Throws an Error if the document has another format version.
json parse_status(const std::string& document);

// Throws the Error for a document that lacks `what`.
[[noreturn]] void status_incomplete(const std::string& what);

// The string with bytes outside printable ASCII as \xNN.
std::string word_of(const json& word);

// Checks first, since converting an out-of-range fraction is undefined behaviour.
template <class T>
T number_of(const json& number) {
  if (!number.is_number_integer())
    status_incomplete(std::string("a ") + number.type_name() + " stands where a whole number belongs");
  return number.get<T>();
}

// The value of `metric` among `fields`; 0 if absent.
double value_of(const json& fields, const ring::Metric& metric);

// False if the figure's value is absent or null, which means unknown.
bool is_known(const json& fields, const ring::Metric& metric);

// An earlier document and its age.
struct Earlier {
  json document;
  double seconds = 0;

  // null if there is none
  const json& vm(const json& name) const;
  static const json& counters(const json& vm_or_slot);
  static long worker_of(const json& slot);
  // The same worker's slot entry; another worker's counters started at 0.
  static const json& slot(const json& vm, const json& now);
};

// The counter's growth per second; 0 if it fell, as after a change of workers.
double per_second(const json& now, const json& before, const ring::Metric& metric, double seconds);

// "812 B", "3.4 KiB": one decimal is enough for a growing number.
std::string rounded_size(double bytes);
// All digits, or "123.4 M" if they exceed the column.
std::string rounded_count(double count);
// Formatted by the figure's unit.
std::string rounded(const ring::Metric& metric, double number);
// Same for per_second(): the growth of a time is a percentage.
std::string rounded_rate(const ring::Metric& metric, double per_second);
// "1.5 s"
std::string seconds_of(const json& seconds);

}  // namespace ivgpu
