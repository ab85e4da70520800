// Selects how an opcode is lowered: by a function of its own, or by the row of the opcode table that describes it.
#include <cstring>

#include "host/simgpu/vm/lower/lower.h"

namespace simgpu {
namespace {

bool in_list(const char* list, std::string_view word) {
  const std::string_view all(list);
  for (std::size_t at = all.find(word); at != std::string_view::npos; at = all.find(word, at + 1)) {
    const bool begins = at == 0 || all[at - 1] == ' ';
    const bool ends = at + word.size() == all.size() || all[at + word.size()] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

constexpr const char* spellings[] = {
#define X(name, spelling) spelling,
    SIMGPU_WORDS(X)
#undef X
};

bool allowed(const Words& words, const char* list) {
  for (std::size_t k = 0; k < words.size(); ++k) {
    if (words[k] && !in_list(list, spellings[k])) return false;
  }
  return true;
}

}  // namespace

#define SIMGPU_SPACES "global shared local const param "
#define SIMGPU_ORDER "weak relaxed acquire release acq_rel volatile sc mmio cta cluster gpu sys "
#define SIMGPU_CACHE "ca cg cs lu cv wb wt nc cache hint "
#define SIMGPU_COMPARE "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor ftz "

const Lowering::Opcode Lowering::opcodes[] = {
    {"mov", "", &Lowering::mov},
    {"cvt", "rn rz rm rp rni rzi rmi rpi rna ftz sat satfinite relu", &Lowering::cvt},
    {"cvta", SIMGPU_SPACES "to", &Lowering::cvta},
    {"isspacep", SIMGPU_SPACES, &Lowering::isspacep},
    {"setp", SIMGPU_COMPARE, &Lowering::setp},
    {"set", SIMGPU_COMPARE, &Lowering::set},
    {"selp", "", &Lowering::selp},
    {"slct", "ftz", &Lowering::slct},
    {"and", "", &Lowering::logic},
    {"or", "", &Lowering::logic},
    {"xor", "", &Lowering::logic},
    {"not", "", &Lowering::logic},
    {"ld", SIMGPU_SPACES SIMGPU_ORDER SIMGPU_CACHE "v2 v4 v8", &Lowering::ld},
    {"ldu", "global v2 v4", &Lowering::ld},
    {"st", SIMGPU_SPACES SIMGPU_ORDER SIMGPU_CACHE "v2 v4 v8 async mbarrier", &Lowering::st},
    {"atom", SIMGPU_SPACES SIMGPU_ORDER "cache hint v2 v4 v8 add min max inc dec exch cas and or xor noftz",
     &Lowering::atom},
    {"red", SIMGPU_SPACES SIMGPU_ORDER "cache hint v2 v4 v8 add min max inc dec and or xor noftz async mbarrier",
     &Lowering::red},
    {"alloca", "", &Lowering::take_stack},
    {"stacksave", "", &Lowering::save_stack},
    {"stackrestore", "", &Lowering::restore_stack},
    {"prefetch", SIMGPU_SPACES "cache hint", &Lowering::nothing},
    {"prefetchu", "cache hint", &Lowering::nothing},
    {"createpolicy", "fractional range cvt global cache hint", &Lowering::createpolicy},
    {"discard", "global cache hint", &Lowering::cache_line},
    {"applypriority", "global cache hint", &Lowering::cache_line},
    {"pmevent", "", &Lowering::nothing},
    {"griddepcontrol", "wait launch_dependents", &Lowering::nothing},
    {"mbarrier",
     "init inval arrive arrive_drop expect_tx complete_tx test_wait try_wait parity pending_count noComplete "
     "release relaxed acquire shared cta cluster",
     &Lowering::mbarrier},
    {"cp",
     "async ca cg shared global cache hint commit_group wait_group wait_all mbarrier arrive noinc bulk bulk_group read "
     "cta cluster reduce prefetch add min max inc dec and or xor noftz",
     &Lowering::cp},
    {"mapa", "shared cluster", &Lowering::mapa},
    {"getctarank", "shared cluster", &Lowering::getctarank},
    {"tex", "1d 2d 3d a1d a2d cube acube base level grad v2 v4", &Lowering::tex},
    {"tld4", "r g b a 2d a2d cube acube v4", &Lowering::tld4},
    {"txq",
     "level width height depth channel_data_type channel_order normalized_coords force_unnormalized_coords array_size "
     "num_mipmap_levels num_samples filter_mode addr_mode_0 addr_mode_1 addr_mode_2",
     &Lowering::txq},
    {"suq", "width height depth channel_data_type channel_order array_size memory_layout", &Lowering::suq},
    {"suld", "b 1d 2d 3d a1d a2d ca cg cs cv v2 v4 trap clamp zero", &Lowering::suld},
    {"sust", "b p 1d 2d 3d a1d a2d wb cg cs wt v2 v4 trap clamp zero", &Lowering::sust},
    {"sured", "b p 1d 2d 3d add min max and or trap clamp zero", &Lowering::sured},
    {"istypep", "texref samplerref surfref", &Lowering::istypep},
    {"bra", "uni", &Lowering::bra},
    {"brx", "idx uni", &Lowering::brx},
    {"call", "uni", &Lowering::call},
    {"ret", "uni", &Lowering::ret},
    {"exit", "", &Lowering::exit},
    {"trap", "", &Lowering::trap},
    {"brkpt", "", &Lowering::break_point},
    {"bar", "warp sync arrive red cta popc and or", &Lowering::barrier},
    {"barrier", "sync arrive wait red cta cluster popc and or aligned acquire release relaxed", &Lowering::barrier},
    {"membar", "cta gl sys", &Lowering::fence},
    {"fence", "sc acq_rel acquire release cta cluster gpu sys proxy async alias global shared mbarrier_init",
     &Lowering::fence},
    {"nanosleep", "", &Lowering::nanosleep},
    {"shfl", "sync up down bfly idx", &Lowering::shfl},
    {"vote", "sync all any uni ballot", &Lowering::vote},
    {"match", "sync all any", &Lowering::match},
    {"redux", "sync add min max and or xor", &Lowering::redux},
    {"activemask", "", &Lowering::activemask},
    {"elect", "sync", &Lowering::elect},
    {"mma", "", &Lowering::mma},
    {"wmma", "", &Lowering::wmma},
    {"ldmatrix", "", &Lowering::ldmatrix},
    {"stmatrix", "", &Lowering::stmatrix},
    {"movmatrix", "", &Lowering::movmatrix},
    {nullptr, nullptr, nullptr},
};

void Lowering::allow(const char* words) const {
  if (!allowed(form_.words, words)) not_served();
}

Handlers Lowering::row(const char* name, ptx::Type type, std::initializer_list<Word> words) const {
  Form form;
  form.types[0] = type;
  form.type_count = 1;
  for (const Word word : words) form.words.set(static_cast<std::size_t>(word));
  for (const Rows& rows : table_.rows) {
    for (const Row* row = rows.begin; row != rows.end; ++row) {
      if (std::strcmp(row->name, name) != 0 || !in_list(row->types, ptx::name_of(type))) continue;
      if (!allowed(form.words, row->words)) continue;
      if (const Handlers handlers = row->pick(form)) return handlers;
    }
  }
  return {};
}

std::uint32_t Lowering::mode_flags() const {
  std::uint32_t flags = form_.has(Word::rm) ? 1 : form_.has(Word::rp) ? 2 : form_.has(Word::rz) ? 3 : 0;
  if (form_.has(Word::ftz)) flags |= flag_ftz;
  if (form_.has(Word::sat)) flags |= flag_sat;
  if (form_.has(Word::relu)) flags |= flag_relu;
  return flags;
}

bool Lowering::try_row(const Row& row) {
  if (in().opcode != row.name || !in_list(row.types, ptx::name_of(form_.type()))) return false;
  if (!allowed(form_.words, row.words)) return false;
  const Handlers handlers = row.pick(form_);
  if (!handlers) return false;
  with_row(row, handlers);
  return true;
}

void Lowering::with_row(const Row& row, Handlers handlers) {
  static constexpr Field fields[] = {Field::A, Field::B, Field::C, Field::E};
  const ptx::Type type = form_.type();
  const unsigned size = ptx::size_of(type);
  std::vector<Value> sources;
  std::uint32_t result = 0;
  std::int64_t immediate = 0;
  bool carry = false;
  std::size_t next = 0;
  for (const char* letter = row.signature; *letter != '\0'; ++letter) {
    switch (*letter) {
      case 'd': result = destination(operand(next++), size); break;
      case 'D': result = destination(operand(next++), 2 * size); break;
      case 'U': result = destination(operand(next++), 4); break;
      case 'P': result = destination(operand(next++), 0); break;
      case 't': sources.push_back(source(operand(next++), type)); break;
      case 'T': sources.push_back(source_bits(operand(next++), 2 * size, ptx::Type::None)); break;
      case 'u': sources.push_back(source_bits(operand(next++), 4, ptx::Type::None)); break;
      case 'p': sources.push_back(predicate(operand(next++))); break;
      case 'i': immediate = operand(next++).value; break;
      default: carry = true; break;
    }
  }
  expect_operands(next, next);
  const std::uint32_t at = emit(handlers);
  ins(at).flags |= mode_flags();
  ins(at).imm = immediate;
  for (std::size_t k = 0; k < sources.size(); ++k) read(at, fields[k], sources[k]);
  write(at, Field::D, result);
  if (!carry) return;
  if (carry_ == ~0U) carry_ = temp(0);
  references_.push_back({at, carry_, 0, Field::E, true, true, true});
}

void Lowering::generic() {
  for (const Opcode* entry = opcodes; entry->name != nullptr; ++entry) {
    if (in().opcode != entry->name) continue;
    if (!allowed(form_.words, entry->words)) continue;
    return (this->*entry->method)();
  }
  by_row();
}

void Lowering::by_row() {
  for (const Rows& rows : table_.rows) {
    for (const Row* row = rows.begin; row != rows.end; ++row) {
      if (try_row(*row)) return;
    }
  }
  not_served();
}

}  // namespace simgpu
