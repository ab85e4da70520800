// The signals that the user ignores and blocks when ivgpu starts. The user's program inherits these signals; ivgpu's
// own processes do not (ring/layout/process_start.h, SignalGate).
#pragma once

#include <csignal>

namespace ivgpu {

// Records the signals at the first call. Call this function before ivgpu changes a signal.
void note_user_signals();
// Restores the recorded signals. For a child between fork and exec.
void take_user_signals();
// Restores the defaults of the signals that ivgpu changes, and unblocks all. For a child between fork and exec.
void take_default_signals();

// True if the user ignores this signal, such as SIGHUP after nohup. Not valid for signals that ivgpu changes.
bool is_ignored(int number);

}  // namespace ivgpu
