/* Regular expressions of tokenizers: compiled to a program, and searched.
 *
 * The head of regex.h says which language this is and why the time is bounded. The program is a list of instructions
 * passed forwards: SPLIT tries what follows and then what lies at `other`, LOOP takes characters of one set, LOOK runs
 * what follows up to its own MATCH and goes on at `other`. */
#include "text/regex.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "text/classes.h"
#include "text/unicode.h"

#include <assert.h>
#include <string.h>

enum { MOST_INSTRUCTIONS = 512, MOST_DEPTH = 20, MOST_RANGES = 64, MOST_LACKS = 8 };
enum { PATIENCE = 32 }; /* steps per byte before failures are noted */

typedef struct set {
    uint64_t ascii[2];          /* of the first 128 characters, all said */
    uint32_t any;               /* SF_CLASS_ bits of which one is enough */
    uint32_t lacks[MOST_LACKS]; /* or none of these */
    uint32_t ranges[MOST_RANGES][2];
    uint32_t lack_count, range_count;
    int negated;
} set;

typedef enum operation { MATCH, SET, LOOP, SPLIT, JUMP, LOOK } operation;
typedef enum manner { GREEDY, LAZY, POSSESSIVE } manner;

typedef struct instruction {
    operation operation;
    uint32_t set;
    uint32_t least, most; /* LOOP; UINT32_MAX: any number */
    manner manner;
    int negative;      /* LOOK */
    uint32_t other;    /* SPLIT, JUMP, LOOK */
    uint64_t first[2]; /* SPLIT: ASCII characters with which what follows can begin; all when it can be empty */
} instruction;

struct sf_regex {
    instruction *program;
    size_t count, capacity;
    set *sets;
    size_t set_count, set_capacity;
    uint64_t first[2]; /* ASCII characters with which a match can begin */
};

/* ------------------------------------------------------------------- sets */

static int ascii_of(const set *s, uint32_t code) { return s->ascii[code / 64] >> code % 64 & 1; }

static int holds_plain(const set *s, uint32_t code)
{
    const uint32_t class = sf_class(code);
    if (class & s->any) return 1;
    for (size_t i = 0; i < s->lack_count; i++)
        if (!(class & s->lacks[i])) return 1;
    for (size_t i = 0; i < s->range_count; i++)
        if (code >= s->ranges[i][0] && code <= s->ranges[i][1]) return 1;
    return 0;
}

static inline int holds(const set *s, uint32_t code)
{
    return code < 0x80 ? ascii_of(s, code) : holds_plain(s, code) != s->negated;
}

/* Says the ASCII part, once all else is said. */
static void finish_set(set *s)
{
    s->ascii[0] = s->ascii[1] = 0;
    for (uint32_t c = 0; c < 0x80; c++)
        if (holds_plain(s, c) != s->negated) s->ascii[c / 64] |= UINT64_C(1) << c % 64;
}

/* --------------------------------------------------------------- compiler */

typedef struct compiler {
    sf_regex *regex;
    const char *pattern, *p, *end;
    const char *what;
    int fold; /* inside (?i: */
    int depth;
    safer_error *error;
} compiler;

static safer_status refuse(compiler *c, const char *why)
{
    const size_t length = (size_t)(c->end - c->pattern);
    return sf_fail(c->error, SAFER_INPUT, "%s: the regular expression '%.*s' is not supported: %s", c->what,
                   sf_clip(c->pattern, length, 200), c->pattern, why);
}

static safer_status emit(compiler *c, instruction i, size_t *at)
{
    sf_regex *r = c->regex;
    if (r->count >= MOST_INSTRUCTIONS) return refuse(c, "it is too long");
    if (sf_grow(&r->program, &r->capacity, r->count + 1, sizeof *r->program)) return sf_fail_memory(c->error);
    if (at) *at = r->count;
    r->program[r->count++] = i;
    return SAFER_OK;
}

static safer_status emit_set(compiler *c, const set *s)
{
    sf_regex *r = c->regex;
    if (sf_grow(&r->sets, &r->set_capacity, r->set_count + 1, sizeof *r->sets)) return sf_fail_memory(c->error);
    r->sets[r->set_count] = *s;
    finish_set(&r->sets[r->set_count]);
    return emit(c, (instruction){.operation = SET, .set = (uint32_t)r->set_count++}, NULL);
}

