#include "guest/session/channel_mutex.h"

#include <chrono>
#include <thread>

namespace guest {

// As long as a round of Channels::stop_senders(). A thread waits here once for each channel that becomes shared.
void ChannelMutex::await_owner() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

}  // namespace guest
