// Standard output and standard error as places where results go: text that does not get there is a failure, not
// nothing.
#pragma once

#include <cstdio>
#include <string>

namespace ivgpu {

// Reports on standard error that IVGPU_LOG names no level. For commands whose program does not load the guest library,
// which reports it itself.
void tell_unknown_log_level();

// All of `text` to standard output; flush() for text that was printed there or to standard error before. Both throw an
// Error if that cannot be written; one without words if its reader has gone, as in `ivgpu trace | head`.
void say(const std::string& text);
void flush(std::FILE* to);

// The Error of a write that failed.
[[noreturn]] void cannot_say(int error);

}  // namespace ivgpu
