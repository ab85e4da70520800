// The rows of `ivgpu top` from two status documents: each VM and each session, with counters as rates per second.
#pragma once

#include <string>
#include <vector>

#include "ring/ops/metrics.h"
#include "tools/ivgpu/support/status_document.h"

namespace ivgpu::top {

// The metrics shown as columns; columns() lists them. A counter appears as its rate, a gauge as its value.
std::vector<const ring::Metric*> columns();
std::string title_of(const ring::Metric& column);
// The column's name for --sort, such as "to-gpu".
std::string sort_name(const ring::Metric& column);
// "name", then the sort names of all columns.
std::vector<std::string> sort_names();

// Marks a value that is unknown or that a session does not have.
constexpr double not_known = -1;

struct Session {
  int slot = 0;
  long process = 0;
  std::string program, state;
  double claimed_s = 0;
  std::vector<double> values;  // one per column
};

struct Vm {
  std::string name;
  std::vector<double> values;
  std::vector<Session> sessions;
};

struct View {
  std::string version;
  double up_s = 0, seconds = 0;  // `seconds`: the time between the two documents
  std::vector<Vm> vms;
};

// Throws an Error if a document is invalid. All texts are printable.
View view_of(const std::string& document, const std::string& before, double seconds);

// Sorts VMs, and sessions within their VM, largest first; by "name" keeps the broker's order.
void sort(View& view, const std::string& by);

}  // namespace ivgpu::top
