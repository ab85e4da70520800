// What `ivgpu top` shows of two status documents: each VM and each session of a program, and what it does a second.
#pragma once

#include <string>
#include <vector>

#include "ring/ops/figures.h"
#include "tools/ivgpu/support/status_document.h"

namespace ivgpu::top {

// A figure is a column here by its line in columns(): a counter as what it grows by in a second, a gauge as it is.
std::vector<const ring::Figure*> columns();
std::string title_of(const ring::Figure& column);
// What --sort takes for it: "to-gpu".
std::string sort_name(const ring::Figure& column);
// Of all columns, and "name" first.
std::vector<std::string> sort_names();

// In the place of a value that nobody tells, or that a session does not have.
constexpr double not_told = -1;

struct Session {
  int slot = 0;
  long process = 0;
  std::string program, state;
  double claimed_s = 0;
  std::vector<double> values;  // a column each
};

struct Vm {
  std::string name;
  std::vector<double> values;
  std::vector<Session> sessions;
};

struct View {
  std::string version;
  double up_s = 0, seconds = 0;  // `seconds`: between the documents
  std::vector<Vm> vms;
};

// An Error where a document is none. Texts are printable.
View view_of(const std::string& document, const std::string& before, double seconds);

// The largest first, VMs among each other and sessions in their VM; by "name" as the broker lists them.
void sort(View& view, const std::string& by);

}  // namespace ivgpu::top
