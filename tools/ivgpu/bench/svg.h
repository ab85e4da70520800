// A picture as SVG: shapes and words at places in it, and axes that bring numbers there.
#pragma once

#include <string>
#include <vector>

namespace ivgpu::bench {

struct Point {
  double x, y;
};

class Svg {
 public:
  Svg(double width, double height);
  enum class Anchor { Start, Middle, End };

  void line(Point from, Point to, const std::string& color, double width = 1);
  void rectangle(Point corner, double width, double height, const std::string& fill, double opacity = 1);
  void circle(Point center, double radius, const std::string& fill);
  void path(const std::vector<Point>& points, const std::string& color, bool dashed = false);
  void area(const std::vector<Point>& points, const std::string& color);  // closed, see-through, with its edge
  void words(Point at, const std::string& text, double size, Anchor anchor = Anchor::Start,
             const std::string& color = "#222222", bool bold = false);
  void words_upwards(Point at, const std::string& text, double size);

  std::string text() const;

 private:
  std::string head_, body_;
};

// A logarithmic axis of numbers above 0, from `low` to `high`, over the places `from` to `to`.
class LogAxis {
 public:
  LogAxis(double low, double high, double from, double to);
  double place(double number) const;  // numbers outside are put at the end
  // The places of the axis's lines: the powers of ten within; if these are fewer than three, twice and five times them,
  // too; and if that is not enough, steps of one size.
  std::vector<double> ticks() const;

 private:
  double low_, high_, from_, to_;
};

std::string escaped_for_xml(const std::string& text);

}  // namespace ivgpu::bench
