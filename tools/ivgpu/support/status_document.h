// The broker's status document as `ivgpu status` and `ivgpu top` read it: its fields, checked, an earlier one beside it,
// and its numbers and words fit for a terminal.
//
// Trust: the broker is believed to be one, but a worker's text and numbers may be its guest's. The broker escapes these,
// and this does not rely on that.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "ring/ops/figures.h"
#include "tools/ivgpu/support/error.h"

namespace ivgpu {

using nlohmann::json;

// An Error when it is no document of this version's.
json parse_status(const std::string& document);

// The Error of a document that lacks something.
[[noreturn]] void status_incomplete(const std::string& what);

// A string, printable: ASCII as it is, everything else as \xNN.
std::string word_of(const json& word);

// json converts a fraction as the language does, which for one that does not fit is undefined.
template <class T>
T number_of(const json& number) {
  if (!number.is_number_integer())
    status_incomplete(std::string("a ") + number.type_name() + " stands where a whole number belongs");
  return number.get<T>();
}

// The figure's value among counters, or other fields; 0 where there is none.
double value_of(const json& fields, const ring::Figure& figure);

// Whether somebody tells the figure, which is null among these fields where nobody does.
bool is_told(const json& fields, const ring::Figure& figure);

// An earlier document, and how long ago it was.
struct Earlier {
  json document;
  double seconds = 0;

  // Null where there was none.
  const json& vm(const json& name) const;
  static const json& counters(const json& vm_or_slot);
  static long worker_of(const json& slot);
  // Of the same worker: another's would be no beginning.
  static const json& slot(const json& vm, const json& now);
};

// How fast a counter grew. One that went down is another worker's, or no honest one's.
double per_second(const json& now, const json& before, const ring::Figure& figure, double seconds);

// "812 B", "3.4 KiB": one digit behind the point is enough for a number that counts up.
std::string rounded_size(double bytes);
// All digits, and "123.4 M" where these would not stand in a column.
std::string rounded_count(double count);
// As the figure's unit says.
std::string rounded(const ring::Figure& figure, double number);
// The same of per_second(): a time that grows is a share of it.
std::string rounded_rate(const ring::Figure& figure, double per_second);
// "1.5 s"
std::string seconds_of(const json& seconds);

}  // namespace ivgpu
