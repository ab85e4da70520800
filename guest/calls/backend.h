// Connects this library to the function tables in ring/abi. The tables call back for data that only a libcuda has.
#pragma once

namespace guest::calls {

// Must be called once, before a program can get one of the function tables.
void install_backend();

}  // namespace guest::calls
