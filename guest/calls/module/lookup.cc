#include "guest/calls/module/lookup.h"

#include <span>
#include <utility>

#include "guest/base/log.h"
#include "guest/base/switches.h"
#include "guest/calls/module/long_name.h"
#include "guest/calls/module/managed_variable.h"
#include "guest/marshal/reply.h"
#include "ring/api/texture_records.h"
#include "ring/base/mutex.h"

namespace guest {
namespace {

FunctionInfo* info_of(const api::FunctionReply& reply, Behind& behind, const Object& owner) {
  FunctionInfo* info = session()->objects.new_function();
  info->param_bytes = reply.param_bytes;
  info->max_threads = reply.max_threads;
  info->static_shared = reply.static_shared;
  info->max_dynamic_shared = reply.max_dynamic_shared;
  info->params = std::move(behind.layout);
  info->name = std::move(behind.text);
  if (info->name.empty() && owner.function != nullptr) info->name = owner.function->name;
  return info;
}

// Records the result of a lookup: the proposed object, or the object that an earlier lookup of the same function made.
template <api::Handle kind>
Object* commit_function(Object& proposed, const Object& owner, ring::SharedReader& r) {
  RepliedBy<api::FunctionReplyOf<kind>> replied(r);
  Object* found = session()->objects.find(reinterpret_cast<const void*>(replied.reply.id), kind);
  if (found == nullptr || !r.ok()) {
    r.fail();
    return nullptr;
  }
  // If the guest gave up waiting for an earlier lookup, the object exists without a description. The description is
  // added here.
  if (found == &proposed || found->function == nullptr) found->function = info_of(replied.reply, replied.behind, owner);
  return found;
}
Object* commit_lookup(Object& proposed, api::Handle kind, const Object& owner, ring::SharedReader& r) {
  if (kind == api::Handle::Function) return commit_function<api::Handle::Function>(proposed, owner, r);
  if (kind == api::Handle::Kernel) return commit_function<api::Handle::Kernel>(proposed, owner, r);
  const RepliedBy<api::DeriveReplyOf<api::Handle::Module>> replied(r);
  Object* found = session()->objects.find(reinterpret_cast<const void*>(replied.reply.id), kind);
  if (found == nullptr) r.fail();
  return found;
}

template <class Record>
CUresult ask(int call, api::Handle kind, Context& context, const Object& owner, Record record,
             std::span<const Part> parts, Object*& found) {
  Session& s = *session();
  ring::MutexLock one_at_a_time(s.code.lookups);
  Object* proposed = s.objects.create(kind, owning_context(kind, context));
  if (proposed == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  record.from = owner.id.load(std::memory_order_relaxed);
  record.id = proposed->id.load(std::memory_order_relaxed);
  s.objects.give(*proposed, owner);
  found = nullptr;
  const Sent sent =
      cross({.call = call, .context = context}, record, parts, [&](CUresult result, ring::SharedReader& r) {
        if (result == CUDA_SUCCESS) found = commit_lookup(*proposed, kind, owner, r);
      });
  if (!sent.unanswered && (sent.result != CUDA_SUCCESS || found != proposed)) s.objects.retire(*proposed, {});
  return sent.result;
}

// Finds the owner's only object of this kind in the context, if an earlier lookup has made it. Libraries look up a
// kernel's function before each use of the kernel.
Object* known_part(api::Handle kind, Context& context, const Object& owner) {
  Session& s = *session();
  const Context* const home = owning_context(kind, context);
  ring::MutexLock one_at_a_time(s.code.lookups);  // makes sure that each object found is complete
  for (Object* const part : s.objects.owned_by(owner)) {
    const std::uint64_t id = part->id.load(std::memory_order_acquire);
    const bool is_whole = kind != api::Handle::Function || part->function != nullptr;
    if (api::Id::of(id).kind == kind && part->context == home && is_whole) return part;
  }
  return nullptr;
}

// Completes an object whose name had no space in the reply. `find` returns the object, or the object that another
// thread has made for the same function.
template <class Find>
void keep_name(FunctionInfo& info, Find find) {
  {
    const ring::MutexLock lock(session()->code.lookups);
    if (!info.name.empty()) return;
  }
  std::string name = find();
  const ring::MutexLock lock(session()->code.lookups);
  if (info.name.empty()) info.name = std::move(name);
}

// Records a global: memory that belongs to the module or library and ends with it.
CUresult remember_global(const api::GlobalReply& reply, const Object& owner, Context& context, const char* name) {
  Session& s = *session();
  Place place{.kind = Place::Kind::Device,
              .start = reply.address,
              .bytes = reply.bytes,
              .id = s.memory.next_buffer_id.fetch_add(1),
              .owner = owner.id.load(std::memory_order_relaxed),
              .context = s.objects.context_in(owner, context.home)};
  if (reply.managed != 0) {
    if (owner.owner != 0) place.owner = owner.owner;  // the module belongs to a library
    if (const CUresult r = share_variable(context, place.owner, reply, name); r != CUDA_SUCCESS) return r;
    if (s.memory.addresses.find(place.start).kind != Place::Kind::Managed)
      s.memory.managed.forget(place.start, place.bytes);
    place.kind = Place::Kind::Managed;
    place.flags = CU_MEM_ATTACH_GLOBAL;
  } else if (!s.memory.addresses.reserve(reply.address, reply.bytes)) {
    log(Level::Warn, "the device's global %s lies where this process has something else", name);
  }
  s.memory.addresses.add(place);
  return CUDA_SUCCESS;
}

// An older worker's reply does not contain `managed`.
api::GlobalReply read_global(ring::SharedReader& r) {
  api::GlobalReply reply{.address = r.slot(), .bytes = r.slot(), .managed = 0};
  if (r.left() != 0) reply.managed = r.slot();
  return reply;
}

}  // namespace

CUresult look_up(int call, api::Handle kind, Context& context, const Object& owner, const char* name, Object*& found) {
  const SentName sent(name, context);
  if (sent.result() != CUDA_SUCCESS) return sent.result();
  const api::LookupRecord record{.from = 0, .id = 0, .name_bytes = sent.bytes()};
  const CUresult result = ask(call, kind, context, owner, record, sent.parts(), found);
  if (result == CUDA_SUCCESS && found->function != nullptr) keep_name(*found->function, [&] { return name; });
  return result;
}

CUresult derive(int call, api::Handle kind, Context& context, const Object& owner, Object*& found) {
  if (switches().known_accepted && !this_channel().has_deferred_error()) {
    found = known_part(kind, context, owner);
    if (found != nullptr) return CUDA_SUCCESS;
  }
  return ask(call, kind, context, owner, api::DeriveRecord{.from = 0, .id = 0}, {}, found);
}

CUresult look_up_part(int call, api::Handle kind, Context& context, const Object& owner, unsigned which,
                      Object*& found) {
  const api::PartRecord record{.from = 0, .id = 0, .which = which};
  const CUresult result = ask(call, kind, context, owner, record, {}, found);
  if (result == CUDA_SUCCESS && found->function != nullptr)
    keep_name(*found->function, [&] { return ask_for_name(found->id.load(std::memory_order_relaxed), kind, context); });
  return result;
}

CUresult find_global(int call, Context& context, const Object& owner, CUdeviceptr* address, std::size_t* bytes,
                     const char* name) {
  // The driver clears both outputs before its search, so a missing global has size 0.
  if (address != nullptr) *address = 0;
  if (bytes != nullptr) *bytes = 0;
  const SentName sent_name(name, context);
  if (sent_name.result() != CUDA_SUCCESS) return sent_name.result();
  const api::GlobalRecord record{.from = owner.id.load(std::memory_order_relaxed), .name_bytes = sent_name.bytes()};
  api::GlobalReply reply{};
  const Sent sent =
      cross({.call = call, .context = context}, record, sent_name.parts(), [&](CUresult result, ring::SharedReader& r) {
        if (result == CUDA_SUCCESS) reply = read_global(r);
      });
  if (sent.result != CUDA_SUCCESS) return sent.result;
  if (const CUresult r = remember_global(reply, owner, context, name); r != CUDA_SUCCESS) return r;
  if (address != nullptr) *address = reply.address;
  if (bytes != nullptr) *bytes = reply.bytes;
  return CUDA_SUCCESS;
}

}  // namespace guest
