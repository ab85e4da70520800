// IVGPU_UNDER_TSAN: set in builds with ThreadSanitizer, where some tests run fewer rounds.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define IVGPU_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IVGPU_UNDER_TSAN 1
#endif
#endif
