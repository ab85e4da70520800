// Module: the PTX texts of an image, linked into a program whose variables are in device memory.
#include <algorithm>
#include <unordered_map>

#include "host/simgpu/image/image.h"
#include "host/simgpu/vm/load.h"
#include "host/simgpu/vm/program.h"

namespace simgpu {

struct Module::Impl {
  Impl(std::unique_ptr<Program> made, AddressSpace& memory) : program(std::move(made)), space(memory) {
    for (const auto& kernel : program->kernels) kernels.emplace(kernel->name, kernel.get());
    for (const Global& global : program->globals) globals.emplace(global.name, &global);
  }
  ~Impl() {
    if (program->memory != 0) space.free(program->memory);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::unique_ptr<Program> program;
  AddressSpace& space;
  std::unordered_map<std::string_view, const Function*> kernels;
  std::unordered_map<std::string_view, const Global*> globals;
};

Module::Module(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Module::~Module() = default;

Module::Loaded load_ptx(std::span<const std::string> texts, AddressSpace& space) {
  Module::Loaded loaded;
  const LoadFailure failure = failure_of([&] {
    auto program = link(std::vector<std::string>(texts.begin(), texts.end()), space);
    loaded.module = std::make_unique<Module>(std::make_unique<Module::Impl>(std::move(program), space));
  });
  loaded.code = failure.code;
  loaded.log = failure.log;
  return loaded;
}

Module::Loaded Module::load(const void* image, AddressSpace& space) {
  const ImageTexts texts = read_image(image);
  if (texts.code != CUDA_SUCCESS) return {nullptr, texts.code, texts.log};
  Loaded loaded = load_ptx(texts.ptx, space);
  if (!texts.log.empty()) loaded.log = texts.log + (loaded.log.empty() ? "" : "\n" + loaded.log);
  return loaded;
}

const Function* Module::function(std::string_view name) const {
  const auto found = impl_->kernels.find(name);
  return found == impl_->kernels.end() ? nullptr : found->second;
}

std::vector<const Function*> Module::functions() const {
  std::vector<const Function*> all;
  for (const auto& kernel : impl_->program->kernels) all.push_back(kernel.get());
  return all;
}

const Global* Module::global(std::string_view name) const {
  const auto found = impl_->globals.find(name);
  return found == impl_->globals.end() ? nullptr : found->second;
}

namespace {
const Global* named(const std::vector<Global>& all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Global& global) { return global.name == name; });
  return found == all.end() ? nullptr : &*found;
}
}  // namespace

const Global* Module::texture_reference(std::string_view name) const {
  return named(impl_->program->texture_references, name);
}
const Global* Module::surface_reference(std::string_view name) const {
  return named(impl_->program->surface_references, name);
}

std::vector<const Global*> Module::globals() const {
  std::vector<const Global*> all;
  for (const Global& global : impl_->program->globals) all.push_back(&global);
  return all;
}

}  // namespace simgpu
