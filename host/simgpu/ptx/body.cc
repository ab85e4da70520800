// Parses the body of a function. Names are looked up from the innermost block outwards, because inline assembly
// declares the same register name in many blocks of one function.
#include "host/simgpu/ptx/body.h"

#include <cctype>
#include <charconv>
#include <unordered_map>

#include "host/simgpu/ptx/declare.h"

namespace simgpu::ptx {
namespace {

constexpr std::size_t max_depth = 64;             // limit for nested blocks, and for nested brackets in operands
constexpr std::size_t max_registers = 1'000'000;  // limit per function; the largest kernel seen has about 20 000
// limit for one list: parameters may have thousands of bytes, but a list has few names
constexpr std::size_t max_parts = 256;

struct Family {  // for example .reg .b32 %r<100>;
  Type type = Type::None;
  std::uint64_t count = 0;
};

struct Scope {
  std::uint32_t id = 0;
  std::unordered_map<std::string_view, std::uint32_t> registers;
  std::unordered_map<std::string_view, Family> families;
  std::unordered_map<std::string_view, std::uint32_t> variables;
};

class Body {
 public:
  Body(Cursor& cursor, Function& function) : cursor_(cursor), function_(function) {}

  void run() {
    open();
    for (const Variable& v : function_.signature.returns) add_variable(v);
    for (const Variable& v : function_.signature.params) add_variable(v);
    cursor_.expect('{');
    while (!scopes_.empty()) statement();
    if (labels_pending()) function_.body.emplace_back().opcode = "ret";
  }

 private:
  void open() {
    if (scopes_.size() == max_depth) cursor_.fail("blocks are nested too deeply");
    const auto id = static_cast<std::uint32_t>(function_.scopes.size());
    function_.scopes.push_back(scopes_.empty() ? 0 : scopes_.back().id);
    scopes_.emplace_back().id = id;
  }

  // Returns true if a label follows the last instruction, or if the body is empty: the body then needs a return at its
  // end.
  bool labels_pending() const {
    if (function_.body.empty()) return true;
    for (const auto& label : function_.labels) {
      if (label.second == function_.body.size()) return true;
    }
    const std::string_view last = function_.body.back().opcode;
    return function_.body.back().guard || (last != "ret" && last != "exit" && last != "bra" && last != "trap");
  }

  void statement() {
    const Token& token = cursor_.peek();
    if (token.kind == Token::Kind::End) cursor_.fail("'}' is missing at the end of the text");
    if (cursor_.accept('{')) return open();
    if (cursor_.accept('}')) return scopes_.pop_back();
    if (cursor_.accept(';')) return;
    if (token.kind == Token::Kind::Dotted) return directive();
    if (token.kind == Token::Kind::Name && cursor_.peek(1).is(':')) return label();
    instruction();
  }

  void directive() {
    const Token& token = cursor_.next();
    if (token.text == "loc" || token.text == "file") {
      const unsigned line = token.line;
      while (!cursor_.at_end() && cursor_.peek().line == line) cursor_.next();
      return;
    }
    if (token.text == "pragma") return cursor_.skip_past(';');
    if (token.text == "section") {
      cursor_.next();
      return cursor_.skip_balanced('{', '}');
    }
    const auto space = space_of(token.text);
    if (!space) cursor_.fail("'." + std::string(token.text) + "' has no place in a function");
    const Shape shape = *space == Space::Register ? register_shape() : parse_shape(cursor_);
    do {
      *space == Space::Register ? add_register(shape) : add_variable(parse_declarator(cursor_, *space, shape));
    } while (cursor_.accept(','));
    cursor_.expect(';');
  }

  Shape register_shape() {
    Shape shape = parse_shape(cursor_);
    if (shape.vector != 1) cursor_.fail("vector registers are not served");
    return shape;
  }

  void add_register(const Shape& shape) {
    const std::string_view name = cursor_.name();
    if (cursor_.accept('<')) {
      scopes_.back().families[name] = Family{shape.type, cursor_.integer()};
      return cursor_.expect('>');
    }
    scopes_.back().registers[name] = new_register(shape.type);
  }

  std::uint32_t new_register(Type type) {
    if (function_.registers.size() == max_registers) cursor_.fail("a function has more than a million registers");
    function_.registers.push_back(type);
    return static_cast<std::uint32_t>(function_.registers.size() - 1);
  }

