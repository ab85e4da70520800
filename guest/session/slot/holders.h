// Lists the owners of a region's slots, for the log of a program that finds no slot free.
#pragma once

#include <string>

#include "guest/region/region.h"

namespace guest {

// Returns names and process ids, for example "vector_add (812), train (90) and 6 more". Returns "" if a slot has no
// owner. Other programs of the VM write the names, so the names are cut and made printable.
std::string holders_of_all(const CheckedRegion& region);

}  // namespace guest
