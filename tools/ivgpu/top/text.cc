#include "tools/ivgpu/top/text.h"

#include "tools/ivgpu/support/columns.h"

namespace ivgpu::top {
namespace {

std::string counted(std::size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string heading(const View& view, const std::string& sorted_by) {
  std::size_t sessions = 0;
  for (const Vm& vm : view.vms) sessions += vm.sessions.size();
  return "ivgpud " + view.version + ", up " + seconds_of(view.up_s) + ": " + counted(view.vms.size(), "VM") + ", " +
         counted(sessions, "session") + "; over " + seconds_of(view.seconds) + ", by " + sorted_by;
}

void add_values(Cells& row, const std::vector<double>& values) {
  const auto all = columns();
  for (std::size_t k = 0; k < all.size(); ++k)
    row.push_back(values[k] == not_known ? "-" : rounded_rate(*all[k], values[k]));
}

Cells row_of(const Vm& vm) {
  Cells row = {vm.name, "", ""};
  add_values(row, vm.values);
  return row;
}

Cells row_of(const Session& session) {
  const std::string lost = session.state == "claimed" ? "" : " (" + session.state + ")";
  Cells row = {"  " + std::to_string(session.slot) + lost,
               std::to_string(session.process) + (session.program.empty() ? "" : " " + session.program),
               seconds_of(session.claimed_s)};
  add_values(row, session.values);
  return row;
}

json values_as_json(const std::vector<double>& values) {
  json out = json::object();
  const auto all = columns();
  for (std::size_t k = 0; k < all.size(); ++k) {
    const bool rate = all[k]->kind == ring::MetricKind::Counter;
    json& value = out[std::string(all[k]->key) + (rate ? "_per_s" : "")];
    if (values[k] != not_known) value = values[k];
  }
  return out;
}

json as_json_of(const Session& session) {
  json out = values_as_json(session.values);
  out["slot"] = session.slot;
  out["process"] = session.process;
  out["program"] = session.program;
  out["state"] = session.state;
  out[ring::metrics::claimed_s.key] = session.claimed_s;
  return out;
}

}  // namespace

std::vector<std::string> as_lines(const View& view, const std::string& sorted_by) {
  Cells head = {"VM, session", "process", "for"};
  for (const ring::Metric* column : columns()) head.push_back(title_of(*column));
  std::vector<Cells> rows;
  for (const Vm& vm : view.vms) {
    rows.push_back(row_of(vm));
    for (const Session& session : vm.sessions) rows.push_back(row_of(session));
  }
  std::vector<std::string> lines = in_columns(head, rows, 2);
  lines.insert(lines.begin(), heading(view, sorted_by));
  return lines;
}

std::string as_json(const View& view) {
  json out = {{"version", view.version}, {"up_s", view.up_s}, {"seconds", view.seconds}, {"vms", json::array()}};
  for (const Vm& vm : view.vms) {
    json one = values_as_json(vm.values);
    one["name"] = vm.name;
    one["sessions"] = json::array();
    for (const Session& session : vm.sessions) one["sessions"].push_back(as_json_of(session));
    out["vms"].push_back(std::move(one));
  }
  return out.dump();
}

std::vector<std::string> cut(std::vector<std::string> lines, std::size_t rows, std::size_t columns) {
  if (lines.size() > rows && rows > 0) {
    const std::size_t left_out = lines.size() - rows + 1;
    lines.resize(rows);
    lines.back() = "... " + counted(left_out, "line") + " more";
  }
  for (std::string& line : lines)
    if (line.size() > columns) line.resize(columns);
  return lines;
}

}  // namespace ivgpu::top
