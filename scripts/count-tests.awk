# Counts test cases in a JUnit file of ctest: 'N passed, N failed, N skipped'. A cmocka
# program counts by its own closing lines, any other test as one. A line 'skipped: WHY' of a
# test is repeated.
function number() { match($0, /[0-9]+ test\(s\)/); return substr($0, RSTART, RLENGTH) + 0 }
function flush() {
  if (status == "") return
  if (status == "notrun" || status == "disabled") skipped++
  else if (status == "fail") { p += ok; s += skip; failed += bad ? bad : 1 }
  else if (ok + skip) { p += ok; s += skip }
  else p++
}
/<testcase / {
  flush()
  match($0, /status="[a-z]+"/)
  status = substr($0, RSTART + 8, RLENGTH - 9)
  ok = bad = skip = 0
}
/\[  PASSED  \] .*[0-9]+ test\(s\)/ { ok += number() }
/\[  FAILED  \] .*[0-9]+ test\(s\)/ { bad += number() }
/\[  SKIPPED \] .*[0-9]+ test\(s\)/ { skip += number() }
/skipped: / { sub(/.*skipped: /, ""); reasons = reasons "skipped: " $0 "\n" }
END {
  flush()
  printf "%s", reasons
  printf "%d passed, %d failed, %d skipped\n", p, failed, s + skipped
}
