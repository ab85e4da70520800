// The output of kernels, and the simulated GPU's reports of their faults. The driver writes the text of device printf
// to this process's standard output when it synchronises. This file catches the text, so that it reaches the guest
// program's output in order with the program's own lines. The diagnosis of a fault, or of an image that cannot be
// loaded, is for the guest's log.
//
// There is one for the process, as there is one standard output. Thread-safe. Text that a guest never fetches is
// bounded. Of the output the oldest text is dropped, as the driver does when its buffer overflows. Of the diagnosis the
// newest is dropped, since the first fault explains the others.
#pragma once

#include <cstddef>
#include <span>

#include "host/driver/driver.h"

namespace host {

// Replaces stdout, to which the driver prints, by a stream of ours. Call it before the driver library is loaded. False:
// that failed, and output goes where it went before.
bool catch_output();

// Keeps the driver's reports of errors (cuLogsRegisterCallback), until the process's end. Preconditions: the driver is
// the simulated GPU, whose words name nothing but the program's own kernels and addresses; a real driver's may name
// things of the host. False: it has no such log.
bool catch_diagnosis(const Driver& driver);

// True if there is text of either kind to fetch; one load.
bool output_waiting();

// Both move the oldest text into `room` and return its length in bytes. A diagnosis consists of whole lines, each with
// its newline.
std::size_t take_output(std::span<std::byte> room);
std::size_t take_diagnosis(std::span<std::byte> room);

}  // namespace host
