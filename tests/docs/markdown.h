// Reads the subset of Markdown that our own pages use: fenced blocks, code spans, headings and links.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace docs_test {

inline std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::string trimmed(const std::string& line) {
  const auto first = line.find_first_not_of(' ');
  return first == std::string::npos ? "" : line.substr(first, line.find_last_not_of(' ') - first + 1);
}

// A fenced block, and the last heading above it.
struct Block {
  std::string kind, heading;
  std::vector<std::string> lines;
};

struct Page {
  std::vector<Block> blocks;
  std::vector<std::string> headings;
  std::string prose;  // everything outside the fences, headings included
};

inline Page parse(const std::string& text) {
  Page page;
  bool fenced = false;
  for (const std::string& line : lines_of(text)) {
    if (trimmed(line).starts_with("```")) {
      fenced = !fenced;
      if (fenced)
        page.blocks.push_back({trimmed(line).substr(3), page.headings.empty() ? "" : page.headings.back(), {}});
    } else if (fenced) {
      page.blocks.back().lines.push_back(line);
    } else {
      if (line.starts_with('#')) page.headings.push_back(trimmed(line.substr(line.find_first_not_of('#'))));
      page.prose += line + "\n";
    }
  }
  return page;
}

// Text between single backquotes, outside the fences.
inline std::vector<std::string> code_spans(const std::string& prose) {
  std::vector<std::string> spans;
  for (std::size_t at = 0; (at = prose.find('`', at)) != std::string::npos;) {
    const std::size_t end = prose.find('`', at + 1);
    if (end == std::string::npos) break;
    spans.push_back(prose.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return spans;
}

// The targets of [text](target).
inline std::vector<std::string> link_targets(const std::string& prose) {
  std::vector<std::string> targets;
  for (std::size_t at = 0; (at = prose.find("](", at)) != std::string::npos; ++at) {
    const std::size_t end = prose.find_first_of(")\n", at);
    if (end != std::string::npos && prose[end] == ')') targets.push_back(prose.substr(at + 2, end - at - 2));
  }
  return targets;
}

// A heading's anchor, as code hosts generate it.
inline std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (c == ' ')
      anchor += '-';
  }
  return anchor;
}

}  // namespace docs_test
