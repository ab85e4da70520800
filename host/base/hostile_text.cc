#include "host/base/hostile_text.h"

#include <fmt/format.h>

namespace host::broker {

std::string escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f)
      safe += c;
    else
      safe += fmt::format("\\x{:02x}", byte);
  }
  return safe;
}

void LineCutter::end_line(std::vector<std::string>& lines) {
  if (!line_.empty()) lines.push_back(escaped(line_) + (cut_ ? " ..." : ""));
  line_.clear();
  cut_ = false;
}

std::vector<std::string> LineCutter::add(std::string_view bytes) {
  std::vector<std::string> lines;
  for (const char c : bytes) {
    if (c == '\n')
      end_line(lines);
    else if (line_.size() < longest_line)
      line_ += c;
    else
      cut_ = true;
  }
  return lines;
}

std::vector<std::string> LineCutter::finish() {
  std::vector<std::string> lines;
  end_line(lines);
  return lines;
}

}  // namespace host::broker
