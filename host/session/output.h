// What kernels print. The driver writes device printf to this process's standard output when it synchronises; here that
// is caught, so that it reaches the guest program's own output in order with its own lines.
//
// One per process, as standard output is. Thread-safe. What a guest never fetches is bounded: the oldest text is
// dropped, as the driver drops what overflows its buffer.
#pragma once

#include <cstddef>
#include <span>

namespace host {

// Puts a stream of ours in place of stdout, which the driver prints to. Before the driver library is loaded. False: it
// could not be set up, and output goes where it went.
bool catch_output();

// Whether there is text to fetch; one load.
bool output_waiting();

// Moves the oldest text into `room`; returns how much.
std::size_t take_output(std::span<std::byte> room);

}  // namespace host
