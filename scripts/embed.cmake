# Makes C arrays of files: cmake -DOUTPUT=assets.c -DFILES="a;b" -P embed.cmake. The array of
# web/report.css is sf_asset_report_css, terminated by a NUL that does not count as content.
set(text "/* Made from the files below web/ by scripts/embed.cmake. */\n#include \"report/assets.h\"\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  string(MAKE_C_IDENTIFIER ${name} name)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND text "\nconst char sf_asset_${name}[] = {${bytes}'\\0'};\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
