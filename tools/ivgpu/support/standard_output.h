// Output to standard output and standard error that fails if the text cannot be written.
#pragma once

#include <cstdio>
#include <string>

namespace ivgpu {

// Reports on standard error that IVGPU_LOG names no level. Only for commands whose program does not load the guest
// library, since the guest library reports the mistake as well.
void report_unknown_log_level();

// print() writes all of `text` to standard output; flush() flushes earlier prints. Both throw an Error if a write
// fails. The Error has no text if the reader has closed the pipe, as in `ivgpu trace | head`.
void print(const std::string& text);
void flush(std::FILE* to);

// Throws the Error of a failed write.
[[noreturn]] void write_failed(int error);

}  // namespace ivgpu
