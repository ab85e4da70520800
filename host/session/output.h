// The output of kernels, and the simulated GPU's fault diagnosis. When the driver synchronises, it writes device printf
// text to this process's standard output. This module catches the text, so that it reaches the guest program's output
// in order with the program's own lines. A diagnosis of a fault, or of an image that cannot be loaded, goes to the
// guest's log.
//
// There is one instance per process. Thread-safe. Unfetched text is bounded. The oldest output is dropped, as by the
// driver when its buffer overflows. The newest diagnosis is dropped, since the first fault explains later ones.
#pragma once

#include <cstddef>
#include <span>

#include "host/driver/driver.h"

namespace host {

// Replaces stdout, to which the driver prints, by a stream of this module. Must be called before the driver library is
// loaded. If the result is false, output is not caught.
bool catch_output();

// Collects the driver's error reports (cuLogsRegisterCallback) until the process ends. Precondition: the driver is the
// simulated GPU. The simulated GPU's reports contain only the program's kernels and addresses; a real driver's reports
// may contain data of the host. Returns false if the driver has no error log.
bool catch_diagnosis(const Driver& driver);

// Returns whether output or a diagnosis can be fetched. Costs one load.
bool output_waiting();

// Both functions move the oldest text into `room` and return the text's length in bytes. A diagnosis consists of whole
// lines, each with its newline.
std::size_t take_output(std::span<std::byte> room);
std::size_t take_diagnosis(std::span<std::byte> room);

}  // namespace host
