#include "tools/ivgpu/bench/report/json.h"

#include <nlohmann/json.hpp>

#include "tools/ivgpu/support/error.h"

namespace ivgpu::bench {
namespace {

// An ordered document, so that a reader of the file finds the setting first.
using json = nlohmann::ordered_json;

// Increases when a field changes its meaning. New fields do not change it.
constexpr int format = 1;

json summary_as_json(const Summary& summary) {
  json out = {{"samples", summary.count}, {"best", summary.best}, {"p50", summary.p50},
              {"p90", summary.p90},       {"p99", summary.p99},   {"worst", summary.worst}};
  if (!summary.samples.empty()) {
    json percentiles = json::array();
    for (int part = 0; part <= 100; ++part) percentiles.push_back(percentile(summary.samples, part / 100.0));
    out["percentiles"] = percentiles;
  }
  for (const OneSession& one : summary.each) out["each"].push_back({{"p50", one.p50}, {"p99", one.p99}});
  return out;
}

json metric_as_json(const Metric& metric) {
  json out = {{"group", metric.group}, {"name", metric.name}, {"unit", name_of(metric.unit)}};
  if (metric.bytes != 0) out["bytes"] = metric.bytes;
  if (metric.sessions != 0) out["sessions"] = metric.sessions;
  if (metric.native) out["native"] = summary_as_json(*metric.native);
  if (metric.ivgpu) out["ivgpu"] = summary_as_json(*metric.ivgpu);
  if (const auto ratio = metric.ratio()) out["ratio"] = *ratio;
  return out;
}

json setting_as_json(const Setting& s) {
  json out = {{"ivgpu", s.version},
              {"made", s.made},
              {"processor", s.processor},
              {"processors", s.processors},
              {"virtual_machine", s.virtual_machine},
              {"kernel", s.kernel},
              {"gpu", s.gpu},
              {"driver", s.driver},
              {"cuda", s.cuda},
              {"simulated", s.simulated},
              {"policy", s.policy},
              {"quick", s.quick},
              {"switches", json::object()}};
  for (const auto& [name, value] : s.switches) out["switches"][name] = value;
  return out;
}

Summary summary_from(const json& in) {
  Summary summary{.count = in.at("samples"),
                  .best = in.at("best"),
                  .p50 = in.at("p50"),
                  .p90 = in.at("p90"),
                  .p99 = in.at("p99"),
                  .worst = in.at("worst")};
  if (in.contains("each"))
    for (const json& one : in.at("each")) summary.each.push_back({one.at("p50"), one.at("p99")});
  return summary;
}

Metric metric_from(const json& in) {
  const auto unit = unit_named(in.at("unit"));
  if (!unit) throw std::invalid_argument("a unit that this ivgpu does not know");
  Metric metric{.group = in.at("group"),
                .name = in.at("name"),
                .unit = *unit,
                .bytes = in.value("bytes", std::uint64_t{0}),
                .sessions = in.value("sessions", 0)};
  if (in.contains("native")) metric.native = summary_from(in.at("native"));
  if (in.contains("ivgpu")) metric.ivgpu = summary_from(in.at("ivgpu"));
  return metric;
}

Setting setting_from(const json& in) {
  Setting s{.version = in.at("ivgpu"),
            .made = in.at("made"),
            .processor = in.at("processor"),
            .processors = in.at("processors"),
            .virtual_machine = in.at("virtual_machine"),
            .kernel = in.at("kernel"),
            .gpu = in.at("gpu"),
            .driver = in.at("driver"),
            .cuda = in.at("cuda"),
            .simulated = in.at("simulated"),
            .policy = in.at("policy"),
            .quick = in.at("quick"),
            .switches = {}};
  for (const auto& [name, value] : in.at("switches").items()) s.switches.emplace_back(name, value);
  return s;
}

}  // namespace

std::string as_json(const Report& report) {
  json out = {{"format", format}, {"setting", setting_as_json(report.setting)}, {"figures", json::array()}};
  for (const Metric& metric : report.metrics) out["figures"].push_back(metric_as_json(metric));
  out["left_out"] = report.left_out;
  return out.dump(1, ' ', true, json::error_handler_t::replace) + "\n";
}

Report report_from_json(const std::string& text, const std::string& file) {
  const json in = json::parse(text, nullptr, false);
  if (!in.is_object() || !in.contains("format")) throw Error(exit_code::usage, file + " is no JSON of ivgpu bench");
  if (in["format"] != format)
    throw Error(exit_code::usage, file + " is of another version of ivgpu bench: its format is " + in["format"].dump() +
                                      ", and this one knows " + std::to_string(format));
  try {
    Report report{setting_from(in.at("setting")), {}, {}};
    for (const json& metric : in.at("figures")) report.metrics.push_back(metric_from(metric));
    return report;
  } catch (const std::exception& failed) {
    throw Error(exit_code::usage, file + " is not complete: " + failed.what());
  }
}

}  // namespace ivgpu::bench
