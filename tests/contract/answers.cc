#include "tests/contract/answers.h"

#include <algorithm>
#include <sstream>

namespace contract {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t from = text.find_first_not_of(' '), to = text.find_last_not_of(' ');
  return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

// Parses a line "case: ANSWER". An answer contains no colon.
Line parse_line(const std::string& line) {
  const std::size_t colon = line.rfind(": ");
  return colon == std::string::npos ? Line{line, ""} : Line{line.substr(0, colon), line.substr(colon + 2)};
}

const std::string* find(const std::vector<Line>& lines, const std::string& name) {
  const auto at = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == name; });
  return at == lines.end() ? nullptr : &at->answer;
}

// Returns the expectation whose answer is accepted instead of the golden one; null if there is none.
const Expectation* expected(const std::vector<Expectation>& expectations, const std::string& name) {
  const auto at =
      std::find_if(expectations.begin(), expectations.end(), [&](const Expectation& e) { return e.name == name; });
  return at == expectations.end() ? nullptr : &*at;
}

std::string judge(const std::string& name, const std::string& answer, const std::string& golden, const Expectation* e) {
  if (golden == crashes || golden == unread)
    return e == nullptr ? "" : name + " has no golden answer to differ from: it must leave the expectations";
  if (e == nullptr) return answer == golden ? "" : name + ": " + answer + ", the real driver: " + golden;
  if (answer == golden) return name + ": " + answer + ", as the real driver: it must leave the expectations";
  return answer == e->answer ? "" : name + ": " + answer + ", expected: " + e->answer;
}

}  // namespace

std::vector<Line> parse_lines(const std::string& text) {
  std::vector<Line> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && !line.starts_with("#")) lines.push_back(parse_line(line));
  return lines;
}

Answers parse_answers(const std::string& text) {
  Answers answers;
  std::string group;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("# "))
      group = line.substr(2);
    else if (!line.empty() && !line.starts_with("#"))
      answers[group].push_back(parse_line(line));
  }
  return answers;
}

std::string to_text(const Answers& answers) {
  std::string text;
  for (const auto& [group, lines] : answers) {
    text += "# " + group + "\n";
    for (const Line& line : lines) text += line.name + ": " + line.answer + "\n";
  }
  return text;
}

std::vector<Expectation> parse_expectations(const std::string& text, std::vector<std::string>& complaints) {
  std::vector<Expectation> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with("#")) continue;
    std::istringstream fields(line);
    std::string part[4];
    for (std::string& p : part) {
      std::getline(fields, p, '|');
      p = trimmed(p);
    }
    if (part[3].empty())
      complaints.push_back("no expectation with a reason: " + line);
    else if (part[0].ends_with(": *") != (part[2] == "-"))
      complaints.push_back("a group that is not asked has no answer: " + line);
    else
      all.push_back({part[0], part[1], part[2], part[3]});
  }
  return all;
}

const Expectation* unasked(const std::string& group, const std::vector<Expectation>& expectations) {
  return expected(expectations, group + ": *");
}

std::vector<std::string> compare(const std::string& group, const std::vector<Line>& answers,
                                 const std::vector<Line>& golden, const std::vector<Expectation>& expectations) {
  std::vector<std::string> complaints;
  const auto complain = [&](const std::string& sentence) {
    if (!sentence.empty()) complaints.push_back(sentence);
  };
  for (const Line& line : answers) {
    const std::string name = group + ": " + line.name;
    if (const std::string* said = find(golden, line.name))
      complain(judge(name, line.answer, *said, expected(expectations, name)));
    else
      complain(name + " is not in the golden data (its answer here: " + line.answer + ")");
  }
  for (const Line& line : golden)
    if (find(answers, line.name) == nullptr) complain(group + ": " + line.name + " was not answered");
  for (const Expectation& e : expectations)
    if (e.name.starts_with(group + ": ") && find(answers, e.name.substr(group.size() + 2)) == nullptr)
      complain(e.name + " is expected to differ, but there is no such case");
  return complaints;
}

}  // namespace contract
