// Generates records of any call, as a hostile guest that knows the protocol would: mostly valid records with the
// session's ids and addresses, and then records with one mistake.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "ring/api/id.h"
#include "ring/wire/record.h"
#include "tests/fuzz/calls.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/payload.h"

namespace fuzz {

class Records final : public Choices {
 public:
  explicit Records(std::uint64_t arena_bytes) : arena_bytes_(arena_bytes) {}
  // Sets the source of choices; call it first.
  void read_from(Input& in) { input_ = &in; }

  // The payload of one record of this call. Afterwards made_ is the id that the record proposes.
  const std::vector<std::byte>& write(const CallLine& line) {
    payload_.clear();
    made_ = 0;
    if (line.by_list == nullptr)
      write_fields(line.fields);
    else
      line.by_list(*this, payload_);
    return payload_.bytes();
  }

  // The payload of two words: the newest id of this kind, and `word`.
  const std::vector<std::byte>& write_newest(api::Handle kind, std::uint64_t word) {
    payload_.clear();
    made_ = 0;
    payload_.put_words({ids_[kind].empty() ? 0 : ids_[kind].back(), word});
    return payload_.bytes();
  }
  const std::vector<std::byte>& payload() const { return payload_.bytes(); }

  // Adds the id that the last record proposed, since the record succeeded.
  void succeeded() {
    if (made_ != 0) ids_[api::Id::of(made_).kind].push_back(made_);
  }
  // Adds an id that the worker has chosen.
  void learn_id(std::uint64_t id) {
    std::vector<std::uint64_t>& known = ids_[api::Id::of(id).kind];
    if (std::find(known.begin(), known.end(), id) == known.end()) known.push_back(id);
  }
  // Adds a number that later calls may use.
  void learn_number(std::uint64_t number) { numbers_.push_back(number); }
  void learn_address(std::uint64_t address) { addresses_.push_back(address); }
  // Damages the payload.
  void damage() {
    switch (input_->below(4)) {
      case 0: payload_.resize(input_->below(payload_.size() + 1)); break;
      case 1: payload_.resize(payload_.size() + input_->below(64)); break;
      case 2: payload_.overwrite(*input_, input_->any()); break;
      default: payload_.overwrite(*input_, some_word()); break;
    }
  }

 private:
  // ---- words -------------------------------------------------------------------------------------------------------

