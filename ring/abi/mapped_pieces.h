// cuMemUnmap in a map of addresses: the end of a reservation's mapped pieces. Guest and worker each have such a map.
//
// ```cpp
// #include <set>
// struct Piece {
//   std::uint64_t start;
//   std::uint32_t reservation;  // 0: not a piece of a reservation
//   std::uint64_t object;       // 0: not known any more
//   bool operator<(const Piece& other) const { return start < other.start; }
//   friend bool operator<(const Piece& a, std::uint64_t b) { return a.start < b; }
//   friend bool operator<(std::uint64_t a, const Piece& b) { return a < b.start; }
// };
// std::vector<std::uint64_t> unmap(std::set<Piece, std::less<>>& pieces, std::uint64_t start, std::uint64_t bytes) {
//   return cuabi::end_mapped_pieces(pieces, start, bytes, [&](auto piece) { pieces.erase(piece); });
// }
// ```
#pragma once

#include <cstdint>
#include <vector>

namespace cuabi {

// Takes the mapped pieces that begin in [start, start + bytes) out of `entries`, which is ordered by start, and returns
// the memory object of each. `take_out(entry)` erases one entry and leaves the other iterators valid.
template <class Entries, class TakeOut>
std::vector<std::uint64_t> end_mapped_pieces(const Entries& entries, std::uint64_t start, std::uint64_t bytes,
                                             TakeOut take_out) {
  std::vector<std::uint64_t> objects;
  for (auto at = entries.lower_bound(start); at != entries.end() && at->start - start < bytes;) {
    const auto piece = at++;
    if (piece->reservation == 0) continue;
    if (piece->object != 0) objects.push_back(piece->object);
    take_out(piece);
  }
  return objects;
}

}  // namespace cuabi
