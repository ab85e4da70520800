// `ivgpu coverage`: the program runs through the guest library, which writes what it is asked for and what is called
// into a file; or, with --static, the names of calls are looked for in the program's file. The state of each comes from
// the table.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "tools/ivgpu/child.h"
#include "tools/ivgpu/commands.h"
#include "tools/ivgpu/error.h"
#include "tools/ivgpu/say.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

// What the table says of an exported symbol.
const std::map<std::string, std::string, std::less<>>& states() {
  static const std::map<std::string, std::string, std::less<>> all = {
#define CALL(id, fn, ...) {#fn, "served"},
#define CUSTOM(id, fn, ...) {#fn, "served"},
#define LOCAL(fn, ...) {#fn, "local"},
#define VARIANT(fn, since, of) {#fn, "served"},
#define ABSENT(fn, since, why) {#fn, std::string("refused: ") + why},
#include "ring/api/driver.def"
  };
  return all;
}

// cuGetProcAddress is asked by base names: any form of it that is served will do.
std::string state_of(const std::string& name) {
  std::string found = "absent";
  for (auto at = states().lower_bound(name); at != states().end() && at->first.starts_with(name); ++at) {
    const std::string_view rest = std::string_view(at->first).substr(name.size());
    if (!rest.empty() && rest[0] != '_') continue;
    if (at->first == name || !found.starts_with("served")) found = at->second;
    if (!found.starts_with("refused")) break;
  }
  return found;
}

// Of a symbol, when it was called: no other form of the name stands in for it.
std::string state_of_symbol(const std::string& symbol) {
  const auto at = states().find(symbol);
  return at == states().end() ? "absent" : at->second;
}

struct Use {
  bool asked = false, named = false;
  long calls = 0;
  std::string state;
};

struct Coverage {
  std::map<std::string, Use> calls;
  std::map<std::string, Use> tables;  // by the name that ring/abi/export_tables.cc gives, or the id

  // What a program meets that is not served.
  long missing() const {
    long n = 0;
    for (const auto* uses : {&calls, &tables})
      for (const auto& [name, use] : *uses) n += use.calls > 0 && use.state != "served" && use.state != "local" ? 1 : 0;
    return n;
  }
};

// "A<between>B": both parts.
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
    use = {.asked = false, .named = false, .calls = use.calls + 1, .state = served ? "served" : "refused"};
  } else if (split(line, " is refused: ", left, right) || split(line, " -> ", left, right)) {
    if (!left.starts_with("cu") || left.find(' ') != std::string::npos) return;
    Use& use = found.calls[left];
    ++use.calls;
    use.state = state_of_symbol(left);
  }
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Every word of the file that is an entry point's name: symbols it links, and texts that it asks cuGetProcAddress with.
void read_program(const fs::path& path, Coverage& found) {
  std::ifstream in(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  if (!in || all.empty()) throw Error(exit_code::not_found, path.string() + " cannot be read");
  if (!all.starts_with("\x7f"
                       "ELF"))
    throw Error(exit_code::not_executable, path.string() + " is no ELF file, so it has no driver calls to look for");
  for (std::size_t at = all.find("cu"); at != std::string::npos; at = all.find("cu", at + 1)) {
    if (at > 0 && is_name(all[at - 1])) continue;
    std::size_t end = at;
    while (end < all.size() && is_name(all[end])) ++end;
    const std::string name = all.substr(at, end - at);
    if (const std::string state = state_of(name); state != "absent") {
      found.calls[name].named = true;
      found.calls[name].state = state;
    }
    at = end;
  }
}

int record(const CoverageOptions& options, Coverage& found) {
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
                                 {"IVGPU_LOG_FILE", file.string()},
                                 {"IVGPU_COVERAGE", "1"}},
                 .out = STDERR_FILENO});
  const int code = broker.end(wait_passing_signals(program, gate));
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) read_line(line, found);
  return code;
}

// NVIDIA's runtime asks for every call there is: what was asked for and not called stands in the JSON document alone.
void print_uses(const std::map<std::string, Use>& uses, bool served, bool tables) {
  for (const auto& [name, use] : uses) {
    if ((use.state == "served" || use.state == "local") != served || (use.calls == 0 && !use.named && !tables))
      continue;
    // What is refused tells so once, however often it is called, and so does a table's slot.
    const std::string calls = served && !tables ? std::to_string(use.calls) : "called";
    const std::string how = use.calls > 0 ? calls : use.asked ? "asked" : "named";
    std::printf("%-46s %-9s %s\n", name.c_str(), how.c_str(), use.state.c_str());
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

// Who gets this wants to know first what it is of.
void print_table(const Coverage& found, const std::vector<std::string>& program, bool ran) {
  std::printf("ivgpu " IVGPU_VERSION ", coverage of %s\n\n", joined(program).c_str());
  std::printf("%-46s %-9s %s\n", "entry point", ran ? "calls" : "found", "state");
  for (const bool served : {false, true}) print_uses(found.calls, served, false);
  if (!found.tables.empty()) std::printf("\n%-46s %-9s %s\n", "private table", "calls", "state");
  for (const bool served : {false, true}) print_uses(found.tables, served, true);
  long called = 0, refused = 0;
  for (const auto& [name, use] : found.calls) {
    called += use.calls > 0 ? 1 : 0;
    refused += use.state != "served" && use.state != "local" ? 1 : 0;
  }
  if (ran)
    std::printf("\n%ld entry points were called; %ld of what was called is not served\n", called, found.missing());
  else
    std::printf("\n%zu entry points are named; %ld of them are not served\n", found.calls.size(), refused);
}

nlohmann::json as_json(const std::map<std::string, Use>& uses) {
  auto all = nlohmann::json::array();
  for (const auto& [name, use] : uses)
    all.push_back({{"name", name}, {"state", use.state}, {"asked", use.asked}, {"calls", use.calls}});
  return all;
}

}  // namespace

int coverage(const CoverageOptions& options) {
  Coverage found;
  int code = 0;
  if (options.files_only)
    for (const std::string& file : options.program) read_program(file, found);
  else
    code = record(options, found);
  if (code == exit_code::not_executable || code == exit_code::not_found || code == exit_code::died) return code;
  if (options.json)
    std::printf("%s\n", nlohmann::json({{"format", 1},
                                        {"version", IVGPU_VERSION},
                                        {"program", options.program},
                                        {"exit", code},
                                        {"not_served", found.missing()},
                                        {"calls", as_json(found.calls)},
                                        {"tables", as_json(found.tables)}})
                            .dump()
                            .c_str());
  else
    print_table(found, options.program, !options.files_only);
  flush(stdout);
  if (!options.files_only && found.calls.empty())
    std::fprintf(stderr, "ivgpu: the program ended with %d and made no driver call through the guest library\n", code);
  else if (code != 0)
    std::fprintf(stderr, "ivgpu: the program ended with %d\n", code);
  if (!options.files_only) return found.missing() > 0 ? 1 : 0;
  return std::any_of(found.calls.begin(), found.calls.end(),
                     [](const auto& use) { return use.second.state.starts_with("refused"); })
             ? 1
             : 0;
}

}  // namespace ivgpu
