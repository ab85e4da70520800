# Checks with READELF that the library LIBRARY needs at most MOST bytes of thread-local memory in each thread. glibc keeps
# 1664 bytes free for all libraries that dlopen() loads and that need such memory at once (STATIC_TLS).
execute_process(COMMAND ${READELF} --segments --wide ${LIBRARY} OUTPUT_VARIABLE segments RESULT_VARIABLE result)
if(NOT result EQUAL 0 OR NOT segments MATCHES "TLS +0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+ (0x[0-9a-f]+) ")
  message(FATAL_ERROR "${READELF} finds no thread-local segment in ${LIBRARY}.")
endif()
math(EXPR bytes "${CMAKE_MATCH_1}")
if(bytes GREATER MOST)
  message(FATAL_ERROR "${LIBRARY} needs ${bytes} bytes of thread-local memory in each thread; it may need ${MOST}.")
endif()
