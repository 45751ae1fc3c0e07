/* What the tests of devices share: orders for the plugin without one (mock_plugin.c), and what it counted. */
#ifndef TESTS_DEVICES_H
#define TESTS_DEVICES_H

#include "support.h"

#include <dlfcn.h>
#include <stdlib.h>

#define MOCKS BINARY_DIR "/mock/"

/* Sets an order of the mock's, or withdraws it. */
static inline void tell(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static inline int withdraw_all(void **unused)
{
    static const char *const orders[] = {"MOCK_DEVICES", "MOCK_OLD",    "MOCK_ROWS", "MOCK_TEXTS",
                                         "MOCK_HEAD",    "MOCK_HIDDEN", "MOCK_SLOW", "MOCK_FAIL"};
    (void)unused;
    for (size_t i = 0; i < COUNT(orders); i++) unsetenv(orders[i]);
    return 0;
}

static inline size_t *counter(const char *name)
{
    void *mock = dlopen(MOCKS "works/libsafer_cuda.so", RTLD_NOW);
    assert_non_null(mock);
    size_t *found = dlsym(mock, name);
    assert_non_null(found);
    return found;
}

#endif
