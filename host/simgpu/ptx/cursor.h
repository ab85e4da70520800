// A position in a list of tokens, with helpers for the parser. The position never moves past the End token.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/simgpu/ptx/lexer.h"

namespace simgpu::ptx {

class Cursor {
 public:
  explicit Cursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(std::size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : tokens_.back();
  }
  const Token& next() {
    const Token& token = peek();
    if (token.kind != Token::Kind::End) ++at_;
    return token;
  }
  unsigned line() const { return peek().line == 0 && at_ > 0 ? tokens_[at_ - 1].line : peek().line; }
  bool at_end() const { return peek().kind == Token::Kind::End; }

  bool accept(char mark) {
    if (!peek().is(mark)) return false;
    ++at_;
    return true;
  }
  bool accept_dotted(std::string_view text) {
    if (peek().kind != Token::Kind::Dotted || peek().text != text) return false;
    ++at_;
    return true;
  }
  void expect(char mark) {
    if (!accept(mark)) fail(std::string("'") + mark + "' is missing before '" + shown() + "'");
  }
  std::string_view name() {
    if (peek().kind != Token::Kind::Name) fail("a name is missing before '" + shown() + "'");
    return next().text;
  }
  std::uint64_t integer() {
    if (peek().kind != Token::Kind::Integer) fail("a number is missing before '" + shown() + "'");
    return next().value;
  }
  // Skips to the next line, for directives such as .loc that end with their line.
  void skip_line() {
    const unsigned line = peek().line;
    while (!at_end() && peek().line == line) ++at_;
  }
  void skip_past(char mark) {
    while (!at_end() && !next().is(mark)) {
    }
  }
  // Skips from an opening brace or parenthesis past the matching closing one.
  void skip_balanced(char open, char close) {
    expect(open);
    for (unsigned depth = 1; depth != 0;) {
      if (at_end()) fail(std::string("'") + close + "' is missing at the end of the text");
      const Token& token = next();
      depth += token.is(open);
      depth -= token.is(close);
    }
  }
  [[noreturn]] void fail(const std::string& what) const { throw Error(line(), what); }

  std::string shown() const {
    const Token& token = peek();
    if (token.kind == Token::Kind::End) return "the end of the text";
    return std::string(token.kind == Token::Kind::Dotted ? "." : "") + std::string(token.text.substr(0, 40));
  }

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace simgpu::ptx
