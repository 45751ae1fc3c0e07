/* Spelling words otherwise, after DeepWordBug (Gao et al. 2018): every word is spelled otherwise alone, in a few ways,
 * and ranked by what the target loses; then the first, the first two, the first three are, until the answer is wrong.
 * All texts of either part are asked about in batches.
 *
 *   homoglyph  1 one letter becomes a character that looks like it (UTS #39), 2 all that can do
 *   zerowidth  1 a character that is not seen stands behind one letter, 2 behind all but the last
 *   typo       two inner letters swapped, one left out, one doubled, one from a key beside it; words of four or more */
#include "attack/spelling.h"

#include "base/hash.h"
#include "base/memory.h"
#include "text/unicode.h"

#include <math.h>
#include <string.h>

enum { TESTS = 20, GROUP = 32 };

/* ------------------------------------------------------------------ spellings */

static unsigned spellings_of(safer_attack_method method) { return method == SAFER_ATTACK_TYPO ? 4 : 2; }

/* A number below `bound`, of one spelling of one word. */
static uint32_t choose(const sf_spelling *s, const sf_spelled *place, uint32_t number, uint32_t bound)
{
    const uint64_t sample = (uint64_t)place->begin << 8 | (uint64_t)s->method << 4 | place->choice;
    return sf_draw_below(s->stream, sample, number, bound);
}

/* The characters that look like plain letters, the first of each. */
static void find_lookalikes(sf_spelling *s)
{
    if (s->alike_count['a']) return;
    for (unsigned char c = 0; c < 128; c++)
        while (s->alike_count[c] < SF_ALIKE &&
               (s->alike[c][s->alike_count[c]] = sf_fold_lookalike(c, s->alike_count[c])))
            s->alike_count[c]++;
}

static int has_lookalike(const sf_spelling *s, char letter)
{
    return (unsigned char)letter < 128 && s->alike_count[(unsigned char)letter];
}

/* The character that is to look like a plain letter; 0: there is none. */
static uint32_t lookalike(const sf_spelling *s, const sf_spelled *place, uint32_t number, char letter)
{
    if (!has_lookalike(s, letter)) return 0;
    const unsigned char plain = (unsigned char)letter;
    return s->alike[plain][choose(s, place, number, s->alike_count[plain])];
}

static int add_code(sf_buffer *out, uint32_t code)
{
    char bytes[4];
    return sf_buffer_add(out, bytes, sf_utf8_encode(code, bytes));
}

/* Letters that can be exchanged, all or, for spelling 1, one of them. */
static int write_homoglyphs(sf_buffer *out, const sf_spelling *s, const sf_spelled *place)
{
    const char *word = s->given.bytes + place->begin;
    const size_t length = place->end - place->begin;
    uint32_t able = 0, seen = 0;
    for (size_t i = 0; i < length; i++) able += (uint32_t)has_lookalike(s, word[i]);
    const uint32_t only = able && place->choice == 1 ? choose(s, place, UINT32_MAX, able) : UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        const uint32_t other = lookalike(s, place, (uint32_t)i, word[i]);
        const int exchanged = other && (only == UINT32_MAX || seen == only);
        seen += other != 0;
        if (exchanged ? add_code(out, other) : sf_buffer_add_byte(out, word[i])) return -1;
    }
    return 0;
}

/* One letter of a word at p, whatever it is. */
static size_t letter_at(const char *p, const char *end)
{
    uint32_t code;
    const size_t step = sf_utf8_decode(p, end, &code);
    return step ? step : 1;
}

static uint32_t count_letters(const char *p, const char *end)
{
    uint32_t count = 0;
    for (; p < end; p += letter_at(p, end)) count++;
    return count;
}

static int write_unseen(sf_buffer *out, const sf_spelling *s, const sf_spelled *place)
{
    static const uint32_t unseen[] = {0x200b, 0x200c, 0x200d, 0x2060, 0xfeff, 0xad};
    const char *p = s->given.bytes + place->begin, *end = s->given.bytes + place->end;
    const uint32_t letters = count_letters(p, end), gaps = letters - 1;
    const uint32_t only = place->choice == 1 ? choose(s, place, UINT32_MAX, gaps) : UINT32_MAX;
    for (uint32_t i = 0; i < letters; i++) {
        const size_t step = letter_at(p, end);
        if (sf_buffer_add(out, p, step)) return -1;
        p += step;
        if (i < gaps && (only == UINT32_MAX || only == i) &&
            add_code(out, unseen[choose(s, place, i, sizeof unseen / sizeof *unseen)]))
            return -1;
    }
    return 0;
}

