// Three kinds of answers as text: the answers of a run, the golden answers of NVIDIA's driver, and the expectations. An
// expectation states where and why a backend may differ from the golden answer. Formats:
//
// answers          # group                  expectations  group: case | backend | answer | reason
//                  case: ANSWER                           group: *    | backend | -      | reason
//
// An expectation for "group: *" excludes the whole group for the backend.
//
// Lines that begin with "##" are comments.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace contract {

struct Line {
  std::string name, answer;
};
using Answers = std::map<std::string, std::vector<Line>>;  // by group

// The golden answer of a case that has not yet run on NVIDIA's driver.
inline constexpr const char* unread = "?";
// The golden answer of a case in which NVIDIA's driver crashes. Any answer of ours is accepted.
inline constexpr const char* crashes = "crashes";

std::vector<Line> parse_lines(const std::string& text);
Answers parse_answers(const std::string& text);
std::string to_text(const Answers& answers);

struct Expectation {
  std::string name, backend, answer, reason;  // the name has the form "group: case"
};
// `complaints` receives each malformed line, and each line without a reason.
std::vector<Expectation> parse_expectations(const std::string& text, std::vector<std::string>& complaints);

// Returns the expectation that excludes the group for the backend; null if the backend runs the group.
const Expectation* unasked(const std::string& group, const std::vector<Expectation>& expectations);

// Returns a message for each deviation: an unexpected answer, an expected difference that is absent, a case without a
// golden answer, and a golden answer without a case.
std::vector<std::string> compare(const std::string& group, const std::vector<Line>& answers,
                                 const std::vector<Line>& golden, const std::vector<Expectation>& expectations);

}  // namespace contract
