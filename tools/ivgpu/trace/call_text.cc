#include "tools/ivgpu/trace/call_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ring/abi/error_text.h"
#include "ring/api/call.h"
#include "ring/api/id.h"
#include "ring/api/records.h"
#include "ring/wire/record.h"
#include "tools/ivgpu/trace/record_text.h"
#include "tools/ivgpu/trace/values.h"

namespace ivgpu::trace {
namespace {

using api::Arg, api::Dir, api::Extent;

const char* name_of(api::Handle kind) { return api::kind_of(kind).text; }

std::span<const std::byte> payload_of(const ring::TraceEntry& e) {
  return std::span(e.payload).first(std::min<std::size_t>(e.payload_bytes, sizeof e.payload));
}
std::span<const std::byte> reply_of(const ring::TraceEntry& e) {
  return std::span(e.reply).first(std::min<std::size_t>(e.reply_bytes, sizeof e.reply));
}

// ---- CALL rows -----------------------------------------------------------------------------------------------------

using Arguments = std::vector<Argument>;

// Adds an argument named after its kind; a second of the same kind is "address 2".
void add(Arguments& to, const std::string& kind, std::string value) {
  const auto same = [&](const Argument& a) { return a.name == kind || a.name.starts_with(kind + " "); };
  const auto before = std::count_if(to.begin(), to.end(), same);
  to.push_back({before == 0 ? kind : kind + " " + std::to_string(before + 1), std::move(value)});
}

// The format of a number, and the width to which a returned number is truncated.
struct Number {
  enum class Kind : std::uint8_t { None, Signed, Unsigned, Float } kind = Kind::None;
  std::uint8_t bytes = sizeof(std::uint64_t);
};
template <class T>
constexpr Number number_like() {
  if constexpr (std::is_same_v<T, float>) return {Number::Kind::Float, sizeof(float)};
  if constexpr (std::is_signed_v<T> || std::is_enum_v<T>) return {Number::Kind::Signed, sizeof(T)};
  if constexpr (std::is_integral_v<T>) return {Number::Kind::Unsigned, sizeof(T)};
  return {};
}
std::string number_text(Number::Kind kind, std::uint64_t value) {
  if (kind == Number::Kind::Float) return std::to_string(api::from_number<float>(value));
  if (kind == Number::Kind::Signed) return std::to_string(static_cast<long long>(value));
  return std::to_string(value);
}
std::string cut_text(Number number, std::uint64_t value) {
  const unsigned above = 64 - 8 * number.bytes;
  value <<= above;
  if (number.kind == Number::Kind::Signed)
    return number_text(number.kind, static_cast<std::uint64_t>(static_cast<std::int64_t>(value) >> above));
  return number_text(number.kind, value >> above);
}

// Describes a parameter of a CALL row. All parameters share one formatting function.
struct Parameter {
  Arg arg;
  api::Handle handle;
  Number number;  // the format of the parameter or of its pointee
  bool counts;    // the parameter is the element count of another parameter
};
template <class P, Arg A>
constexpr Parameter parameter(bool counts) {
  using T = std::conditional_t<A.dir == Dir::Out, api::Pointee<P>, P>;
  return {A, api::kind_of_param<P, A>, number_like<T>(), counts};
}

template <class S>
inline constexpr int parameters_of = 0;
template <class... P, Arg... A>
inline constexpr std::array<Parameter, sizeof...(P)> parameters_of<api::Shape<CUresult(P...), A...>> = [] {
  [[maybe_unused]] int i = 0;
  [[maybe_unused]] const auto counts = [](int at) { return ((A.extent == Extent::Counted && A.count == at) || ...); };
  return std::array<Parameter, sizeof...(P)>{parameter<P, A>(counts(i++))...};
}();

void given(const Parameter& p, std::optional<std::uint64_t> slot, Kept& in, Arguments& to) {
  switch (p.arg.dir) {
    case Dir::Out:
    case Dir::Finds:
    case Dir::Knows:
    case Dir::Memory: return;
    case Dir::Value:
      if (p.handle != api::Handle::None)
        add(to, name_of(p.handle), slot ? id_text(*slot) : unknown);
      else
        add(to,
            p.arg.ordinal ? "device"
            : p.counts    ? "count"
                          : "value",
            slot ? number_text(p.number.kind, *slot) : unknown);
      return;
    case Dir::Device:
    case Dir::Frees:
    case Dir::Reserved:
    case Dir::Inside: add(to, "address", slot ? hex(*slot) : unknown); return;
    case Dir::Creates: add(to, std::string("new ") + name_of(p.handle), slot ? id_text(*slot) : unknown); return;
    case Dir::Ids:
      if (slot) in.bytes(*slot);
      add(to, std::string(name_of(p.handle)) + "s", slot ? std::to_string(*slot / sizeof(std::uint64_t)) : unknown);
      return;
    case Dir::In:
      if (p.arg.extent == Extent::String) {
        add(to, "text", slot ? text_of(in, *slot) : unknown);
        return;
      }
      if (slot) in.bytes(*slot);
      add(to, "bytes", !slot ? unknown : *slot == ring::absent ? "none" : std::to_string(*slot));
      return;
  }
}

void got(const Parameter& p, std::optional<std::uint64_t> slot, Kept& reply, Arguments& to) {
  switch (p.arg.dir) {
    case Dir::Finds:
    case Dir::Knows: {
      const auto word = reply.word();
      add(to, name_of(p.handle), word ? id_text(*word) : unknown);
      return;
    }
    case Dir::Memory: {
      const auto word = reply.word();
      add(to, "address", word ? hex(*word) : unknown);
      return;
    }
    case Dir::Out:
      if (!slot || *slot == ring::absent) return;
      if (p.arg.extent == Extent::One && p.number.kind != Number::Kind::None) {
        const auto word = reply.word();
        add(to, "out", word ? cut_text(p.number, *word) : unknown);
      } else {
        reply.bytes(*slot);
        add(to, "out", std::to_string(*slot) + " bytes");
      }
      return;
    default: return;
  }
}

void describe_line(std::span<const Parameter> parameters, const ring::TraceEntry& entry, CallText& call) {
  Kept in(payload_of(entry)), reply(reply_of(entry));
  std::vector<std::optional<std::uint64_t>> slots;
  for (std::size_t i = 0; i < parameters.size(); ++i) slots.push_back(in.word());
  for (std::size_t i = 0; i < parameters.size(); ++i) given(parameters[i], slots[i], in, call.given);
  if (entry.result != CUDA_SUCCESS || !call.waited) return;
  for (std::size_t i = 0; i < parameters.size(); ++i) got(parameters[i], slots[i], reply, call.got);
}

// ---- CUSTOM and SESSION rows ---------------------------------------------------------------------------------------

template <int Id>
void describe_record(const ring::TraceEntry& e, const KernelNames& names, CallText& call) {
  using Record = typename api::Call<Id>::Record;
  RecordText<Record>(payload_of(e), names, call.given);
  if (e.result != CUDA_SUCCESS || !call.waited) return;
  RecordText<typename api::ReplyOf<Record>::Type>(reply_of(e), names, call.got);
}

// ---- names ---------------------------------------------------------------------------------------------------------

struct Form {
  std::string_view of, name;
};
constexpr Form forms[] = {
#define CALL(...)
#define CUSTOM(...)
#define LOCAL(...)
#define ABSENT(...)
#define VARIANT(fn, since, of) {#of, #fn},
#include "ring/api/driver.def"
};

std::string_view form_of(std::string_view name, std::uint16_t flags) {
  if ((flags & ring::flag_per_thread) == 0) return name;
  for (const Form& form : forms)
    if (form.of == name && (form.name.ends_with("_ptsz") || form.name.ends_with("_ptds"))) return form.name;
  return name;
}

std::string result_text(std::int32_t result) {
  const char* name = cuabi::error_name(static_cast<CUresult>(result));
  return name != nullptr ? name : "result " + std::to_string(result);
}

void describe_into(const ring::TraceEntry& entry, const KernelNames& names, CallText& call) {
  switch (entry.call) {
#define CALL(id, fn, ...)                                            \
  case id:                                                           \
    call.name = form_of(#fn, entry.flags);                           \
    describe_line(parameters_of<api::Call<id>::Shape>, entry, call); \
    return;
#define CUSTOM(id, fn, ...)                  \
  case id:                                   \
    call.name = form_of(#fn, entry.flags);   \
    describe_record<id>(entry, names, call); \
    return;
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(id, fn, ...)                 \
  case id:                                   \
    call.name = #fn;                         \
    describe_record<id>(entry, names, call); \
    return;
#include "ring/api/session.def"
    default: call.name = "call " + std::to_string(entry.call); return;
  }
}

void append(std::string& line, const Arguments& arguments, const char* first) {
  for (const Argument& a : arguments) {
    line += &a == arguments.data() ? first : ", ";
    line += a.name + "=" + a.value;
  }
}

}  // namespace

CallText describe(const ring::TraceEntry& entry, const KernelNames& names) {
  CallText call;
  // CUDA_ERROR_NOT_READY is the answer of a query, not a failure.
  call.failed = entry.result != CUDA_SUCCESS && entry.result != CUDA_ERROR_NOT_READY;
  call.waited = (entry.flags & ring::flag_wants_reply) != 0;
  call.result = result_text(entry.result);
  describe_into(entry, names, call);
  return call;
}

std::string as_line(const CallText& call) {
  std::string line = call.name + "(";
  append(line, call.given, "");
  line += ") = " + call.result;
  append(line, call.got, ", ");
  return line;
}

// ---- names of kernels ----------------------------------------------------------------------------------------------

void KernelNames::learn(const ring::TraceEntry& entry) {
  namespace ids = api::id_of;
  if (entry.result != CUDA_SUCCESS) return;
  Kept in(payload_of(entry)), reply(reply_of(entry));
  const auto from = in.word(), proposed = in.word(), id = reply.word();
  if (!from || !proposed || !id) return;
  if (entry.call == ids::cuKernelGetFunction) {
    if (const std::string* name = find(*from)) add(*id, *name);
  } else if (entry.call == ids::cuModuleGetFunction || entry.call == ids::cuLibraryGetKernel) {
    const auto length = in.word();
    const std::string name = text_of(in, length.value_or(0));
    add(*id, name.substr(1, name.rfind('"') - 1));
  }
}

// The table is bounded, since a guest could invent names without end.
void KernelNames::add(std::uint64_t id, const std::string& name) {
  constexpr std::size_t most = 1 << 16;
  if (names_.size() < most || names_.count(id) != 0) names_[id] = name;
}

const std::string* KernelNames::find(std::uint64_t id) const {
  const auto at = names_.find(id);
  return at != names_.end() ? &at->second : nullptr;
}

}  // namespace ivgpu::trace