/* A key beside that of a small letter. */
static char beside(const sf_spelling *s, const sf_spelled *place, char letter)
{
    static const char *const rows[] = {"qwertyuiop", "asdfghjkl", "zxcvbnm"};
    for (size_t r = 0; r < 3; r++) {
        const char *at = letter ? strchr(rows[r], letter) : NULL;
        if (!at) continue;
        const size_t column = (size_t)(at - rows[r]), last = strlen(rows[r]) - 1;
        if (column == 0) return rows[r][1];
        return column == last || choose(s, place, 1, 2) ? rows[r][column - 1] : rows[r][column + 1];
    }
    return letter;
}

/* The word is plain letters, four and more. Its first and last stay. */
static int write_typo(sf_buffer *out, const sf_spelling *s, const sf_spelled *place)
{
    const char *word = s->given.bytes + place->begin;
    const size_t length = place->end - place->begin;
    const size_t at = 1 + choose(s, place, 0, (uint32_t)length - (place->choice == 1 ? 3 : 2));
    const char swapped[2] = {word[at + 1], word[at]}, doubled[2] = {word[at], word[at]},
               other = beside(s, place, word[at]);
    const sf_span parts[] = {{swapped, 2}, {NULL, 0}, {doubled, 2}, {&other, 1}};
    const int swaps = place->choice == 1 && word[at] != word[at + 1]; /* equal letters: one is left out */
    const sf_span part = parts[place->choice == 1 && !swaps ? 1 : place->choice - 1];
    const size_t rest = at + (swaps ? 2 : 1);
    return sf_buffer_add(out, word, at) || sf_buffer_add(out, part.bytes, part.length) ||
           sf_buffer_add(out, word + rest, length - rest);
}

int sf_spelling_write(sf_buffer *out, const sf_spelling *s, const sf_spelled *place)
{
    switch (s->method) {
    case SAFER_ATTACK_HOMOGLYPH: return write_homoglyphs(out, s, place);
    case SAFER_ATTACK_ZEROWIDTH: return write_unseen(out, s, place);
    default: return write_typo(out, s, place);
    }
}

/* Whether a word can be spelled otherwise at all. */
static int has_spellings(const sf_spelling *s, const char *word, size_t length)
{
    if (s->method == SAFER_ATTACK_ZEROWIDTH) return count_letters(word, word + length) >= 2;
    size_t plain = 0, alike = 0;
    for (size_t i = 0; i < length; i++) {
        plain += (unsigned)(unsigned char)(word[i] | 0x20) - 'a' < 26u;
        alike += (size_t)has_lookalike(s, word[i]);
    }
    return s->method == SAFER_ATTACK_TYPO ? plain == length && length >= 4 : alike > 0;
}

static int find_places(sf_spelling *s)
{
    sf_word word;
    int more;
    s->place_count = 0;
    find_lookalikes(s);
    sf_word_reader_start(&s->reader, s->given.bytes, s->given.length);
    for (size_t i = 0; (more = sf_word_reader_next(&s->reader, &word)) > 0; i++) {
        if (!has_spellings(s, s->given.bytes + word.begin, word.end - word.begin)) continue;
        if (sf_grow(&s->places, &s->place_capacity, s->place_count + 1, sizeof *s->places)) return -1;
        s->places[s->place_count++] = (sf_spelled){.word = i, .begin = word.begin, .end = word.end};
    }
    return more;
}

/* --------------------------------------------------------------------- asking */

