#include "host/untrusted/calls/image.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ring/abi/image.h"
#include "ring/api/jit_options.h"
#include "ring/mutants.h"

namespace host::calls {
namespace {

constexpr std::uint32_t max_parts = 4096;
constexpr std::uint64_t max_image = 1ULL << 30;  // the largest seen in NVIDIA's libraries is 59 MB

// Whether an image's own headers keep within it: a driver is given no length and goes by these. A wrapper is none that
// a guest may send, since it holds addresses; text may go on to the zeros behind the last part.
bool keeps_within(std::span<const std::byte> part) {
  switch (cuabi::image_kind(part)) {
    case cuabi::ImageKind::Wrapper: return false;
    case cuabi::ImageKind::Text: return true;
    default: return cuabi::image_size(part) != 0;
  }
}

}  // namespace

LoadRequest::LoadRequest(Request& r) : r_(r) {
  record_ = r.in.read<api::LoadRecord>();
  std::vector<std::uint64_t> sizes;
  bool sound = r.in.ok() && record_.parts >= 1 && record_.parts <= max_parts && record_.options <= api::max_jit_options;
  if (sound) {
    sizes.resize(record_.parts);
    for (auto& size : sizes) size = r.in.slot();
    sound = read_options() && read_parts(sizes);
  }
  if (refused_ != CUDA_SUCCESS) return;
  if (!sound || !r.complete()) {
    refused_ = r.broken();
  } else if (!parts_keep_within(sizes)) {
    refused_ = CUDA_ERROR_INVALID_IMAGE;
  } else if (!take_held(sizes)) {
    refused_ = CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    assemble();
    lend_logs();
  }
}

bool LoadRequest::parts_keep_within(const std::vector<std::uint64_t>& sizes) const {
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!keeps_within({starts_[i], sizes[i]})) return false;
  return true;
}

// A driver keeps its own copy of an image, and one of its parts unpacked.
bool LoadRequest::take_held(const std::vector<std::uint64_t>& sizes) {
  std::uint64_t bytes = 0, unpacked = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    bytes += ring::padded(sizes[i]);
    unpacked = std::max(unpacked, cuabi::largest_unpacked({starts_[i], sizes[i]}));
  }
  return unpacked <= std::numeric_limits<std::uint64_t>::max() - bytes && r_.session.may_make_another() &&
         held_.take(r_.session.image_budget, bytes + unpacked);
}

bool LoadRequest::read_options() {
  options_.resize(record_.options);
  values_.resize(record_.options);
  for (auto& option : options_) option = static_cast<CUjit_option>(r_.in.slot());
  for (auto& value : values_) value = reinterpret_cast<void*>(r_.in.slot());
  return r_.in.ok() &&
         std::all_of(options_.begin(), options_.end(), [](CUjit_option o) { return api::crosses_boundary(o); });
}

bool LoadRequest::read_parts(const std::vector<std::uint64_t>& sizes) {
  std::uint64_t total = 0;
  for (const std::uint64_t size : sizes) {
    if (size == 0 || size > max_image - total) return false;
    total += ring::padded(size);
  }
  const bool staged = record_.arena != ring::absent;
  const ring::SharedBytes arena = staged ? r_.session.arena(record_.arena, total) : ring::SharedBytes();
  const std::byte* const in_record = staged ? nullptr : r_.in.take(total);
  if (staged ? !arena.there() : in_record == nullptr) return false;
  if (!read_.take(r_.session.image_budget, total)) {  // before it is copied
    refused_ = CUDA_ERROR_OUT_OF_MEMORY;
    return false;
  }
  bytes_.assign(total / 8 + 2, 0);  // zeros follow the last part: PTX text that lacks its NUL still ends
  if (staged)
    arena.copy_out(bytes_.data(), 0, total);
  else
    std::memcpy(bytes_.data(), in_record, total);
  if (staged && ring::wrong(ring::Mutant::image_twice)) arena.copy_out(bytes_.data(), 0, total);
  std::byte* at = reinterpret_cast<std::byte*>(bytes_.data());
  for (const std::uint64_t size : sizes) {
    starts_.push_back(at);
    std::memset(at + size, 0, ring::padded(size) - size);  // a driver looks at four bytes, however few there are
    at += ring::padded(size);
  }
  return static_cast<std::uint32_t>(record_.form) <= static_cast<std::uint32_t>(api::ImageForm::Prelinked) &&
         (record_.parts == 1 || record_.form == static_cast<std::uint32_t>(api::ImageForm::Prelinked));
}

// Builds the wrapper that cudart's programs hold: magic and version, the container, the relocatable containers.
void LoadRequest::assemble() {
  const auto form = static_cast<api::ImageForm>(record_.form);
  image_ = starts_[0];
  if (form == api::ImageForm::Plain) return;
  const std::uint64_t version = form == api::ImageForm::Prelinked ? 2 : 1;
  prelinked_.assign(starts_.begin() + 1, starts_.end());
  prelinked_.push_back(nullptr);
  wrapper_[0] = cuabi::wrapper_magic | version << 32;
  wrapper_[1] = reinterpret_cast<std::uint64_t>(starts_[0]);
  wrapper_[2] = version == 2 ? reinterpret_cast<std::uint64_t>(prelinked_.data()) : 0;
  image_ = wrapper_;
}

// The driver writes logs into our buffers, as long as the guest's are.
void LoadRequest::lend_logs() {
  for (std::size_t i = 0; i < options_.size(); ++i) {
    const auto size = static_cast<std::size_t>(
        std::min(reinterpret_cast<std::uint64_t>(values_[i]), std::uint64_t{api::max_jit_log}));
    if (options_[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) info_.assign(size + 1, 0);
    if (options_[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) error_.assign(size + 1, 0);
  }
  info_.resize(std::max<std::size_t>(info_.size(), 1));
  error_.resize(std::max<std::size_t>(error_.size(), 1));
  for (std::size_t i = 0; i < options_.size(); ++i) {
    if (options_[i] == CU_JIT_INFO_LOG_BUFFER) values_[i] = info_.data();
    if (options_[i] == CU_JIT_ERROR_LOG_BUFFER) values_[i] = error_.data();
    if (options_[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) values_[i] = reinterpret_cast<void*>(info_.size() - 1);
    if (options_[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) values_[i] = reinterpret_cast<void*>(error_.size() - 1);
  }
}

void LoadRequest::reply(CUresult result) {
  for (std::size_t i = 0; i < options_.size(); ++i) {
    const bool ours = options_[i] == CU_JIT_INFO_LOG_BUFFER || options_[i] == CU_JIT_ERROR_LOG_BUFFER;
    r_.out.slot(ours ? 0 : reinterpret_cast<std::uint64_t>(values_[i]));
  }
  for (const std::vector<char>* log : {&info_, &error_}) {
    const std::size_t length = strnlen(log->data(), log->size());
    r_.out.slot(length);
    r_.out.bytes(log->data(), length);
  }
  if (result != CUDA_SUCCESS) r_.out_on_error = r_.out.used();
}

}  // namespace host::calls
