// Splits the text that a worker writes into lines fit for a log. A worker may be under its guest's control: its text
// can be endless, can pretend to be a line of ours, can carry a terminal's control sequences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace host::broker {

// Printable ASCII as it is, everything else as \xNN.
std::string escaped(std::string_view text);

// Cuts a stream of bytes into lines of bounded length.
class LineCutter {
 public:
  static constexpr std::size_t longest_line = 400;

  // The lines that are complete now, escaped. A longer one is cut and its rest dropped.
  std::vector<std::string> add(std::string_view bytes);
  // The rest without an end of line, when the stream is over.
  std::vector<std::string> finish();

 private:
  void end_line(std::vector<std::string>& lines);
  std::string line_;
  bool cut_ = false;
};

}  // namespace host::broker