static int compare_places(const void *left, const void *right)
{
    const sf_spelled *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Appends the text with these places, in any order, spelled otherwise. */
static int write_text(sf_buffer *out, const sf_spelling *s, const sf_spelled *places, size_t count)
{
    size_t at = 0;
    int failed = 0;
    sf_spelled *ordered = sf_alloc(count + 1, sizeof *ordered);
    if (!ordered) return -1;
    if (count) {
        memcpy(ordered, places, count * sizeof *ordered);
        qsort(ordered, count, sizeof *ordered, compare_places);
    }
    for (size_t i = 0; i < count && !failed; i++) {
        failed = sf_buffer_add(out, s->given.bytes + at, ordered[i].begin - at) ||
                 sf_spelling_write(out, s, &ordered[i]);
        at = ordered[i].end;
    }
    free(ordered);
    return failed || sf_buffer_add(out, s->given.bytes + at, s->given.length - at);
}

/* The victim reads another text; what it counts goes on. */
static safer_status read_text(sf_spelling *s, const sf_buffer *text, int target, safer_error *error)
{
    sf_victim *v = s->victim;
    safer_status status = sf_victim_read(v, text->bytes ? text->bytes : "", text->length, error);
    if (status != SAFER_OK) return status;
    if (sf_grow(&s->own, &s->own_capacity, v->slots.slot_count + 1, sizeof *s->own)) return sf_fail_memory(error);
    memset(s->own, 0, (v->slots.slot_count + 1) * sizeof *s->own);
    v->options.max_queries = s->max_queries > s->queries ? s->max_queries - s->queries : 0;
    v->target = target;
    return SAFER_OK;
}

/* What the smoothed classifier says of one text. */
static safer_status ask_one(sf_answer *answer, sf_spelling *s, const sf_buffer *text, int target, safer_error *error)
{
    size_t answered = 0;
    if (s->max_queries && s->queries >= s->max_queries) {
        s->stopped = 1;
        return SAFER_OK;
    }
    safer_status status = read_text(s, text, target, error);
    if (status == SAFER_OK) status = sf_victim_ask(answer, &answered, s->victim, s->own, 1, error);
    s->queries += s->victim->queries;
    s->stopped |= status == SAFER_OK && !answered;
    return status;
}

/* What the model itself says of texts, in one batch: of what the lexicon folds them to. */
static safer_status ask_model(sf_answer *answers, sf_spelling *s, size_t count, int target, safer_error *error)
{
    sf_victim *v = s->victim;
    const sf_fold *fold = sf_lexicon_fold(v->lexicon);
    const size_t classes = v->model->classes;
    for (size_t i = 0; i < count; i++) {
        sf_buffer *text = &v->texts[i];
        if (fold) {
            if (sf_folder_apply(&s->folder, fold, text->bytes, text->length)) return sf_fail_memory(error);
            sf_buffer_clear(text);
            if (sf_buffer_add(text, s->folder.text.bytes, s->folder.text.length)) return sf_fail_memory(error);
        }
        v->spans[i] = (sf_span){text->bytes ? text->bytes : "", text->length};
    }
    memset(v->scores, 0, count * classes * sizeof *v->scores);
    safer_status status = sf_model_classify(v->model, v->spans, count, v->labels, v->scores, v->scratch, error);
    for (size_t i = 0; i < count * classes && status == SAFER_OK; i++)
        if (!isfinite(v->scores[i])) v->scores[i] = 0; /* logits that overflow leave no probability */
    for (size_t i = 0; i < count && status == SAFER_OK; i++)
        answers[i] = sf_victim_answer(v->labels[i], v->scores + i * classes, classes, target);
    s->queries += count;
    return status;
}

/* --------------------------------------------------------------------- search */

/* Whether the target really does not win on a text. Then it is won. */
static safer_status test(sf_spelling *s, const sf_answer *answer, const sf_spelled *places, size_t count, int target,
                         safer_error *error)
{
    safer_status status = SAFER_OK;
    sf_buffer_clear(&s->text);
    if (write_text(&s->text, s, places, count)) return sf_fail_memory(error);
    if (!s->victim->options.smoothed || (answer->exact && !s->within)) {
        s->finding = (sf_finding){.beaten = 1, .exact = 1};
    } else {
        const double k = ++s->tests;
        if (s->tests > TESTS) return SAFER_OK;
        s->victim->checks = 0;
        SF_TRY(read_text(s, &s->text, target, error));
        SF_TRY(sf_victim_confirm(&s->finding, s->victim, s->own, answer->rival, s->level / (k * (k + 1)), s->looks,
                                 error));
        s->checks += s->victim->checks;
    }
    s->won = s->finding.beaten;
    if (!s->won) goto done;
    s->changed = count;
    if (places != s->places) s->places[0] = places[0]; /* one alone */
    s->best_answer = *answer;
    s->has_best = 1;
done:
    return status;
}

/* Tests a text on which the answer is wrong. */
static safer_status harvest(sf_spelling *s, const sf_answer *answer, const sf_spelled *places, size_t count, int target,
                            safer_error *error)
{
    if (answer->label < 0 || answer->label == target) return SAFER_OK;
    s->flips++;
    return test(s, answer, places, count, target, error);
}

/* A text to ask about: with the first `count` of these places spelled otherwise. */
typedef struct question {
    const sf_spelled *places;
    size_t count;
} question;

/* What to do about the text of a question. */
typedef enum errand { NO_MEMORY, KNOWN, NOT_COVERED, TO_ASK } errand;

/* Writes it. It is known where it folds as the text does, to a model that answers equal texts equally: nothing is asked
 * twice. A cross-check asks nevertheless. */
static errand write_question(sf_buffer *out, sf_spelling *s, const question *q)
{
    const sf_fold *fold = sf_lexicon_fold(s->victim->lexicon);
    sf_buffer_clear(out);
    if (write_text(out, s, q->places, q->count)) return NO_MEMORY;
    if (!fold) return s->within ? NOT_COVERED : TO_ASK;
    if (sf_folder_apply(&s->folder, fold, out->bytes, out->length)) return NO_MEMORY;
    const int same = s->folder.text.length == s->folded.length &&
                     memcmp(s->folder.text.bytes, s->folded.bytes, s->folded.length) == 0;
    if (s->within) return same ? TO_ASK : NOT_COVERED;
    return same && !sf_model_is_random(s->victim->model) ? KNOWN : TO_ASK;
}

/* The smoothed classifier's answers, one text after the other. */
static safer_status ask_votes(sf_answer *answers, size_t *answered, sf_spelling *s, const question *questions,
                              size_t count, int target, safer_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const errand what = write_question(&s->text, s, &questions[i]);
        answers[i] = what == KNOWN ? s->start : (sf_answer){.label = -1, .rival = -1, .score = 1, .margin = 1};
        if (what == NO_MEMORY) return sf_fail_memory(error);
        safer_status status = what == TO_ASK ? ask_one(&answers[i], s, &s->text, target, error) : SAFER_OK;
        if (status != SAFER_OK || s->stopped) return status;
        *answered = i + 1;
    }
    return SAFER_OK;
}

