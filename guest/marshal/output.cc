#include "guest/marshal/output.h"

#include <array>
#include <cstdio>

#include "guest/marshal/exchange.h"
#include "ring/api/records.h"

namespace guest {

void print_output() {
  if (ready() != CUDA_SUCCESS || !session()->usable()) return;
  for (std::uint64_t length = 1; length != 0;) {
    length = 0;
    const api::TakeOutputRecord record{.room = api::max_output};
    send_record(api::id_of::take_output, api::Way::Waited, 0, record, {}, [&](CUresult result, ring::SharedReader& r) {
      if (result != CUDA_SUCCESS) return;
      length = r.slot();
      std::array<char, api::max_output> text;
      if (length > text.size() || !r.copy(text.data(), length)) return r.fail(), void(length = 0);
      std::fwrite(text.data(), 1, length, stdout);
    });
  }
}

}  // namespace guest
