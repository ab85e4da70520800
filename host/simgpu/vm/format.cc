// Each conversion specification is parsed and written anew before it reaches the C library. Therefore no unchecked text
// of the program reaches the library: neither %n nor * nor a wrong length modifier.
#include "host/simgpu/vm/format.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>
#include <cstring>

namespace simgpu {
namespace {

constexpr std::size_t max_piece = 4096;  // limit for one conversion; larger widths are reduced to it

class Formatter {
 public:
  Formatter(const std::string& text, const FormatSource& source) : text_(text), source_(source) {}

  std::string run(int& count) {
    while (at_ < text_.size()) {
      if (text_[at_] != '%') {
        result_ += text_[at_++];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '%') {
        result_ += '%';
        at_ += 2;
      } else {
        conversion();
      }
    }
    count = count_;
    return std::move(result_);
  }

 private:
  std::uint64_t take(unsigned size) {
    offset_ = (offset_ + size - 1) & ~std::size_t{size - 1};
    const std::uint64_t value = source_.argument(offset_, size);
    offset_ += size;
    ++count_;
    return value;
  }

  // Reads a number or a star. The value is limited, so that the C library cannot be made to write gigabytes.
  std::string number() {
    long value = 0;
    if (at_ < text_.size() && text_[at_] == '*') {
      ++at_;
      value = static_cast<std::int32_t>(take(4));
    } else {
      const std::size_t from = at_;
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
        value = std::min(value * 10 + (text_[at_++] - '0'), 100'000L);
      }
      if (at_ == from) return {};
    }
    return std::to_string(std::clamp(value, -2000L, 2000L));
  }

  void conversion() {
    const std::size_t from = at_++;
    std::string spec = "%";
    while (at_ < text_.size() && std::strchr("-+ #0", text_[at_]) != nullptr && spec.size() < 8) spec += text_[at_++];
    spec += number();
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      const std::string precision = number();
      if (precision.empty() || precision[0] != '-') spec += "." + precision;
    }
    bool wide = false;
    while (at_ < text_.size() && std::strchr("hlLqjztI", text_[at_]) != nullptr) {
      wide |= std::strchr("lLqjzt", text_[at_]) != nullptr;
      ++at_;
    }
    if (at_ == text_.size()) return result_.append(text_, from), void();
    convert(spec, text_[at_++], wide, from);
  }

  void convert(const std::string& spec, char letter, bool wide, std::size_t from) {
    if (std::strchr("diuoxX", letter) != nullptr) return integer(spec, letter, wide);
    if (std::strchr("fFeEgGaA", letter) != nullptr) {
      return piece(spec + letter, std::bit_cast<double>(take(8)));
    }
    if (letter == 'c') return piece(spec + letter, static_cast<int>(take(4) & 0xff));
    if (letter == 's') return piece(spec + letter, source_.string(take(8)).c_str());
    if (letter == 'p') return piece(spec + letter, reinterpret_cast<const void*>(take(8)));
    result_.append(text_, from, at_ - from);
  }

  void integer(const std::string& spec, char letter, bool wide) {
    const std::uint64_t raw = take(wide ? 8 : 4);
    if (letter == 'd' || letter == 'i') {
      const long long value = wide ? static_cast<long long>(raw) : static_cast<std::int32_t>(raw);
      return piece(spec + "ll" + letter, value);
    }
    piece(spec + "ll" + letter, static_cast<unsigned long long>(raw));
  }

  template <class T>
  void piece(const std::string& spec, T value) {
    char buffer[max_piece];
    const int length = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
    if (length > 0) result_.append(buffer, std::min(static_cast<std::size_t>(length), sizeof buffer - 1));
  }

  const std::string& text_;
  const FormatSource& source_;
  std::string result_;
  std::size_t at_ = 0;
  std::size_t offset_ = 0;
  int count_ = 0;
};

}  // namespace

std::string format_printf(const std::string& text, const FormatSource& source, int& count) {
  return Formatter(text, source).run(count);
}

}  // namespace simgpu
