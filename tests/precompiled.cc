// CMake requires a source beside a precompiled header (precompiled.cmake).
