// Finds workers, ivgpud and QEMU killed by a signal that none of our processes sent: a fault, an assertion or the jail.
// stderr reports each death. With IVGPU_STRICT, as in our tests, the exit code reports it even if the program
// succeeded.
#pragma once

#include <string>
#include <vector>

namespace ivgpu {

// "QEMU was killed by signal 11 (SEGV)" for a Child's exit code. Returns "" if no signal ended the child, or if ivgpu
// sent that signal (`sent`).
std::string death_of(const std::string& who, int code, int sent = 0);

// A sentence for each failed worker in the last status of ivgpud.
std::vector<std::string> deaths_of_workers(const std::string& last_status);

// Prints `deaths` on stderr. Returns exit_code::died if `deaths` is not empty and IVGPU_STRICT is set, else `code`.
int report_deaths(int code, const std::vector<std::string>& deaths);

}  // namespace ivgpu
