// Cases for a kernel's reads and writes of surfaces, mainly where the documentation does not define the result.
#include "tests/contract/kernel_textures.h"

namespace contract {
namespace {

constexpr unsigned stored = CUDA_ARRAY3D_SURFACE_LDST;
const std::string read_back = "suld.b.1d.v4.b32.trap {%r20, %r21, %r22, %r23}, [%rd1, {0}];";

// Returns a surface of four words in a row, 100 to 103.
unsigned long long four_words(CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT32) {
  const unsigned words[] = {100, 101, 102, 103};
  return surface_of(array_of({.format = format, .width = 4, .flags = stored}, words));
}

GROUP(surface_loads_outside, InContext) {
  const unsigned long long object = four_words();
  for (const char* mode : {"clamp", "zero"}) {
    for (const int x : {-4, 0, 12, 16, 1 << 30}) {
      const std::string text = std::string("suld.b.1d.b32.") + mode + " {%r20}, [%rd1, {%r0}];";
      show_words(std::string(mode) + " at " + std::to_string(x), text, object, row_of(x));
    }
    const std::string pair = std::string("suld.b.1d.v2.b32.") + mode + " {%r20, %r21}, [%rd1, {%r0}];";
    show_words(std::string("two words, ") + mode + " at 16", pair, object, row_of(16), 2);
  }
}

GROUP(surface_stores_outside, InContext) {
  for (const char* mode : {"clamp", "zero"}) {
    for (const int x : {-4, 16}) {
      const unsigned long long object = four_words();
      const std::string text = std::string("sust.b.1d.b32.") + mode + " [%rd1, {%r0}], {7};\n" + read_back;
      show_words(std::string(mode) + " at " + std::to_string(x), text, object, row_of(x), 4);
    }
  }
}

GROUP(surface_layers_outside, InContext) {
  const unsigned words[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const unsigned long long object =
      surface_of(array_of({CU_AD_FORMAT_UNSIGNED_INT32, 1, 2, 2, 3, stored | CUDA_ARRAY3D_LAYERED}, words));
  for (const char* mode : {"clamp", "zero"}) {
    const std::string text = std::string("suld.b.a2d.b32.") + mode + " {%r20}, [%rd1, {%r2, %r0, %r1, %r1}];";
    for (const auto& [x, y, layer] : {std::array{4, 1, 2}, {4, 2, 1}, {4, -1, 1}, {4, 1, 3}, {4, 1, -1}}) {
      show_words(std::string(mode) + " at " + std::to_string(y) + " of layer " + std::to_string(layer), text, object,
                 row_of(x, y, layer));
    }
  }
}

GROUP(surface_formatted_stores, InContext) {
  const std::string text = "sust.p.1d.v4.b32.trap [%rd1, {1}], {%r0, %r1, %r2, %r3};\n";
  const std::string back = "suld.b.1d.b32.trap {%r20}, [%rd1, {4}]; suld.b.1d.b32.trap {%r21}, [%rd1, {8}];";
  const unsigned none[4] = {};
  const auto store = [&](const char* name, CUarray_format format, unsigned channels, const TexelRow& row) {
    const CUarray array = array_of({format, channels, 4, 0, 0, stored}, none);
    show_words(name, text + back, surface_of(array), row, 2);
  };
  store("unsigned bytes", CU_AD_FORMAT_UNSIGNED_INT8, 4, row_of(1, 255, 256, -1));
  store("signed bytes", CU_AD_FORMAT_SIGNED_INT8, 4, row_of(127, 128, -128, -129));
  store("floats", CU_AD_FORMAT_FLOAT, 1, row_of(1.5f, 2.5f, 3.5f, 4.5f));
}

GROUP(surface_reductions, InContext) {
  const auto reduce = [&](const char* opcode, int value, CUarray_format format) {
    const std::string text = std::string("sured.") + opcode + ".trap [%rd1, {%r1}], %r0;\n" + read_back;
    show_words(opcode + std::string(format == CU_AD_FORMAT_SIGNED_INT32 ? ", signed" : ""), text, four_words(format),
               row_of(value, opcode[0] == 'p' ? 1 : 4), 4);
  };
  for (const char* opcode : {"b.add.1d.u32", "b.min.1d.u32", "b.min.1d.s32", "b.max.1d.u32", "b.max.1d.s32",
                             "b.and.1d.b32", "b.or.1d.b32"}) {
    reduce(opcode, -7, CU_AD_FORMAT_UNSIGNED_INT32);
  }
  reduce("p.min.1d.b32", -7, CU_AD_FORMAT_UNSIGNED_INT32);
  reduce("p.min.1d.b32", -7, CU_AD_FORMAT_SIGNED_INT32);
}

GROUP(surface_queries, InContext) {
  const unsigned words[24] = {};
  const unsigned long long volume = surface_of(array_of({CU_AD_FORMAT_UNSIGNED_INT32, 2, 4, 3, 1, stored}, words));
  const unsigned long long layers =
      surface_of(array_of({CU_AD_FORMAT_FLOAT, 1, 2, 2, 6, stored | CUDA_ARRAY3D_LAYERED}, words));
  for (const auto& [name, object] : {std::pair{"3D", volume}, {"2D layered", layers}}) {
    for (const char* asked :
         {"width", "height", "depth", "array_size", "channel_data_type", "channel_order", "memory_layout"}) {
      show_words(std::string(name) + ": " + asked, std::string("suq.") + asked + ".b32 %r20, [%rd1];", object, {});
    }
  }
}

// ---- faults: each case is a group of its own, because it ends the context

GROUP(surface_fault_trap, InContext) { show_end("suld", "suld.b.1d.b32.trap {%r20}, [%rd1, {16}];", four_words(), {}); }
GROUP(surface_fault_trap_of_a_store, InContext) {
  show_end("sust", "sust.b.1d.b32.trap [%rd1, {16}], {7};", four_words(), {});
}
GROUP(surface_fault_trap_of_a_reduction, InContext) {
  show_end("sured", "sured.b.add.1d.u32.trap [%rd1, {16}], 7;", four_words(), {});
}
GROUP(surface_fault_misaligned, InContext) {
  show_end("suld", "suld.b.1d.b32.zero {%r20}, [%rd1, {%r0}];", four_words(), row_of(2));
}
GROUP(surface_fault_number_0, InContext) { show_end("suld", "suld.b.1d.b32.zero {%r20}, [%rd1, {0}];", 0, {}); }
GROUP(surface_fault_made_up, InContext) { show_end("suld", "suld.b.1d.b32.zero {%r20}, [%rd1, {0}];", 0x12345, {}); }
GROUP(surface_fault_destroyed, InContext) {
  const unsigned long long object = four_words();
  show("cuSurfObjectDestroy", CU(cuSurfObjectDestroy)(object));
  show_end("suld", "suld.b.1d.b32.zero {%r20}, [%rd1, {0}];", object, {});
}
GROUP(surface_fault_store_to_a_texture, InContext) {
  const unsigned words[] = {100, 101, 102, 103};
  const CUarray array = array_of({.format = CU_AD_FORMAT_UNSIGNED_INT32, .width = 4, .flags = stored}, words);
  const unsigned long long object = texture_of(array, sampling_of(CU_TR_FILTER_MODE_POINT, CU_TR_ADDRESS_MODE_CLAMP));
  show_end("sust", "sust.b.1d.b32.zero [%rd1, {0}], {7};", object, {});
}

}  // namespace
}  // namespace contract
