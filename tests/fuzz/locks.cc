#include "tests/fuzz/locks.h"

#include <pthread.h>

namespace {

// Takes a lock. `attempt` tries to take it without waiting.
template <class Lock>
int take(Lock* lock, int (*attempt)(Lock*), int (*wait)(Lock*)) {
  fuzz::lock_wanted();
  for (;;) {
    if (attempt(lock) == 0) return 0;
    if (!fuzz::lock_taken()) return wait(lock);
  }
}

}  // namespace

extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* lock);
int __real_pthread_rwlock_rdlock(pthread_rwlock_t* lock);
int __real_pthread_rwlock_wrlock(pthread_rwlock_t* lock);

int __wrap_pthread_mutex_lock(pthread_mutex_t* lock) {
  return take(lock, pthread_mutex_trylock, __real_pthread_mutex_lock);
}
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  return take(lock, pthread_rwlock_tryrdlock, __real_pthread_rwlock_rdlock);
}
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  return take(lock, pthread_rwlock_trywrlock, __real_pthread_rwlock_wrlock);
}

}  // extern "C"
