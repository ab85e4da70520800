// Aligns cells in columns.
#pragma once

#include <string>
#include <vector>

namespace ivgpu {

using Cells = std::vector<std::string>;

// Pads `cell` to at least `width`.
std::string padded(const std::string& cell, std::size_t width, bool to_the_left);

// Lines without line ends for `head` and each row. The first `left` cells are left-aligned, the rest right-aligned. All
// rows have as many cells as `head`.
std::vector<std::string> in_columns(const Cells& head, const std::vector<Cells>& rows, std::size_t left);

}  // namespace ivgpu
