#include "guest/session/order.h"

#include "guest/base/switches.h"
#include "guest/session/channel.h"
#include "guest/session/session.h"

namespace guest {
namespace {

bool await_all(Session& s) {
  for (std::uint32_t c = 0; c < s.channels().open(); ++c)
    if (!s.channels().at(c).await_executed(s.channels().at(c).posted())) return false;
  return true;
}

// Waits for a use by another channel. The use proves that the channel was opened, but the relaxed word does not make
// the channel visible to this thread. open_channels() does, so the loop waits until open_channels() counts the channel.
// The loop is needed when two threads use one stream at the same time.
bool await_executed(Use use) {
  Session& s = *session();
  if (use.channel == LastUse::any_channel) return await_all(s);
  while (use.channel >= s.channels().open()) __builtin_ia32_pause();
  return s.channels().at(use.channel).await_executed(use.position);
}

}  // namespace

bool executed(Use use) {
  Session* s = session();
  return s == nullptr || use.position == 0 || use.channel >= s->channels().open() ||
         s->channels().at(use.channel).executed(use.position);
}

bool wait_for_object(const Object& object, const Channel& mine) {
  return !switches().order || object.last_use.await_others(mine.index(), [&](Use use) {
    return use.channel == LastUse::any_channel ? wait_for_all(mine) : await_executed(use);
  });
}

void remember(Object& object, Use use) {
  object.last_use.remember(use, [](Use last) { return !switches().order || await_executed(last); });
}

bool wait_for_all(const Channel& mine) {
  Session& s = *session();
  const std::uint32_t open = switches().order ? s.channels().open() : 0;
  for (std::uint32_t c = 0; c < open; ++c)
    if (c != mine.index() && !s.channels().at(c).await_executed(s.channels().at(c).posted())) return false;
  return true;
}

}  // namespace guest
