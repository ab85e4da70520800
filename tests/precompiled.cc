// CMake requires a source file for a precompiled header (precompiled.cmake).