static safer_status add_range(compiler *c, set *s, uint32_t first, uint32_t last)
{
    if (s->range_count == MOST_RANGES) return refuse(c, "a set has too many members");
    s->ranges[s->range_count][0] = first;
    s->ranges[s->range_count++][1] = last;
    return SAFER_OK;
}

/* A character, and where case does not count its other forms. */
static safer_status add_character(compiler *c, set *s, uint32_t code)
{
    safer_status status = add_range(c, s, code, code);
    if (status != SAFER_OK || !c->fold) return status;
    if (code >= 0x80) return refuse(c, "(?i: of characters beyond ASCII");
    const uint32_t small = code | 0x20;
    if (small < 'a' || small > 'z') return SAFER_OK;
    status = add_range(c, s, code ^ 0x20, code ^ 0x20);
    if (status == SAFER_OK && small == 's') status = add_range(c, s, 0x17f, 0x17f);
    if (status == SAFER_OK && small == 'k') status = add_range(c, s, 0x212a, 0x212a);
    return status;
}

static const struct {
    const char *name;
    uint32_t bits;
} properties[] = {
    {"L", SF_CLASS_L},   {"N", SF_CLASS_N},   {"P", SF_CLASS_P},   {"S", SF_CLASS_S},
    {"M", SF_CLASS_M},   {"Lu", SF_CLASS_LU}, {"Ll", SF_CLASS_LL}, {"Lt", SF_CLASS_LT},
    {"Lm", SF_CLASS_LM}, {"Lo", SF_CLASS_LO}, {"Nd", SF_CLASS_ND},
};

static safer_status add_class(compiler *c, set *s, uint32_t bits, int negated)
{
    if (!negated) {
        s->any |= bits;
        return SAFER_OK;
    }
    if (s->lack_count == MOST_LACKS) return refuse(c, "a set has too many members");
    s->lacks[s->lack_count++] = bits;
    return SAFER_OK;
}

/* \p{...}, behind the p. */
static safer_status read_property(compiler *c, set *s, int negated)
{
    const char *close = c->p < c->end ? memchr(c->p, '}', (size_t)(c->end - c->p)) : NULL;
    if (!close || *c->p != '{') return refuse(c, "\\p without {}");
    const char *name = c->p + 1;
    if (name < close && *name == '^') {
        negated = !negated;
        name++;
    }
    c->p = close + 1;
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (strlen(properties[i].name) == (size_t)(close - name) &&
            memcmp(properties[i].name, name, (size_t)(close - name)) == 0)
            return add_class(c, s, properties[i].bits, negated);
    return refuse(c, "of the properties \\p{}, L, Lu, Ll, Lt, Lm, Lo, M, N, Nd, P and S are known");
}

static safer_status read_hexadecimal(compiler *c, int digits, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < digits; i++, c->p++) {
        const int byte = c->p < c->end ? (unsigned char)*c->p : 0, small = byte | 0x20;
        if (byte >= '0' && byte <= '9')
            *code = *code * 16 + (uint32_t)(byte - '0');
        else if (small >= 'a' && small <= 'f')
            *code = *code * 16 + (uint32_t)(small - 'a' + 10);
        else
            return refuse(c, "hexadecimal digits are missing");
    }
    return SAFER_OK;
}

/* What stands behind a backslash: a character (*is_class 0), or a set that is added to s. */
static safer_status read_escape(compiler *c, set *s, uint32_t *code, int *is_class)
{
    if (c->p == c->end) return refuse(c, "a \\ at its end");
    const char byte = *c->p++;
    *is_class = 1;
    switch (byte) {
    case 's': return add_class(c, s, SF_CLASS_SPACE, 0);
    case 'S': return add_class(c, s, SF_CLASS_SPACE, 1);
    case 'd': return add_class(c, s, SF_CLASS_ND, 0);
    case 'D': return add_class(c, s, SF_CLASS_ND, 1);
    case 'w': return add_class(c, s, SF_CLASS_WORD, 0);
    case 'W': return add_class(c, s, SF_CLASS_WORD, 1);
    case 'p': return read_property(c, s, 0);
    case 'P': return read_property(c, s, 1);
    default: break;
    }
    *is_class = 0;
    *code = (unsigned char)byte;
    if (byte == 'u') return read_hexadecimal(c, 4, code);
    if (byte == 'x') {
        safer_status status = read_hexadecimal(c, 2, code);
        return status == SAFER_OK && *code >= 0x80 ? refuse(c, "\\x of a byte beyond ASCII") : status;
    }
    static const char letters[] = "nrtfv", meant[] = "\n\r\t\f\v";
    const char *at = memchr(letters, byte, sizeof letters - 1);
    if (at)
        *code = (unsigned char)meant[at - letters];
    else if ((*code | 0x20) - 'a' < 26 || *code - '0' < 10 || *code >= 0x80)
        return refuse(c, "a \\ before such a character");
    return SAFER_OK;
}

