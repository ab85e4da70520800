// The log's words about a call that ivgpu does not serve. Whoever refuses sees that it says them once a call.
#pragma once

namespace guest {

// Names the call; at the process's first, also the command that lists all of them. Safe from any thread.
void report_refusal(const char* symbol, const char* why);

}  // namespace guest
