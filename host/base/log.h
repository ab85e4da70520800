// ivgpud's log on standard error. A terminal or file gets time and level. systemd's journal, which adds the time
// itself, gets a priority prefix ("<4>", sd-daemon(3)).
#pragma once

#include <string>

namespace host::broker {

// Sets the process's log. `level` is a value of the configuration key log_level.
void open_log(const std::string& level);

// Prints one sentence without needing the log: an error, or a note if `error` is false.
void print_sentence(const std::string& sentence, bool error);

// True if descriptor `fd` is the stream that `journal_stream` names, as the variable JOURNAL_STREAM does
// ("device:inode").
bool is_journal(const char* journal_stream, int fd);

}  // namespace host::broker