static safer_status read_character(compiler *c, uint32_t *code)
{
    const size_t step = sf_utf8_decode(c->p, c->end, code);
    if (!step) return refuse(c, "it is not UTF-8");
    c->p += step;
    return SAFER_OK;
}

/* One member of [...]: a character, a range or a set. */
static safer_status read_member(compiler *c, set *s)
{
    uint32_t first = 0, last;
    int is_class = 0;
    safer_status status = SAFER_OK;
    if (*c->p == '\\') {
        c->p++;
        SF_TRY(read_escape(c, s, &first, &is_class));
        if (is_class) goto done;
    } else {
        if (*c->p == '[' || (c->end - c->p > 1 && c->p[0] == '&' && c->p[1] == '&')) {
            status = refuse(c, "sets in sets");
            goto done;
        }
        SF_TRY(read_character(c, &first));
    }
    if (c->end - c->p < 2 || c->p[0] != '-' || c->p[1] == ']') {
        status = add_character(c, s, first);
        goto done;
    }
    c->p++;
    if (*c->p == '\\') {
        c->p++;
        SF_TRY(read_escape(c, s, &last, &is_class));
    } else
        SF_TRY(read_character(c, &last));
    if (is_class || last < first)
        status = refuse(c, "a range has no end");
    else if (c->fold)
        status = refuse(c, "ranges inside (?i:");
    else
        status = add_range(c, s, first, last);
done:
    return status;
}

static safer_status read_set(compiler *c)
{
    set s = {0};
    if (c->p < c->end && *c->p == '^') {
        s.negated = 1;
        c->p++;
    }
    if (s.negated && c->fold) return refuse(c, "[^...] inside (?i:");
    if (c->p < c->end && *c->p == ']') return refuse(c, "] at the beginning of a set");
    while (c->p < c->end && *c->p != ']') {
        safer_status status = read_member(c, &s);
        if (status != SAFER_OK) return status;
    }
    if (c->p == c->end) return refuse(c, "] is missing");
    c->p++;
    return emit_set(c, &s);
}

static safer_status read_alternatives(compiler *c);

/* What follows "(", up to its ")". */
static safer_status read_group(compiler *c, int *is_look)
{
    const int fold = c->fold;
    size_t look = 0;
    safer_status status = SAFER_OK;
    *is_look = 0;
    if (++c->depth > MOST_DEPTH) return refuse(c, "groups are nested too deeply");
    if (c->end - c->p >= 2 && c->p[0] == '?') {
        const char kind = c->p[1];
        c->p += 2;
        if (kind == '=' || kind == '!') {
            *is_look = 1;
            SF_TRY(emit(c, (instruction){.operation = LOOK, .negative = kind == '!'}, &look));
        } else if (kind == 'i' && c->p < c->end && *c->p == ':') {
            c->fold = 1;
            c->p++;
        } else if (kind != ':') {
            status = refuse(c, "of the groups (?, (?: (?i: (?= and (?! are known");
            goto done;
        }
    }
    SF_TRY(read_alternatives(c));
    if (c->p == c->end || *c->p != ')') {
        status = refuse(c, ") is missing");
        goto done;
    }
    c->p++;
    if (*is_look) {
        SF_TRY(emit(c, (instruction){.operation = MATCH}, NULL));
        c->regex->program[look].other = (uint32_t)c->regex->count;
    }
done:
    c->fold = fold;
    c->depth--;
    return status;
}

