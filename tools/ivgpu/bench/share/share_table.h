// What `ivgpu bench share` has measured as text.
#pragma once

#include <string>
#include <vector>

#include "tools/ivgpu/bench/share/share.h"

namespace ivgpu::bench {

// The load, and its VMs' weight where that is none of 1.
std::string load_text(const Shared& one);

// A table in Markdown, row by row; a rate's `x` is its ratio to the native one, the rest as fairness.h has it.
std::string share_head();
std::string share_row(const Shared& one);
std::string share_json(const std::vector<Shared>& all);

}  // namespace ivgpu::bench
