/* Any bytes as a fastText file; the properties are in fuzz_data.h. */
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return check_format(SAFER_FORMAT_FASTTEXT, data, size); }
