// Connects this library to the tables of functions in ring/abi, which ask it for what only a libcuda can answer.
#pragma once

namespace guest::calls {

// Makes the tables ask this library. Call it once, before a program can get one of them.
void install_backend();

}  // namespace guest::calls
