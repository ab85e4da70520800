#include "tools/ivgpu/top/rows.h"

#include <algorithm>
#include <cctype>

namespace ivgpu::top {
namespace {

namespace f = ring::metrics;

constexpr const ring::Metric* all_columns[] = {
    &f::calls, &f::submitted, &f::to_device_bytes, &f::from_device_bytes, &f::device_memory_bytes, &f::gpu_time_s};

bool is_rate(const ring::Metric& column) { return column.kind == ring::MetricKind::Counter; }

std::vector<double> values_of(const json& now, const json& before, double seconds) {
  std::vector<double> values;
  for (const ring::Metric* column : all_columns)
    values.push_back(column == &f::gpu_time_s ? not_known
                     : is_rate(*column)       ? per_second(now, before, *column, seconds)
                                              : value_of(now, *column));
  return values;
}

// The VM's GPU time per second of the interval between the documents.
double gpu_time_rate(const json& vm, const json& before, double seconds) {
  const ring::Metric& had = f::gpu_time::had_s;
  const json now = vm.value("gpu_time", json());
  const json was = before.is_object() ? before.value("gpu_time", json()) : json();
  return is_known(now, had) ? per_second(now, is_known(was, had) ? was : json(), had, seconds) : not_known;
}

Session session_of(const json& slot, const json& before, double seconds) {
  const json& owner = slot["owner"];
  return {number_of<int>(slot.at("slot")),
          number_of<long>(owner.at("process")),
          owner.contains("program") ? word_of(owner["program"]) : "",
          word_of(slot.at("state")),
          value_of(slot, f::claimed_s),
          values_of(Earlier::counters(slot), Earlier::counters(before), seconds)};
}

Vm vm_of(const json& vm, const Earlier& earlier) {
  const json& before = earlier.vm(vm.at("name"));
  Vm out{word_of(vm.at("name")), values_of(Earlier::counters(vm), Earlier::counters(before), earlier.seconds), {}};
  out.values.back() = gpu_time_rate(vm, before, earlier.seconds);
  for (const json& slot : vm.at("slots"))
    if (slot.contains("owner")) out.sessions.push_back(session_of(slot, Earlier::slot(before, slot), earlier.seconds));
  return out;
}

template <class Rows>
void sort_rows(Rows& rows, std::size_t column) {
  std::stable_sort(rows.begin(), rows.end(),
                   [column](const auto& a, const auto& b) { return a.values[column] > b.values[column]; });
}

}  // namespace

std::vector<const ring::Metric*> columns() { return {std::begin(all_columns), std::end(all_columns)}; }

std::string title_of(const ring::Metric& column) { return std::string(column.title) + (is_rate(column) ? "/s" : ""); }

std::string sort_name(const ring::Metric& column) {
  std::string name = column.title;
  for (char& c : name) c = c == ' ' ? '-' : static_cast<char>(std::tolower(c));
  return name;
}

std::vector<std::string> sort_names() {
  std::vector<std::string> names = {"name"};
  for (const ring::Metric* column : all_columns) names.push_back(sort_name(*column));
  return names;
}

View view_of(const std::string& document, const std::string& before, double seconds) {
  const json status = parse_status(document);
  try {
    const Earlier earlier{parse_status(before), seconds};
    View view{word_of(status.at("version")), value_of(status, f::up_s), seconds, {}};
    for (const json& vm : status.at("vms")) view.vms.push_back(vm_of(vm, earlier));
    return view;
  } catch (const json::exception& failed) {
    status_incomplete(failed.what());
  }
}

void sort(View& view, const std::string& by) {
  for (std::size_t k = 0; k < std::size(all_columns); ++k) {
    if (sort_name(*all_columns[k]) != by) continue;
    sort_rows(view.vms, k);
    for (Vm& vm : view.vms) sort_rows(vm.sessions, k);
  }
}

}  // namespace ivgpu::top
