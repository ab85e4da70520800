// Answers as text: what a run noted, what the real driver said (golden data), and where a backend may differ, with the
// reason. Formats:
//
//   answers       # group            expectations   group: case | backend | answer | reason
//                 case: ANSWER
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

// A case that no real driver has been asked yet.
inline constexpr const char* unread = "?";
// Where the real driver ends the process, no answer of ours is wrong.
inline constexpr const char* crashes = "crashes";

std::vector<Line> parse_lines(const std::string& text);
Answers parse_answers(const std::string& text);
std::string to_text(const Answers& answers);

struct Expectation {
  std::string name, backend, answer, reason;  // name: "group: case"
};
// A line that is none, or gives no reason, is in `complaints`.
std::vector<Expectation> parse_expectations(const std::string& text, std::vector<std::string>& complaints);

// Everything that is not as it must be, a sentence each: an answer that differs and is not expected to, one that is
// expected to differ and does not, a case without golden answer, a golden answer without case.
std::vector<std::string> compare(const std::string& group, const std::vector<Line>& answers,
                                 const std::vector<Line>& golden, const std::vector<Expectation>& expectations);

}  // namespace contract
