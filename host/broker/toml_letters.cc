#include "host/broker/toml_letters.h"

#include <string>

namespace host::broker {
namespace {

class Letters {
 public:
  explicit Letters(std::string_view text) : text_(text) {}

  std::size_t first_misplaced() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (lost_) {
        misplaced_ = beyond_ascii(c);
      } else if (quote_ != 0) {
        inside_string(c);
      } else if (comment_) {
        comment_ = c != '\n';
      } else if (c == '#') {
        comment_ = true;
      } else if (c == '"' || c == '\'') {
        lost_ = after_a_word();
        begin_string(c);
      } else {
        misplaced_ = beyond_ascii(c);
      }
      if (misplaced_) break;
    }
    return at_;
  }

 private:
  static bool beyond_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80; }
  bool tripled(char c) const { return text_.substr(at_, 3) == std::string(3, c); }

  // A quote that follows a word or a number at once begins no string, and no TOML has one: toml++ may read on before it
  // says so, so from there on nothing is a string.
  bool after_a_word() const {
    const char before = at_ > 0 ? text_[at_ - 1] : ' ';
    return std::string_view(" \t\r\n=[]{},.\"'").find(before) == std::string_view::npos;
  }
  void begin_string(char c) {
    quote_ = c;
    long_ = tripled(c);
    if (long_) at_ += 2;
  }
  void inside_string(char c) {
    if (c == '\\' && quote_ == '"') {
      ++at_;  // whatever it is, it does not end the string
      misplaced_ = at_ < text_.size() && beyond_ascii(text_[at_]);
    } else if (c == '\n' && !long_) {
      quote_ = 0;  // an error, which toml++ tells
    } else if (c == quote_ && (!long_ || tripled(c))) {
      if (long_) at_ += 2;
      quote_ = 0;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  char quote_ = 0;  // of the string we are in
  bool long_ = false, comment_ = false, lost_ = false, misplaced_ = false;
};

}  // namespace

std::size_t misplaced_letter(std::string_view text) { return Letters(text).first_misplaced(); }

}  // namespace host::broker
