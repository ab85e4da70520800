// The log line about a call that ivgpu does not serve. The caller makes sure that each call is logged once.
#pragma once

namespace guest {

// Logs the call's name and the reason. The first line of a process also names the command that lists all refused calls.
// Safe from any thread.
void report_refusal(const char* symbol, const char* why);

}  // namespace guest
