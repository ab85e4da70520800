// Modules, libraries, functions and globals. CUSTOM because an image is as long as it says itself, JIT options come
// with buffers, and the reply to a lookup brings what the guest needs to check and pack launches.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "host/untrusted/custom/custom.h"
#include "host/untrusted/custom/image.h"
#include "ring/api/records.h"

namespace host::custom {
namespace {

using api::Handle;

// A name that follows a record. Empty: the record is malformed.
std::string_view read_name(Request& r, std::uint64_t bytes) {
  const auto* at = reinterpret_cast<const char*>(r.in.take(bytes));
  if (at == nullptr || bytes == 0 || at[bytes - 1] != 0 || std::memchr(at, 0, bytes) != at + bytes - 1) {
    r.in.fail();
    return {};
  }
  return {at, bytes - 1};
}

struct Params {
  std::vector<std::uint32_t> layout;  // offset, size, offset, size...
  std::uint32_t bytes = 0;
};

template <class Ask>
Params layout_of(Ask ask) {
  Params params;
  std::size_t offset = 0, size = 0;
  for (std::size_t i = 0; ask(i, &offset, &size) == CUDA_SUCCESS; ++i) {
    params.layout.push_back(static_cast<std::uint32_t>(offset));
    params.layout.push_back(static_cast<std::uint32_t>(size));
    params.bytes = std::max(params.bytes, static_cast<std::uint32_t>(offset + size));
  }
  return params;
}

// Appends what a guest needs to know of a function or kernel.
template <class Attribute>
void describe(Request& r, std::uint64_t id, const Params& params, Attribute attribute, std::string_view name) {
  const api::FunctionReply reply{.id = id,
                                 .params = static_cast<std::uint32_t>(params.layout.size() / 2),
                                 .param_bytes = params.bytes,
                                 .max_threads = attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
                                 .static_shared = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
                                 .max_dynamic_shared = attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
                                 .name_bytes = static_cast<std::uint32_t>(name.size() + 1)};
  r.out.bytes(&reply, sizeof reply);
  r.out.bytes(params.layout.data(), params.layout.size() * sizeof(std::uint32_t));
  r.out.bytes(std::string(name).c_str(), name.size() + 1);
}

// Whether the description fits into a reply. If not, nothing is made: the guest could not read it and would give the id
// that it has proposed to something else.
CUresult told(Request& r, std::uint64_t id, std::uint64_t proposed) {
  if (r.out.ok()) return CUDA_SUCCESS;
  if (id == proposed) r.session.objects.drop(id);
  return CUDA_ERROR_NOT_SUPPORTED;
}

// A load's last step: the image is the session's under its id, or the record named an id that is taken.
template <class T>
CUresult loaded(Request& r, LoadRequest& load, Handle kind, T handle, CUresult result) {
  load.reply(result);
  if (result != CUDA_SUCCESS) return result;
  if (!r.session.images.keep(load.id(), load.take_share())) return r.broken();
  return r.session.objects.put(load.id(), kind, handle, r.place()) ? CUDA_SUCCESS : r.broken();
}

CUresult describe_function(Request& r, CUfunction function, std::uint64_t proposed, std::uint64_t owner,
                           std::string_view name) {
  const std::uint64_t id = r.session.objects.put_once(proposed, Handle::Function, function, r.place(owner));
  if (id == 0) return r.broken();
  const Driver& d = r.session.driver;
  const Params params =
      layout_of([&](std::size_t i, std::size_t* o, std::size_t* s) { return d.cuFuncGetParamInfo(function, i, o, s); });
  describe(
      r, id, params,
      [&](CUfunction_attribute a) {
        int value = 0;
        d.cuFuncGetAttribute(&value, a, function);
        return static_cast<std::uint32_t>(value);
      },
      name);
  return told(r, id, proposed);
}

CUresult describe_kernel(Request& r, CUkernel kernel, std::uint64_t proposed, std::uint64_t owner,
                         std::string_view name) {
  const std::uint64_t id = r.session.objects.put_once(proposed, Handle::Kernel, kernel, r.place(owner));
  if (id == 0) return r.broken();
  const Driver& d = r.session.driver;
  const CUdevice device = static_cast<CUdevice>(ring::context_of(r.header.flags));
  const Params params =
      layout_of([&](std::size_t i, std::size_t* o, std::size_t* s) { return d.cuKernelGetParamInfo(kernel, i, o, s); });
  describe(
      r, id, params,
      [&](CUfunction_attribute a) {
        int value = 0;
        d.cuKernelGetAttribute(&value, a, kernel, device);
        return static_cast<std::uint32_t>(value);
      },
      name);
  return told(r, id, proposed);
}

template <class Owner, class Get>
CUresult find_global(Request& r, Handle kind, Get get) {
  const auto record = r.in.read<api::GlobalRecord>();
  const std::string_view name = read_name(r, record.name_bytes);
  if (!r.complete()) return r.broken();
  const auto making = r.session.making();
  auto* owner = static_cast<Owner>(r.session.objects.find(record.from, kind));
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  const CUresult result = get(&address, &bytes, owner, name.data());
  if (result != CUDA_SUCCESS) return result;
  r.session.ranges.add(address, bytes, record.from, ring::context_of(r.header.flags));
  const api::GlobalReply reply{.address = address, .bytes = bytes};
  r.out.bytes(&reply, sizeof reply);
  return CUDA_SUCCESS;
}

template <class T, class Unload>
CUresult close(Request& r, Handle kind, Unload unload) {
  const auto record = r.in.read<api::CloseRecord>();
  if (!r.complete()) return r.broken();
  const auto ending = r.session.ending();
  auto* handle = static_cast<T>(r.session.objects.find(record.id, kind));
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = unload(handle);
  if (result == CUDA_SUCCESS) r.session.forget(r.session.objects.drop_with_owned(record.id));
  return result;
}

}  // namespace

CUresult cuModuleLoadDataEx(Request& r) {
  LoadRequest load(r);
  if (!load.ok()) return load.refused();
  const auto making = r.session.making();
  CUmodule module = nullptr;
  const CUresult result =
      r.session.driver.cuModuleLoadDataEx(&module, load.image(), load.option_count(), load.options(), load.values());
  return loaded(r, load, Handle::Module, module, result);
}

CUresult cuModuleLoadData(Request& r) { return custom::cuModuleLoadDataEx(r); }

CUresult cuLibraryLoadData(Request& r) {
  LoadRequest load(r);
  if (!load.ok()) return load.refused();
  CUlibrary library = nullptr;
  const CUresult result = r.session.driver.cuLibraryLoadData(&library, load.image(), load.options(), load.values(),
                                                             load.option_count(), nullptr, nullptr, 0);
  return loaded(r, load, Handle::Library, library, result);
}

CUresult cuModuleUnload(Request& r) {
  return close<CUmodule>(r, Handle::Module, [&](CUmodule m) { return r.session.driver.cuModuleUnload(m); });
}

CUresult cuLibraryUnload(Request& r) {
  return close<CUlibrary>(r, Handle::Library, [&](CUlibrary l) { return r.session.driver.cuLibraryUnload(l); });
}

CUresult cuModuleGetFunction(Request& r) {
  const auto record = r.in.read<api::LookupRecord>();
  const std::string_view name = read_name(r, record.name_bytes);
  if (!r.complete()) return r.broken();
  const auto making = r.session.making();
  auto* module = static_cast<CUmodule>(r.session.objects.find(record.from, Handle::Module));
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUfunction function = nullptr;
  const CUresult result = r.session.driver.cuModuleGetFunction(&function, module, name.data());
  return result != CUDA_SUCCESS ? result : describe_function(r, function, record.id, record.from, name);
}

CUresult cuLibraryGetKernel(Request& r) {
  const auto record = r.in.read<api::LookupRecord>();
  const std::string_view name = read_name(r, record.name_bytes);
  if (!r.complete()) return r.broken();
  const auto making = r.session.making();
  auto* library = static_cast<CUlibrary>(r.session.objects.find(record.from, Handle::Library));
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUkernel kernel = nullptr;
  const CUresult result = r.session.driver.cuLibraryGetKernel(&kernel, library, name.data());
  return result != CUDA_SUCCESS ? result : describe_kernel(r, kernel, record.id, record.from, name);
}

CUresult cuKernelGetFunction(Request& r) {
  const auto record = r.in.read<api::DeriveRecord>();
  if (!r.complete()) return r.broken();
  const auto making = r.session.making();
  auto* kernel = static_cast<CUkernel>(r.session.objects.find(record.from, Handle::Kernel));
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUfunction function = nullptr;
  const CUresult result = r.session.driver.cuKernelGetFunction(&function, kernel);
  return result != CUDA_SUCCESS ? result : describe_function(r, function, record.id, record.from, "");
}

CUresult cuLibraryGetModule(Request& r) {
  const auto record = r.in.read<api::DeriveRecord>();
  if (!r.complete()) return r.broken();
  const auto making = r.session.making();
  auto* library = static_cast<CUlibrary>(r.session.objects.find(record.from, Handle::Library));
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUmodule module = nullptr;
  const CUresult result = r.session.driver.cuLibraryGetModule(&module, library);
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t id = r.session.objects.put_once(record.id, Handle::Module, module, r.place(record.from));
  if (id == 0) return r.broken();
  r.out.slot(id);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(Request& r) {
  return find_global<CUmodule>(r, Handle::Module, r.session.driver.cuModuleGetGlobal_v2);
}

CUresult cuLibraryGetGlobal(Request& r) {
  return find_global<CUlibrary>(r, Handle::Library, r.session.driver.cuLibraryGetGlobal);
}

}  // namespace host::custom
