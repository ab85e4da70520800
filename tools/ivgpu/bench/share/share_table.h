// The results of `ivgpu bench share` as text.
#pragma once

#include <string>
#include <vector>

#include "tools/ivgpu/bench/share/share.h"

namespace ivgpu::bench {

// The load, and its VMs' weight if that is not 1.
std::string load_text(const Shared& one);

// A Markdown table, row by row. The column `x` is the ratio to the native rate; fairness.h explains the others.
std::string share_head();
std::string share_row(const Shared& one);
std::string share_json(const std::vector<Shared>& all);

}  // namespace ivgpu::bench
