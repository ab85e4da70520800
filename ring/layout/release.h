// The release of this tree. CMakeLists.txt reads this file.
//
// ```cpp
// #include <string_view>
// bool is_ours(std::string_view release) { return release == ring::this_release; }
// ```
#pragma once

namespace ring {

inline constexpr char this_release[] = "0.1.0";

}  // namespace ring
