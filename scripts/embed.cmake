# Makes C arrays of files: cmake -DOUTPUT=assets.c -DFILES="a;b" -P embed.cmake. The array of
# web/report.css is sf_asset_report_css, terminated by a NUL that does not count as content.
# A line "/* @include NAME */" stands for the file NAME beside it.
set(text "/* Made from the files below web/ by scripts/embed.cmake. */\n#include \"report/assets.h\"\n")
foreach(path ${FILES})
  get_filename_component(folder ${path} DIRECTORY)
  get_filename_component(name ${path} NAME)
  string(MAKE_C_IDENTIFIER ${name} name)
  file(READ ${path} content)
  while(content MATCHES "/\\* @include ([a-z.]+) \\*/\n")
    set(line "${CMAKE_MATCH_0}")
    file(READ ${folder}/${CMAKE_MATCH_1} included)
    string(REPLACE "${line}" "${included}" content "${content}")
  endwhile()
  string(HEX "${content}" bytes)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND text "\nconst char sf_asset_${name}[] = {${bytes}'\\0'};\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
