#include "tools/ivgpu/bench/svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ivgpu::bench {
namespace {

// A tenth of a pixel is finer than anybody sees.
std::string place(double at) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", at);
  return text;
}

std::string list_of(const std::vector<Point>& points) {
  std::string list;
  for (const Point& p : points) list += place(p.x) + "," + place(p.y) + " ";
  return list;
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + "\"";
}

const char* name_of(Svg::Anchor anchor) {
  switch (anchor) {
    case Svg::Anchor::Middle: return "middle";
    case Svg::Anchor::End: return "end";
    case Svg::Anchor::Start: break;
  }
  return "start";
}

}  // namespace

std::string escaped_for_xml(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return escaped;
}

Svg::Svg(double width, double height) {
  head_ = "<svg xmlns=\"http://www.w3.org/2000/svg\"" +
          attribute("viewBox", "0 0 " + place(width) + " " + place(height)) + attribute("width", place(width)) +
          attribute("height", place(height)) + " font-family=\"Helvetica, Arial, sans-serif\">\n";
  rectangle({0, 0}, width, height, "#ffffff");
}

void Svg::line(Point from, Point to, const std::string& color, double width) {
  body_ += "<line" + attribute("x1", place(from.x)) + attribute("y1", place(from.y)) + attribute("x2", place(to.x)) +
           attribute("y2", place(to.y)) + attribute("stroke", color) + attribute("stroke-width", place(width)) + "/>\n";
}

void Svg::rectangle(Point corner, double width, double height, const std::string& fill, double opacity) {
  body_ += "<rect" + attribute("x", place(corner.x)) + attribute("y", place(corner.y)) +
           attribute("width", place(width)) + attribute("height", place(height)) + attribute("fill", fill) +
           (opacity < 1 ? attribute("fill-opacity", place(opacity)) : "") + "/>\n";
}

void Svg::circle(Point center, double radius, const std::string& fill) {
  body_ += "<circle" + attribute("cx", place(center.x)) + attribute("cy", place(center.y)) +
           attribute("r", place(radius)) + attribute("fill", fill) + "/>\n";
}

void Svg::path(const std::vector<Point>& points, const std::string& color, bool dashed) {
  body_ += "<polyline" + attribute("points", list_of(points)) + attribute("fill", "none") + attribute("stroke", color) +
           attribute("stroke-width", "2") + (dashed ? attribute("stroke-dasharray", "6 4") : "") + "/>\n";
}

void Svg::area(const std::vector<Point>& points, const std::string& color) {
  body_ += "<polygon" + attribute("points", list_of(points)) + attribute("fill", color) +
           attribute("fill-opacity", "0.3") + attribute("stroke", color) + attribute("stroke-width", "1.5") + "/>\n";
}

void Svg::words(Point at, const std::string& text, double size, Anchor anchor, const std::string& color, bool bold) {
  body_ += "<text" + attribute("x", place(at.x)) + attribute("y", place(at.y)) + attribute("font-size", place(size)) +
           attribute("text-anchor", name_of(anchor)) + attribute("fill", color) +
           (bold ? attribute("font-weight", "bold") : "") + ">" + escaped_for_xml(text) + "</text>\n";
}

void Svg::words_upwards(Point at, const std::string& text, double size) {
  body_ += "<text" + attribute("transform", "translate(" + place(at.x) + " " + place(at.y) + ") rotate(-90)") +
           attribute("font-size", place(size)) + attribute("text-anchor", "middle") + attribute("fill", "#222222") +
           ">" + escaped_for_xml(text) + "</text>\n";
}

std::string Svg::text() const { return head_ + body_ + "</svg>\n"; }

namespace {

// Multiples of a number that is 1, 2 or 5 times a power of ten, and at most a quarter of the range.
std::vector<double> multiples(double low, double high) {
  const double quarter = (high - low) / 4, power = std::pow(10, std::floor(std::log10(quarter)));
  const double step = power * (quarter >= 5 * power ? 5 : quarter >= 2 * power ? 2 : 1);
  std::vector<double> all;
  for (double count = std::ceil(low / step); count * step <= high; ++count) all.push_back(count * step);
  return all;
}

}  // namespace

LogAxis::LogAxis(double low, double high, double from, double to)
    : low_(low), high_(std::max(high, low * 1.01)), from_(from), to_(to) {}

double LogAxis::place(double number) const {
  const double within = std::clamp(number, low_, high_);
  return from_ + (to_ - from_) * std::log(within / low_) / std::log(high_ / low_);
}

std::vector<double> LogAxis::ticks() const {
  std::vector<double> powers, all;
  const int first = static_cast<int>(std::floor(std::log10(low_))),
            last = static_cast<int>(std::ceil(std::log10(high_)));
  const auto within = [&](double number) { return number >= low_ * 0.999 && number <= high_ * 1.001; };
  for (int power = first; power <= last; ++power) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double number = step * std::pow(10, power);
      if (!within(number)) continue;
      all.push_back(number);
      if (step == 1) powers.push_back(number);
    }
  }
  if (powers.size() >= 3) return powers;
  return all.size() >= 3 ? all : multiples(low_, high_);
}

}  // namespace ivgpu::bench
