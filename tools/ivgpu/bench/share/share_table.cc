#include "tools/ivgpu/bench/share/share_table.h"

#include <nlohmann/json.hpp>

#include "tools/ivgpu/bench/report/table.h"

namespace ivgpu::bench {
namespace {

using Did = Shared::Did;
using Cells = std::vector<std::string>;

std::string row(const Cells& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string text_of(const std::optional<double>& number) { return number ? number_text(*number) : "-"; }

// Adds a rate, its ratio to the native rate, two times, and the fairness.
void add_way(Cells& cells, const Did& did, const Did& native) {
  for (const double number : {did.per_second, did.per_second / native.per_second, did.p50_us, did.p99_us})
    cells.push_back(number_text(number));
  for (const auto& number : {did.fair.of_alone, did.fair.by_weight, did.fair.jain}) cells.push_back(text_of(number));
}

nlohmann::json as_json(const std::optional<double>& number) {
  return number ? nlohmann::json(*number) : nlohmann::json(nullptr);
}

nlohmann::json as_json(const Did& did) {
  return {{"per_second", did.per_second},
          {"mean_us", did.mean_us},
          {"p50_us", did.p50_us},
          {"p99_us", did.p99_us},
          {"of_alone", as_json(did.fair.of_alone)},
          {"by_weight", as_json(did.fair.by_weight)},
          {"jain", as_json(did.fair.jain)},
          {"jain_least", as_json(did.fair.least_jain)}};
}

}  // namespace

std::string load_text(const Shared& one) {
  return one.weight == 1 ? one.load : one.load + ", weight " + std::to_string(one.weight);
}

std::string share_head() {
  const Cells head = {"mix", "load",   "native /s", "p50 us",   "p99 us",    "of alone", "time-slice /s",
                      "x",   "p50 us", "p99 us",    "of alone", "by weight", "Jain",     "leases /s",
                      "x",   "p50 us", "p99 us",    "of alone", "by weight", "Jain",     "mean us"};
  return row(head) + row(Cells(head.size(), "---"));
}

std::string share_row(const Shared& one) {
  Cells cells = {one.mix, load_text(one)};
  for (const double number : {one.native.per_second, one.native.p50_us, one.native.p99_us})
    cells.push_back(number_text(number));
  cells.push_back(text_of(one.native.fair.of_alone));
  add_way(cells, one.slices, one.native);
  add_way(cells, one.leases, one.native);
  cells.push_back(number_text(one.leases.mean_us));
  return row(cells);
}

std::string share_json(const std::vector<Shared>& all) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Shared& one : all)
    rows.push_back({{"mix", one.mix},
                    {"load", one.load},
                    {"vms", one.vms},
                    {"weight", one.weight},
                    {"native", as_json(one.native)},
                    {"time_slice", as_json(one.slices)},
                    {"leases", as_json(one.leases)}});
  return rows.dump(1) + "\n";
}

}  // namespace ivgpu::bench
