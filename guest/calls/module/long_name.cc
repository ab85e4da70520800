#include "guest/calls/module/long_name.h"

#include <algorithm>
#include <cstring>

#include "guest/base/log.h"
#include "guest/calls/module/image.h"

namespace guest {
namespace {

template <class Record, class Read>
Sent ask(int call, Context& context, const Record& record, Read read) {
  const auto write = [&](ring::Writer& w) { w.bytes(&record, sizeof record); };
  return send(this_channel(), sending(call, api::Way::Waited, context, sizeof record, Earlier::Left), write, read);
}

}  // namespace

SentName::SentName(const char* name, Context& context) {
  const std::size_t bytes = std::strlen(name) + 1;
  if (bytes <= api::max_inline_name)
    part_ = {name, bytes};
  else
    result_ = bring(name, bytes, context);
}

CUresult SentName::bring(const char* name, std::size_t bytes, Context& context) {
  if (bytes > api::max_name) {
    log(Level::Warn, "a name of %zu letters is looked up, and none of more than %llu can be", bytes - 1,
        static_cast<unsigned long long>(api::max_name - 1));
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  one_at_a_time_.emplace(session()->code.long_names);
  StagedImage staged({.form = api::ImageForm::Plain, .parts = {{name, bytes}}, .bytes = ring::padded(bytes)});
  if (!staged.ok()) return session()->liveness().usable() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_DEVICE_UNAVAILABLE;
  const api::BringNameRecord record{.arena = staged.offset(), .bytes = bytes};
  const Sent sent = ask(api::id_of::bring_name, context, record, read_nothing);
  if (sent.unanswered) staged.keep_until(sent.use);
  return sent.result;
}

std::string ask_for_name(std::uint64_t id, api::Handle kind, Context& context) {
  std::string name;
  for (std::size_t came = api::max_name_piece; came == api::max_name_piece && name.size() < api::max_name;) {
    const std::size_t done = name.size();
    const api::TakeNameRecord record{.function = kind == api::Handle::Function ? id : 0,
                                     .kernel = kind == api::Handle::Kernel ? id : 0,
                                     .offset = done,
                                     .room = api::max_name_piece};
    came = 0;
    ask(api::id_of::take_name, context, record, [&](CUresult result, ring::SharedReader& r) {
      if (result != CUDA_SUCCESS) return;
      const std::uint64_t length = r.slot();
      if (length > record.room || length > r.left()) return r.fail();
      name.resize(done + length);
      if (r.copy(name.data() + done, length)) came = length;
    });
  }
  return name;
}

}  // namespace guest
