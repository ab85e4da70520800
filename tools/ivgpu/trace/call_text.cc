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

// ---- CALL lines ----------------------------------------------------------------------------------------------------

using Arguments = std::vector<Argument>;

// By the name of its kind; the second of a kind is "address 2".
void add(Arguments& to, const std::string& kind, std::string value) {
  const auto same = [&](const Argument& a) { return a.name == kind || a.name.starts_with(kind + " "); };
  const auto before = std::count_if(to.begin(), to.end(), same);
  to.push_back({before == 0 ? kind : kind + " " + std::to_string(before + 1), std::move(value)});
}

template <class T>
std::string number_text(std::uint64_t value) {
  if constexpr (std::is_same_v<T, float>)
    return std::to_string(api::from_number<float>(value));
  else if constexpr (std::is_signed_v<T> || std::is_enum_v<T>)
    return std::to_string(static_cast<long long>(static_cast<std::int64_t>(value)));
  else
    return std::to_string(value);
}

template <class S>
struct Plain;

template <class... P, Arg... A>
struct Plain<api::Shape<CUresult(P...), A...>> {
  static constexpr std::array<Arg, sizeof...(A)> args{A...};
  template <std::size_t I>
  using Param = std::tuple_element_t<I, std::tuple<P...>>;
  template <class F>
  static void each(F f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f.template operator()<I>(), ...); }
    (std::make_index_sequence<sizeof...(P)>{});
  }
  static constexpr bool names_address(Dir dir) {
    return dir == Dir::Device || dir == Dir::Frees || dir == Dir::Reserved || dir == Dir::Inside;
  }
  static constexpr bool counts(std::size_t i) {
    for (const Arg& a : args)
      if (a.extent == Extent::Counted && a.count == static_cast<int>(i)) return true;
    return false;
  }

  template <std::size_t I>
  static void given(std::optional<std::uint64_t> slot, Kept& in, Arguments& to) {
    constexpr Arg a = args[I];
    using T = Param<I>;
    constexpr api::Handle handle = api::kind_of_param<T, a>;
    if constexpr (a.dir == Dir::Out || a.dir == Dir::Finds || a.dir == Dir::Knows || a.dir == Dir::Memory) return;
    if constexpr (a.dir == Dir::Value) {
      if constexpr (handle != api::Handle::None)
        add(to, name_of(handle), slot ? id_text(*slot) : unknown);
      else
        add(to, a.ordinal ? "device" : counts(I) ? "count" : "value", slot ? number_text<T>(*slot) : unknown);
    } else if constexpr (names_address(a.dir)) {
      add(to, "address", slot ? hex(*slot) : unknown);
    } else if constexpr (a.dir == Dir::Creates) {
      add(to, std::string("new ") + name_of(handle), slot ? id_text(*slot) : unknown);
    } else if constexpr (a.extent == Extent::String) {
      add(to, "text", slot ? text_of(in, *slot) : unknown);
    } else if constexpr (a.dir == Dir::In) {
      if (slot) in.bytes(*slot);
      add(to, "bytes", !slot ? unknown : *slot == ring::absent ? "none" : std::to_string(*slot));
    }
  }

  template <std::size_t I>
  static void got(std::optional<std::uint64_t> slot, Kept& reply, Arguments& to) {
    if constexpr (args[I].dir == Dir::Finds || args[I].dir == Dir::Knows || args[I].dir == Dir::Memory) {
      const auto word = reply.word();
      constexpr api::Handle handle = api::kind_of_param<Param<I>, args[I]>;
      if constexpr (args[I].dir != Dir::Memory)
        add(to, name_of(handle), word ? id_text(*word) : unknown);
      else
        add(to, "address", word ? hex(*word) : unknown);
    } else if constexpr (args[I].dir == Dir::Out) {
      using T = api::Pointee<Param<I>>;
      if (!slot || *slot == ring::absent) return;
      if constexpr (args[I].extent == Extent::One && std::is_same_v<T, float>) {
        const auto word = reply.word();
        float value = 0;
        if (word) std::memcpy(&value, &*word, sizeof value);
        add(to, "out", word ? std::to_string(value) : unknown);
      } else if constexpr (args[I].extent == Extent::One && (std::is_integral_v<T> || std::is_enum_v<T>)) {
        const auto word = reply.word();
        add(to, "out", word ? number_text<T>(static_cast<std::uint64_t>(static_cast<T>(*word))) : unknown);
      } else {
        reply.bytes(*slot);
        add(to, "out", std::to_string(*slot) + " bytes");
      }
    }
  }

  static void describe(const ring::TraceEntry& entry, CallText& call) {
    Kept in(payload_of(entry)), reply(reply_of(entry));
    std::array<std::optional<std::uint64_t>, sizeof...(P) + 1> slots;
    each([&]<std::size_t I>() { slots[I] = in.word(); });
    each([&]<std::size_t I>() { given<I>(slots[I], in, call.given); });
    if (entry.result != CUDA_SUCCESS || !call.waited) return;
    each([&]<std::size_t I>() { got<I>(slots[I], reply, call.got); });
  }
};

// ---- CUSTOM and SESSION lines --------------------------------------------------------------------------------------

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
#define CALL(id, fn, ...)                               \
  case id:                                              \
    call.name = form_of(#fn, entry.flags);              \
    Plain<api::Call<id>::Shape>::describe(entry, call); \
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
  // What is not done yet is the answer to a query.
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

// ---- what kernels are called ---------------------------------------------------------------------------------------

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

// A guest that makes up names without end gets no more of them.
void KernelNames::add(std::uint64_t id, const std::string& name) {
  constexpr std::size_t most = 1 << 16;
  if (names_.size() < most || names_.count(id) != 0) names_[id] = name;
}

const std::string* KernelNames::find(std::uint64_t id) const {
  const auto at = names_.find(id);
  return at != names_.end() ? &at->second : nullptr;
}

}  // namespace ivgpu::trace
