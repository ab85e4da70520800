// `ivgpu coverage` lists the CUDA calls of a program and looks up their state in the table. By default it runs the
// program with the guest library, which logs lookups and calls. With --static it searches the program's file and its
// libraries for names of calls.
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "ring/api/entry_points.h"
#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/commands/named_calls.h"
#include "tools/ivgpu/support/child.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/standard_output.h"
#include "tools/ivgpu/support/temp_dir.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

// The state of an exported symbol in the table.
struct State {
  std::string words;
  bool traced = true;  // the trace has a line per call; else only the first refusal is logged
};
using States = std::map<std::string, State, std::less<>>;

State state_of_line(const api::EntryPoint& e) {
  switch (e.line) {
    case api::Line::Call:
    case api::Line::Custom:
    case api::Line::Guest: return {"served"};
    case api::Line::Refused: return {"refused: " + std::string(e.why)};
    case api::Line::Absent: return {"refused: " + std::string(e.why), false};
    case api::Line::Local:
    case api::Line::Variant: break;
  }
  return {"local"};
}

States read_table() {
  States all;
  for (const api::EntryPoint& e : api::entry_points) all[std::string(e.name)] = state_of_line(e);
  for (const api::EntryPoint& e : api::entry_points) {
    if (e.line == api::Line::Variant) all[std::string(e.name)] = all.find(e.of)->second;
  }
  return all;
}

const States& states() {
  static const States all = read_table();
  return all;
}

// cuGetProcAddress takes base names, so any served form of the name counts.
std::string state_of(const std::string& name) {
  std::string found = "absent";
  for (auto at = states().lower_bound(name); at != states().end() && at->first.starts_with(name); ++at) {
    const std::string_view rest = std::string_view(at->first).substr(name.size());
    if (!rest.empty() && rest[0] != '_') continue;
    if (at->first == name || !found.starts_with("served")) found = at->second.words;
    if (!found.starts_with("refused")) break;
  }
  return found;
}

// The state of a called symbol. Other forms of its name do not count.
std::string state_of_symbol(const std::string& symbol) {
  const auto at = states().find(symbol);
  return at == states().end() ? "absent" : at->second.words;
}

bool is_traced(const std::string& symbol) {
  const auto at = states().find(symbol);
  return at != states().end() && at->second.traced;
}

struct Use {
  bool asked = false;
  std::string named = {};  // the first file that names the call; empty: none
  long calls = 0;
  std::string state = {};
};

bool is_served(const Use& use) { return use.state == "served" || use.state == "local"; }

struct Coverage {
  std::map<std::string, Use> calls;
  std::map<std::string, Use> tables;  // by the name in ring/abi/export_tables.cc, or the id
  std::set<std::string> files;        // the libraries that were examined
  std::set<std::string> lacking;      // libraries that the loader does not find

  // The number of unserved calls that the program makes or its files name.
  long missing() const {
    long n = 0;
    for (const auto* uses : {&calls, &tables})
      for (const auto& [name, use] : *uses) n += (use.calls > 0 || !use.named.empty()) && !is_served(use) ? 1 : 0;
    return n;
  }
};

// Splits "A<between>B" into A and B.
bool split(const std::string& line, std::string_view between, std::string& left, std::string& right) {
  const std::size_t at = line.find(between);
  if (at == std::string::npos) return false;
  left = line.substr(0, at);
  right = line.substr(at + between.size());
  return true;
}

void read_line(std::string line, Coverage& found) {
  std::string left, right, slot;
  constexpr std::string_view head = "ivgpu: ", asked = "asked for ", table = "export table ";
  if (!line.starts_with(head)) return;
  line.erase(0, head.size());
  if (line.starts_with(asked) && split(line.substr(asked.size()), ": ", left, right)) {
    const bool is_table = left.starts_with(table);
    Use& use = is_table ? found.tables[left.substr(table.size())] : found.calls[left];
    use.asked = true;
    use.state = is_table ? (right == "there" ? "served" : "absent") : state_of(left);
  } else if (line.starts_with(table) && split(line.substr(table.size()), ": slot ", left, right)) {
    split(right, " ", slot, right);
    Use& use = found.tables[left + " slot " + slot];
    const bool served = right.find("not served") == std::string::npos;
    use = {.calls = use.calls + 1, .state = served ? "served" : "refused"};
  } else if (split(line, " is refused: ", left, right) || split(line, " -> ", left, right)) {
    if (!left.starts_with("cu") || left.find(' ') != std::string::npos) return;
    if (line.find(" is refused: ") != std::string::npos && is_traced(left)) return;  // the trace logs the call as well
    Use& use = found.calls[left];
    ++use.calls;
    use.state = state_of_symbol(left);
  }
}

// Records the names of calls in one file.
void read_file(const fs::path& path, Coverage& found) {
  each_name(path, [&](const std::string& name) {
    const std::string state = state_of(name);
    if (state == "absent") return;
    Use& use = found.calls[name];
    if (use.named.empty()) use.named = path.filename();
    use.state = state;
  });
}

