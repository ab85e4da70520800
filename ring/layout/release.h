// The release of this tree. CMakeLists.txt reads it here.
#pragma once

namespace ring {

inline constexpr char this_release[] = "0.1.0";

}  // namespace ring
