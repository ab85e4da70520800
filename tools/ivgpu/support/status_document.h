// Reads the broker's status document for `ivgpu status` and `ivgpu top`: checks fields, compares the document with an
// earlier one, and formats numbers and text.
//
// Trust: the broker is trusted. Text and numbers of a worker may come from its guest; the broker escapes them, and this
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

// The string, with bytes outside printable ASCII written as \xNN.
std::string word_of(const json& word);

// Checks the range first, since converting an out-of-range fraction is undefined behaviour.
template <class T>
T number_of(const json& number) {
  if (!number.is_number_integer())
    status_incomplete(std::string("a ") + number.type_name() + " stands where a whole number belongs");
  return number.get<T>();
}

// The value of `metric` among `fields`; 0 if absent.
double value_of(const json& fields, const ring::Metric& metric);

// False if the metric's value is absent or null, which means unknown.
bool is_known(const json& fields, const ring::Metric& metric);

// An earlier document, and its age in seconds.
struct Earlier {
  json document;
  double seconds = 0;

  // null if the earlier document lacks the VM
  const json& vm(const json& name) const;
  static const json& counters(const json& vm_or_slot);
  static long worker_of(const json& slot);
  // The slot's entry in the earlier document if the same worker served the slot, since another worker's counters
  // started at 0.
  static const json& slot(const json& vm, const json& now);
};

// The counter's growth per second; 0 if it fell, as after a change of workers.
double per_second(const json& now, const json& before, const ring::Metric& metric, double seconds);

// Text such as "812 B" or "3.4 KiB": one decimal suffices for a growing number.
std::string rounded_size(double bytes);
// All digits, or text such as "123.4 M" if the digits exceed the column.
std::string rounded_count(double count);
// The number in the metric's unit.
std::string rounded(const ring::Metric& metric, double number);
// Same for the result of per_second(): the growth of a time is a percentage.
std::string rounded_rate(const ring::Metric& metric, double per_second);
// Text such as "1.5 s".
std::string seconds_of(const json& seconds);

}  // namespace ivgpu
