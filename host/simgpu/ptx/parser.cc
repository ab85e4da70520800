// Parses a module. declare.cc parses declarations, and body.cc parses function bodies.
#include "host/simgpu/ptx/parser.h"

#include <algorithm>

#include "host/simgpu/ptx/body.h"
#include "host/simgpu/ptx/cursor.h"
#include "host/simgpu/ptx/declare.h"

namespace simgpu::ptx {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : cursor_(lex(text)) {}

  Module run() {
    header();
    while (!cursor_.at_end()) declaration();
    return std::move(module_);
  }

 private:
  void header() {
    if (!cursor_.accept_dotted("version")) cursor_.fail("the text does not begin with .version: it is no PTX");
    version();
    if (!cursor_.accept_dotted("target")) cursor_.fail(".target is missing after .version");
    target();
  }

  // Parses a version. The lexer yields 9.0 as one number.
  void version() {
    const Token& token = cursor_.peek();
    const std::string_view text = token.text;
    const std::size_t dot = text.find('.');
    if (token.kind != Token::Kind::Float64 || dot == std::string_view::npos || text.size() > 6) {
      cursor_.fail("the number of .version is malformed");
    }
    unsigned parts[2] = {0, 0};
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (i == dot) continue;
      if (text[i] < '0' || text[i] > '9') cursor_.fail("the number of .version is malformed");
      parts[i > dot] = parts[i > dot] * 10 + static_cast<unsigned>(text[i] - '0');
    }
    cursor_.next();
    module_.version = parts[0] * 10 + parts[1];
  }

  void target() {
    do {
      const std::string_view name = cursor_.name();
      if (name.substr(0, 3) != "sm_") continue;
      unsigned number = 0;
      for (const char c : name.substr(3, 4)) {
        if (c >= '0' && c <= '9') number = number * 10 + static_cast<unsigned>(c - '0');
      }
      module_.target = number;
    } while (cursor_.accept(','));
    if (module_.target == 0) cursor_.fail(".target names no sm_ number");
  }

  void declaration() {
    if (cursor_.accept(';')) return;
    if (cursor_.peek().kind != Token::Kind::Dotted) {
      cursor_.fail("a directive is missing before '" + cursor_.shown() + "'");
    }
    const Linkage linkage = parse_linkage();
    const Token& token = cursor_.next();
    if (token.text == "entry") return function(true, linkage);
    if (token.text == "func") return function(false, linkage);
    if (const auto space = space_of(token.text); space && *space != Space::Register && *space != Space::Param) {
      return variables(*space, linkage);
    }
    other(token);
  }

  Linkage parse_linkage() {
    if (cursor_.accept_dotted("visible")) return Linkage::Visible;
    if (cursor_.accept_dotted("extern")) return Linkage::Extern;
    if (cursor_.accept_dotted("weak") || cursor_.accept_dotted("common")) return Linkage::Weak;
    return Linkage::Static;
  }

  void other(const Token& token) {
    if (token.text == "address_size") {
      if (cursor_.integer() != 64) cursor_.fail("only .address_size 64 is served");
    } else if (token.text == "file" || token.text == "loc") {
      const unsigned line = token.line;
      while (!cursor_.at_end() && cursor_.peek().line == line) cursor_.next();
    } else if (token.text == "section") {
      cursor_.next();
      cursor_.skip_balanced('{', '}');
    } else if (token.text == "pragma") {
      cursor_.skip_past(';');
    } else if (token.text == "alias") {
      const std::string_view name = cursor_.name();
      cursor_.expect(',');
      module_.aliases.emplace_back(name, cursor_.name());
      cursor_.expect(';');
    } else {
      cursor_.fail("the directive '." + std::string(token.text) + "' is not served");
    }
  }

  void variables(Space space, Linkage linkage) {
    const Shape shape = parse_shape(cursor_);
    do {
      Variable variable = parse_declarator(cursor_, space, shape);
      variable.linkage = linkage;
      module_.variables.push_back(std::move(variable));
    } while (cursor_.accept(','));
    cursor_.expect(';');
  }

  void function(bool entry, Linkage linkage) {
    Function& function = module_.functions.emplace_back();
    function.entry = entry;
    function.linkage = linkage;
    function_attributes();
    if (!entry && cursor_.peek().is('(')) function.signature.returns = parse_parameters(cursor_);
    function.line = cursor_.line();
    function.name = cursor_.name();
    if (cursor_.peek().is('(')) function.signature.params = parse_parameters(cursor_);
    function_directives(function);
    check_clusters(function);
    if (cursor_.accept(';')) return;
    function.has_body = true;
    parse_body(cursor_, function);
  }

  // The attribute .unified gives a function one address on all devices. In the simulation every function has one
  // address.
  void function_attributes() {
    while (cursor_.accept_dotted("attribute")) skip_attribute(cursor_, {"unified"});
  }

  void function_directives(Function& function) {
    while (cursor_.peek().kind == Token::Kind::Dotted) {
      const std::string_view word = cursor_.next().text;
      if (word == "maxntid") {
        function.max_block = dimensions();
      } else if (word == "reqntid") {
        function.required_block = dimensions();
      } else if (word == "reqnctapercluster") {
        function.cluster = dimensions();
      } else if (word == "maxclusterrank") {
        function.max_cluster = count();
      } else if (word == "explicitcluster") {
        function.explicit_cluster = true;
      } else if (word == "blocksareclusters") {
        function.grid_of_clusters = true;
      } else if (word == "maxnreg") {
        function.max_registers = count();
      } else if (word == "noreturn") {
        function.no_return = true;
      } else if (word == "pragma") {
        cursor_.skip_past(';');
      } else {
        skip_hint(word);
      }
    }
  }

  // Skips directives that influence only register allocation. They affect neither results nor errors of a launch.
  void skip_hint(std::string_view word) {
    static constexpr std::string_view hints[] = {"minnctapersm", "maxnctapersm", "abi_preserve",
                                                 "abi_preserve_control"};
    if (std::find(std::begin(hints), std::end(hints), word) == std::end(hints)) {
      cursor_.fail("the directive '." + std::string(word) + "' is not served");
    }
    count();
  }

  // Refuses the combinations of directives that ptxas refuses.
  void check_clusters(const Function& function) {
    if (function.cluster && function.max_cluster != 0) {
      cursor_.fail(".maxclusterrank and .reqnctapercluster exclude each other");
    }
    if (function.grid_of_clusters && !(function.cluster && function.required_block)) {
      cursor_.fail(".blocksareclusters needs .reqntid and .reqnctapercluster");
    }
  }

  std::uint32_t count() {
    const std::uint64_t value = cursor_.integer();
    if (value == 0 || value > 0x7fffffff) cursor_.fail("the number of a directive is out of range");
    return static_cast<std::uint32_t>(value);
  }

  std::array<std::uint32_t, 3> dimensions() {
    std::array<std::uint32_t, 3> size{1, 1, 1};
    std::size_t given = 0;
    do {
      if (given == 3) cursor_.fail("a size has more than three dimensions");
      size[given++] = count();
    } while (cursor_.accept(','));
    return size;
  }

  Cursor cursor_;
  Module module_;
};

}  // namespace

Module parse(std::string_view text) { return Parser(text).run(); }

}  // namespace simgpu::ptx