// The program's file comes first: a call that both name counts as the program's.
void read_program(const Install& install, const fs::path& path, Coverage& found) {
  read_file(path, found);
  const Libraries libraries = libraries_of(install, path);
  for (const fs::path& library : libraries.found) {
    if (!found.files.insert(library.string()).second) continue;
    read_file(library, found);
  }
  found.lacking.insert(libraries.missing.begin(), libraries.missing.end());
}

int record(const CoverageOptions& options, Coverage& found) {
  report_unknown_log_level();
  const Install install = find_install();
  require(install.guest_lib / "libcuda.so.1", "the guest library");
  const SignalGate gate;
  const TempDir folder;
  const fs::path file = folder.path() / "calls";
  PrivateBroker broker(install, for_a_program_here(options.broker), folder.path(), gate);
  Child program({.argv = options.program,
                 .environment = {{"LD_LIBRARY_PATH", prepend_path("LD_LIBRARY_PATH", install.guest_lib)},
                                 {"IVGPU_REGION", broker.socket().string()},
                                 {"IVGPU_LOG", "trace"},
                                 {"IVGPU_LOG_FILE", file.string()}},
                 .out = STDERR_FILENO,
                 .is_users_program = true});
  const int code = broker.end(wait_passing_signals(program, gate));
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) read_line(line, found);
  return code;
}

// NVIDIA's runtime looks up every call. A call that was looked up but not made appears only in the JSON document.
void print_uses(const std::map<std::string, Use>& uses, bool served, bool tables) {
  for (const auto& [name, use] : uses) {
    if (is_served(use) != served || (use.calls == 0 && use.named.empty() && !tables)) continue;
    // Refused calls and table entries are logged once, however often the program calls them.
    const std::string calls = served && !tables ? std::to_string(use.calls) : "called";
    const std::string how = use.calls > 0 ? calls : use.asked ? "asked" : "named";
    const std::string where = use.named.empty() ? "" : ", in " + use.named;
    std::printf("%-46s %-9s %s%s\n", name.c_str(), how.c_str(), use.state.c_str(), where.c_str());
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

// The heading names the program.
void print_table(const Coverage& found, const std::vector<std::string>& program, bool ran) {
  std::printf("ivgpu " IVGPU_VERSION ", coverage of %s\n\n", joined(program).c_str());
  std::printf("%-46s %-9s %s\n", "entry point", ran ? "calls" : "found", "state");
  for (const bool served : {false, true}) print_uses(found.calls, served, false);
  if (!found.tables.empty()) std::printf("\n%-46s %-9s %s\n", "private table", "calls", "state");
  for (const bool served : {false, true}) print_uses(found.tables, served, true);
  long called = 0;
  for (const auto& [name, use] : found.calls) called += use.calls > 0 ? 1 : 0;
  if (ran)
    std::printf("\n%ld entry points were called; %ld of what was called is not served\n", called, found.missing());
  else
    std::printf("\n%zu entry points are named, there and in %zu libraries; %ld of them are not served\n",
                found.calls.size(), found.files.size(), found.missing());
}

nlohmann::json as_json(const std::map<std::string, Use>& uses) {
  auto all = nlohmann::json::array();
  for (const auto& [name, use] : uses)
    all.push_back(
        {{"name", name}, {"state", use.state}, {"asked", use.asked}, {"calls", use.calls}, {"named_in", use.named}});
  return all;
}

void print_json(const Coverage& found, const std::vector<std::string>& program, int code) {
  const nlohmann::json document = {{"format", 1},
                                   {"version", IVGPU_VERSION},
                                   {"program", program},
                                   {"exit", code},
                                   {"not_served", found.missing()},
                                   {"calls", as_json(found.calls)},
                                   {"tables", as_json(found.tables)},
                                   {"libraries", found.files},
                                   {"libraries_not_found", found.lacking}};
  std::printf("%s\n", document.dump().c_str());
}

}  // namespace

int coverage(const CoverageOptions& options) {
  Coverage found;
  int code = 0;
  if (options.files_only)
    for (const std::string& file : options.program) read_program(find_install(), file, found);
  else
    code = record(options, found);
  if (code == exit_code::not_executable || code == exit_code::not_found || code == exit_code::died) return code;
  if (options.json)
    print_json(found, options.program, code);
  else
    print_table(found, options.program, !options.files_only);
  flush(stdout);
  if (!options.files_only && found.calls.empty())
    std::fprintf(stderr, "ivgpu: the program ended with %d and made no driver call through the guest library\n", code);
  else if (code != 0)
    std::fprintf(stderr, "ivgpu: the program ended with %d\n", code);
  for (const std::string& library : found.lacking)
    std::fprintf(stderr, "ivgpu: the loader does not find %s, so what it calls is not known\n", library.c_str());
  return found.missing() > 0 || !found.lacking.empty() ? 1 : 0;
}

}  // namespace ivgpu
