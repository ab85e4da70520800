// The output of kernels, and the simulated GPU's reports of their faults. The driver writes device printf to this
// process's standard output when it synchronises; here that is caught, so that it reaches the guest program's own
// output in order with its own lines. The diagnosis of a fault, or of an image that cannot be loaded, is for the
// guest's log.
//
// One per process, as standard output is. Thread-safe. Text that a guest never fetches is bounded: of the output, the
// oldest text is dropped, as the driver drops text that overflows its buffer; of the diagnosis, the newest, since the
// first fault explains the others.
#pragma once

#include <cstddef>
#include <span>

#include "host/driver/driver.h"

namespace host {

// Puts a stream of ours in place of stdout, which the driver prints to. Before the driver library is loaded. False: it
// could not be set up, and output goes where it went.
bool catch_output();

// Keeps the driver's reports of errors (cuLogsRegisterCallback), until the process's end. Preconditions: the driver is
// the simulated GPU, whose words name nothing but the program's own kernels and addresses; a real driver's may name
// things of the host. False: it has no such log.
bool catch_diagnosis(const Driver& driver);

// True if there is text of either kind to fetch; one load.
bool output_waiting();

// Both move the oldest text into `room` and return how much. A diagnosis is whole lines, each with its newline.
std::size_t take_output(std::span<std::byte> room);
std::size_t take_diagnosis(std::span<std::byte> room);

}  // namespace host
