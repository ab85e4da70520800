#include "host/broker/gpu/gpu_facts.h"

#include <algorithm>
#include <iterator>

#include "host/base/parse_text.h"

namespace host::broker {
namespace {

constexpr std::size_t longest_text = 95;  // as in the GPU's page

struct Text {
  std::string_view name;
  std::string GpuFacts::*member;
};
constexpr Text texts[] = {{"name", &GpuFacts::name},
                          {"bus_id", &GpuFacts::bus_id},
                          {"vbios", &GpuFacts::vbios},
                          {"driver", &GpuFacts::driver}};

bool is_printable(char c) { return c >= ' ' && c <= '~'; }

bool take_text(std::string_view rest, GpuFacts& facts) {
  const std::string_view name = first_word(rest);
  const auto text = std::ranges::find(texts, name, &Text::name);
  if (text == std::end(texts) || rest.size() > longest_text || !std::ranges::all_of(rest, is_printable)) return false;
  facts.*text->member = rest;
  return true;
}

bool take_memory(std::string_view rest, GpuFacts& facts) {
  const auto total = number_of<std::uint64_t>(first_word(rest)), reserved = number_of<std::uint64_t>(rest);
  if (!total || !reserved || *reserved > *total) return false;
  facts.total = *total, facts.reserved = *reserved;
  return true;
}

bool take_fact(std::string_view rest, GpuFacts& facts) {
  const std::string_view name = first_word(rest);
  const auto fact = std::ranges::find(ring::fact_names, name);
  const auto number = number_of<std::uint32_t>(rest);
  if (fact == std::end(ring::fact_names) || !number) return false;
  facts.fact[static_cast<std::size_t>(fact - std::begin(ring::fact_names))] = *number;
  return true;
}

}  // namespace

bool take_fact_line(std::string_view kind, std::string_view rest, GpuFacts& facts) {
  if (kind == "text") return take_text(rest, facts);
  if (kind == "memory") return take_memory(rest, facts);
  if (kind == "fact") return take_fact(rest, facts);
  const auto number = number_of<std::uint32_t>(rest);
  if (kind == "cuda" && number) facts.cuda = *number;
  return kind == "cuda" && number.has_value();
}

std::string fact_lines(const std::string& gpu, const GpuFacts& facts) {
  std::string lines;
  const auto add = [&](std::string_view kind, const std::string& words) {
    lines.append(kind).append(" ").append(gpu).append(" ").append(words).append("\n");
  };
  for (const Text& text : texts)
    if (!(facts.*text.member).empty()) add("text", std::string(text.name) + " " + facts.*text.member);
  if (facts.cuda != 0) add("cuda", std::to_string(facts.cuda));
  if (facts.total != 0) add("memory", std::to_string(facts.total) + " " + std::to_string(facts.reserved));
  for (std::size_t i = 0; i < ring::facts; ++i)
    if (facts.fact[i]) add("fact", std::string(ring::fact_names[i]) + " " + std::to_string(*facts.fact[i]));
  return lines;
}

}  // namespace host::broker
