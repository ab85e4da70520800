// Splits the text that a worker writes into lines fit for a log. A guest may control its worker: the text can be
// endless, imitate the broker's log lines, or carry terminal control sequences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace host::broker {

// Keeps printable ASCII, and writes every other byte as \xNN.
std::string escaped(std::string_view text);

// Cuts a stream of bytes into lines of bounded length.
class LineCutter {
 public:
  static constexpr std::size_t longest_line = 400;

  // Returns the lines completed by `bytes`, escaped. It cuts a line at `longest_line` and drops the rest.
  std::vector<std::string> add(std::string_view bytes);
  // Returns the unfinished last line when the stream has ended.
  std::vector<std::string> finish();

 private:
  void end_line(std::vector<std::string>& lines);
  std::string line_;
  bool cut_ = false;
};

}  // namespace host::broker
