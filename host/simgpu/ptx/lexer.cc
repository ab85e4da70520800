#include "host/simgpu/ptx/lexer.h"

#include <bit>
#include <cctype>
#include <charconv>

namespace simgpu::ptx {
namespace {

// 64 MiB. The largest PTX text seen, in libcudadevrt, has less than 1 MiB. Tokens take about ten times the memory of
// the text.
constexpr std::size_t max_text = std::size_t{64} << 20;

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    if (text_.size() > max_text) throw Error(1, "the text is longer than 64 MiB");
    for (;;) {
      const std::size_t before = at_;
      skip_blank();
      Token token;
      if (at_ < text_.size()) token = next();
      token.glued = before != 0 && start_ == before;
      tokens_.push_back(token);
      if (token.kind == Token::Kind::End) return std::move(tokens_);
    }
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip_blank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '/' && peek(1) == '*') {
        skip_comment();
      } else if (std::isspace(static_cast<unsigned char>(c)) || c == '\0') {
        ++at_;
      } else {
        break;
      }
    }
    start_ = at_;
  }

  void skip_comment() {
    const std::size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) throw Error(line_, "a comment is not closed");
    for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
  }

  Token make(Token::Kind kind, std::size_t from, std::size_t to) const {
    Token token;
    token.kind = kind;
    token.line = line_;
    token.text = text_.substr(from, to - from);
    return token;
  }

  Token next() {
    const char c = text_[at_];
    if (is_name_start(c)) return name();
    if (c == '.' && (is_name(peek(1)) && peek(1) != '$')) return dotted();
    if (is_digit(c)) return number();
    if (c == '"') return string();
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      throw Error(line_, "a byte that is no part of PTX stands in the text");
    }
    ++at_;
    return make(Token::Kind::Mark, at_ - 1, at_);
  }

  Token name() {
    const std::size_t from = at_++;
    while (is_name(peek())) ++at_;
    return make(Token::Kind::Name, from, at_);
  }

  Token dotted() {
    const std::size_t from = ++at_;
    for (;;) {
      while (is_name(peek())) ++at_;
      if (peek() != ':' || peek(1) != ':' || !is_name(peek(2))) break;
      at_ += 2;
    }
    return make(Token::Kind::Dotted, from, at_);
  }

  Token string() {
    const std::size_t from = ++at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') at_ += text_[at_] == '\\' ? 2 : 1;
    if (peek() != '"') throw Error(line_, "a string is not closed");
    return make(Token::Kind::String, from, at_++);
  }

  Token number() {
    const char second = peek(1);
    if (peek() == '0' && (second == 'f' || second == 'F')) return float_bits(8, Token::Kind::Float32);
    if (peek() == '0' && (second == 'd' || second == 'D')) return float_bits(16, Token::Kind::Float64);
    if (peek() == '0' && (second == 'x' || second == 'X')) return integer(2, 16);
    if (peek() == '0' && (second == 'b' || second == 'B')) return integer(2, 2);
    std::size_t end = at_;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    const char after = end < text_.size() ? text_[end] : '\0';
    if ((after == '.' && end + 1 < text_.size() && is_digit(text_[end + 1])) || after == 'e' || after == 'E') {
      return decimal();
    }
    if (peek() == '0' && is_digit(second)) return integer(1, 8);
    return integer(0, 10);
  }

  Token finish(Token::Kind kind, std::size_t from, const char* end, std::uint64_t value) {
    at_ = static_cast<std::size_t>(end - text_.data());
    if (is_name(peek())) throw Error(line_, "a number is malformed");
    Token token = make(kind, from, at_);
    token.value = value;
    return token;
  }

  Token integer(std::size_t prefix, int base) {
    const std::size_t from = at_;
    std::uint64_t value = 0;
    auto [end, error] = std::from_chars(text_.data() + at_ + prefix, text_.data() + text_.size(), value, base);
    if (error != std::errc()) throw Error(line_, "an integer is malformed or has more than 64 bits");
    if (end != text_.data() + text_.size() && *end == 'U') ++end;
    return finish(Token::Kind::Integer, from, end, value);
  }

  Token float_bits(std::ptrdiff_t digits, Token::Kind kind) {
    const std::size_t from = at_;
    std::uint64_t value = 0;
    const char* const first = text_.data() + at_ + 2;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value, 16);
    if (error != std::errc() || end - first != digits) throw Error(line_, "a floating-point constant is malformed");
    return finish(kind, from, end, value);
  }

  Token decimal() {
    const std::size_t from = at_;
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) throw Error(line_, "a floating-point constant is malformed");
    return finish(Token::Kind::Float64, from, end, std::bit_cast<std::uint64_t>(value));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;
  unsigned line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex(std::string_view text) { return Lexer(text).run(); }

}  // namespace simgpu::ptx