/* "{n,m}", behind the {. Whether it is one; otherwise { is a character. */
static int read_counts(compiler *c, uint32_t *least, uint32_t *most)
{
    const char *p = c->p;
    uint32_t values[2] = {0, UINT32_MAX};
    int digits[2] = {0, 0}, comma = 0;
    for (; p < c->end && *p != '}'; p++) {
        if (*p == ',' && !comma) {
            comma = 1;
            continue;
        }
        if (*p < '0' || *p > '9' || digits[comma]++ > 3) return 0;
        values[comma] = (digits[comma] == 1 ? 0 : values[comma]) * 10 + (uint32_t)(*p - '0');
    }
    if (p == c->end || !digits[0]) return 0;
    *least = values[0];
    *most = comma ? values[1] : values[0];
    c->p = p + 1;
    return 1;
}

/* A quantifier behind what begins at `at`, if one is there. */
static safer_status read_quantifier(compiler *c, size_t at, int is_look)
{
    sf_regex *r = c->regex;
    uint32_t least = 0, most = UINT32_MAX;
    const char sign = c->p < c->end ? *c->p : 0;
    if (sign != '?' && sign != '*' && sign != '+' && sign != '{') return SAFER_OK;
    c->p++;
    if (sign == '{' && !read_counts(c, &least, &most)) return refuse(c, "{ without numbers");
    if (sign == '+') least = 1;
    if (sign == '?') most = 1;
    if (most < least || most == 0) return refuse(c, "numbers in {} that do not rise");
    manner how = GREEDY;
    if (c->p < c->end && (*c->p == '?' || *c->p == '+')) {
        if (sign == '{') return refuse(c, "a sign behind {}");
        how = *c->p++ == '?' ? LAZY : POSSESSIVE;
    }
    if (c->p < c->end && (*c->p == '*' || *c->p == '+' || *c->p == '?' || *c->p == '{'))
        return refuse(c, "quantifiers in a row");
    if (r->count == at + 1 && r->program[at].operation == SET) {
        r->program[at] = (instruction){
            .operation = LOOP, .set = r->program[at].set, .least = least, .most = most, .manner = how};
        return SAFER_OK;
    }
    if (is_look || sign != '?' || how != GREEDY) return refuse(c, "a group is repeated");
    safer_status status = emit(c, (instruction){0}, NULL);
    if (status != SAFER_OK) return status;
    memmove(&r->program[at + 1], &r->program[at], (r->count - 1 - at) * sizeof *r->program);
    for (size_t i = at + 1; i < r->count; i++)
        if (r->program[i].operation >= SPLIT) r->program[i].other++;
    r->program[at] = (instruction){.operation = SPLIT, .other = (uint32_t)r->count};
    return SAFER_OK;
}

static safer_status read_sequence(compiler *c)
{
    safer_status status = SAFER_OK;
    while (c->p < c->end && *c->p != '|' && *c->p != ')') {
        const size_t at = c->regex->count;
        int is_look = 0, is_class = 0;
        uint32_t code = 0;
        set s = {0};
        const char byte = *c->p;
        if (strchr("*+?{^$", byte))
            return refuse(c, byte == '^' || byte == '$' ? "^ and $" : "a sign without anything before it");
        if (byte == '(' || byte == '[') {
            c->p++;
            SF_TRY(byte == '(' ? read_group(c, &is_look) : read_set(c));
        } else {
            if (byte == '\\') {
                c->p++;
                SF_TRY(read_escape(c, &s, &code, &is_class));
            } else if (byte == '.') {
                c->p++;
                is_class = s.negated = 1;
                SF_TRY(add_range(c, &s, '\n', '\n'));
            } else
                SF_TRY(read_character(c, &code));
            if (!is_class) SF_TRY(add_character(c, &s, code));
            SF_TRY(emit_set(c, &s));
        }
        SF_TRY(read_quantifier(c, at, is_look));
    }
done:
    return status;
}

