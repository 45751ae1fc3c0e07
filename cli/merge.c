/* safer merge */
#include "verbs.h"

typedef struct request {
    const char *output;
} request;

static void list(cli_options *options, void *into)
{
    request *r = into;
    cli_add_output(options, "output", &r->output, "FILE", "the run (also -o FILE)");
}

static int run(void *from, char **parts, size_t count)
{
    const request *r = from;
    safer_error error = {0};
    size_t records = 0;
    if (!r->output) cli_misuse(&cli_merge, "-o FILE is needed: where to write the run");
    if (safer_merge(&records, r->output, (const char *const *)parts, count, cli_progress(), &error) != SAFER_OK)
        return cli_fail(&error);
    cli_progress_clear();
    if (cli_settings()->json)
        cli_print_json(json_pack("{s:s, s:I, s:I}", "output", r->output, "parts", (json_int_t)count, "records",
                                 (json_int_t)records));
    else
        printf("wrote %s: %s of %s\n", r->output, cli_some(records, "record", "records"),
               cli_some(count, "part", "parts"));
    return CLI_DONE;
}

const cli_verb cli_merge = {
    .name = "merge",
    .brief = "put the parts of a run together",
    .usage = "PART.jsonl... -o RUN.jsonl",
    .summary = "Puts the parts that certify --shard or attack --shard wrote together: the result is, byte by\n"
               "byte, what one run would have written, but for the seconds and the date. Checks that the\n"
               "parts are of one run, that none is missing, given twice or unfinished, and every seal.",
    .examples = "  safer merge part-1.jsonl part-2.jsonl part-3.jsonl -o run.jsonl\n"
                "  safer merge parts/*.jsonl -o run.jsonl && safer verify run.jsonl\n",
    .min_arguments = 1,
    .max_arguments = SIZE_MAX,
    .request_size = sizeof(request),
    .list = list,
    .run = run,
};
