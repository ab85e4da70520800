// Modules, libraries, kernels and globals. CUSTOM because an image tells its own length, JIT options come with buffers,
// and a lookup's reply brings what launches are checked and packed with.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "guest/log.h"
#include "guest/marshal/custom/custom.h"
#include "guest/marshal/exchange.h"
#include "ring/abi/image.h"
#include "ring/api/jit_options.h"
#include "ring/api/records.h"

namespace guest {
namespace {

constexpr std::size_t inline_image = 48 << 10;  // a record holds 64 KiB, with sizes and options

// ---- images --------------------------------------------------------------------------------------------------------

struct Image {
  api::ImageForm form = api::ImageForm::Plain;
  std::vector<Part> parts;
  std::size_t bytes = 0;  // padded sum
};

bool add_part(Image& image, const void* at) {
  std::size_t size = at != nullptr ? cuabi::image_size(at) : 0;
  if (size == 0 && at != nullptr && *static_cast<const char*>(at) == '\0')
    size = 1;  // no text is for the driver to judge
  if (size == 0) return false;
  image.parts.push_back({at, size});
  image.bytes += ring::padded(size);
  return true;
}

// What is to be sent of an image. False: it contradicts itself.
bool gather(const void* at, Image& image) {
  if (cuabi::image_kind(at) != cuabi::ImageKind::Wrapper) return add_part(image, at);
  cuabi::ImageWrapper wrapper;
  std::memcpy(&wrapper, at, sizeof wrapper);
  image.form = wrapper.version == 2 ? api::ImageForm::Prelinked : api::ImageForm::Wrapper;
  if (!add_part(image, wrapper.data)) return false;
  if (wrapper.version != 2 || wrapper.more == nullptr) return true;
  for (const void* const* more = wrapper.more; *more != nullptr; ++more)
    if (!add_part(image, *more)) return false;
  return true;
}

// ---- JIT options
// -----------------------------------------------------------------------------------------------------

struct Options {
  unsigned count = 0;
  CUjit_option* names = nullptr;
  void** values = nullptr;
};

bool are_served(const Options& o) {
  for (unsigned i = 0; i < o.count; ++i)
    if (!api::crosses_boundary(o.names[i])) {
      log(Level::Warn, "JIT option %d is not served yet", static_cast<int>(o.names[i]));
      return false;
    }
  return o.count <= api::max_jit_options;
}

void* value_of(const Options& o, CUjit_option name) {
  for (unsigned i = 0; i < o.count; ++i)
    if (o.names[i] == name) return o.values[i];
  return nullptr;
}

void fill_log(const Options& o, CUjit_option buffer, CUjit_option size, ring::SharedReader& r) {
  const std::uint64_t length = r.slot();
  const auto room = reinterpret_cast<std::size_t>(value_of(o, size));
  auto* into = static_cast<char*>(value_of(o, buffer));
  if (length > ring::reply_bytes) return r.fail();
  std::string text(length, '\0');
  if (!r.copy(text.data(), length) || into == nullptr || room == 0) return;
  const std::size_t n = std::min<std::size_t>(length, room - 1);
  std::memcpy(into, text.data(), n);
  into[n] = '\0';
}

// The driver rewrites values in place: wall time, the logs' lengths.
void take_options(const Options& o, ring::SharedReader& r) {
  std::array<std::uint64_t, api::max_jit_options> values{};
  for (unsigned i = 0; i < o.count; ++i) values[i] = r.slot();
  fill_log(o, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, r);
  fill_log(o, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, r);
  for (unsigned i = 0; r.ok() && i < o.count; ++i)
    if (o.names[i] != CU_JIT_INFO_LOG_BUFFER && o.names[i] != CU_JIT_ERROR_LOG_BUFFER)
      o.values[i] = reinterpret_cast<void*>(values[i]);
}

std::uint64_t sent_value(const Options& o, unsigned i) {
  const bool buffer = o.names[i] == CU_JIT_INFO_LOG_BUFFER || o.names[i] == CU_JIT_ERROR_LOG_BUFFER;
  return buffer ? 0 : reinterpret_cast<std::uint64_t>(o.values[i]);
}

// ---- loading
// ---------------------------------------------------------------------------------------------------------

// Copies an image to where the worker finds it: pinned memory is the only memory both map. Null: the arena is full.
class StagedImage {
 public:
  explicit StagedImage(const Image& image) {
    at_ = session()->arena->allocate(image.bytes, 0);
    std::byte* to = at_;
    for (const Part& part : image.parts) {
      if (at_ == nullptr) return;
      std::memcpy(to, part.at, part.bytes);
      to += ring::padded(part.bytes);
    }
  }
  ~StagedImage() {
    if (at_ == nullptr) return;
    if (late_reader_.position == 0)
      session()->arena->free(at_);
    else
      session()->arena->free_after(at_, late_reader_);
  }
  StagedImage(const StagedImage&) = delete;
  StagedImage& operator=(const StagedImage&) = delete;
  bool ok() const { return at_ != nullptr; }
  std::uint64_t offset() const { return session()->arena->offset(at_); }
  // Whose reply was not waited for to the end: the image stays until it was executed.
  void keep_until(Use use) { late_reader_ = use; }