static safer_status read_alternatives(compiler *c)
{
    sf_regex *r = c->regex;
    safer_status status = SAFER_OK;
    size_t jumps[MOST_INSTRUCTIONS / 2 + 1], count = 0;
    for (;;) {
        const size_t at = r->count;
        SF_TRY(read_sequence(c));
        if (c->p == c->end || *c->p != '|') break;
        c->p++;
        /* SPLIT in front, JUMP behind. */
        SF_TRY(emit(c, (instruction){0}, NULL));
        memmove(&r->program[at + 1], &r->program[at], (r->count - 1 - at) * sizeof *r->program);
        for (size_t i = at + 1; i < r->count; i++)
            if (r->program[i].operation >= SPLIT) r->program[i].other++;
        SF_TRY(emit(c, (instruction){.operation = JUMP}, &jumps[count]));
        r->program[at] = (instruction){.operation = SPLIT, .other = (uint32_t)r->count};
        count++;
        assert(count <= MOST_INSTRUCTIONS / 2);
    }
    for (size_t i = 0; i < count; i++) r->program[jumps[i]].other = (uint32_t)r->count;
done:
    return status;
}

/* Marks the ASCII characters with which the program can go on from here; whether it can end without one. */
static int mark_first(const sf_regex *r, size_t pc, uint64_t first[2], unsigned char *seen)
{
    for (;; pc++) {
        const instruction *i = &r->program[pc];
        if (seen[pc]) return seen[pc] == 2;
        seen[pc] = 1;
        int empty;
        switch (i->operation) {
        case MATCH: return (seen[pc] = 2) == 2;
        case SET:
        case LOOP:
            first[0] |= r->sets[i->set].ascii[0];
            first[1] |= r->sets[i->set].ascii[1];
            if (i->operation == LOOP && i->least == 0) break;
            return 0;
        case SPLIT:
            empty = mark_first(r, pc + 1, first, seen);
            empty |= mark_first(r, i->other, first, seen);
            seen[pc] = empty ? 2 : 1;
            return empty;
        default: pc = i->other - 1; break; /* JUMP, LOOK */
        }
    }
}

/* Says with what a match begins, and refuses what matches nothing. */
static safer_status finish(compiler *c)
{
    unsigned char seen[MOST_INSTRUCTIONS + 1] = {0};
    sf_regex *r = c->regex;
    if (c->p < c->end) return refuse(c, "a ) without its (");
    safer_status status = emit(c, (instruction){.operation = MATCH}, NULL);
    if (status != SAFER_OK) return status;
    if (mark_first(r, 0, r->first, seen)) return refuse(c, "it matches where nothing is");
    for (size_t i = 0; i < r->count; i++) {
        instruction *split = &r->program[i];
        if (split->operation != SPLIT) continue;
        memset(seen, 0, sizeof seen);
        if (mark_first(r, i + 1, split->first, seen)) split->first[0] = split->first[1] = UINT64_MAX;
    }
    return SAFER_OK;
}

safer_status sf_regex_new(sf_regex **out, const char *pattern, size_t length, const char *what, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_regex *r = sf_calloc(1, sizeof *r);
    compiler c = {.regex = r, .pattern = pattern, .p = pattern, .end = pattern + length, .what = what, .error = error};
    if (!r) return sf_fail_memory(error);
    SF_TRY(read_alternatives(&c));
    SF_TRY(finish(&c));
    *out = r;
    r = NULL;
done:
    sf_regex_free(r);
    return status;
}

safer_status sf_regex_literal(sf_regex **out, const char *bytes, size_t length, safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_regex *r = sf_calloc(1, sizeof *r);
    compiler c = {.regex = r, .pattern = bytes, .p = bytes, .end = bytes + length, .what = "text", .error = error};
    if (!r) return sf_fail_memory(error);
    while (c.p < c.end) {
        set s = {0};
        uint32_t code;
        SF_TRY(read_character(&c, &code));
        SF_TRY(add_character(&c, &s, code));
        SF_TRY(emit_set(&c, &s));
    }
    SF_TRY(finish(&c));
    *out = r;
    r = NULL;
done:
    sf_regex_free(r);
    return status;
}

void sf_regex_free(sf_regex *regex)
{
    if (!regex) return;
    free(regex->program);
    free(regex->sets);
    free(regex);
}

/* ----------------------------------------------------------------- search */

typedef struct search {
    const sf_regex *regex;
    const char *text, *end;
    sf_regex_memo *memo;
} search;

void sf_regex_memo_free(sf_regex_memo *memo)
{
    free(memo->failed);
    *memo = (sf_regex_memo){0};
}

