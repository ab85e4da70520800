// Lowers the body of a PTX function to instructions of the interpreter. Internal to lower*.cc: each of these files
// lowers a family of opcodes, with the operations declared below.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "host/simgpu/vm/control.h"
#include "host/simgpu/vm/form.h"
#include "host/simgpu/vm/matrix/matrix.h"
#include "host/simgpu/vm/program.h"
#include "host/simgpu/vm/registers.h"
#include "host/simgpu/vm/table.h"
#include "host/simgpu/vm/texture.h"

namespace simgpu {

// A source operand: a register, or a constant with the same bits for all lanes.
struct Value {
  bool constant = false;
  std::uint8_t size = 4;  // bytes per lane; 0: a predicate
  std::uint32_t reg = 0;
  std::uint64_t bits = 0;
};

class Lowering {
 public:
  Lowering(const Unit& unit, Plan& plan);
  void run();

 private:
  using Method = void (Lowering::*)();
  struct Opcode {
    const char* name;
    const char* words;
    Method method;
  };
  static const Opcode opcodes[];

  // ---- the current instruction
  const ptx::Instruction& in() const { return *in_; }
  const ptx::Operand& operand(std::size_t k) const;
  void expect_operands(std::size_t least, std::size_t most) const;
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void not_served() const;
  void allow(const char* words) const;

  // ---- emission
  std::uint32_t emit(Handlers handlers);  // fails as not supported if the handlers are null
  Ins& ins(std::uint32_t at) { return code_.body[at]; }
  void read(std::uint32_t at, Field field, const Value& value);
  void write(std::uint32_t at, Field field, std::uint32_t reg, bool partial = false);
  std::uint32_t extra(std::uint32_t at, const Value& value, bool destination);
  std::uint32_t temp(unsigned size);
  Place constant(std::uint64_t bits, unsigned size);
  Value constant_value(std::uint64_t bits, unsigned size) const;
  Value reg_value(std::uint32_t reg) const;
  void emit_to(std::uint32_t reg, Handlers handlers, std::initializer_list<Value> sources);
  Value emit_temp(unsigned size, Handlers handlers, std::initializer_list<Value> sources);
  Handlers row(const char* name, ptx::Type type, std::initializer_list<Word> words = {}) const;

  // ---- operands
  Value source(const ptx::Operand& operand, ptx::Type type);
  Value source_bits(const ptx::Operand& operand, unsigned size, ptx::Type type);
  Value literal(const ptx::Operand& operand, unsigned size, ptx::Type type) const;
  Value predicate(const ptx::Operand& operand);  // the operand with its negation applied
  Value any_register(const ptx::Operand& operand);
  std::uint32_t destination(const ptx::Operand& operand, unsigned size);
  Value resized(const Value& value, unsigned size, bool sign);
  Value special(std::string_view name, unsigned size);
  Value fixed_special(Special which, bool wide);
  Value address_of(const Symbol& symbol, std::int64_t offset, unsigned size);
  const Symbol& symbol_of(const ptx::Operand& operand) const;
  std::uint32_t find_label(std::string_view name) const;
  // Looks up a label or prototype, starting with the innermost scope.
  template <class Map>
  const typename Map::mapped_type* find_scoped(const Map& map, std::string_view name) const {
    for (std::uint32_t scope = in().scope;; scope = function_.scopes[scope]) {
      const auto found = map.find({scope, name});
      if (found != map.end()) return &found->second;
      if (function_.scopes[scope] == scope) return nullptr;
    }
  }

  // ---- families of opcodes
  void generic();
  void by_row();  // fails as not supported if no row of the opcode table matches
  bool try_row(const Row& row);
  void with_row(const Row& row, Handlers handlers);
  std::uint32_t mode_flags() const;

  void mov();
  void pack();
  void unpack();
  void cvt();
  void cvt_pair();
  void cvt_bytes();
  void cvt_tf32();
  Value through_double(const Value& value, ptx::Type from);
  Value natural(const Value& value, ptx::Type type);
  void put_converted(const Value& value, ptx::Type type);
  void cvta();
  void isspacep();
  void setp();
  void set();
  Value compared(Word comparison, ptx::Type type, std::size_t first);
  Value compared_values(Word comparison, ptx::Type type, Value a, Value b);
  std::array<Value, 2> compared_pairs(Word comparison, ptx::Type type, std::size_t first);
  Value half_of(const Value& pair, bool upper);
  void set_pair();
  Value combined(const Value& bits, std::size_t third);
  Word comparison() const;
  void selp();
  void slct();
  void logic();

