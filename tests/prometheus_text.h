// A strict reader of Prometheus's text format 0.0.4 and of its naming rules. Any byte outside the format is an error.
#pragma once

#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace prometheus {

struct Family {
  std::string help, type;
  std::map<std::string, std::string> samples;  // values as written, by the text of the labels in braces
};
using Families = std::map<std::string, Family>;

// Thrown at the first invalid byte.
struct Misfit : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  Families all() {
    if (!rest_.empty() && rest_.back() != '\n') fail("the last line has no end");
    while (!rest_.empty()) family();
    return std::move(families_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Misfit(why + " before '" + std::string(rest_.substr(0, 60)) + "'");
  }
  void expect(std::string_view what) {
    if (!rest_.starts_with(what)) fail("'" + std::string(what) + "' is missing");
    rest_.remove_prefix(what.size());
  }
  std::string up_to(std::string_view ends, const char* what) {
    const std::size_t end = rest_.find_first_of(ends);
    if (end == std::string_view::npos || end == 0) fail(std::string(what) + " is missing");
    const std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return text;
  }

  // Help, type and all samples of one name, in one block.
  void family() {
    expect("# HELP ");
    const std::string name = up_to(" ", "a name");
    expect(" ");
    Family family;
    family.help = up_to("\n", "help");
    expect("\n# TYPE " + name + " ");
    family.type = up_to("\n", "a type");
    expect("\n");
    check_name(name, family);
    while (!rest_.empty() && !rest_.starts_with('#')) sample(name, family);
    if (family.samples.empty()) fail(name + " has no sample");
    if (!families_.emplace(name, family).second) fail(name + " comes twice");
  }

  void sample(const std::string& name, Family& family) {
    expect(name);
    const std::string_view before = rest_;
    if (rest_.starts_with('{')) labels();
    const std::string labels(before.substr(0, before.size() - rest_.size()));
    expect(" ");
    const std::string value = up_to("\n", "a value");
    expect("\n");
    char* end = nullptr;
    std::strtod(value.c_str(), &end);
    if (*end != '\0' || value.find_first_not_of("0123456789.e+-") != std::string::npos) fail(value + " is no value");
    if (!family.samples.emplace(labels, value).second) fail(name + labels + " comes twice");
  }

  void labels() {
    std::set<std::string> names;
    do {
      rest_.remove_prefix(1);  // removes the brace, or a comma
      const std::string name = up_to("=", "a label");
      if (!is_word(name) || name.find(':') != std::string::npos) fail(name + " is no label");
      if (!names.insert(name).second) fail(name + " comes twice");
      expect("=\"");
      value_in_quotes();
    } while (rest_.starts_with(','));
    expect("}");
  }
  void value_in_quotes() {
    for (; !rest_.empty() && rest_.front() != '"'; rest_.remove_prefix(1)) {
      if (rest_.front() == '\n') fail("a label's value has an end of line");
      if (rest_.front() != '\\') continue;
      rest_.remove_prefix(1);
      if (!rest_.starts_with('\\') && !rest_.starts_with('"') && !rest_.starts_with('n')) fail("no escape");
    }
    expect("\"");
  }

  static bool is_word(const std::string& name) {
    const bool begins = !name.empty() && (name[0] < '0' || name[0] > '9');
    return begins && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  }
  // promtool's naming rules: suffixes match types, and units are whole words.
  void check_name(const std::string& name, const Family& family) const {
    if (!is_word(name) || !name.starts_with("ivgpu_")) fail(name + " is no name of ours");
    if (family.type != "counter" && family.type != "gauge") fail(family.type + " is no type of ours");
    if (name.ends_with("_total") != (family.type == "counter")) fail(name + " is no name of a " + family.type);
    if (family.help.find('\\') != std::string::npos) fail("help with an escape");
    for (const char* unit : {"_s_", "_ms_", "_us_", "_ns_", "_b_", "_kb_", "_mb_", "_milliseconds_", "_kilobytes_"})
      if ((name + "_").find(unit) != std::string::npos) fail(name + " has a unit that is none");
  }

  std::string_view rest_;
  Families families_;
};

inline Families read(std::string_view text) { return Reader(text).all(); }

}  // namespace prometheus
