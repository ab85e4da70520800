// The log line about a call that ivgpu does not serve. The caller makes sure that it is written once for each call.
#pragma once

namespace guest {

// Logs the call's name and why it is refused. The process's first such line also names the command that lists all
// refused calls. Safe from any thread.
void report_refusal(const char* symbol, const char* why);

}  // namespace guest
