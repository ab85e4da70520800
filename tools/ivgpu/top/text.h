// A view of `ivgpu top` as text: lines for people, and one line of JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/ivgpu/top/rows.h"

namespace ivgpu::top {

// A heading, the titles of the columns, and a line for each VM and each session; without their ends.
std::vector<std::string> as_lines(const View& view, const std::string& sorted_by);

std::string as_json(const View& view);

// The part of a screen's lines that it has room for, and at its foot how many are left out.
std::vector<std::string> cut(std::vector<std::string> lines, std::size_t rows, std::size_t columns);

}  // namespace ivgpu::top
