// The source that CMake wants beside a precompiled header (precompiled.cmake).
