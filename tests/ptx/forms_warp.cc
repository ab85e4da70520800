// Forms of operations between the lanes of a warp. The result of a lane depends on the rows of all 32 lanes.
#include "tests/ptx/form.h"

namespace ptx_forms {
namespace {

// Returns rows whose values repeat, so that several lanes match.
std::vector<Row> repeating(std::size_t count, Bits kinds) {
  std::vector<Row> rows(count);
  for (Row& row : rows) {
    for (Bits& word : row.in) word = next_random();
    row.in[0] = row.in[0] % kinds * 0x9e37'79b9'7f4a'7c15;
  }
  return rows;
}

template <class... A>
Form& lanes(Forms& forms, const std::string& name, const std::string& text, const std::vector<Row>& rows,
            Reference reference) {
  Form& form = add_text<u32, A...>(forms, name, text, [](A...) { return 0U; });
  form.rows = rows;
  form.reference = std::move(reference);
  return form;
}

// ---- shuffles

enum class Shuffle { Up, Down, Butterfly, Index };

Result shuffled(Shuffle mode, const Row* rows, unsigned lane) {
  const u32 amount = rows[lane].in[1] & 31;
  const u32 clamp = rows[lane].in[2] & 31;
  const u32 segment = rows[lane].in[2] >> 8 & 31;
  const u32 last = (lane & segment) | (clamp & ~segment & 31);
  s32 from = static_cast<s32>(lane);
  bool inside = false;
  switch (mode) {
    case Shuffle::Up:
      from -= static_cast<s32>(amount);
      inside = from >= static_cast<s32>(last);
      break;
    case Shuffle::Down:
      from += static_cast<s32>(amount);
      inside = from <= static_cast<s32>(last);
      break;
    case Shuffle::Butterfly:
      from ^= static_cast<s32>(amount);
      inside = from <= static_cast<s32>(last);
      break;
    case Shuffle::Index:
      from = static_cast<s32>((lane & segment) | (amount & ~segment & 31));
      inside = from <= static_cast<s32>(last);
      break;
  }
  return {rows[inside ? static_cast<unsigned>(from) : lane].in[0] & 0xffff'ffff, inside};
}

void shuffles(Forms& forms) {
  std::vector<Row> rows = repeating(1024, ~Bits{0});
  constexpr Bits clamps[] = {0x1f, 0x00, 0x181f, 0x1c03, 0x1800, 0x1e01, 0x0f, 0x1000};
  for (std::size_t k = 0; k < rows.size(); ++k) rows[k].in[2] = clamps[k / warp % 8];
  const auto add = [&](const std::string& name, Shuffle mode) {
    const std::string opcode = "shfl.sync." + name + ".b32";
    Form& form = lanes<u32, u32, u32>(forms, opcode, opcode + " %d|%p1, %a, %b, %c, -1; selp.u32 %e, 1, 0, %p1;", rows,
                                      [mode](const Row* all, unsigned lane) { return shuffled(mode, all, lane); });
    form.second = "b32";
    lanes<u32, u32, u32>(forms, opcode, opcode + " %d, %a, %b, %c, -1;", rows, [mode](const Row* all, unsigned lane) {
      return Result{shuffled(mode, all, lane).d, 0};
    });
  };
  add("up", Shuffle::Up);
  add("down", Shuffle::Down);
  add("bfly", Shuffle::Butterfly);
  add("idx", Shuffle::Index);
}

// ---- votes, matches, reductions

// The lanes that take part together: the whole warp or half of it.
struct Group {
  const char* prepare;
  bool halves;
  u32 mask(unsigned lane) const { return !halves ? ~u32{0} : lane < 16 ? 0xffff : 0xffff'0000; }
};
constexpr Group groups[] = {
    {"mov.u32 %r8, -1;\n", false},
    {"mov.u32 %r8, %laneid; setp.lt.u32 %p4, %r8, 16; selp.b32 %r8, 0xffff, 0xffff0000, %p4;\n", true},
};

template <class F>
void for_lanes(u32 mask, F f) {
  for (unsigned k = 0; k < warp; ++k) {
    if ((mask >> k & 1) != 0) f(k);
  }
}

void votes(Forms& forms, const Group& group) {
  std::vector<Row> rows = repeating(1024, 2);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (k / 16 % 3 == 1) rows[k].in[0] = 0;
    if (k / 16 % 3 == 2) rows[k].in[0] = 1;
  }
  const auto ballot = [=](const Row* all, unsigned lane) {
    u32 bits = 0;
    for_lanes(group.mask(lane), [&](unsigned k) { bits |= u32{(all[k].in[0] & 0xffff'ffff) != 0} << k; });
    return bits;
  };
  const std::string test = std::string(group.prepare) + "setp.ne.u32 %p1, %a, 0;\n";
  lanes<u32>(forms, "vote.sync.ballot.b32", test + "vote.sync.ballot.b32 %d, %p1, %r8;", rows,
             [=](const Row* all, unsigned lane) {
               return Result{ballot(all, lane), 0};
             });
  const auto add = [&](const std::string& opcode, auto holds) {
    lanes<u32>(forms, opcode, test + opcode + " %p2, %p1, %r8; selp.u32 %d, 1, 0, %p2;", rows,
               [=](const Row* all, unsigned lane) {
                 return Result{Bits{holds(ballot(all, lane), group.mask(lane))}, 0};
               });
  };
  add("vote.sync.all.pred", [](u32 bits, u32 mask) { return bits == mask; });
  add("vote.sync.any.pred", [](u32 bits, u32) { return bits != 0; });
  add("vote.sync.uni.pred", [](u32 bits, u32 mask) { return bits == 0 || bits == mask; });
  lanes<u32>(forms, "vote.sync.all.pred", test + "vote.sync.all.pred %p2, !%p1, %r8; selp.u32 %d, 1, 0, %p2;", rows,
             [=](const Row* all, unsigned lane) {
               return Result{ballot(all, lane) == 0 ? 1U : 0U, 0};
             });
  lanes<u32>(forms, "vote.ballot.sync.b32", test + "vote.ballot.sync.b32 %d, %p1, %r8;", rows,
             [=](const Row* all, unsigned lane) {
               return Result{ballot(all, lane), 0};
             });
}

template <class T>
void matches(Forms& forms, const Group& group, const std::string& type) {
  std::vector<Row> rows = repeating(1024, 5);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (k / warp % 2 == 1) rows[k].in[0] = rows[k / 16 * 16].in[0];
  }
  const auto alike = [=](const Row* all, unsigned lane) {
    u32 bits = 0;
    for_lanes(group.mask(lane),
              [&](unsigned k) { bits |= u32{value_of<T>(all[k].in[0]) == value_of<T>(all[lane].in[0])} << k; });
    return bits;
  };
  lanes<T>(forms, "match.any.sync." + type, group.prepare + ("match.any.sync." + type) + " %d, %a, %r8;", rows,
           [=](const Row* all, unsigned lane) {
             return Result{alike(all, lane), 0};
           });
  lanes<T>(forms, "match.all.sync." + type,
           group.prepare + ("match.all.sync." + type) + " %d|%p1, %a, %r8; selp.u32 %e, 1, 0, %p1;", rows,
           [=](const Row* all, unsigned lane) {
             const bool same = alike(all, lane) == group.mask(lane);
             return Result{same ? group.mask(lane) : 0, same};
           })
      .second = "b32";
}

template <class T>
void reduction(Forms& forms, const Group& group, const std::string& operation, T (*combine)(T, T)) {
  const std::string opcode = "redux.sync." + operation;
  lanes<u32>(forms, opcode, group.prepare + opcode + " %d, %a, %r8;", repeating(1024, ~Bits{0}),
             [=](const Row* all, unsigned lane) {
               bool first = true;
               T result{};
               for_lanes(group.mask(lane), [&](unsigned k) {
                 const T value = value_of<T>(all[k].in[0]);
                 result = first ? value : combine(result, value);
                 first = false;
               });
               return Result{bits_of(result), 0};
             })
      .target = 80;
}

void reductions(Forms& forms, const Group& group) {
  reduction<u32>(forms, group, "add.u32", [](u32 a, u32 b) { return a + b; });
  reduction<u32>(forms, group, "add.s32", [](u32 a, u32 b) { return a + b; });
  reduction<u32>(forms, group, "min.u32", [](u32 a, u32 b) { return a < b ? a : b; });
  reduction<u32>(forms, group, "max.u32", [](u32 a, u32 b) { return a < b ? b : a; });
  reduction<s32>(forms, group, "min.s32", [](s32 a, s32 b) { return a < b ? a : b; });
  reduction<s32>(forms, group, "max.s32", [](s32 a, s32 b) { return a < b ? b : a; });
  reduction<u32>(forms, group, "and.b32", [](u32 a, u32 b) { return a & b; });
  reduction<u32>(forms, group, "or.b32", [](u32 a, u32 b) { return a | b; });
  reduction<u32>(forms, group, "xor.b32", [](u32 a, u32 b) { return a ^ b; });
}

// ---- active lanes

void presence(Forms& forms) {
  const std::vector<Row> rows = repeating(512, 2);
  const std::string parted = "setp.ne.u32 %p1, %a, 0; mov.u32 %d, 0;\n";
  const auto taken = [](const Row* all, bool value) {
    u32 bits = 0;
    for_lanes(~u32{0}, [&](unsigned k) { bits |= u32{((all[k].in[0] & 0xffff'ffff) != 0) == value} << k; });
    return bits;
  };
  // Only the lanes with one value execute activemask, so the mask must contain exactly these lanes.
  lanes<u32>(forms, "activemask.b32", parted + "@%p1 activemask.b32 %d;", rows, [=](const Row* all, unsigned lane) {
    const bool here = (all[lane].in[0] & 0xffff'ffff) != 0;
    return Result{here ? taken(all, true) : 0, 0};
  });
  lanes<u32>(forms, "elect.sync",
             std::string("elect.sync %r1|%p1, 0xffffff00; selp.u32 %d, 1, 0, %p1; mov.u32 %e, %r1;"), rows,
             [](const Row*, unsigned lane) {
               return Result{lane == 8, 8};
             });
  forms.back().text =
      "mov.u32 %d, 0; mov.u32 %e, 8; mov.u32 %r2, %laneid; setp.lt.u32 %p2, %r2, 8; @%p2 bra SKIP;\n"
      "elect.sync %e|%p1, 0xffffff00; selp.u32 %d, 1, 0, %p1;\nSKIP:";
  forms.back().second = "b32";
  forms.back().target = 90;
  // Diverged lanes synchronise, and each lane reads the value that another lane has written.
  lanes<u32>(forms, "bar.warp.sync",
             "mov.u32 %r1, %laneid; xor.b32 %r2, %r1, 1; sub.s32 %r3, %r2, %r1; mad.lo.s32 %r4, %r3, 64, %tile;\n" +
                 parted +
                 "@%p1 bra ODD;\nst.shared.u32 [%tile], %a; bra MET;\nODD:\nadd.u32 %r5, %a, 1; "
                 "st.shared.u32 [%tile], %r5;\nMET:\nbar.warp.sync 0xffffffff;\nld.shared.u32 %d, [%r4];",
             rows, [](const Row* all, unsigned lane) {
               const auto value = static_cast<u32>(all[lane ^ 1].in[0]);
               return Result{value == 0 ? 0U : value + 1, 0};
             });
}

}  // namespace

void warp_forms(Forms& forms) {
  shuffles(forms);
  for (const Group& group : groups) {
    votes(forms, group);
    matches<u32>(forms, group, "b32");
    matches<u64>(forms, group, "b64");
    reductions(forms, group);
  }
  presence(forms);
}

}  // namespace ptx_forms
