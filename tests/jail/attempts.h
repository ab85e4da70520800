// What a worker tries that a guest controls: each thing by name, with one argument. The driver library of the test
// makes the attempts inside the finished jail, and tells what came of them.
#pragma once

#include <string>

namespace misbehave {

// "name argument" -> "done", "refused ERRNO", or "unknown". One that ends the process does not return.
std::string attempt(const std::string& command);

}  // namespace misbehave
