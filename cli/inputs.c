/* Opening what a verb works on. */
#include "cli.h"

#include <stdlib.h>

cli_data cli_data_default(void) { return (cli_data){.options = safer_data_options_default()}; }

safer_data *cli_data_load(cli_data *d, uint64_t seed)
{
    safer_error error = {0};
    safer_data *data = NULL;
    if (d->format && safer_format_parse(&d->options.format, d->format, &error) != SAFER_OK) exit(cli_fail(&error));
    d->options.limit = d->limit;
    d->options.seed = seed;
    if (safer_data_load(&data, d->path, &d->options, &error) != SAFER_OK) exit(cli_fail(&error));
    return data;
}

safer_lexicon *cli_lexicon_open(const char *path)
{
    safer_error error = {0};
    safer_lexicon *lexicon = NULL;
    if (safer_lexicon_open(&lexicon, path, &error) != SAFER_OK) exit(cli_fail(&error));
    return lexicon;
}
