// What ring/abi's tables of functions ask of this library.
#pragma once

namespace guest::calls {

// Makes them ask this library. Before a program can get at one.
void install_backend();

}  // namespace guest::calls
