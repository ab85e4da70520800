// Forms of barriers in shared memory, asynchronous copies, atomics on vectors, and instructions for clusters of one
// block.
#include "tests/ptx/form.h"

namespace ptx_forms {
namespace {

// Adds a form in which the thread's tile holds an mbarrier of its own. The text runs between the init and the inval of
// the mbarrier.
Form& alone(Forms& forms, const std::string& name, unsigned count, const std::string& text, u32 wanted,
            unsigned target) {
  Form& form = add_text<u32, u32>(forms, name,
                                  "mbarrier.init.shared.b64 [%tile], " + std::to_string(count) + ";\nmov.u32 %d, 0;\n" +
                                      text + "\nmbarrier.inval.shared.b64 [%tile];",
                                  [wanted](u32) { return wanted; });
  form.rows.resize(128);
  form.target = target;
  return form;
}

// Appends one bit to %d: whether the phase of a token (or of a parity) is complete.
std::string asked(const std::string& opcode, const std::string& what) {
  return opcode + ".shared.b64 %p1, [%tile], " + what + "; selp.u32 %r1, 1, 0, %p1; mad.lo.u32 %d, %d, 2, %r1;\n";
}

void phases(Forms& forms) {
  const std::string token = asked("mbarrier.test_wait", "%rd1");
  const std::string even = asked("mbarrier.test_wait.parity", "0");
  const std::string odd = asked("mbarrier.test_wait.parity", "1");
  const std::string arrive = "mbarrier.arrive.shared.b64 %rd1, [%tile];\n";
  alone(forms, "mbarrier.arrive.shared.b64", 1, arrive + token + even + odd, 0b110, 80);
  alone(forms, "mbarrier.arrive.shared.b64", 2, arrive + token + even + odd, 0b001, 80);
  alone(forms, "mbarrier.arrive.shared.b64", 2, arrive + arrive + token + even + odd, 0b110, 80);
  alone(forms, "mbarrier.arrive.shared.b64", 1, arrive + arrive + token + even + odd, 0b101, 80);
  alone(forms, "mbarrier.arrive_drop.shared.b64", 2,
        "mbarrier.arrive_drop.shared.b64 _, [%tile];\n" + even + arrive + even + arrive + even + odd, 0b0101, 80);
  alone(forms, "mbarrier.arrive.noComplete.shared.b64", 3,
        "mbarrier.arrive.noComplete.shared.b64 %rd1, [%tile], 2;\n" + token + arrive + even, 0b01, 80);
  alone(forms, "mbarrier.arrive.shared.b64", 5, "mbarrier.arrive.shared.b64 %rd1, [%tile], 5;\n" + token, 1, 90);
  alone(forms, "mbarrier.arrive.release.cta.shared::cta.b64", 1,
        "mbarrier.arrive.release.cta.shared::cta.b64 %rd1, [%tile];\n" + token, 1, 90);
  alone(forms, "mbarrier.try_wait.shared.b64", 1, arrive + asked("mbarrier.try_wait", "%rd1"), 1, 90);
  alone(forms, "mbarrier.try_wait.parity.shared.b64", 1, arrive + asked("mbarrier.try_wait.parity", "0"), 1, 90);
  alone(forms, "mbarrier.pending_count.b64", 7,
        arrive + "mbarrier.pending_count.b64 %d, %rd1;\n" + arrive + "mbarrier.pending_count.b64 %r2, %rd1;\n" +
            "mad.lo.u32 %d, %d, 16, %r2;",
        0x76, 80);
  // A phase does not complete while expected bytes are outstanding.
  const std::string expect = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%tile], 48;\n";
  const std::string complete = "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%tile], ";
  alone(forms, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64", 1,
        expect + arrive + token + complete + "16;\n" + token + complete + "32;\n" + token, 0b001, 90);
  alone(
      forms, "mbarrier.arrive.expect_tx.shared::cta.b64", 1,
      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd1, [%tile], 16;\n" + token + complete + "16;\n" + token,
      0b01, 90);
  // These forms use a generic address.
  alone(forms, "mbarrier.arrive.b64", 1,
        "cvt.u64.u32 %rd2, %tile; cvta.shared.u64 %rd2, %rd2; mbarrier.arrive.b64 %rd1, [%rd2];\n"
        "mbarrier.test_wait.b64 %p1, [%rd2], %rd1; selp.u32 %d, 1, 0, %p1;",
        1, 80);
}

// All threads of the block synchronise at one mbarrier. Each thread then reads the value that its counterpart at the
// other end of the block has written.
void meetings(Forms& forms) {
  const std::string before =
      "mov.u32 %r1, %tid.x; sub.u32 %r2, 127, %r1; mov.u32 %r3, tile; mad.lo.u32 %r2, %r2, 64, %r3;\n"
      "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY; mbarrier.init.shared.b64 [%r3+16], 128;\nREADY:\nbar.sync 0;\n"
      "add.u32 %r4, %a, 3; st.shared.u32 [%tile], %r4;\n";
  const auto add = [&](const std::string& opcode, const std::string& what, unsigned target) {
    Form& form = add_text<u32, u32>(forms, opcode + ".shared.b64",
                                    before + "mbarrier.arrive.shared.b64 %rd1, [%r3+16];\nAGAIN:\n" + opcode +
                                        ".shared.b64 %p2, [%r3+16], " + what + ";\n@!%p2 bra AGAIN;\n" +
                                        "ld.shared.u32 %d, [%r2];",
                                    [](u32) { return 0U; });
    form.rows.assign(256, Row{});
    for (std::size_t k = 0; k < form.rows.size(); ++k) form.rows[k].in[0] = k % 128;
    form.reference = [](const Row* rows, unsigned lane) { return Result{130 - rows[lane].in[0], 0}; };
    form.target = target;
  };
  add("mbarrier.test_wait", "%rd1", 80);
  add("mbarrier.test_wait.parity", "0", 80);
  add("mbarrier.try_wait", "%rd1", 90);
  add("mbarrier.try_wait.parity", "0", 90);
}

// ---- copies

void copies(Forms& forms) {
  const std::string fill = "st.shared.b64 [%tile+32], -1; st.shared.b64 [%tile+40], -1;\n";
  const std::string wait = "cp.async.commit_group;\ncp.async.wait_group 0;\n";
  const std::string read = "ld.shared.b64 %d, [%tile+32]; ld.shared.b64 %e, [%tile+40];";
  const auto add = [&](const std::string& opcode, const std::string& operands, const std::string& end, unsigned bytes,
                       unsigned given) {
    Form& form =
        add_text<u64, u64, u64>(forms, opcode, fill + opcode + " [%tile+32], [%in], " + operands + ";\n" + end + read,
                                [](u64, u64) { return u64{0}; });
    form.second = "b64";
    form.reference = [=](const Row* rows, unsigned lane) {
      unsigned char all[16];
      std::memset(all, 0xff, sizeof all);
      std::memset(all, 0, bytes);
      std::memcpy(all, rows[lane].in.data(), given);
      Result result;
      std::memcpy(&result, all, sizeof result);
      return result;
    };
    form.rows.resize(128);
    form.target = 80;
  };
  for (const unsigned size : {4U, 8U, 16U}) {
    const std::string bytes = std::to_string(size);
    add("cp.async.ca.shared.global", bytes, wait, size, size);
    add("cp.async.ca.shared.global", bytes + ", " + bytes, wait, size, size);
    add("cp.async.ca.shared.global", bytes + ", 0", wait, size, 0);
    add("cp.async.ca.shared.global", bytes + ", 3", wait, size, 3);
    add("cp.async.ca.shared.global.L2::128B", bytes, "cp.async.wait_all;\n", size, size);
  }
  add("cp.async.cg.shared.global", "16", wait, 16, 16);
  add("cp.async.cg.shared.global", "16, 5", wait, 16, 5);
  alone(forms, "cp.async.mbarrier.arrive.noinc.shared.b64", 1,
        "cp.async.ca.shared.global [%tile+16], [%in], 4;\ncp.async.mbarrier.arrive.noinc.shared.b64 [%tile];\n"
        "cp.async.wait_all;\nAGAIN:\nmbarrier.test_wait.parity.shared.b64 %p1, [%tile], 0; @!%p1 bra AGAIN;\n"
        "ld.shared.u32 %d, [%tile+16]; ld.global.u32 %r1, [%in]; sub.u32 %d, %d, %r1;",
        0, 80);
  alone(forms, "cp.async.mbarrier.arrive.shared.b64", 1,
        "cp.async.mbarrier.arrive.shared.b64 [%tile];\nmbarrier.arrive.shared.b64 %rd1, [%tile];\n"
        "AGAIN:\nmbarrier.test_wait.shared.b64 %p1, [%tile], %rd1; @!%p1 bra AGAIN;\nmov.u32 %d, 1;",
        1, 80);
}

void bulk(Forms& forms) {
  const std::string inwards =
      "mbarrier.init.shared.b64 [%tile], 1;\nfence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%tile], 32;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%tile+32], [%in], 32, [%tile];\n"
      "AGAIN:\nmbarrier.try_wait.shared.b64 %p1, [%tile], %rd1;\n@!%p1 bra AGAIN;\n";
  add_text<u64, u64, u64, u64>(
      forms, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
      inwards + "ld.shared.b64 %d, [%tile+32]; ld.shared.b64 %rd2, [%tile+48]; add.u64 %d, %d, %rd2;",
      [](u64 a, u64, u64 c) { return a + c; })
      .target = 90;
  add_text<u64, u64, u64>(
      forms, "cp.async.bulk.global.shared::cta.bulk_group",
      "st.shared.b64 [%tile], %b; st.shared.b64 [%tile+8], %a;\nfence.proxy.async.shared::cta;\n"
      "cp.async.bulk.global.shared::cta.bulk_group [%mem], [%tile], 16;\ncp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;\nfence.proxy.async;\nld.global.b64 %d, [%mem];",
      [](u64, u64 b) { return b; })
      .target = 90;
}

// Text before an instruction that completes `bytes` at the mbarrier in %tile; the text after it waits for these bytes.
std::string expecting(unsigned bytes) {
  return "mbarrier.init.shared.b64 [%tile], 1;\nfence.mbarrier_init.release.cluster;\n"
         "mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%tile], " +
         std::to_string(bytes) + ";\n";
}
const std::string until_there = "AGAIN:\nmbarrier.try_wait.shared.b64 %p1, [%tile], %rd1;\n@!%p1 bra AGAIN;\n";

// These forms run in clusters of one block. An H200 reports CUDA_ERROR_ILLEGAL_INSTRUCTION for a kernel without
// clusters that stores or reduces into shared memory of the cluster, even of its own block (driver 580.159.04,
// 2026-11-29).
void remote_stores(Forms& forms) {
  const std::string completes = ".shared::cluster.mbarrier::complete_tx::bytes";
  const auto of_a_cluster = [](Form& form) { form.target = 90, form.in_clusters = true; };
  const auto store = [&](const std::string& rest, unsigned bytes, const std::string& values, const std::string& last) {
    const std::string opcode = "st.async" + completes + rest;
    of_a_cluster(add_text<u32, u32>(forms, opcode,
                                    expecting(bytes) + "mov.u32 %r1, 7; mov.b64 %rd2, {%a, %r1};\n" + opcode +
                                        " [%tile+16], " + values + ", [%tile];\n" + until_there +
                                        "ld.shared.u32 %d, [%tile+" + last + "];",
                                    [](u32 a) { return a; }));
  };
  store(".u32", 4, "%a", "16");
  store(".b64", 8, "%rd2", "16");
  store(".v2.b32", 8, "{%r1, %a}", "20");
  store(".v4.s32", 16, "{%r1, %r1, %r1, %a}", "28");
  store(".v2.u64", 16, "{%rd1, %rd2}", "24");
  const auto reduce = [&](const std::string& rest, auto reference) {
    const std::string opcode = "red.async.relaxed.cluster" + completes + rest;
    of_a_cluster(add_text<u32, u32, u32>(forms, opcode,
                                         expecting(4) + "st.shared.u32 [%tile+16], %a;\n" + opcode +
                                             " [%tile+16], %b, [%tile];\n" + until_there +
                                             "ld.shared.u32 %d, [%tile+16];",
                                         reference));
  };
  reduce(".add.u32", [](u32 a, u32 b) { return a + b; });
  reduce(".max.s32", [](u32 a, u32 b) { return static_cast<s32>(a) > static_cast<s32>(b) ? a : b; });
  reduce(".min.u32", [](u32 a, u32 b) { return std::min(a, b); });
  reduce(".inc.u32", [](u32 a, u32 b) { return a >= b ? 0 : a + 1; });
  reduce(".xor.b32", [](u32 a, u32 b) { return a ^ b; });
}

// Reductions of sixteen bytes. The forms check the second element of words and longs; the other elements hold values
// that must not mix with it.
void bulk_reductions(Forms& forms) {
  const auto inside = [&](const std::string& rest, auto reference) {
    const std::string opcode = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes" + rest;
    Form& form = add_text<u32, u32, u32>(
        forms, opcode,
        expecting(16) + "mov.u32 %r1, 0;\nst.shared.v4.u32 [%tile+16], {%r1, %a, %r1, %r1};\n" +
            "st.shared.v4.u32 [%tile+32], {%a, %b, %a, %a};\nfence.proxy.async.shared::cta;\n" + opcode +
            " [%tile+16], [%tile+32], 16, [%tile];\n" + until_there + "ld.shared.u32 %d, [%tile+20];",
        reference);
    form.target = 90, form.in_clusters = true;
  };
  inside(".add.u32", [](u32 a, u32 b) { return a + b; });
  inside(".and.b32", [](u32 a, u32 b) { return a & b; });
  inside(".min.s32", [](u32 a, u32 b) { return static_cast<s32>(a) < static_cast<s32>(b) ? a : b; });
  inside(".dec.u32", [](u32 a, u32 b) { return a == 0 || a > b ? b : a - 1; });
  const auto outwards = [&](const std::string& rest, auto reference) {
    const std::string opcode = "cp.reduce.async.bulk.global.shared::cta.bulk_group" + rest;
    add_text<u64, u64, u64>(forms, opcode,
                            "st.global.b64 [%mem+8], %a; st.shared.b64 [%tile], %a; st.shared.b64 [%tile+8], %b;\n"
                            "fence.proxy.async;\n" +
                                opcode +
                                " [%mem], [%tile], 16;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
                                "fence.proxy.async;\nld.global.b64 %d, [%mem+8];",
                            reference)
        .target = 90;
  };
  outwards(".add.u64", [](u64 a, u64 b) { return a + b; });
  outwards(".max.s64", [](u64 a, u64 b) { return static_cast<s64>(a) > static_cast<s64>(b) ? a : b; });
  outwards(".or.b64", [](u64 a, u64 b) { return a | b; });
}

// ---- cache policies and vectors

// Cache policies are hints: an access with a policy has the same result as the access without it.
void policies(Forms& forms) {
  const auto add = [&](const std::string& name, const std::string& text) {
    add_text<u32, u32>(forms, name, text, [](u32 a) { return a; }).target = 80;
  };
  const std::string load = "ld.global.L2::cache_hint.u32 %d, [%in], %rd1;";
  for (const std::string rest : {".L2::evict_last", ".L2::evict_first.L2::evict_unchanged", ".L2::evict_normal"}) {
    add("createpolicy.fractional" + rest + ".b64", "createpolicy.fractional" + rest + ".b64 %rd1, 0.5;\n" + load);
  }
  add("createpolicy.fractional.L2::evict_unchanged.b64",
      "createpolicy.fractional.L2::evict_unchanged.b64 %rd1;\n" + load);
  add("createpolicy.range.global.L2::evict_last.L2::evict_first.b64",
      "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %rd1, [%in], 1024, 4096;\n" + load);
  const std::string make = "createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;\n";
  add("st.global.L2::cache_hint.u32",
      make + "st.global.L2::cache_hint.u32 [%mem], %a, %rd1;\nld.global.u32 %d, [%mem];");
  add("atom.global.add.L2::cache_hint.u32",
      make + "atom.global.add.L2::cache_hint.u32 %r1, [%mem], %a, %rd1;\nld.global.u32 %d, [%mem];");
  add("red.global.add.L2::cache_hint.u32",
      make + "red.global.add.L2::cache_hint.u32 [%mem], %a, %rd1;\nld.global.u32 %d, [%mem];");
  add("cp.async.bulk.prefetch.L2.global", "cp.async.bulk.prefetch.L2.global [%in], 16;\nld.global.u32 %d, [%in];");
  forms.back().target = 90;
  add("applypriority.global.L2::evict_normal",
      "and.b64 %rd1, %in, -128; applypriority.global.L2::evict_normal [%rd1], 128;\nld.global.u32 %d, [%in];");
}

// Each element of a vector is updated separately. The second result is the new value of the last element.
void vectors(Forms& forms) {
  const auto sum = [](Bits a, Bits b) {
    return flushed(add(flushed(a, single), flushed(b, single), single, Round::Nearest), single);
  };
  for (const unsigned count : {2U, 4U}) {
    const std::string size = std::to_string(count);
    std::string old = "{%d";
    std::string with = "{%b";
    for (unsigned k = 1; k < count; ++k) {
      old += ", %f" + std::to_string(k);
      with += k + 1 == count ? ", %c" : ", %b";
    }
    const std::string last = std::to_string(4 * (count - 1));
    for (const bool reduces : {false, true}) {
      const std::string opcode = (reduces ? "red.global.add.v" : "atom.global.add.v") + size + ".f32";
      Form& form = add_text<f32, f32, f32, f32>(
          forms, opcode,
          "st.global.f32 [%mem], %a; st.global.f32 [%mem+" + last + "], %a; mov.f32 %d, %a;\n" + opcode + " " +
              (reduces ? "" : old + "}, ") + "[%mem], " + with + "};\nld.global.f32 %e, [%mem+" + last + "];",
          [](f32 a, f32, f32) { return a; });
      form.second = "f32";
      form.reference = [=](const Row* rows, unsigned lane) {
        const auto& in = rows[lane].in;
        return Result{in[0] & 0xffff'ffff, sum(in[0] & 0xffff'ffff, in[2] & 0xffff'ffff)};
      };
      form.target = 90;
    }
  }
}

void clusters(Forms& forms) {
  const auto add = [&](const std::string& name, const std::string& text) {
    add_text<u32, u32>(forms, name, text, [](u32 a) { return a; }).target = 90;
  };
  add("mapa.shared::cluster.u32",
      "st.shared.u32 [%tile], %a; mapa.shared::cluster.u32 %r1, %tile, 0; "
      "ld.shared::cluster.u32 %d, [%r1];");
  add("mapa.u64",
      "st.shared.u32 [%tile], %a; cvt.u64.u32 %rd1, %tile; cvta.shared.u64 %rd1, %rd1; "
      "mapa.u64 %rd2, %rd1, 0; ld.u32 %d, [%rd2];");
  add("getctarank.u64",
      "cvt.u64.u32 %rd1, %tile; cvta.shared.u64 %rd1, %rd1; getctarank.u64 %r1, %rd1; "
      "add.u32 %d, %a, %r1;");
  add("mov.pred", "mov.pred %p1, %is_explicit_cluster; selp.u32 %r1, 1, 0, %p1; add.u32 %d, %a, %r1;");
  add("griddepcontrol.wait", "griddepcontrol.launch_dependents; griddepcontrol.wait; mov.u32 %d, %a;");
}

}  // namespace

void async_forms(Forms& forms) {
  phases(forms);
  meetings(forms);
  copies(forms);
  bulk(forms);
  remote_stores(forms);
  bulk_reductions(forms);
  policies(forms);
  vectors(forms);
  clusters(forms);
}

}  // namespace ptx_forms
