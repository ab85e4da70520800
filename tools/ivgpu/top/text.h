// A view of `ivgpu top` as lines of text or as one line of JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/ivgpu/top/rows.h"

namespace ivgpu::top {

// A heading, the column titles, and a line for each VM and session, without line ends.
std::vector<std::string> as_lines(const View& view, const std::string& sorted_by);

std::string as_json(const View& view);

// The lines that fit on the screen. The last line states the number of omitted lines.
std::vector<std::string> cut(std::vector<std::string> lines, std::size_t rows, std::size_t columns);

}  // namespace ivgpu::top
