// Cells in columns, for people.
#pragma once

#include <string>
#include <vector>

namespace ivgpu {

using Cells = std::vector<std::string>;

// Of that width at least.
std::string padded(const std::string& cell, std::size_t width, bool to_the_left);

// A line for `head` and for each row, without their ends: the first `left` cells to the left, the others to the right.
// All rows have as many cells as `head`.
std::vector<std::string> in_columns(const Cells& head, const std::vector<Cells>& rows, std::size_t left);

}  // namespace ivgpu