/* *answered: how many of the answers, at most GROUP, came back. Batches change nothing. */
static safer_status ask(sf_answer *answers, size_t *answered, sf_spelling *s, const question *questions, size_t count,
                        int target, safer_error *error)
{
    sf_victim *v = s->victim;
    size_t waiting = 0, places[GROUP];
    sf_answer got[GROUP];
    *answered = 0;
    if (v->options.smoothed) return ask_votes(answers, answered, s, questions, count, target, error);
    for (size_t i = 0; i < count && !s->stopped; i++) {
        const errand what = write_question(&v->texts[waiting], s, &questions[i]);
        if (what == NO_MEMORY) return sf_fail_memory(error);
        answers[i] = what == KNOWN ? s->start : (sf_answer){.label = -1, .rival = -1, .score = 1, .margin = 1};
        s->stopped = what == TO_ASK && s->max_queries && s->queries + waiting >= s->max_queries;
        if (what == TO_ASK && !s->stopped) places[waiting++] = i;
        if (!s->stopped) *answered = i + 1;
        if (!waiting || (waiting < v->options.batch && i + 1 < count && !s->stopped)) continue;
        safer_status status = ask_model(got, s, waiting, target, error);
        if (status != SAFER_OK) return status;
        for (size_t k = 0; k < waiting; k++) answers[places[k]] = got[k];
        waiting = 0;
    }
    return SAFER_OK;
}

static void keep_best(sf_spelling *s, const sf_answer *answer)
{
    if (answer->rival < 0 || (s->has_best && !(answer->margin < s->best_answer.margin))) return;
    s->best_answer = *answer;
    s->has_best = 1;
}

/* Every spelling of every word, alone. */
static safer_status rank_places(sf_spelling *s, int target, safer_error *error)
{
    const unsigned kinds = spellings_of(s->method);
    const size_t all = s->place_count * kinds;
    sf_spelled tried[GROUP];
    question questions[GROUP];
    sf_answer answers[GROUP];
    for (size_t first = 0; first < all && !s->won && !s->stopped; first += GROUP) {
        const size_t count = all - first < GROUP ? all - first : GROUP;
        size_t answered = 0;
        for (size_t i = 0; i < count; i++) {
            tried[i] = s->places[(first + i) / kinds];
            tried[i].choice = (unsigned)((first + i) % kinds) + 1;
            questions[i] = (question){&tried[i], 1};
        }
        safer_status status = ask(answers, &answered, s, questions, count, target, error);
        for (size_t i = 0; i < answered && status == SAFER_OK && !s->won; i++) {
            sf_spelled *place = &s->places[(first + i) / kinds];
            const double loss = s->start.score - answers[i].score;
            keep_best(s, &answers[i]);
            if (!place->choice || loss > place->loss) {
                place->choice = tried[i].choice;
                place->loss = loss;
            }
            status = harvest(s, &answers[i], &tried[i], 1, target, error);
        }
        if (status != SAFER_OK) return status;
    }
    return SAFER_OK;
}

