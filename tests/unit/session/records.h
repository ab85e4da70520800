// Records that a test writes itself, and a session on the strict fake driver that executes them. Payload and reply have
// exact sizes, so a sanitizer reports an overrun.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "host/untrusted/dispatch.h"
#include "ring/api/call.h"
#include "ring/api/records.h"
#include "tests/fake/driver.h"

namespace session_test {

using api::Handle, api::Id;

class Payload {
 public:
  Payload() = default;
  template <class... Slots>
  static Payload of(Slots... slots) {
    Payload p;
    (p.slot(static_cast<std::uint64_t>(slots)), ...);
    return p;
  }
  template <class Record>
  static Payload record(const Record& record) {
    return Payload().bytes(&record, sizeof record);
  }
  Payload& slot(std::uint64_t value) { return bytes(&value, sizeof value); }
  Payload& bytes(const void* from, std::size_t n) {
    const std::size_t at = data_.size();
    data_.resize(at + ring::padded(n));
    if (n != 0) std::memcpy(data_.data() + at, from, n);
    return *this;
  }
  Payload& text(const char* string) { return bytes(string, std::strlen(string) + 1); }
  Payload& cut(std::size_t n) { return data_.resize(n), *this; }
  std::size_t size() const { return data_.size(); }
  const std::vector<std::byte>& data() const { return data_; }

 private:
  std::vector<std::byte> data_;
};

struct Answer {
  CUresult result = CUDA_SUCCESS;
  bool broken = false;
  std::vector<std::byte> reply;
  template <class Record>
  Record read(std::size_t at = 0) const {
    Record record{};
    if (at + sizeof record <= reply.size()) std::memcpy(&record, reply.data() + at, sizeof record);
    return record;
  }
};

inline Answer send_exactly_to(host::Session& session, int call, const Payload& payload, std::uint16_t flags = 0) {
  session.protocol.broken = false;
  const std::unique_ptr<std::byte[]> in(new std::byte[payload.size()]);
  if (payload.size() != 0) std::memcpy(in.get(), payload.data().data(), payload.size());
  std::vector<std::byte> out(ring::reply_bytes);
  const ring::RecordHeader header{.bytes = 0, .call = static_cast<std::uint16_t>(call), .flags = flags, .position = 1};
  static std::string name;  // the name that bring_name has left for the channel
  host::Request request(session, header, {in.get(), payload.size()}, out, &name);
  const host::Handler handler = host::handler_of(header.call);
  Answer answer;
  answer.result = handler != nullptr ? handler(request) : request.broken();
  answer.broken = session.protocol.broken;
  out.resize(answer.result == CUDA_SUCCESS ? request.out.used() : request.out_on_error);
  answer.reply = std::move(out);
  return answer;
}
// Sends a record as a ring delivers it: padded by up to 15 bytes.
inline Answer send_to(host::Session& session, int call, const Payload& payload, std::uint16_t flags = 0) {
  return send_exactly_to(session, call, Payload(payload).cut(ring::record_size(payload.size()) - 16), flags);
}

inline constexpr const char* module_text = ".version 7.5\n.target sm_75\n.address_size 64\n";

class World {
 public:
  static constexpr std::size_t arena_bytes = 16 << 20;
  static host::ServeOptions with(std::uint32_t windows) {
    host::ServeOptions options;
    options.windows = windows;
    return options;
  }
  explicit World(std::uint32_t windows = host::all_windows) : World(with(windows)) {}
  explicit World(const host::ServeOptions& options) {
    const std::size_t bytes = ring::arena_offset + arena_bytes;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    CUcontext context = nullptr;
    driver.table().cuDevicePrimaryCtxRetain(&context, 0);
    driver.table().cuCtxSetCurrent(context);
    session = std::make_unique<host::Session>(ring::SlotView(base_, bytes), driver.table(), options);
  }
  ~World() {
    munmap(reinterpret_cast<void*>(session->arena.address()), arena_bytes);  // hello may have moved the arena
    session.reset();
    munmap(base_, ring::arena_offset);
  }

  Answer send(int call, const Payload& payload, std::uint16_t flags = 0) {
    return send_to(*session, call, payload, flags);
  }
  Answer send_exactly(int call, const Payload& payload, std::uint16_t flags = 0) {
    return send_exactly_to(*session, call, payload, flags);
  }

  // Returns a new id for an object of the session. Each id has the next index.
  std::uint64_t next(Handle kind) { return Id{kind, next_++, 0}.value(); }
  std::uint64_t stream() { return create(api::id_of::cuStreamCreate, Handle::Stream); }
  std::uint64_t event() { return create(api::id_of::cuEventCreate, Handle::Event); }
  std::uint64_t memory(std::uint64_t bytes) {
    const Answer a = send(api::id_of::cuMemAlloc_v2, Payload::record(api::AllocateRecord{bytes, 0, 0, 0}));
    EXPECT_EQ(a.result, CUDA_SUCCESS);
    return a.read<api::AllocateReply>().address;
  }
  Payload load(std::uint64_t id, const char* text = module_text) {
    const std::size_t n = std::strlen(text) + 1;
    return Payload::record(api::LoadRecord{id, ring::absent, 0, 1, 0, 0}).slot(n).bytes(text, n);
  }
  std::uint64_t module() {
    const std::uint64_t id = next(Handle::Module);
    EXPECT_EQ(send(api::id_of::cuModuleLoadData, load(id)).result, CUDA_SUCCESS);
    return id;
  }
  std::uint64_t library() {
    const std::uint64_t id = next(Handle::Library);
    EXPECT_EQ(send(api::id_of::cuLibraryLoadData, load(id)).result, CUDA_SUCCESS);
    return id;
  }
  Payload lookup(std::uint64_t from, std::uint64_t id, const char* name) {
    return Payload::record(api::LookupRecord{from, id, std::strlen(name) + 1}).text(name);
  }
  std::uint64_t function(std::uint64_t module, const char* name) {
    const std::uint64_t id = next(Handle::Function);
    EXPECT_EQ(send(api::id_of::cuModuleGetFunction, lookup(module, id, name)).result, CUDA_SUCCESS);
    return id;
  }
  std::uint64_t kernel(std::uint64_t library, const char* name) {
    const std::uint64_t id = next(Handle::Kernel);
    EXPECT_EQ(send(api::id_of::cuLibraryGetKernel, lookup(library, id, name)).result, CUDA_SUCCESS);
    return id;
  }

  fake::Driver driver;
  std::unique_ptr<host::Session> session;

 private:
  std::uint64_t create(int call, Handle kind) {
    const std::uint64_t id = next(kind);
    EXPECT_EQ(send(call, Payload::of(id, 0)).result, CUDA_SUCCESS);
    return id;
  }
  std::byte* base_;
  std::uint32_t next_ = 1;
};

}  // namespace session_test