  std::uint64_t some_word() {
    const auto kind = static_cast<api::Handle>(1 + input_->below(api::handle_kinds - 1));
    switch (input_->below(6)) {
      case 0: return address();
      case 1: return place(true, false);
      case 2: return number();
      case 3: return new_id(kind);
      default: return id(kind);
    }
  }
  // An id of the session; rarely an id that has ended, has another kind, or never existed.
  std::uint64_t id(api::Handle kind) override {
    if (kind == api::Handle::Stream && input_->once_in(4)) return input_->below(4);
    if (kind == api::Handle::GreenContext) return context();
    if (kind == api::Handle::Resource && !input_->once_in(4))  // the worker chooses these ids
      return api::Id{kind, api::Id::first_of_worker + static_cast<std::uint32_t>(input_->below(4)), 0}.value();
    if (input_->once_in(16))
      return api::Id{kind, static_cast<std::uint32_t>(input_->below(64)), input_->number()}.value();
    if (input_->once_in(32)) return input_->any();
    if (input_->once_in(16)) kind = static_cast<api::Handle>(input_->below(api::handle_kinds));
    const auto& known = ids_[kind];
    return known.empty() ? 0 : known[known.size() - 1 - input_->below(std::min<std::size_t>(known.size(), 256))];
  }
  std::uint64_t new_id(api::Handle kind) override {
    if (input_->once_in(32)) return made_ = id(kind);
    return made_ = api::Id{kind, next_++, 0}.value();
  }
  std::uint64_t address() override {
    if (addresses_.empty() || input_->once_in(16)) return input_->any();
    const std::uint64_t start =
        addresses_[addresses_.size() - 1 - input_->below(std::min<std::size_t>(addresses_.size(), 256))];
    return input_->once_in(4) ? start + input_->any() : start;
  }
  // Mostly a small number, as flags, enumerations and sizes of copies within existing memory are.
  std::uint64_t number() override {
    const std::uint64_t form = input_->number();
    if (form < 24) return input_->any();
    if (form >= 248 && !numbers_.empty()) return numbers_.back();
    return form < 200 ? form % 4 : form;
  }
  std::uint64_t stream() override { return id(api::Handle::Stream); }
  std::uint64_t context() override { return or_else(ring::first_created_context + input_->below(4)); }
  std::uint64_t new_context() override { return context(); }
  std::uint64_t pages(bool is_offset) override {
    return (is_offset ? input_->below(4) : or_else(1 + input_->below(2))) << 21;
  }
  std::uint64_t place(bool, bool image) override {
    if (!input_->once_in(image ? 4 : 2)) return ring::absent;
    return input_->once_in(4) ? arena_bytes_ - input_->below(64) : input_->any() % (arena_bytes_ + 1);
  }
  std::uint64_t or_else(std::uint64_t right) override {
    if (!input_->once_in(16)) return right;
    return input_->once_in(2) ? some_word() : input_->any();
  }
  std::uint32_t attribute() override { return static_cast<std::uint32_t>(input_->below(20)); }
  std::uint64_t jit_option() override { return input_->below(35); }
  std::uint32_t parameter_bytes() override {
    return input_->once_in(4) ? static_cast<std::uint32_t>(number() & 0xffff'ffff) : 16;
  }
  std::string name() override {
    constexpr std::string_view names[] = {"fill", "nothing", "fault", "counter", "none"};
    const std::string name(input_->pick(names));
    return input_->once_in(32) ? std::string(input_->number<std::uint16_t>(), 'f') : name;
  }
  std::vector<std::string> parts() override {
    constexpr std::string_view text = ".version 7.5\n.target sm_75\n.address_size 64\n";
    std::vector<std::string> images(input_->once_in(8) ? 1 + input_->below(3) : 1);
    for (std::string& image : images) image = input_->once_in(4) ? headed() : std::string(text) + '\0';
    return images;
  }
  // Images with different headers, whose lengths are arbitrary.
  std::string headed() {
    constexpr std::string_view magics[] = {"\xb1\x43\x62\x46", "\x50\xed\x55\xba",
                                           "\x7f"
                                           "ELF",
                                           ".ver"};
    const auto bytes = input_->take(input_->below(128));
    return std::string(input_->pick(magics)) + std::string(bytes.begin(), bytes.end());
  }
  Input& input() override { return *input_; }

  // ---- CALL lines --------------------------------------------------------------------------------------------------

  std::uint64_t number(const Field& f) {
    const std::uint64_t value = number();
    if (f.bits == 64 || input_->once_in(16)) return value;
    const std::uint64_t mask = (1ULL << f.bits) - 1;
    // A negative int is sign-extended in its slot.
    return f.bits == 32 && input_->once_in(4) ? static_cast<std::uint64_t>(static_cast<std::int32_t>(value))
                                              : value & mask;
  }

  std::uint64_t value(const Field& f) {
    switch (f.arg.dir) {
      case api::Dir::Device:
      case api::Dir::Frees:
      case api::Dir::Reserved:
      case api::Dir::Inside: return address();
      case api::Dir::Finds:
      case api::Dir::Knows:
      case api::Dir::Memory: return or_else(sizeof(std::uint64_t));
      case api::Dir::Creates: return new_id(f.handle);
      case api::Dir::Value: return f.handle != api::Handle::None ? id(f.handle) : number(f);
      default: return 0;  // a length that other fields determine
    }
  }

  std::uint64_t length(const Field& f, const std::vector<std::uint64_t>& slots) {
    if (input_->once_in(f.arg.optional ? 2 : 16)) return ring::absent;
    if (input_->once_in(32)) return input_->any();
    switch (f.arg.extent) {
      case api::Extent::One: return f.size;
      case api::Extent::Row: return static_cast<std::uint64_t>(f.arg.count) * f.size;
      case api::Extent::Counted: return slots[static_cast<std::size_t>(f.arg.count)] * f.size;
      case api::Extent::String: return 1 + input_->below(64);
      case api::Extent::Valued: return input_->once_in(2) ? 4 : 8;
      case api::Extent::Rows: break;  // rows at a device address
    }
    return 0;
  }

  void write_fields(const std::vector<Field>& fields) {
    std::vector<std::uint64_t> slots;
    for (const Field& f : fields) slots.push_back(value(f));
    for (const Field& f : fields)  // few elements, since lists of ids are short
      if (f.arg.dir == api::Dir::Ids) slots[static_cast<std::size_t>(f.arg.count)] = or_else(input_->below(4));
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (fields[i].arg.dir == api::Dir::In || fields[i].arg.dir == api::Dir::Out || fields[i].arg.dir == api::Dir::Ids)
        slots[i] = length(fields[i], slots);
    for (const std::uint64_t slot : slots) payload_.put(slot);
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (fields[i].arg.dir == api::Dir::Ids && slots[i] <= 4096) {
        for (std::uint64_t n = slots[i] / sizeof(std::uint64_t); n > 0; --n) payload_.put(id(fields[i].handle));
      } else if (fields[i].arg.dir == api::Dir::In && slots[i] <= 4096) {
        if (fields[i].size == sizeof(CUdevResource) && !input_->once_in(4))
          put_resources(slots[i]);
        else if (fields[i].size == sizeof(CUDA_MEMSET_NODE_PARAMS) && slots[i] == fields[i].size)
          put_fill();
        else if (fields[i].arg.optional && !input_->once_in(4))
          payload_.put_zeros(slots[i]);
        else
          put_input(slots[i]);
      }
  }

  void put_resources(std::size_t n) {
    for (CUdevResource resource; n >= sizeof resource; n -= sizeof resource) {
      std::memset(&resource, 0, sizeof resource);
      resource.type = static_cast<CUdevResourceType>(or_else(CU_DEV_RESOURCE_TYPE_SM));
      api::set_resource_id(resource, id(api::Handle::Resource));
      payload_.put_bytes(&resource, sizeof resource);
    }
  }
  void put_fill() {
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = address(), fill.pitch = number(), fill.value = 7;
    fill.elementSize = static_cast<unsigned>(or_else(1ULL << input_->below(3)));
    fill.width = or_else(1 + input_->below(16)), fill.height = or_else(1 + input_->below(2));
    payload_.put_bytes(&fill, sizeof fill);
  }
  void put_input(std::size_t n) {
    std::vector<std::uint8_t> bytes(n, 'x');
    const auto given = input_->take(std::min<std::size_t>(n, 16));
    std::copy(given.begin(), given.end(), bytes.begin());
    if (n != 0 && !input_->once_in(16)) bytes.back() = 0;
    payload_.put_bytes(bytes.data(), n);
  }

  Input* input_ = nullptr;
  const std::uint64_t arena_bytes_;
  Payload payload_;
  std::map<api::Handle, std::vector<std::uint64_t>> ids_;
  std::vector<std::uint64_t> addresses_, numbers_;
  std::uint64_t made_ = 0;
  std::uint32_t next_ = 1;
};

}  // namespace fuzz
