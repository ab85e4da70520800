#include "tools/ivgpu/support/columns.h"

#include <algorithm>

namespace ivgpu {
namespace {

std::vector<std::size_t> widths_of(const Cells& head, const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < head.size(); ++c) {
    std::size_t width = head[c].size();
    for (const Cells& row : rows) width = std::max(width, row[c].size());
    widths.push_back(width);
  }
  return widths;
}

}  // namespace

std::string padded(const std::string& cell, std::size_t width, bool to_the_left) {
  const std::string blanks(width - std::min(width, cell.size()), ' ');
  return to_the_left ? cell + blanks : blanks + cell;
}

std::vector<std::string> in_columns(const Cells& head, const std::vector<Cells>& rows, std::size_t left) {
  const std::vector<std::size_t> widths = widths_of(head, rows);
  std::vector<std::string> lines;
  const auto add = [&](const Cells& row) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) line += (c == 0 ? "" : "  ") + padded(row[c], widths[c], c < left);
    lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
  };
  add(head);
  for (const Cells& row : rows) add(row);
  return lines;
}

}  // namespace ivgpu
