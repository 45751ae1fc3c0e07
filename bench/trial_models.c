#include "trial.h"
size_t trial_models(const trial_options *options)
{
    (void)options;
    return 0;
}
size_t trial_rates(const trial_options *options)
{
    (void)options;
    return 0;
}
