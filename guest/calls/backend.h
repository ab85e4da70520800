// Connects this library to the function tables in ring/abi, which call back for data that only a libcuda has.
#pragma once

namespace guest::calls {

// Called once, before a program can get one of the tables.
void install_backend();

}  // namespace guest::calls
