// The signals that the user ignores and blocks when ivgpu starts. The user's program inherits them. ivgpu's own processes do
// not (ring/layout/process_start.h, SignalGate).
#pragma once

#include <csignal>

namespace ivgpu {

// The first call notes them, so it comes before ivgpu changes any.
void note_user_signals();
// Sets them as noted. For a child between fork and exec.
void take_user_signals();
// Sets the defaults of those that ivgpu changes, and unblocks all. For a child between fork and exec.
void take_default_signals();

// True if the user ignores this signal, as SIGHUP by nohup. Not for signals that ivgpu changes.
bool is_ignored(int number);

}  // namespace ivgpu
