# Warnings and sanitizers, for every target of the project.
set(IVGPU_SANITIZE "" CACHE STRING "Sanitizers to build with: empty, 'address,undefined' or 'thread'")

# Off where somebody else chooses the compiler's flags, as a distribution does: with some, g++ 12 finds mistakes in the
# standard library's inlined code that are not there.
option(IVGPU_WERROR "Whether a warning ends the build" ON)

add_library(ivgpu_options INTERFACE)
target_include_directories(ivgpu_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(ivgpu_options INTERFACE -Wall -Wextra -Wconversion $<$<BOOL:${IVGPU_WERROR}>:-Werror>
                                               -fno-strict-aliasing)
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # g++'s -Wconversion leaves the sign alone in C++; what builds with one compiler shall build with the other.
  # The locks are checked by their annotations (ring/base/mutex.h).
  target_compile_options(ivgpu_options INTERFACE -Wno-sign-conversion -Wthread-safety -Wthread-safety-beta)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # g++ 13 finds these in fmt's inlined code, where they are not: told, but no error.
  target_compile_options(ivgpu_options INTERFACE -Wno-error=array-bounds -Wno-error=stringop-overflow)
endif()
if(IVGPU_SANITIZE)
  # Two of UBSan's checks do not fit a C ABI: a caller may pass any number as an enum, and a table of untyped entry
  # points leads to one function that refuses for all of them.
  if(IVGPU_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    set(IVGPU_NOT_SANITIZED -fno-sanitize=enum,function)
  endif()
  # The fuzzers get between two reads of shared memory (ring/shared/observed.h), and try the code with its mistakes.
  if(IVGPU_SANITIZE MATCHES address)
    target_compile_definitions(ivgpu_options INTERFACE IVGPU_OBSERVED IVGPU_MUTANTS)
  endif()
  target_compile_options(ivgpu_options INTERFACE -fsanitize=${IVGPU_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all ${IVGPU_NOT_SANITIZED})
  target_link_options(ivgpu_options INTERFACE -fsanitize=${IVGPU_SANITIZE})
endif()
# It links a test with a sanitizer in a quarter of the time, and there are 200 of them.
find_program(IVGPU_LLD ld.lld)
if(IVGPU_LLD AND IVGPU_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  target_link_options(ivgpu_options INTERFACE -fuse-ld=lld)
endif()
find_package(Threads REQUIRED)

# A merge run's builds cost half: little optimisation, the simulated GPU for one instruction set, and no machine code from
# nvcc, which only a real GPU runs.
option(IVGPU_MERGE_RUN "Whether to build only what the tests of a merge run need (tools/test)" OFF)
set(optimised -O2)
if(IVGPU_MERGE_RUN)
  set(optimised -O1)
  string(REPLACE "-O2" "-O1" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
endif()

# For sources that are neither hot nor what is tested: the tests' own and the commands'. Not optimised, they compile in
# half of the time, with AddressSanitizer in a third. An installed build (Release) optimises everything. So does
# ThreadSanitizer's: its tests are races, and their own code is part of them. IVGPU_OPTIMISED takes it back for what is hot
# among them, and adds nothing where everything is optimised.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT IVGPU_SANITIZE MATCHES thread)
  set(IVGPU_NOT_OPTIMISED -O0)
  set(IVGPU_OPTIMISED ${optimised})
endif()

# For what is tested and is not hot, the broker, and for the files that hold a line for each call, which no test calls
# often enough to make up for their compilation: AddressSanitizer's checks are the same without optimisation, and take a
# third to compile. So do a merge run's tests with g++; tools/test --all optimises them, since g++ finds some mistakes only
# then.
if(IVGPU_NOT_OPTIMISED AND (IVGPU_SANITIZE OR IVGPU_MERGE_RUN))
  set(IVGPU_NOT_HOT -O0)
endif()

# ccache keeps what was compiled, precompiled headers included: sloppiness is what its manual asks for with these. Depend mode
# takes the compiler's word for what a source includes, in place of a run of the preprocessor. clang then may not write the
# time into a precompiled header.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    target_compile_options(ivgpu_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

# Eight sources of a target are compiled as one, which takes a third of the time, with the standard library's headers
# precompiled. An installed build (Release) does neither, nor tools/test --all with g++, so that a source includes what it
# uses.
set(unity ON)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(unity OFF)
endif()
option(IVGPU_UNITY "Whether eight sources of a target are compiled as one" ${unity})

# ivgpu_precompile(target): the compiler reads the standard library's headers once for a target of many sources.
set(IVGPU_PRECOMPILED ${IVGPU_UNITY})
set(IVGPU_STANDARD_HEADERS <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <filesystem> <fstream> <functional>
  <map> <memory> <mutex> <optional> <set> <span> <sstream> <string> <string_view> <thread> <tuple> <vector>)
function(ivgpu_precompile target)
  if(IVGPU_PRECOMPILED)
    target_precompile_headers(${target} PRIVATE ${IVGPU_STANDARD_HEADERS})
    # g++ then warns of the library's inlined code, too, where nothing is wrong.
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PRIVATE -Wno-error=array-bounds -Wno-error=stringop-overflow
                                               -Wno-error=stringop-overread)
    endif()
  endif()
endfunction()

# ivgpu_unity(target [ALONE source...]): the target's sources may be compiled as one. cmake/unity-groups divides them, so that
# no two that declare the same name for themselves meet. Name those here that cannot be merged for another reason: one that
# refers to what not every program has that links the library, since a linker takes a merged file whole; one for which a
# test has a stand-in; and one that declares CUDA's functions otherwise than cuda.h.
# A name that meets another after a later edit asks for a new run of cmake, which divides the sources anew.
set(IVGPU_UNITY_GROUPS ${CMAKE_CURRENT_LIST_DIR}/unity-groups)
set(IVGPU_UNITY_SIZE 8)
function(ivgpu_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ALONE")
  if(NOT IVGPU_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  list(FILTER sources EXCLUDE REGEX "^\\$<")
  if(arg_ALONE)
    list(REMOVE_ITEM sources ${arg_ALONE})
  endif()
  execute_process(COMMAND ${IVGPU_UNITY_GROUPS} ${IVGPU_UNITY_SIZE} ${sources}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE groups RESULT_VARIABLE failed
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    message(FATAL_ERROR "cmake/unity-groups failed for ${target}; it needs python3, or configure with -DIVGPU_UNITY=OFF")
  endif()
  string(REPLACE "\n" ";" groups "${groups}")
  foreach(source group IN ZIP_LISTS sources groups)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