 private:
  std::byte* at_;
  Use late_reader_;
};

Sent send_load(int call, std::uint32_t device, api::LoadRecord record, const Image& image, const Options& o) {
  std::vector<std::uint64_t> words;  // sizes, options, values: as they follow the record
  for (const Part& part : image.parts) words.push_back(part.bytes);
  for (unsigned i = 0; i < o.count; ++i) words.push_back(static_cast<std::uint64_t>(o.names[i]));
  for (unsigned i = 0; i < o.count; ++i) words.push_back(sent_value(o, i));
  std::vector<Part> parts{{words.data(), words.size() * 8}};
  const auto take = [&](CUresult, ring::SharedReader& r) { take_options(o, r); };
  if (image.bytes + words.size() * 8 <= inline_image) {
    record.arena = ring::absent;
    parts.insert(parts.end(), image.parts.begin(), image.parts.end());
    return send_record(call, api::Way::Waited, device, record, parts, take);
  }
  StagedImage staged(image);
  if (!staged.ok() && !session()->usable()) return {CUDA_ERROR_DEVICE_UNAVAILABLE, {}};
  if (!staged.ok()) {
    log(Level::Error, "an image of %zu bytes does not fit into the arena: give the VM a larger region", image.bytes);
    return {CUDA_ERROR_OUT_OF_MEMORY, {}};
  }
  record.arena = staged.offset();
  const Sent sent = send_record(call, api::Way::Waited, device, record, parts, take);
  if (sent.unanswered) staged.keep_until(sent.use);
  return sent;
}

CUresult load(int call, api::Handle kind, std::uint32_t device, const void* code, const Options& o, Object*& loaded) {
  if (code == nullptr || (o.count != 0 && (o.names == nullptr || o.values == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  if (!are_served(o)) return CUDA_ERROR_NOT_SUPPORTED;
  Image image;
  if (!gather(code, image)) return CUDA_ERROR_INVALID_IMAGE;
  loaded = session()->objects.create(kind, device);
  if (loaded == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const api::LoadRecord record{.id = loaded->id.load(std::memory_order_relaxed),
                               .arena = ring::absent,
                               .form = static_cast<std::uint32_t>(image.form),
                               .parts = static_cast<std::uint32_t>(image.parts.size()),
                               .options = o.count,
                               .pad = 0};
  const Sent sent = send_load(call, device, record, image, o);
  if (sent.result != CUDA_SUCCESS && !sent.unanswered) session()->objects.retire(*loaded, {});
  return sent.result;
}

template <class Handle>
Handle handle_of_object(const Object& object) {
  return reinterpret_cast<Handle>(object.id.load(std::memory_order_relaxed));
}

// ---- lookups
// ---------------------------------------------------------------------------------------------------------

// Reads what a lookup's reply tells of a function; null when the reply is malformed.
FunctionInfo* read_function(const api::FunctionReply& reply, ring::SharedReader& r) {
  FunctionInfo* info = session()->objects.new_function();
  info->param_bytes = reply.param_bytes;
  info->max_threads = reply.max_threads;
  info->static_shared = reply.static_shared;
  info->max_dynamic_shared = reply.max_dynamic_shared;
  if (std::size_t{reply.params} * 8 > r.left() || reply.name_bytes > r.left() || reply.name_bytes == 0)
    return r.fail(), info;
  info->params.resize(reply.params);
  info->name.resize(reply.name_bytes);
  if (!r.copy(info->params.data(), std::size_t{reply.params} * 8) || !r.copy(info->name.data(), reply.name_bytes)) {
    info->params.clear();
    info->name.clear();
    return info;
  }
  info->name.pop_back();  // its NUL
  // Launches write each parameter where the layout says: the host must not make us write outside the block.
  for (const auto& p : info->params)
    if (p.offset > info->param_bytes || p.size > info->param_bytes - p.offset) r.fail();
  return info;
}

// What was found: the proposed object, or one that an earlier lookup of the same thing has made.
Object* settle_lookup(Object& proposed, api::Handle kind, const Object& owner, ring::SharedReader& r) {
  const bool function = kind != api::Handle::Module;
  api::FunctionReply reply{};
  if (function)
    reply = r.read<api::FunctionReply>();
  else
    reply.id = r.slot();
  Object* found = session()->objects.find(reinterpret_cast<const void*>(reply.id), kind);
  if (found == nullptr) return r.fail(), nullptr;
  // Made by a lookup whose reply was not waited for to the end: then it is described only now.
  if (!function || (found != &proposed && found->function != nullptr)) return found;
  found->function = read_function(reply, r);
  if (found->function->name.empty() && owner.function != nullptr) found->function->name = owner.function->name;
  return found;
}

template <class Record>
CUresult look_up(int call, api::Handle kind, std::uint32_t device, const Object& owner, Record record,
                 std::span<const Part> parts, Object*& found) {
  Session& s = *session();
  std::lock_guard one_at_a_time(s.lookups);  // who finds another's object shall find it complete
  Object* proposed = s.objects.create(kind, device);
  if (proposed == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  record.from = owner.id.load(std::memory_order_relaxed);
  record.id = proposed->id.load(std::memory_order_relaxed);
  s.objects.give(*proposed, owner);
  found = nullptr;
  const Sent sent =
      send_record(call, api::Way::Waited, device, record, parts, [&](CUresult result, ring::SharedReader& r) {
        if (result == CUDA_SUCCESS) found = settle_lookup(*proposed, kind, owner, r);
      });
  if (!sent.unanswered && (sent.result != CUDA_SUCCESS || found != proposed)) s.objects.retire(*proposed, {});
  return sent.result;
}

CUresult find_global(int call, std::uint32_t device, const Object& owner, CUdeviceptr* address, std::size_t* bytes,
                     const char* name) {
  // The driver clears both before it looks: what is not found has size 0.
  if (address != nullptr) *address = 0;
  if (bytes != nullptr) *bytes = 0;
  const std::size_t length = std::strlen(name) + 1;
  const api::GlobalRecord record{.from = owner.id.load(std::memory_order_relaxed), .name_bytes = length};
  const Part part{name, length};
  api::GlobalReply reply{};
  const Sent sent =
      send_record(call, api::Way::Waited, device, record, {&part, 1}, [&](CUresult result, ring::SharedReader& r) {
        if (result == CUDA_SUCCESS) reply = r.read<api::GlobalReply>();
      });
  if (sent.result != CUDA_SUCCESS) return sent.result;
  Session& s = *session();
  if (s.reserve_device() && !s.reservations.reserve(reply.address, reply.bytes))
    log(Level::Warn, "the device's global %s lies where this process has something else", name);
  s.allocations.add({.start = reply.address,
                     .bytes = reply.bytes,
                     .id = s.next_buffer_id.fetch_add(1),
                     .owner = record.from,
                     .device = device});
  if (address != nullptr) *address = reply.address;
  if (bytes != nullptr) *bytes = reply.bytes;
  return CUDA_SUCCESS;
}

CUresult unload(int call, std::uint32_t device, Object& object) {
  if (!wait_for_all(this_channel())) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  Session& s = *session();
  const std::uint64_t id = object.id.load(std::memory_order_relaxed);
  const Sent sent = send_record(call, api::Way::Waited, device, api::CloseRecord{.id = id});
  if (sent.result != CUDA_SUCCESS) return sent.result;
  for (Object* o : s.objects.owned_by(object)) s.objects.retire(*o, sent.use);
  s.allocations.drop_owned(id);
  s.objects.retire(object, sent.use);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult custom::cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* names,
                                    void** values) {
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Object* loaded = nullptr;
  const CUresult result =
      load(api::id_of::cuModuleLoadDataEx, api::Handle::Module, device, image, {count, names, values}, loaded);
  if (result == CUDA_SUCCESS) *module = handle_of_object<CUmodule>(*loaded);
  return result;
}

CUresult custom::cuModuleLoadData(CUmodule* module, const void* image) {
  return custom::cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult custom::cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_names, void** jit_values,
                                   unsigned jit_count, CUlibraryOption* options, void**, unsigned option_count) {
  std::uint32_t device = 0;
  if (const CUresult r = enter_without_context(device); r != CUDA_SUCCESS) return r;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (option_count != 0 && options == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < option_count; ++i)
    if (options[i] < 0 || options[i] >= CU_LIBRARY_NUM_OPTIONS) {
      return CUDA_ERROR_INVALID_VALUE;
    } else if (options[i] != CU_LIBRARY_BINARY_IS_PRESERVED) {  // the worker has its own copy in any case
      log(Level::Warn, "library option %d is not served yet", static_cast<int>(options[i]));
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  Object* loaded = nullptr;
  const CUresult result = load(api::id_of::cuLibraryLoadData, api::Handle::Library, device, code,
                               {jit_count, jit_names, jit_values}, loaded);
  if (result == CUDA_SUCCESS) *library = handle_of_object<CUlibrary>(*loaded);
  return result;
}

CUresult custom::cuModuleUnload(CUmodule module) {
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  Object* object = session()->objects.find(module, api::Handle::Module);
  return object == nullptr ? CUDA_ERROR_INVALID_HANDLE : unload(api::id_of::cuModuleUnload, device, *object);
}

CUresult custom::cuLibraryUnload(CUlibrary library) {
  std::uint32_t device = 0;
  if (const CUresult r = enter_without_context(device); r != CUDA_SUCCESS) return r;
  Object* object = session()->objects.find(library, api::Handle::Library);
  return object == nullptr ? CUDA_ERROR_INVALID_HANDLE : unload(api::id_of::cuLibraryUnload, device, *object);
}

CUresult custom::cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(module, api::Handle::Module);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (*name == '\0') return CUDA_ERROR_INVALID_VALUE;
  const Part part{name, std::strlen(name) + 1};
  Object* found = nullptr;
  const CUresult result = look_up(api::id_of::cuModuleGetFunction, api::Handle::Function, device, *owner,
                                  api::LookupRecord{.from = 0, .id = 0, .name_bytes = part.bytes}, {&part, 1}, found);
  if (result == CUDA_SUCCESS) *function = handle_of_object<CUfunction>(*found);
  return result;
}

CUresult custom::cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  std::uint32_t device = 0;
  if (const CUresult r = enter_without_context(device); r != CUDA_SUCCESS) return r;
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(library, api::Handle::Library);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Part part{name, std::strlen(name) + 1};
  Object* found = nullptr;
  const CUresult result = look_up(api::id_of::cuLibraryGetKernel, api::Handle::Kernel, device, *owner,
                                  api::LookupRecord{.from = 0, .id = 0, .name_bytes = part.bytes}, {&part, 1}, found);
  if (result == CUDA_SUCCESS) *kernel = handle_of_object<CUkernel>(*found);
  return result;
}

CUresult custom::cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(kernel, api::Handle::Kernel);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Object* found = nullptr;
  const CUresult result = look_up(api::id_of::cuKernelGetFunction, api::Handle::Function, device, *owner,
                                  api::DeriveRecord{.from = 0, .id = 0}, {}, found);
  if (result != CUDA_SUCCESS) return result;
  *function = handle_of_object<CUfunction>(*found);
  return CUDA_SUCCESS;
}

CUresult custom::cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(library, api::Handle::Library);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Object* found = nullptr;
  const CUresult result = look_up(api::id_of::cuLibraryGetModule, api::Handle::Module, device, *owner,
                                  api::DeriveRecord{.from = 0, .id = 0}, {}, found);
  if (result == CUDA_SUCCESS) *module = handle_of_object<CUmodule>(*found);
  return result;
}

CUresult custom::cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule module, const char* name) {
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(module, api::Handle::Module);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return find_global(api::id_of::cuModuleGetGlobal_v2, device, *owner, address, bytes, name);
}

CUresult custom::cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUlibrary library, const char* name) {
  std::uint32_t device = 0;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(library, api::Handle::Library);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return find_global(api::id_of::cuLibraryGetGlobal, device, *owner, address, bytes, name);
}

}  // namespace guest
