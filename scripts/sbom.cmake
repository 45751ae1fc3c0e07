# Writes the bill of materials of a build, CycloneDX 1.6: cmake -DOUTPUT=FILE -DVERSION=V -DNOTICE=FILE
# "-DLINKED=NAME=VERSION;..." -P sbom.cmake. Licences come from NOTICE, where every linked library must stand. The same
# inputs give the same bytes: there is no date and no serial number in it.
file(STRINGS ${NOTICE} rows REGEX "^  [^ ]")
set(components "")
set(names "")
foreach(entry ${LINKED})
  string(REGEX MATCH "^([^=]+)=(.+)$" parts "${entry}")
  set(name "${CMAKE_MATCH_1}")
  set(version "${CMAKE_MATCH_2}")
  set(licence "")
  foreach(row ${rows})
    if(row MATCHES "^  ${name}  +([^ ]+( [^ ]+)*)  +([^ ].*)$")
      set(licence "${CMAKE_MATCH_1}")
      set(use "${CMAKE_MATCH_3}")
    endif()
  endforeach()
  if(NOT parts OR NOT licence)
    message(FATAL_ERROR "sbom: \"${entry}\" is linked, but NOTICE says nothing about it")
  endif()
  list(APPEND components "    {
      \"type\": \"library\",
      \"bom-ref\": \"${name}@${version}\",
      \"name\": \"${name}\",
      \"version\": \"${version}\",
      \"description\": \"${use}\",
      \"licenses\": [{\"expression\": \"${licence}\"}],
      \"purl\": \"pkg:generic/${name}@${version}\"
    }")
  list(APPEND names "\"${name}@${version}\"")
endforeach()
string(JOIN ",\n" components ${components})
string(JOIN ", " names ${names})
file(WRITE ${OUTPUT}.new "{
  \"bomFormat\": \"CycloneDX\",
  \"specVersion\": \"1.6\",
  \"version\": 1,
  \"metadata\": {
    \"component\": {
      \"type\": \"application\",
      \"bom-ref\": \"safer@${VERSION}\",
      \"name\": \"safer\",
      \"version\": \"${VERSION}\",
      \"description\": \"Certificates for text classifiers against synonym substitution\",
      \"licenses\": [{\"license\": {\"id\": \"Apache-2.0\"}}],
      \"purl\": \"pkg:generic/safer@${VERSION}\"
    }
  },
  \"components\": [
${components}
  ],
  \"dependencies\": [
    {\"ref\": \"safer@${VERSION}\", \"dependsOn\": [${names}]}
  ]
}
")
file(RENAME ${OUTPUT}.new ${OUTPUT})
