// Prints docs/calls.md: each entry point of the call table, how the library answers it, and why it refuses it. A test
// compares the page with this output. Exits with 1 if this file does not explain a refusal reason of the table.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ring/api/entry_points.h"

namespace {

struct Line {
  const api::EntryPoint* entry;
  std::string_view refused = {};  // the reason; empty: the call is served
};

struct Section {
  const char* title;
  std::vector<Line> lines;
};

// The manner of an entry point as text for the page.
std::string text_of(const api::Manner& manner) {
  std::string text;
  if (manner.order == api::Order::Null) text += ", as on the NULL stream";
  if (manner.order == api::Order::All) text += ", after every posted call";
  if (manner.contextless) text += ", needs no context";
  if (manner.asks != api::Asks::Nothing) text += "; answered in the guest where it is known";
  return text;
}

// Describes how the library answers an entry point.
std::string how(const api::EntryPoint& e) {
  const std::string way = e.way == api::Posted ? "Posted" : "Waited";
  switch (e.line) {
    case api::Line::Call: return way + text_of(e.manner);
    case api::Line::Custom: return way + ", own code" + text_of(e.manner);
    case api::Line::Guest: return way + ", own code in the guest" + text_of(e.manner);
    case api::Line::Local: return "Local";
    case api::Line::Refused: return "refused, but known: " + std::string(e.why);
    case api::Line::Variant: return "as `" + std::string(e.of) + "`";
    case api::Line::Absent: return "refused: " + std::string(e.why);
  }
  return "";
}

const api::EntryPoint& entry(std::string_view name) {
  return *std::find_if(std::begin(api::entry_points), std::end(api::entry_points),
                       [&](const api::EntryPoint& e) { return e.name == name; });
}

std::vector<Section> sections() {
  std::vector<Section> all;
  const auto add = [&](std::string_view name) {
    const api::EntryPoint& e = entry(name);
    all.back().lines.push_back({&e, e.why});
  };
#define CALL(id, fn, ...) add(#fn);
#define CUSTOM CALL
#define GUEST CALL
#define LOCAL(fn, ...) add(#fn);
#define REFUSED LOCAL
#define VARIANT LOCAL
#define ABSENT LOCAL
  all.push_back({"Start, version, errors", {}});
#include "ring/api/init.def"
  all.push_back({"Entry points by name", {}});
#include "ring/api/entry_point.def"
  all.push_back({"Devices", {}});
#include "ring/api/device.def"
  all.push_back({"Contexts", {}});
#include "ring/api/context.def"
  all.push_back({"Green contexts", {}});
#include "ring/api/green.def"
  all.push_back({"Core dumps and checkpoints", {}});
#include "ring/api/process.def"
  all.push_back({"Modules", {}});
#include "ring/api/module.def"
  all.push_back({"Libraries and kernels", {}});
#include "ring/api/library.def"
  all.push_back({"JIT linker", {}});
#include "ring/api/link.def"
  all.push_back({"Functions", {}});
#include "ring/api/function.def"
  all.push_back({"Memory", {}});
#include "ring/api/memory.def"
  all.push_back({"Pointers", {}});
#include "ring/api/pointer.def"
  all.push_back({"Managed memory", {}});
#include "ring/api/managed.def"
  all.push_back({"Copies", {}});
#include "ring/api/copy.def"
  all.push_back({"Fills", {}});
#include "ring/api/fill.def"
  all.push_back({"Virtual memory management", {}});
#include "ring/api/virtual.def"
  all.push_back({"Pools", {}});
#include "ring/api/pool.def"
  all.push_back({"Sharing", {}});
#include "ring/api/share.def"
  all.push_back({"Streams", {}});
#include "ring/api/stream.def"
  all.push_back({"Events", {}});
#include "ring/api/event.def"
  all.push_back({"Stream capture", {}});
#include "ring/api/capture.def"
  all.push_back({"Callbacks", {}});
#include "ring/api/callback.def"
  all.push_back({"Launches", {}});
#include "ring/api/launch.def"
  all.push_back({"Occupancy", {}});
#include "ring/api/occupancy.def"
  all.push_back({"Graphs", {}});
#include "ring/api/graph.def"
  all.push_back({"Arrays, textures and surfaces", {}});
#include "ring/api/texture.def"
  all.push_back({"Graphics", {}});
#include "ring/api/graphics.def"
  return all;
}

// A variant is refused if its base call is refused.
void resolve_forms(std::vector<Section>& all) {
  for (Section& section : all)
    for (Line& line : section.lines)
      if (!line.entry->of.empty()) line.refused = entry(line.entry->of).why;
}

// Explains a refusal reason of the table to the author of a program.
struct Reason {
  const char* why;
  const char* means;
};
constexpr Reason reasons[] = {
    {"the form before CUDA 11.7", "headers since then call the `_v2` form, which is served"},
    {"the form of CUDA 3", "headers since CUDA 3.2 call the `_v2` form, which is served"},
    {"Windows only", "the real driver refuses it on Linux, too"},
    {"no display in the guest", "OpenGL and other graphics: there is nothing to share with"},
    {"needs several GPUs", "what spans several GPUs"},
    {"descriptors do not cross", "file descriptors of guest and host are different things"},
    {"files of the host", "they would be written on the host, by a worker that can write nowhere"},
    {"the host checkpoints sessions", "a checkpoint of a process that has its GPU state elsewhere is not one"},
    {"nothing needs it yet", "no library that was seen needs it"},
};

const char* meaning(std::string_view why) {
  for (const Reason& reason : reasons)
    if (why == reason.why) return reason.means;
  return why.ends_with("not served yet") ? "may be served some day" : nullptr;
}

bool print_reasons(const std::vector<Section>& all) {
  std::map<std::string_view, int> count;
  for (const Section& section : all)
    for (const Line& line : section.lines)
      if (!line.refused.empty()) ++count[line.refused];
  std::vector<std::pair<std::string_view, int>> sorted(count.begin(), count.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::printf("| refused because | entry points | that is |\n|---|---|---|\n");
  for (const auto& [why, n] : sorted) {
    const char* means = meaning(why);
    if (means == nullptr) {
      std::fprintf(stderr, "calls: no explanation of \"%s\"\n", why.data());
      return false;
    }
    std::printf("| %s | %d | %s |\n", why.data(), n, means);
  }
  return true;
}

// Prints how many of the calls that reach the host have hand-written code.
void print_own_code() {
  int crossing = 0, own = 0;
  for (const api::EntryPoint& e : api::entry_points) {
    crossing += e.crosses();
    own += e.line == api::Line::Custom;
  }
  std::printf("Of the %d that cross, their other forms not counted, %d have code of their own: %d %%.\n\n", crossing,
              own, (100 * own + crossing / 2) / crossing);
}

void print_head(const std::vector<Section>& all) {
  std::size_t every = 0, served = 0;
  for (const Section& section : all) {
    every += section.lines.size();
    for (const Line& line : section.lines) served += line.refused.empty();
  }
  std::printf("# Calls\n\nEvery entry point of cuda.h 13.0 and of its profiler header, made from the table ");
  std::printf("`ring/api/driver.def` by\n`build/tools/calls`. %zu of %zu are served.\n\n", served, every);
  print_own_code();
  std::printf("| answered | means |\n|---|---|\n");
  std::printf("| Local | in the guest, without the host |\n");
  std::printf("| Posted | a record in the ring; the caller does not wait |\n");
  std::printf("| Waited | a record, and its reply |\n");
  std::printf("| own code | more than a line of the table: `guest/calls/`, `host/untrusted/calls/` |\n");
  std::printf("| refused | CUDA_ERROR_NOT_SUPPORTED, and a line in the log that names it |\n");
  std::printf(
      "| refused, but known | `cuGetProcAddress` knows it; with good arguments, the error of a GPU that cannot do ");
  std::printf("it, and a line in the log |\n\n");
}

}  // namespace

int main() {
  std::vector<Section> all = sections();
  resolve_forms(all);
  print_head(all);
  if (!print_reasons(all)) return 1;
  for (const Section& section : all) {
    std::printf("\n## %s\n\n| entry point | since CUDA | answered |\n|---|---|---|\n", section.title);
    for (const auto& [e, refused] : section.lines)
      std::printf("| `%s` | %d.%d | %s |\n", e->name.data(), e->since / 1000, e->since % 1000 / 10, how(*e).c_str());
  }
}
