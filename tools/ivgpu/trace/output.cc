#include "tools/ivgpu/trace/output.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace ivgpu::trace {
namespace {

using nlohmann::json;

// A worker's times are untrusted: the result is never negative, and a call may begin before the trace started.
double took_us(const ring::TraceEntry& e) {
  return e.end_ns > e.begin_ns ? static_cast<double>(e.end_ns - e.begin_ns) / 1e3 : 0;
}
double began_us(const ring::TraceEntry& e, std::uint64_t start_ns) {
  return (static_cast<double>(e.begin_ns) - static_cast<double>(start_ns)) / 1e3;
}

}  // namespace

// ---- lines ---------------------------------------------------------------------------------------------------------

void Lines::add(const Call& call) {
  std::fprintf(to_, "%12.6f  %s/%u.%u  %s%s  %.1f us\n", began_us(call.entry, start_ns_) / 1e6, call.session.vm.c_str(),
               call.session.slot, call.channel, as_line(call.text).c_str(), call.text.waited ? "" : "  posted",
               took_us(call.entry));
}

// ---- summary -------------------------------------------------------------------------------------------------------

void Summary::add(const Call& call) {
  Sum& sum = sums_[call.text.name];
  const double us = took_us(call.entry);
  ++sum.calls;
  sum.errors += call.text.failed;
  sum.total_us += us;
  sum.longest_us = std::max(sum.longest_us, us);
}

void Summary::finish() {
  std::vector<std::pair<std::string, Sum>> rows(sums_.begin(), sums_.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.total_us > b.second.total_us; });
  std::fprintf(to_, "%9s %8s %12s %10s %12s  %s\n", "calls", "errors", "total ms", "mean us", "longest us", "call");
  for (const auto& [name, sum] : rows)
    std::fprintf(to_, "%9llu %8llu %12.3f %10.1f %12.1f  %s\n", static_cast<unsigned long long>(sum.calls),
                 static_cast<unsigned long long>(sum.errors), sum.total_us / 1e3,
                 sum.total_us / static_cast<double>(sum.calls), sum.longest_us, name.c_str());
}

// ---- perfetto ------------------------------------------------------------------------------------------------------

Perfetto::Perfetto(const std::filesystem::path& path, std::uint64_t start_ns) : file_(path), start_ns_(start_ns) {
  file_.write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

void Perfetto::write(const std::string& event) {
  file_.write((first_ ? "\n" : ",\n") + event);
  first_ = false;
}

void Perfetto::name_tracks(const Call& call) {
  const Session& s = call.session;
  const auto name = [&](const char* what, std::uint32_t thread, const std::string& text) {
    const json event = {{"ph", "M"}, {"name", what}, {"pid", s.number}, {"tid", thread}, {"args", {{"name", text}}}};
    write(event.dump(-1, ' ', true, json::error_handler_t::replace));
  };
  if (named_.emplace(s.number, ring::max_channels).second)
    name("process_name", 0,
         "VM " + s.vm + ", slot " + std::to_string(s.slot) + ", process " + std::to_string(s.process));
  if (named_.emplace(s.number, call.channel).second)
    name("thread_name", call.channel, "channel " + std::to_string(call.channel));
}

void Perfetto::add(const Call& call) {
  name_tracks(call);
  json arguments = {{"result", call.text.result}, {"record", call.entry.position}};
  for (const Argument& a : call.text.given) arguments[a.name] = a.value;
  for (const Argument& a : call.text.got) arguments["-> " + a.name] = a.value;
  const json event = {{"ph", "X"},
                      {"pid", call.session.number},
                      {"tid", call.channel},
                      {"ts", began_us(call.entry, start_ns_)},
                      {"dur", took_us(call.entry)},
                      {"name", call.text.name},
                      {"cat", call.text.waited ? "waited" : "posted"},
                      {"args", arguments}};
  write(event.dump(-1, ' ', true, json::error_handler_t::replace));
}

void Perfetto::finish() {
  file_.write("\n]}\n");
  file_.finish();
}

}  // namespace ivgpu::trace