  void add_variable(const Variable& variable) {
    scopes_.back().variables[variable.name] = static_cast<std::uint32_t>(function_.variables.size());
    function_.variables.push_back(variable);
  }

  void label() {
    const std::string_view name = cursor_.name();
    cursor_.expect(':');
    const Function::Place place{scopes_.back().id, name};
    if (cursor_.accept_dotted("callprototype")) return prototype(place);
    if (cursor_.accept_dotted("branchtargets")) {
      auto& targets = function_.branch_targets[place];
      do {
        targets.push_back(cursor_.name());
      } while (cursor_.accept(','));
      return cursor_.expect(';');
    }
    if (cursor_.accept_dotted("calltargets")) return cursor_.skip_past(';');
    if (!function_.labels.emplace(place, static_cast<std::uint32_t>(function_.body.size())).second) {
      cursor_.fail("the label '" + std::string(name) + "' stands twice");
    }
  }

  void prototype(const Function::Place& place) {
    Prototype prototype;
    if (cursor_.peek().is('(')) prototype.returns = parse_parameters(cursor_);
    cursor_.name();
    if (cursor_.peek().is('(')) prototype.params = parse_parameters(cursor_);
    cursor_.skip_past(';');
    function_.prototypes[place] = std::move(prototype);
  }

  void instruction() {
    Instruction instruction;
    instruction.line = cursor_.line();
    instruction.scope = scopes_.back().id;
    if (cursor_.accept('@')) {
      Guard guard;
      guard.negated = cursor_.accept('!');
      const std::string_view name = cursor_.name();
      const auto reg = find_register(name);
      if (!reg || function_.registers[*reg] != Type::Pred) {
        cursor_.fail("'" + std::string(name) + "' is no predicate");
      }
      guard.reg = *reg;
      instruction.guard = guard;
    }
    instruction.opcode = cursor_.name();
    while (cursor_.peek().kind == Token::Kind::Dotted && cursor_.peek().glued) {
      instruction.suffixes.push_back(cursor_.next().text);
      if (instruction.suffixes.size() > 32) cursor_.fail("an opcode has too many parts");
    }
    if (!cursor_.peek().is(';')) operands(instruction.operands);
    cursor_.expect(';');
    function_.body.push_back(std::move(instruction));
  }

  void operands(std::vector<Operand>& into) {
    do {
      into.push_back(operand(0));
      if (into.size() > max_parts) cursor_.fail("an instruction has too many operands");
    } while (cursor_.accept(','));
  }

  Operand operand(unsigned depth) {
    Operand first = single(depth);
    if (!cursor_.accept('|')) return first;
    Operand pair;
    pair.kind = Operand::Kind::Pair;
    pair.parts.push_back(std::move(first));
    pair.parts.push_back(single(depth));
    return pair;
  }

  Operand single(unsigned depth) {
    if (depth > max_depth) cursor_.fail("operands are nested too deeply");
    if (cursor_.accept('{')) return list('}', depth);
    if (cursor_.peek().is('(') && starts_list()) {
      cursor_.accept('(');
      return list(')', depth);
    }
    if (cursor_.accept('[')) return address(depth);
    if (cursor_.peek().is('!') && cursor_.peek(1).kind == Token::Kind::Name) {
      cursor_.next();
      Operand operand = single(depth + 1);
      operand.negated = true;
      return operand;
    }
    if (cursor_.peek().kind == Token::Kind::Name && cursor_.peek().text != "WARP_SZ") return named();
    return literal();
  }

  // Distinguishes the list (a, b) of a call from an expression such as (1+2).
  bool starts_list() const {
    const Token& after = cursor_.peek(1);
    return after.is(')') || after.is('{') || after.kind == Token::Kind::Name || cursor_.peek(2).is(',') ||
           cursor_.peek(2).is(')');
  }

  Operand list(char close, unsigned depth) {
    Operand list;
    list.kind = Operand::Kind::List;
    if (cursor_.accept(close)) return list;
    do {
      list.parts.push_back(operand(depth + 1));
      if (list.parts.size() > max_parts) cursor_.fail("a list has too many parts");
    } while (cursor_.accept(','));
    cursor_.expect(close);
    return list;
  }

