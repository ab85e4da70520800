// Who has the slots of a region, for a program that finds none free.
#pragma once

#include <string>

#include "guest/region/region.h"

namespace guest {

// "vector_add (812), train (90) and 6 more", as the holders say; "" while a slot is not held. Other programs of the VM
// write these names: printable letters, few of them.
std::string holders_of_all(const CheckedRegion& region);

}  // namespace guest
