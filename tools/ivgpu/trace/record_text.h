// Formats the records and replies of CUSTOM and SESSION rows by the field list beside each struct (ring/api/records.h).
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "ring/api/records.h"
#include "tools/ivgpu/trace/call_text.h"
#include "tools/ivgpu/trace/values.h"

namespace ivgpu::trace {

namespace field = api::field;

template <class R>
class RecordText {
 public:
  // `kept`: the bytes of the record that the entry contains.
  RecordText(std::span<const std::byte> kept, const KernelNames& names, std::vector<Argument>& to)
      : kept_(kept.size()), behind_(kept.subspan(std::min(kept.size(), sizeof record_))), names_(names), to_(to) {
    if (!kept.empty()) std::memcpy(&record_, kept.data(), std::min(kept.size(), sizeof record_));
    api::each_field<R>([&](const auto& word) { print(word); });
  }

 private:
  // nullopt if the entry does not contain the member.
  template <class M>
  std::optional<std::uint64_t> value(M member) const {
    const auto& at = api::member_of(record_, member);
    const auto end = reinterpret_cast<const char*>(&at + 1) - reinterpret_cast<const char*>(&record_);
    return static_cast<std::size_t>(end) <= kept_ ? std::optional(static_cast<std::uint64_t>(at)) : std::nullopt;
  }
  void add(const char* name, std::string text) {
    if (*name != '\0') to_.push_back({name, std::move(text)});
  }
  template <class M, class F>
  void add(const char* name, M member, F text) {
    const auto v = value(member);
    add(name, v ? text(*v) : unknown);
  }
  static std::string decimal(std::uint64_t v) { return std::to_string(v); }
  static std::string signed_decimal(std::uint64_t v) { return std::to_string(static_cast<std::int64_t>(v)); }
  std::string kernel(std::uint64_t id) const {
    const std::string* name = names_.find(id);
    return name != nullptr ? *name : id_text(id);
  }