/* The length of the character at p if the set holds it, or 0. */
static inline size_t take(const set *s, const char *p, const char *end)
{
    uint32_t code;
    if (p == end) return 0;
    const unsigned char byte = (unsigned char)*p;
    if (byte < 0x80) return (size_t)ascii_of(s, byte);
    const size_t step = sf_utf8_decode(p, end, &code);
    return step && holds(s, code) ? step : 0;
}

static size_t bit_of(const search *s, size_t pc, const char *p)
{
    return pc * ((size_t)(s->end - s->text) + 1) + (size_t)(p - s->text);
}

/* Notes one more step; makes the table of failures when there were too many. */
static void count_step(search *s)
{
    const size_t length = (size_t)(s->end - s->text);
    if (++s->memo->steps < PATIENCE * (length + 100) || s->memo->failed || s->memo->out_of_memory) return;
    s->memo->failed = sf_calloc(s->regex->count * (length + 1) / 64 + 1, sizeof *s->memo->failed);
    if (!s->memo->failed) s->memo->out_of_memory = 1;
}

static const char *match_at(search *s, size_t pc, const char *p);

static const char *match_lazily(search *s, size_t pc, const char *p, uint32_t count)
{
    const instruction *i = &s->regex->program[pc];
    for (;; count++) {
        const char *found = match_at(s, pc + 1, p);
        if (found || count == i->most) return found;
        const size_t step = take(&s->regex->sets[i->set], p, s->end);
        if (!step) return NULL;
        p += step;
    }
}

static const char *match_loop(search *s, size_t pc, const char *p)
{
    const instruction *i = &s->regex->program[pc];
    const set *members = &s->regex->sets[i->set];
    const uint32_t most = i->manner == LAZY ? i->least : i->most;
    const char *begin = p; /* where the least number of characters ends */
    uint32_t count = 0;
    for (size_t step; count < most && (step = take(members, p, s->end)) != 0; p += step)
        if (++count == i->least) begin = p + step;
    if (count < i->least) return NULL;
    if (i->manner == LAZY) return match_lazily(s, pc, p, count);
    if (i->manner == POSSESSIVE) return match_at(s, pc + 1, p);
    for (;;) {
        const char *found = match_at(s, pc + 1, p);
        if (found || p == begin) return found;
        do p--;
        while (((unsigned char)*p & 0xc0) == 0x80);
    }
}

/* Whether what follows a SPLIT cannot match here. */
static inline int skips(const instruction *i, const char *p, const char *end)
{
    const unsigned char byte = p < end ? (unsigned char)*p : 0x80;
    return byte < 0x80 && !(i->first[byte / 64] >> byte % 64 & 1);
}

/* The end of a match of the program from pc at p, or NULL. */
static const char *match_at(search *s, size_t pc, const char *p)
{
    for (;;) {
        const instruction *i = &s->regex->program[pc];
        const char *found;
        size_t step;
        switch (i->operation) {
        case MATCH: return p;
        case SET:
            if ((step = take(&s->regex->sets[i->set], p, s->end)) == 0) return NULL;
            p += step;
            pc++;
            break;
        case JUMP: pc = i->other; break;
        case LOOK:
            found = match_at(s, pc + 1, p);
            if ((found != NULL) == i->negative) return NULL;
            pc = i->other;
            break;
        case LOOP:
        case SPLIT:
            if (i->operation == SPLIT && skips(i, p, s->end)) {
                pc = i->other;
                break;
            }
            count_step(s);
            if (s->memo->failed && s->memo->failed[bit_of(s, pc, p) / 64] >> bit_of(s, pc, p) % 64 & 1) return NULL;
            if (i->operation == LOOP)
                found = match_loop(s, pc, p);
            else if ((found = match_at(s, pc + 1, p)) == NULL)
                found = match_at(s, i->other, p);
            if (!found && s->memo->failed)
                s->memo->failed[bit_of(s, pc, p) / 64] |= UINT64_C(1) << bit_of(s, pc, p) % 64;
            return found;
        }
    }
}

