// Ends that no process of ours should come to: a worker, ivgpud or QEMU that was ended by a signal which none of our
// processes sent, be it a fault, an assertion or the jail. The user reads it on stderr; with IVGPU_STRICT set, as in
// our tests, it is the exit code, too, however well the program itself got through.
#pragma once

#include <string>
#include <vector>

namespace ivgpu {

// "QEMU was killed by signal 11 (SEGV)" of a Child's code; "" where no signal ended it, or this one, which we sent.
std::string death_of(const std::string& who, int code, int sent = 0);

// The workers that failed, by the last status of their ivgpud: a sentence each.
std::vector<std::string> deaths_of_workers(const std::string& last_status);

// Says them on stderr. Returns `code`; exit_code::died where there is one and IVGPU_STRICT is set.
int tell_deaths(int code, const std::vector<std::string>& deaths);

}  // namespace ivgpu
