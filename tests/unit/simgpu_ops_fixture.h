// One instruction (or a few) applied to rows of values, for tests of single opcodes. %a, %b, %c are the sources and %d
// is the destination.
#pragma once

#include <cstdint>
#include <functional>
#include <sstream>
#include <tuple>
#include <type_traits>

#include "tests/unit/simgpu_fixture.h"

namespace simgpu {

template <class T>
constexpr const char* ptx_type() {
  if constexpr (std::is_same_v<T, float>) return "f32";
  if constexpr (std::is_same_v<T, double>) return "f64";
  if constexpr (sizeof(T) == 2) return "b16";
  return sizeof(T) == 4 ? "b32" : "b64";
}

template <class T>
std::string bits_text(T value) {
  std::ostringstream text;
  if constexpr (sizeof(T) == 4) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    text << +value << " [0x" << std::hex << bits << "]";
  } else if constexpr (sizeof(T) == 8) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, 8);
    text << +value << " [0x" << std::hex << bits << "]";
  } else {
    text << +value;
  }
  return text.str();
}

class Ops : public Device {
 protected:
  template <class R, class... A>
  std::vector<R> eval(const std::string& body, const std::vector<std::tuple<A...>>& rows) {
    const std::unique_ptr<Module> module = load(kernel<R, A...>(body));
    if (!module) return std::vector<R>(rows.size());
    R* const out = room<R>(rows.size());
    return launch<R>(*module, out, rows, std::index_sequence_for<A...>());
  }

  // The instruction on all pairs of values, bit for bit against `reference`.
  template <class R, class A>
  void check1(const std::string& body, const std::vector<A>& as, std::function<R(A)> reference) {
    std::vector<std::tuple<A>> rows;
    for (const A a : as) rows.emplace_back(a);
    compare<R>(body, rows, [&](const std::tuple<A>& row) { return reference(std::get<0>(row)); });
  }
  template <class R, class A, class B>
  void check2(const std::string& body, const std::vector<A>& as, const std::vector<B>& bs,
              std::function<R(A, B)> reference) {
    std::vector<std::tuple<A, B>> rows;
    for (const A a : as) {
      for (const B b : bs) rows.emplace_back(a, b);
    }
    compare<R>(body, rows, [&](const std::tuple<A, B>& row) { return std::apply(reference, row); });
  }
  template <class R, class A, class B, class C>
  void check3(const std::string& body, const std::vector<A>& as, const std::vector<B>& bs, const std::vector<C>& cs,
              std::function<R(A, B, C)> reference) {
    std::vector<std::tuple<A, B, C>> rows;
    for (const A a : as) {
      for (const B b : bs) {
        for (const C c : cs) rows.emplace_back(a, b, c);
      }
    }
    compare<R>(body, rows, [&](const std::tuple<A, B, C>& row) { return std::apply(reference, row); });
  }

  template <class R, class Row, class F>
  void compare(const std::string& body, const std::vector<Row>& rows, F reference) {
    const std::vector<R> got = eval<R>(body, rows);
    int shown = 0;
    for (std::size_t k = 0; k < rows.size() && shown < 5; ++k) {
      const R wanted = reference(rows[k]);
      if (std::memcmp(&got[k], &wanted, sizeof(R)) == 0) continue;
      ++shown;
      std::string inputs;
      std::apply([&](auto... value) { ((inputs += bits_text(value) + " "), ...); }, rows[k]);
      ADD_FAILURE() << body << "\n  of " << inputs << "\n  gives " << bits_text(got[k]) << ", not "
                    << bits_text(wanted);
    }
  }

 private:
  template <class R, class... A>
  static std::string kernel(const std::string& body) {
    static constexpr const char* names[] = {"%a", "%b", "%c"};
    std::ostringstream text;
    text << ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 n";
    for (std::size_t k = 0; k < sizeof...(A); ++k) text << ", .param .u64 in" << k;
    text << ")\n{\n.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %rd<99>; .reg .f32 %f<9>; .reg .f64 "
            "%fd<9>;\n";
    text << ".reg ." << ptx_type<R>() << " %d;\n";
    std::size_t k = 0;
    ((text << ".reg ." << ptx_type<A>() << " " << names[k++] << ";\n"), ...);
    text << "mov.u32 %r90, %ctaid.x; mov.u32 %r91, %ntid.x; mov.u32 %r92, %tid.x; mad.lo.u32 %r93, %r90, %r91, %r92;\n"
         << "ld.param.u32 %r94, [n]; setp.ge.u32 %p8, %r93, %r94; @%p8 bra END;\n";
    k = 0;
    ((text << "ld.param.u64 %rd90, [in" << k << "]; mad.wide.u32 %rd91, %r93, " << sizeof(A) << ", %rd90; ld.global."
           << ptx_type<A>() << " " << names[k] << ", [%rd91];\n",
      ++k),
     ...);
    text << body << "\nld.param.u64 %rd90, [out]; mad.wide.u32 %rd91, %r93, " << sizeof(R) << ", %rd90; st.global."
         << ptx_type<R>() << " [%rd91], %d;\nEND:\nret;\n}\n";
    return text.str();
  }

  template <class R, class... A, std::size_t... I>
  std::vector<R> launch(const Module& module, R* out, const std::vector<std::tuple<A...>>& rows,
                        std::index_sequence<I...>) {
    const auto count = static_cast<std::uint32_t>(rows.size());
    const Fault fault = run(module, "k", {(count + 127) / 128}, {128}, 0, out, count, upload(column<I, A...>(rows))...);
    EXPECT_FALSE(fault) << fault.what;
    return std::vector<R>(out, out + rows.size());
  }

  template <std::size_t I, class... A>
  static auto column(const std::vector<std::tuple<A...>>& rows) {
    std::vector<std::tuple_element_t<I, std::tuple<A...>>> values;
    for (const auto& row : rows) values.push_back(std::get<I>(row));
    return values;
  }
};

// Values at which instructions go wrong, and some between.
template <class T>
std::vector<T> edges() {
  using U = std::make_unsigned_t<T>;
  const U top = static_cast<U>(U{1} << (8 * sizeof(T) - 1));
  std::vector<T> values;
  for (const U v :
       {U{0}, U{1}, U{2}, U{3}, U{7}, U{31}, U{32}, U{100}, static_cast<U>(0x55aa), top, static_cast<U>(top - 1),
        static_cast<U>(top + 1), static_cast<U>(-1), static_cast<U>(-2), static_cast<U>(-100),
        static_cast<U>(0x0123'4567'89ab'cdef), static_cast<U>(0xfedc'ba98'7654'3210)}) {
    values.push_back(static_cast<T>(v));
  }
  return values;
}

}  // namespace simgpu