int sf_regex_find(const sf_regex *regex, const char *text, size_t length, size_t from, size_t *begin, size_t *end,
                  sf_regex_memo *memo)
{
    search s = {regex, text, text + length, memo};
    for (const char *p = text + from; p < s.end; p++) {
        const unsigned char byte = (unsigned char)*p;
        if (byte < 0x80 ? !(regex->first[byte / 64] >> byte % 64 & 1) : (byte & 0xc0) == 0x80) continue;
        const char *found = match_at(&s, 0, p);
        if (memo->out_of_memory) return -1;
        if (!found) continue;
        *begin = (size_t)(p - text);
        *end = (size_t)(found - text);
        return 1;
    }
    return 0;
}

/* ------------------------------------------------------------- what can be */

/* Whether the next character, from here on, can be this one; what is looked at ahead counts. */
static int can_take(const sf_regex *r, size_t pc, uint32_t code, unsigned char *seen)
{
    for (;; pc++) {
        const instruction *i = &r->program[pc];
        if (seen[pc]) return 0;
        seen[pc] = 1;
        switch (i->operation) {
        case MATCH: return 0;
        case SET: return holds(&r->sets[i->set], code);
        case LOOP:
            if (holds(&r->sets[i->set], code)) return 1;
            if (i->least) return 0;
            break;
        case SPLIT:
        case LOOK:
            if (can_take(r, pc + 1, code, seen)) return 1;
            pc = i->other - 1;
            break;
        case JUMP: pc = i->other - 1; break;
        }
    }
}

int sf_regex_crosses(const sf_regex *regex, uint32_t before, uint32_t after)
{
    for (size_t pc = 0; pc < regex->count; pc++) {
        const instruction *i = &regex->program[pc];
        unsigned char seen[MOST_INSTRUCTIONS + 1] = {0};
        if ((i->operation != SET && i->operation != LOOP) || !holds(&regex->sets[i->set], before)) continue;
        if (i->operation == LOOP && i->most > 1 && holds(&regex->sets[i->set], after)) return 1;
        if (can_take(regex, pc + 1, after, seen)) return 1;
    }
    return 0;
}

int sf_regex_holds(const sf_regex *regex, uint32_t code)
{
    for (size_t i = 0; i < regex->set_count; i++)
        if (holds(&regex->sets[i], code)) return 1;
    return 0;
}

/* Whether a match can end here without another character and without looking ahead: then it does, if nothing better is
 * found. */
static int can_end(const sf_regex *r, size_t pc, unsigned char *seen)
{
    for (;; pc++) {
        const instruction *i = &r->program[pc];
        if (seen[pc]) return 0;
        seen[pc] = 1;
        switch (i->operation) {
        case MATCH: return 1;
        case LOOP:
            if (i->least) return 0;
            break;
        case SPLIT:
            if (can_end(r, pc + 1, seen)) return 1;
            pc = i->other - 1;
            break;
        case JUMP: pc = i->other - 1; break;
        default: return 0; /* SET, LOOK */
        }
    }
}

/* Whether this one character alone can be a match, from here on, without looking ahead. */
static int can_be(const sf_regex *r, size_t pc, uint32_t code, unsigned char *seen)
{
    for (;; pc++) {
        const instruction *i = &r->program[pc];
        unsigned char ends[MOST_INSTRUCTIONS + 1] = {0};
        if (seen[pc]) return 0;
        seen[pc] = 1;
        switch (i->operation) {
        case SET: return holds(&r->sets[i->set], code) && can_end(r, pc + 1, ends);
        case LOOP:
            if (i->least <= 1 && holds(&r->sets[i->set], code) && can_end(r, pc + 1, ends)) return 1;
            /* What a possessive one has taken it does not give back. */
            if (i->least || (i->manner == POSSESSIVE && holds(&r->sets[i->set], code))) return 0;
            break;
        case SPLIT:
            if (can_be(r, pc + 1, code, seen)) return 1;
            pc = i->other - 1;
            break;
        case JUMP: pc = i->other - 1; break;
        default: return 0; /* MATCH, LOOK */
        }
    }
}

sf_regex_start sf_regex_starts(const sf_regex *regex, uint32_t code)
{
    unsigned char seen[MOST_INSTRUCTIONS + 1] = {0}, alone[MOST_INSTRUCTIONS + 1] = {0};
    if (!can_take(regex, 0, code, seen)) return SF_REGEX_NEVER;
    return can_be(regex, 0, code, alone) ? SF_REGEX_ALWAYS : SF_REGEX_PERHAPS;
}
