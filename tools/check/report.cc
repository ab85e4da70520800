// Prints findings as text and as JSON.
#include <cstdio>

#include "tools/check/machine.h"

namespace check {
namespace {

const char* name_of(State state) {
  switch (state) {
    case State::Ok: return "ok";
    case State::Warning: return "warning";
    case State::Wrong: return "wrong";
  }
  return "?";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    char escaped[8];
    if (static_cast<unsigned char>(c) < 0x20)
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      std::snprintf(escaped, sizeof escaped, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    out += escaped;
  }
  return out + '"';
}

}  // namespace

std::string as_text(const Findings& findings) {
  std::string text;
  for (const Finding& f : findings) {
    char head[64];
    std::snprintf(head, sizeof head, "%-8s %-12s ", name_of(f.state), f.about.c_str());
    text += head + f.what + "\n";
    if (!f.remedy.empty()) text += std::string(22, ' ') + "-> " + f.remedy + "\n";
  }
  return text;
}

std::string as_json(const Findings& findings, const char* side) {
  std::string text = std::string("{\"format\":1,\"side\":\"") + side + "\",\"findings\":[";
  const char* comma = "";
  for (const Finding& f : findings) {
    text += comma + std::string("{\"about\":") + quoted(f.about) + ",\"state\":\"" + name_of(f.state) +
            "\",\"what\":" + quoted(f.what) + ",\"remedy\":" + quoted(f.remedy) + "}";
    comma = ",";
  }
  return text + "]}\n";
}

bool anything_wrong(const Findings& findings) {
  for (const Finding& f : findings)
    if (f.state == State::Wrong) return true;
  return false;
}

}  // namespace check
