// The JIT linker. A link's image is the concatenation of its inputs.
#include <algorithm>
#include <cstring>

#include "ring/api/jit_options.h"
#include "tests/fake/state.h"

namespace fake {
namespace {

void check_options(const char* call, unsigned count, const CUjit_option* names) {
  for (unsigned i = 0; i < count; ++i)
    if (!api::crosses_boundary(names[i])) die("%s: JIT option %d", call, static_cast<int>(names[i]));
}

void write_link_log(const PendingLink& link, CUjit_option buffer, CUjit_option size, std::uint64_t room) {
  for (std::size_t i = 0; i < link.names.size(); ++i)
    if (link.names[i] == size) link.values[i] = reinterpret_cast<void*>(room);
  write_log(buffer, size, static_cast<unsigned>(link.names.size()), link.names.data(), link.values);
  for (std::size_t i = 0; i < link.names.size(); ++i)
    if (link.names[i] == size && room != 0)
      link.values[i] = reinterpret_cast<void*>(std::min<std::uint64_t>(room - 1, 24));
}

// Writes to all buffers in the link's options, as a driver may at any step.
PendingLink& step(const char* call, CUlinkState handle) {
  check(call, Handle::Link, handle);
  PendingLink& link = state->links[handle];
  write_link_log(link, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, link.info_room);
  write_link_log(link, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, link.error_room);
  return link;
}

CUresult create_link(unsigned count, CUjit_option* names, void** values, CUlinkState* made) {
  Entry entry("cuLinkCreate_v2");
  check_options("cuLinkCreate_v2", count, names);
  if (entry.failed()) return entry.result;
  *made = issue<CUlinkState>(Handle::Link);
  PendingLink& link = state->links[*made] = {};
  link.names.assign(names, names + count);
  link.values = values;
  link.info_room = option(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, count, names, values);
  link.error_room = option(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, count, names, values);
  return CUDA_SUCCESS;
}

CUresult add_to_link(CUlinkState handle, CUjitInputType, void* data, std::size_t size, const char* name, unsigned count,
                     CUjit_option* names, void**) {
  Entry entry("cuLinkAddData_v2", false, false);
  check_options("cuLinkAddData_v2", count, names);
  if (std::any_of(names, names + count, api::is_of_whole_link)) die("cuLinkAddData_v2: an option of the whole link");
  if (entry.failed()) return entry.result;
  PendingLink& link = step("cuLinkAddData_v2", handle);
  touch(data, size);
  if (name != nullptr) touch(name, std::strlen(name));
  const auto* bytes = static_cast<const std::byte*>(data);
  link.image.insert(link.image.end(), bytes, bytes + std::min<std::size_t>(size, 1 << 20));
  return CUDA_SUCCESS;
}

CUresult complete_link(CUlinkState handle, void** image, std::size_t* bytes) {
  Entry entry("cuLinkComplete", false, false);
  if (entry.failed()) return entry.result;
  PendingLink& link = step("cuLinkComplete", handle);
  if (link.image.empty()) return CUDA_ERROR_INVALID_VALUE;
  return *image = link.image.data(), *bytes = link.image.size(), CUDA_SUCCESS;
}

CUresult destroy_link(CUlinkState handle) {
  Entry entry("cuLinkDestroy", false, false);
  if (entry.failed()) return entry.result;
  step("cuLinkDestroy", handle);
  destroy("cuLinkDestroy", Handle::Link, handle);
  state->links.erase(handle);
  return CUDA_SUCCESS;
}

}  // namespace

void fill_links(host::Driver& t) {
  t.cuLinkCreate_v2 = create_link;
  t.cuLinkAddData_v2 = add_to_link;
  t.cuLinkComplete = complete_link;
  t.cuLinkDestroy = destroy_link;
}

}  // namespace fake
