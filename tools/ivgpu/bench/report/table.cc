#include "tools/ivgpu/bench/report/table.h"

#include <algorithm>
#include <cstdio>

#include "tools/ivgpu/support/columns.h"

namespace ivgpu::bench {
namespace {

using Row = Cells;

std::string markdown_row(const Row& row) {
  std::string line = "|";
  for (const std::string& cell : row) line += " " + cell + " |";
  return line + "\n";
}

std::string plain_table(const Row& head, const std::vector<Row>& rows) {
  std::string text;
  for (const std::string& line : in_columns(head, rows, 1)) text += line + "\n";
  return text;
}

void add_side(Row& row, const std::optional<Summary>& side) {
  for (double Summary::*member : {&Summary::p50, &Summary::p99, &Summary::worst})
    row.push_back(side ? number_text((*side).*member) : "-");
}

std::string ratio_text(const std::optional<double>& ratio) {
  char text[32] = "-";
  if (ratio) std::snprintf(text, sizeof text, "%.2f", *ratio);
  return text;
}

Row row_of(const Metric& metric) {
  Row row = {metric.label()};
  add_side(row, metric.native);
  add_side(row, metric.ivgpu);
  row.insert(row.end(), {ratio_text(metric.ratio()), ratio_text(metric.ratio_of_p99()), name_of(metric.unit)});
  return row;
}

// "9.1 to 10.2": the medians of concurrent sessions.
std::string spread_text(const Summary& summary) {
  const auto [least, most] = std::minmax_element(
      summary.each.begin(), summary.each.end(), [](const OneSession& a, const OneSession& b) { return a.p50 < b.p50; });
  return number_text(least->p50) + " to " + number_text(most->p50);
}

Row session_row(const Metric& metric) {
  const auto worst_p99 = [](const Summary& s) {
    const auto worst = std::max_element(s.each.begin(), s.each.end(),
                                        [](const OneSession& a, const OneSession& b) { return a.p99 < b.p99; });
    return number_text(worst->p99);
  };
  Row row = {metric.label()};
  for (const auto* side : {&metric.native, &metric.ivgpu}) {
    const bool known = *side && !(*side)->each.empty();
    row.push_back(known ? spread_text(**side) : "-");
    row.push_back(known ? worst_p99(**side) : "-");
  }
  return row;
}

// Shows whether each of several sessions gets an equal share of the GPU.
std::string sessions_text(const std::vector<const Metric*>& metrics, Style style) {
  std::vector<Row> rows;
  for (const Metric* f : metrics)
    if ((f->native && f->native->each.size() > 1) || (f->ivgpu && f->ivgpu->each.size() > 1))
      rows.push_back(session_row(*f));
  if (rows.empty()) return {};
  return "\n" + as_table({"each session, us", "native p50", "worst p99", "ivgpu p50", "worst p99"}, rows, style);
}

std::string group_text(const std::string& group, const std::vector<const Metric*>& metrics, Style style) {
  std::vector<Row> rows;
  for (const Metric* metric : metrics) rows.push_back(row_of(*metric));
  return "\n" +
         as_table({group, "native p50", "p99", "worst", "ivgpu p50", "p99", "worst", "ratio p50", "p99", "unit"}, rows,
                  style) +
         sessions_text(metrics, style);
}

std::string switches_text(const Setting& setting) {
  std::string text;
  for (const auto& [name, value] : setting.switches)
    text += (text.empty() ? "" : ", ") + name + " " + (value.empty() ? "-" : value);
  return text;
}

}  // namespace

std::string as_table(const Row& head, const std::vector<Row>& rows, Style style) {
  if (style == Style::Plain) return plain_table(head, rows);
  std::string text = markdown_row(head) + "|";
  for (std::size_t c = 0; c < head.size(); ++c) text += "---|";
  text += "\n";
  for (const Row& row : rows) text += markdown_row(row);
  return text;
}

std::string setting_text(const Setting& s, Style style) {
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"ivgpu", s.version + ", " + s.made + (s.quick ? ", quick: few samples" : "")},
      {"machine", s.processor + ", " + std::to_string(s.processors) + " processors, Linux " + s.kernel +
                      (s.virtual_machine ? ", a virtual machine" : "")},
      {"GPU",
       s.gpu + ", " + s.driver + ", CUDA " + std::to_string(s.cuda / 1000) + "." + std::to_string(s.cuda % 1000 / 10)},
      {"policy", s.policy},
      {"switches", switches_text(s)}};
  std::string text;
  for (const auto& [name, value] : lines)
    text += style == Style::Markdown ? "* " + name + ": " + value + "\n" : padded(name, 8, true) + "  " + value + "\n";
  if (s.simulated) text += "\nThe GPU is the simulated one: these figures say nothing about a GPU.\n";
  return text;
}

std::string metrics_text(const Report& report, Style style) {
  std::vector<std::pair<std::string, std::vector<const Metric*>>> groups;
  for (const Metric& metric : report.metrics) {
    auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == metric.group; });
    if (found == groups.end()) found = groups.insert(groups.end(), {metric.group, {}});
    found->second.push_back(&metric);
  }
  std::string text;
  for (const auto& [group, metrics] : groups) text += group_text(group, metrics, style);
  for (const std::string& sentence : report.left_out) text += "\nLeft out: " + sentence + ".\n";
  return text;
}

}  // namespace ivgpu::bench
