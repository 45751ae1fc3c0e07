#include "trial.h"
size_t trial_run(const trial_lexicon *lexicon, uint64_t number, const trial_options *options, trial_tally *tally,
                 size_t *wrong)
{
    (void)lexicon;
    (void)number;
    (void)options;
    (void)tally;
    (void)wrong;
    return 0;
}
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