  Operand address(unsigned depth) {
    Operand address;
    address.kind = Operand::Kind::Address;
    do {
      Operand part = operand(depth + 1);
      if (part.kind == Operand::Kind::Register && (cursor_.peek().is('+') || cursor_.peek().is('-'))) {
        cursor_.accept('+');
        address.value = parse_constant(cursor_);
      }
      address.parts.push_back(std::move(part));
      if (address.parts.size() > max_parts) cursor_.fail("an address has too many parts");
    } while (cursor_.accept(','));
    cursor_.expect(']');
    Operand& base = address.parts.front();
    if (base.kind == Operand::Kind::Local || base.kind == Operand::Kind::Symbol) std::swap(address.value, base.value);
    return address;
  }

  Operand literal() {
    Operand operand;
    const bool negative = cursor_.peek().is('-') && cursor_.peek(1).kind != Token::Kind::Integer;
    if (negative && cursor_.peek(1).kind != Token::Kind::Mark) cursor_.next();
    const Token& token = cursor_.peek();
    if (token.kind == Token::Kind::Float32 || token.kind == Token::Kind::Float64) {
      const bool single = token.kind == Token::Kind::Float32;
      operand.kind = single ? Operand::Kind::Float32 : Operand::Kind::Float64;
      const std::uint64_t sign = negative ? std::uint64_t{1} << (single ? 31 : 63) : 0;
      operand.value = static_cast<std::int64_t>(cursor_.next().value ^ sign);
      return operand;
    }
    operand.kind = Operand::Kind::Integer;
    operand.value = parse_constant(cursor_);
    return operand;
  }

  Operand named() {
    Operand operand;
    operand.name = cursor_.name();
    if (operand.name == "_") return operand;
    if (const auto reg = find_register(operand.name)) {
      operand.kind = Operand::Kind::Register;
      operand.index = *reg;
      return operand;
    }
    if (operand.name[0] == '%') return special(operand);
    operand.kind = Operand::Kind::Symbol;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->variables.find(operand.name); found != scope->variables.end()) {
        operand.kind = Operand::Kind::Local;
        operand.index = found->second;
        break;
      }
    }
    if (cursor_.peek().is('+') || cursor_.peek().is('-')) {
      cursor_.accept('+');
      operand.value = parse_constant(cursor_);
    }
    return operand;
  }

  // In %tid.x the component is part of the name. Both tokens are adjacent in the text, so the view is extended over the
  // dot.
  Operand special(Operand operand) {
    operand.kind = Operand::Kind::Special;
    const Token& after = cursor_.peek();
    if (after.kind == Token::Kind::Dotted && after.glued) {
      operand.name = std::string_view(operand.name.data(), operand.name.size() + 1 + after.text.size());
      cursor_.next();
    }
    return operand;
  }

  std::optional<std::uint32_t> find_register(std::string_view name) {
    std::size_t digits = name.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
    std::uint64_t number = 0;
    const bool numbered = digits < name.size() && (name[digits] != '0' || digits + 1 == name.size()) &&
                          std::from_chars(name.data() + digits, name.data() + name.size(), number).ec == std::errc();
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->registers.find(name); found != scope->registers.end()) return found->second;
      if (!numbered) continue;
      // The prefix itself may end in digits (%r1<3> declares %r10 to %r12), so every split of the name is tried.
      const auto family = find_family(*scope, name, digits);
      if (family) return scope->registers[name] = new_register(*family);
    }
    return std::nullopt;
  }

  static std::optional<Type> find_family(const Scope& scope, std::string_view name, std::size_t digits) {
    for (std::size_t split = digits; split < name.size(); ++split) {
      std::uint64_t number = 0;
      if (std::from_chars(name.data() + split, name.data() + name.size(), number).ec != std::errc()) continue;
      const auto found = scope.families.find(name.substr(0, split));
      if (found != scope.families.end() && number < found->second.count) return found->second.type;
    }
    return std::nullopt;
  }

  Cursor& cursor_;
  Function& function_;
  std::vector<Scope> scopes_;
};

}  // namespace

void parse_body(Cursor& cursor, Function& function) { Body(cursor, function).run(); }

}  // namespace simgpu::ptx