static int compare_losses(const void *left, const void *right)
{
    const sf_spelled *a = left, *b = right;
    if (a->loss != b->loss) return a->loss < b->loss ? 1 : -1;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* The first two words of the ranking, the first three, and so on. */
static safer_status add_places(sf_spelling *s, int target, safer_error *error)
{
    const size_t most = s->place_count < s->radius ? s->place_count : s->radius;
    question questions[GROUP];
    sf_answer answers[GROUP];
    if (s->place_count) qsort(s->places, s->place_count, sizeof *s->places, compare_losses);
    for (size_t first = 2; first <= most && !s->won && !s->stopped; first += GROUP) {
        const size_t count = most - first + 1 < GROUP ? most - first + 1 : GROUP;
        size_t answered = 0;
        for (size_t i = 0; i < count; i++) questions[i] = (question){s->places, first + i};
        safer_status status = ask(answers, &answered, s, questions, count, target, error);
        for (size_t i = 0; i < answered && status == SAFER_OK && !s->won; i++) {
            keep_best(s, &answers[i]);
            status = harvest(s, &answers[i], s->places, first + i, target, error);
        }
        if (status != SAFER_OK) return status;
    }
    return SAFER_OK;
}

/* What a certificate covers is one text to the classifier, if all is well: ranking would show nothing. Every word is
 * spelled otherwise, in each way, and tested whatever the votes are. */
static safer_status try_all_places(sf_spelling *s, int target, safer_error *error)
{
    safer_status status = SAFER_OK;
    for (unsigned kind = 1; kind <= spellings_of(s->method) && s->place_count && !s->won && !s->stopped; kind++) {
        const question all = {s->places, s->place_count};
        sf_answer answer;
        size_t answered = 0;
        for (size_t i = 0; i < s->place_count; i++) s->places[i].choice = kind;
        SF_TRY(ask(&answer, &answered, s, &all, 1, target, error));
        if (!answered || answer.rival < 0) continue; /* not covered */
        keep_best(s, &answer);
        if (s->victim->options.smoothed)
            SF_TRY(test(s, &answer, s->places, s->place_count, target, error));
        else
            SF_TRY(harvest(s, &answer, s->places, s->place_count, target, error));
    }
done:
    return status;
}

void sf_spelling_free(sf_spelling *s)
{
    sf_buffer_free(&s->text);
    sf_buffer_free(&s->folded);
    sf_word_reader_free(&s->reader);
    sf_folder_free(&s->folder);
    free(s->places);
    free(s->own);
    *s = (sf_spelling){0};
}

/* The text as it was given, and what is answered for it. */
static safer_status begin(sf_spelling *s, const char *text, size_t length, int target, safer_error *error)
{
    const sf_fold *fold = sf_lexicon_fold(s->victim->lexicon);
    s->given = (sf_span){text, length};
    s->stream = sf_stream_of(s->seed, sf_hash(text, length, 0), SF_STAGE_SEARCH);
    s->start = s->best_answer = (sf_answer){.label = -1, .rival = -1};
    s->won = s->stopped = s->has_best = 0;
    s->flips = s->changed = s->tests = 0;
    s->queries = s->checks = 0;
    s->finding = (sf_finding){.p_value = 1};
    sf_buffer_clear(&s->folded);
    sf_buffer_clear(&s->text);
    if (find_places(s) || sf_buffer_add(&s->text, text, length)) return sf_fail_memory(error);
    if (fold && (sf_folder_apply(&s->folder, fold, text, length) ||
                 sf_buffer_add(&s->folded, s->folder.text.bytes, s->folder.text.length)))
        return sf_fail_memory(error);
    safer_status status = ask_one(&s->start, s, &s->text, target, error);
    if (status == SAFER_OK && target < 0 && s->start.label >= 0) {
        s->victim->target = s->start.label;
        s->start = sf_victim_start(s->victim);
    }
    return status;
}

safer_status sf_spelling_attack(sf_spelling *s, const char *text, size_t length, int target, safer_error *error)
{
    safer_status status;
    const uint64_t limit = s->victim->options.max_queries;
    SF_TRY(begin(s, text, length, target, error));
    if (target < 0) target = s->start.label;
    if (s->within && !s->stopped) {
        SF_TRY(try_all_places(s, target, error));
        goto done;
    }
    if (s->stopped || target < 0 || s->start.label != target) goto done; /* nothing to attack */
    SF_TRY(rank_places(s, target, error));
    if (!s->won && !s->stopped) SF_TRY(add_places(s, target, error));
done:
    s->victim->options.max_queries = limit;
    return status;
}
