// The exported face: entry points by name.
#pragma once

#include <cstdint>
#include <string_view>

#include "ring/api/cuda.h"

namespace guest {

// cuGetProcAddress over the table: entry points that this library serves.
CUresult find_entry_point(const char* symbol, void** function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status);

// The exported function that refuses `symbol`; null where the symbol is served or nobody's.
void* refusing_entry(std::string_view symbol);

// Makes ring/abi's tables ask this library. Before a program can get at one.
void install_backend();

}  // namespace guest
