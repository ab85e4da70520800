// ivgpud's log, which goes to the standard error output: with time and level for people, or with a priority before each
// line where systemd's journal reads it, which keeps the time itself (sd-daemon(3): "<4>").
#pragma once

#include <string>

namespace host::broker {

// Makes the log the process's; `level` as the key log_level has it.
void open_log(const std::string& level);

// One sentence before there is a log, or beside it: an error, or a note where `error` is false.
void print_sentence(const std::string& sentence, bool error);

// True if descriptor `fd` is the stream that `journal_stream`, the variable JOURNAL_STREAM, names ("device:inode").
bool is_journal(const char* journal_stream, int fd);

}  // namespace host::broker