  template <class M>
  void print(const field::Number<M>& w) {
    add(w.name, w.member,
        std::is_signed_v<std::remove_cvref_t<decltype(api::member_of(record_, w.member))>> ? signed_decimal : decimal);
  }
  template <class M>
  void print(const field::Between<M>& w) {
    add(w.name, w.member, decimal);
  }
  template <class M, class F>
  void print(const field::AtLeast<M, F>& w) {
    add(w.name, w.member, decimal);
  }
  template <class M>
  void print(const field::Flag<M>&) {}
  template <class M>
  void print(const field::Zero<M>&) {}
  template <class M>
  void print(const field::Bits<M>& w) {
    add(w.name, w.member, decimal);
  }
  template <class M, class C>
  void print(const field::OnlyIf<M, C>& w) {
    add(w.name, w.member, decimal);
  }
  template <class M>
  void print(const field::CreatedContext<M>& w) {
    add(w.name, w.member, decimal);
  }
  template <class M>
  void print(const field::NewContext<M>& w) {
    add(w.name, w.member, decimal);
  }
  template <class M>
  void print(const field::Ordinal<M>& w) {
    add(w.name, w.member, decimal);
  }
  template <class M>
  void print(const field::Pages<M>& w) {
    add(w.name, w.member, w.is_offset ? hex : decimal);
  }
  template <class M>
  void print(const field::Triple<M>& w) {
    const auto& all = api::member_of(record_, w.member);
    std::string text;
    for (const auto& n : all) {
      const auto end = reinterpret_cast<const char*>(&n + 1) - reinterpret_cast<const char*>(&record_);
      text += (text.empty() ? "" : "x") + (static_cast<std::size_t>(end) <= kept_ ? std::to_string(n) : unknown);
    }
    add(w.name, text);
  }
  template <class M, class L>
  void print(const field::Address<M, L>& w) {
    add(w.name, w.member, hex);
  }
  template <class M, class L>
  void print(const field::MaybeAddress<M, L>& w) {
    if (value(w.member) != std::uint64_t{0}) add(w.name, w.member, hex);
  }
  template <class M>
  void print(const field::MaybeId<M>& w) {
    if (value(w.member) != std::uint64_t{0}) add(w.name, w.member, id_text);
  }
  template <class M>
  void print(const field::Frees<M>& w) {
    add(w.name, w.member, hex);
  }
  template <class M, class L>
  void print(const field::Memory<M, L>& w) {
    add(w.name, w.member, hex);
  }
  template <class M>
  void print(const field::Arena<M>& w) {
    add(w.name, w.member, hex);
  }
  template <class M, class L>
  void print(const field::Place<M, L>& w) {
    add(w.name, w.member, [](std::uint64_t v) { return v == ring::absent ? "with the record" : "arena+" + hex(v); });
  }
  template <class M>
  void print(const field::Stream<M>& w) {
    add(w.name, w.member, id_text);
  }
  template <class M>
  void print(const field::Id<M>& w) {
    add(w.name, w.member, [&](std::uint64_t v) { return kernel(v); });
  }
  template <class M>
  void print(const field::Closes<M>& w) {
    add(w.name, w.member, id_text);
  }
  template <class M>
  void print(const field::Proposed<M>& w) {
    add(w.name, w.member, id_text);
  }
  template <class M>
  void print(const field::Made<M>& w) {
    add(w.name, w.member, id_text);
  }
  template <class M>
  void print(const field::Text<M>& w) {
    add(w.name, w.length, [&](std::uint64_t v) { return text_of(behind_, v); });
  }
  template <class M>
  void print(const field::Resources<M>& w) {
    add(w.name, w.count, decimal);
  }
  template <class M>
  void print(const field::Parameters<M>& w) {
    add(w.name, w.length, [&](std::uint64_t v) {
      const std::string_view words = behind_.bytes(v);
      return words_text(words, words.size() == v);
    });
  }
  template <class M>
  void print(const field::Layout<M>& w) {
    const auto count = value(w.count);
    add(w.name, count ? layout_text(behind_, *count) : unknown);
  }
  template <class M>
  void print(const field::Characters<M>& w) {
    add(w.name, w.length, [&](std::uint64_t v) { return text_of(behind_, v); });
  }
  template <class M>
  void print(const field::Words<M>& w) {
    add(w.name, w.length, [&](std::uint64_t v) {
      const std::string_view words = behind_.bytes(v);
      return words_text(words, words.size() == v);
    });
  }
  template <class M>
  void print(const field::Ids<M>& w) {
    add(w.name, w.count, decimal);
    behind_.bytes(value(w.count).value_or(0) * sizeof(std::uint64_t));
  }
  template <class M>
  void print(const field::Attributes<M>& w) {
    const auto count = value(w.count).value_or(0);
    for (std::uint64_t k = 0; k < std::min<std::uint64_t>(count, api::max_launch_attributes); ++k) {
      const std::string_view bytes = behind_.bytes(sizeof(CUlaunchAttribute));
      if (bytes.size() < offsetof(CUlaunchAttribute, value)) return add("attributes", "...");
      print_attribute(std::as_bytes(std::span(bytes)));
    }
  }
  // Formats an attribute by its table row; a single value has no name.
  void print_attribute(std::span<const std::byte> bytes) {
    int tag = 0;
    std::memcpy(&tag, bytes.data() + offsetof(CUlaunchAttribute, id), sizeof tag);
    const auto show = [&](const auto& line) {
      using Value = typename std::remove_cvref_t<decltype(line)>::Value;
      const auto behind_tag = bytes.subspan(offsetof(CUlaunchAttribute, value));
      std::vector<Argument> fields;
      RecordText<Value>(behind_tag.first(std::min(behind_tag.size(), line.bytes)), names_, fields);
      std::string text;
      for (const Argument& f : fields)
        text += (text.empty() ? "" : " ") + (fields.size() == 1 ? "" : f.name + ":") + f.value;
      add(line.name, fields.size() == 1 ? text : "{" + text + "}");
    };
    if (!api::with_attribute<api::LaunchAttributes>(tag, show)) add("attribute", std::to_string(tag));
  }
  // Formats the size of the first part.
  template <class M>
  void print(const field::PartSizes<M>& w) {
    const auto first = behind_.word();
    add(w.name, first ? decimal(*first) : unknown);
  }
  template <class M>
  void print(const field::JitOptions<M>&) {}
  template <class M, class C>
  void print(const field::Parts<M, C>&) {}

  R record_{};
  const std::size_t kept_;
  Kept behind_;
  const KernelNames& names_;
  std::vector<Argument>& to_;
};

}  // namespace ivgpu::trace