  struct Target {
    Value base;
    std::int64_t offset = 0;
    bool windowed = false;
    bool frame = false;
    std::uint16_t space = 0;
    bool fixed_param = false;
    std::uint64_t param_size = 0;
  };
  Target target(const ptx::Operand& address, ptx::Space space);
  Target symbol_target(const Symbol& symbol, std::int64_t offset, ptx::Space space);
  Target register_target(const Value& base, std::int64_t offset, ptx::Space space);
  ptx::Space form_space() const;
  unsigned vector_count() const;
  void access_flags(std::uint32_t at, const Target& target, unsigned count);
  ptx::Type element_type() const;
  std::vector<std::uint32_t> loaded_registers(ptx::Type type);
  std::vector<Value> stored_values(ptx::Type type);
  void ld();
  void st();
  void atom();
  void red();
  void atomic(bool result);
  Word atomic_operation() const;
  void one_atomic(Word operation, const Value& address, const ptx::Operand* into, const Value& b, const Value& c,
                  std::uint64_t offset);
  void nothing();
  void createpolicy();
  void cache_line();
  void take_stack();
  void save_stack();
  void restore_stack();
  unsigned stack_word() const;

  static constexpr unsigned wide_size = 16;
  void split_wide_registers();
  std::array<std::uint32_t, 2> halves(const ptx::Operand& operand);
  void mov_wide();
  void atomic_wide(Word operation, const Value& address, bool result);

  Value generic_address(const ptx::Operand& operand, ptx::Space space);
  void mbarrier();
  void mbarrier_step(MbarrierStep step, ptx::Space space, std::size_t first);
  void mbarrier_test(ptx::Space space);
  void cp();
  Value copied_bytes(std::uint64_t size);
  void bulk_copy();
  void bulk_reduction();
  void add_bulk_operands(Handlers handlers, bool outwards);
  void st_async();
  void red_async();
  void complete_bytes(const ptx::Operand& barrier, ptx::Space space, std::uint64_t bytes);
  void mapa();
  void getctarank();

  Geometry geometry() const;
  Value object_of(const ptx::Operand& operand);
  Value number_in(const Symbol& symbol, std::string_view name);
  std::vector<Value> coordinates(const ptx::Operand& address, ptx::Type type);
  std::vector<Value> vector_of(const ptx::Operand& operand, ptx::Type type, unsigned first, unsigned count);
  void tex();
  void tld4();
  void texture(const TextureForm& form, std::vector<Value> level, std::size_t next);
  void texture_operands(std::uint32_t at, const std::vector<Value>& operands);
  void texture_results(std::uint32_t at, TextureForm::Result result);
  void txq();
  void suq();
  void query(Handlers handlers, CUresult of_references, std::initializer_list<Word> references);
  void suld();
  void sust();
  void sured();
  void surface(SurfaceForm form, std::size_t address, const ptx::Operand& values);
  Bounds bounds() const;
  void istypep();

  void bra();
  void brx();
  void call();
  void call_host(const Symbol& symbol, CallSite site);
  std::vector<Piece> pieces(const ptx::Operand& list, bool results);
  void ret();
  void exit();
  void trap();
  void break_point();
  void barrier();
  void warp_barrier();
  void fence();
  void nanosleep();
  void shfl();
  void vote();
  void match();
  void redux();
  void activemask();
  void elect();

  struct Fragment {  // the registers of a matrix operand
    std::vector<std::uint32_t> into;
    std::vector<Value> from;
  };
  std::uint32_t emit_whole_warp(Handlers handlers);
  Fragment fragment_into(const ptx::Operand& list, const matrix::Layout& layout);
  Fragment fragment_from(const ptx::Operand& list, const matrix::Layout& layout, matrix::Element element);
  void add_registers(std::uint32_t at, const Fragment& fragment);
  void mma();
  void wmma();
  void product(const matrix::Product& product);
  void transfer(const matrix::Transfer& transfer, ptx::Space space, bool loads);
  void ldmatrix();
  void stmatrix();
  void tiles(bool loads);
  void movmatrix();

  void one_instruction(const ptx::Instruction& instruction);
  void patch_targets();

  const Unit& unit_;
  Plan& plan_;
  const ptx::Function& function_;
  Code& code_;
  const Table& table_;

  const ptx::Instruction* in_ = nullptr;
  Form form_;
  bool control_ = false;     // the instruction cannot be guarded, so its guard becomes a branch around it
  bool guard_used_ = false;  // the instruction evaluates its guard itself
  std::vector<VirtualRegister> registers_;
  std::vector<Reference> references_;
  std::map<std::pair<std::uint64_t, unsigned>, Place> constants_;
  std::map<Special, std::uint32_t> fixed_specials_;
  // the two registers that hold a 128-bit register's halves
  std::map<std::uint32_t, std::array<std::uint32_t, 2>> halves_;
  std::uint32_t carry_ = ~0U;
  std::vector<std::uint32_t> starts_;  // index of the first instruction emitted for each PTX instruction
  struct Patch {
    std::uint32_t ins;
    std::uint32_t target;  // index of a PTX instruction
  };
  std::vector<Patch> patches_;
};

}  // namespace simgpu
