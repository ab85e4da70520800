// Lists the holders of a region's slots, for the log of a program that finds no slot free.
#pragma once

#include <string>

#include "guest/region/region.h"

namespace guest {

// "vector_add (812), train (90) and 6 more": names and process ids. "" if a slot has no holder. Other programs of the
// VM write the names, so they are cut and made printable.
std::string holders_of_all(const CheckedRegion& region);

}  // namespace guest
