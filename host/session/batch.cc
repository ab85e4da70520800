#include "host/session/batch.h"

#include <algorithm>

namespace host {

void Batch::submitted(std::uint32_t kind, Time wanted) {
  kind %= kinds;
  if (lasts_[kind] == Time::zero()) lasts_[kind] = std::max(wanted / at_first, Time(1));
  has_.set(kind);
  expected_ += lasts_[kind];
}

void Batch::finished(Time took, Time wanted) {
  if (has_.any()) scale(std::max(shrinks, factor_of(took)), wanted);
  begin_anew();
}

void Batch::waited(Time took, Time wanted) {
  if (took <= wanted || took <= expected_ || has_.none()) return;
  scale(factor_of(took), wanted);
  expected_ = took;
}

void Batch::ended(Time took, Time wanted) {
  if (took > expected_ && has_.any()) scale(factor_of(took), wanted);
  begin_anew();
}

void Batch::scale(double factor, Time wanted) {
  for (std::uint32_t kind = 0; kind < kinds; ++kind) {
    if (!has_[kind]) continue;
    const std::chrono::duration<double, std::nano> lasts = lasts_[kind] * factor;
    lasts_[kind] = std::clamp(std::chrono::duration_cast<Time>(lasts), std::max(wanted / many, Time(1)), longest);
  }
}

}  // namespace host
