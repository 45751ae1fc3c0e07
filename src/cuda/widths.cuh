/* Calls FUNCTION<N> for rows of `hidden` numbers, N of 128 each. */
#ifndef SF_CUDA_WIDTHS_CUH
#define SF_CUDA_WIDTHS_CUH

#define FOR_WIDTH(hidden, FUNCTION, ...) \
    switch (((hidden) + 127) / 128) { \
    case 1: FUNCTION<1>(__VA_ARGS__); break; \
    case 2: FUNCTION<2>(__VA_ARGS__); break; \
    case 3: FUNCTION<3>(__VA_ARGS__); break; \
    case 4: FUNCTION<4>(__VA_ARGS__); break; \
    case 5: \
    case 6: FUNCTION<6>(__VA_ARGS__); break; \
    case 7: \
    case 8: FUNCTION<8>(__VA_ARGS__); break; \
    default: FUNCTION<16>(__VA_ARGS__); break; \
    }

#endif
