#include "host/simgpu/api/module/link_state.h"

#include <algorithm>

#include "host/simgpu/image/linked.h"

namespace simgpu {

CUresult LinkState::fail(CUresult code, const std::string& why) {
  error += "error   : " + why + "\n";
  return code;
}

CUresult LinkState::add(CUjitInputType type, const ImageTexts& texts, std::string name) {
  ++inputs_;
  if (name.empty()) name = "input " + std::to_string(inputs_);
  if (closed_) return fail(CUDA_ERROR_INVALID_VALUE, "'" + name + "' comes after the link is complete");
  if (failed_ != CUDA_SUCCESS) return failed_;
  if (texts.code != CUDA_SUCCESS) return fail(texts.code, "'" + name + "': " + texts.log);
  info += texts.log;
  for (const std::string& ptx : texts.ptx) {
    Text text{.input = name, .ptx = ptx, .names = examine(ptx)};
    if (text.names.code != CUDA_SUCCESS) return fail(text.names.code, "'" + name + "', " + text.names.log);
    if (type == CU_JIT_INPUT_LIBRARY) {
      offered_.push_back(std::move(text));
    } else if (const CUresult result = take(std::move(text)); result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

CUresult LinkState::take(Text text) {
  CUresult result = CUDA_SUCCESS;
  for (const std::string& name : text.names.defined) {
    const auto found = defined_.find(name);
    if (found == defined_.end()) continue;
    result = fail(CUDA_ERROR_INVALID_SOURCE, "Multiple definition of '" + name + "' in '" + text.input +
                                                 "', first defined in '" + found->second + "'");
  }
  failed_ = result;
  if (result != CUDA_SUCCESS) return result;
  for (const std::string& name : text.names.defined) defined_.emplace(name, text.input);
  weak_.insert(text.names.weak.begin(), text.names.weak.end());
  for (const std::string& name : text.names.needed) needed_.try_emplace(name, text.input);
  taken_.push_back(std::move(text));
  return CUDA_SUCCESS;
}

bool LinkState::is_wanted(const Text& text) const {
  const auto missing = [&](const std::string& name)
                           REQUIRES(mutex) { return needed_.contains(name) && !is_defined(name); };
  return std::any_of(text.names.defined.begin(), text.names.defined.end(), missing) ||
         std::any_of(text.names.weak.begin(), text.names.weak.end(), missing);
}

// Adds library members until no undefined name is left that a member defines. Each added member may need others.
CUresult LinkState::take_from_libraries() {
  for (;;) {
    const auto wanted = std::find_if(offered_.begin(), offered_.end(),
                                     [&](const Text& text) REQUIRES(mutex) { return is_wanted(text); });
    if (wanted == offered_.end()) return CUDA_SUCCESS;
    Text text = std::move(*wanted);
    offered_.erase(wanted);
    if (const CUresult result = take(std::move(text)); result != CUDA_SUCCESS) return result;
  }
}

CUresult LinkState::complete() {
  if (failed_ != CUDA_SUCCESS) return failed_;
  if (closed_) return CUDA_ERROR_INVALID_HANDLE;
  closed_ = true;
  return failed_ = make_image();
}

CUresult LinkState::make_image() {
  if (const CUresult result = take_from_libraries(); result != CUDA_SUCCESS) return result;
  CUresult result = CUDA_SUCCESS;
  for (const auto& [name, input] : needed_) {
    if (!is_defined(name))
      result = fail(CUDA_ERROR_INVALID_SOURCE, "Undefined reference to '" + name + "' in '" + input + "'");
  }
  if (result != CUDA_SUCCESS) return result;
  std::vector<std::string> texts;
  for (const Text& text : taken_) texts.push_back(text.ptx);
  // a link without inputs yields an empty image
  if (texts.empty()) texts.emplace_back(".version 9.0\n.target sm_75\n.address_size 64\n");
  if (texts.size() > max_linked) return fail(CUDA_ERROR_OUT_OF_MEMORY, "there are too many inputs");
  image = write_linked(texts);
  return CUDA_SUCCESS;
}

}  // namespace simgpu
