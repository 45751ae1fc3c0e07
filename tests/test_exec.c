/* Programs as models: what must work, and answers that are wrong. Children that die or hang are in
 * test_exec_children.c, what all remote models share in test_remote.c. */
#define _GNU_SOURCE
#include "test_exec.h"

/* ------------------------------------------------------------- what must work */

static void test_answers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "a", "ab", "\xc3\xa4", "quote \" backslash \\ slash /", "tab \t newline \n return \r bell \a del \x7f"};
    sf_transport t = open_one(honest());
    int out[6];
    assert_string_equal(t.arch, "exec");
    assert_int_equal(t.batch, 64);
    assert_true(t.concurrency >= 1);
    assert_ok(ask_strings(&t, texts, 6, out));
    for (int i = 0; i < 6; i++) assert_int_equal(out[i], strlen(texts[i]) % 3);
    safer_traffic traffic = traffic_of(&t);
    assert_int_equal(traffic.requests, 1);
    assert_int_equal(traffic.retries, 0);
    assert_int_equal(traffic.restarts, 0);
    t.free(t.self);
}

/* Every byte and every length around the block of the escaping loop comes through as it is:
 * the child sends back a checksum that depends on order. */
static void test_escapes(void **state)
{
    (void)state;
    sf_transport t = open_one(
        python("def check(text):\n"
               "    sum = 0\n"
               "    for byte in text.encode(): sum = (sum * 31 + byte + 1) % 1000003\n"
               "    return sum % 3\n"
               "for line in sys.stdin:\n"
               "    request = json.loads(line)\n"
               "    say({'id': request['id'], 'labels': [check(t) for t in request['texts']]})\n"));
    enum { COUNT = 64 };
    char bytes[COUNT][200];
    sf_span spans[COUNT];
    int out[COUNT];
    unsigned random = 1;
    for (int round = 0; round < 40; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            size_t length = (size_t)(round * 2) + i;
            for (size_t k = 0; k < length; k++) {
                random = random * 1103515245u + 12345u;
                unsigned draw = random >> 16;
                bytes[i][k] = draw % 32 == 0   ? '"'
                              : draw % 32 == 1 ? '\\'
                                               : (char)(draw % 32 < 4 ? (draw >> 5) % 32 : 32 + (draw >> 5) % 96);
            }
            spans[i] = (sf_span){bytes[i], length};
        }
        assert_ok(t.ask(t.self, spans, COUNT, out, NULL, &error));
        for (size_t i = 0; i < COUNT; i++) {
            long sum = 0;
            for (size_t k = 0; k < spans[i].length; k++) sum = (sum * 31 + (unsigned char)bytes[i][k] + 1) % 1000003;
            assert_int_equal(out[i], sum % 3);
        }
    }
    t.free(t.self);
}

static void test_kinds_of_answers(void **state)
{
    (void)state;
    static const char *const texts[] = {"one", "two"};
    int out[2];
    float scores[6];
    sf_span spans[] = {{"one", 3}, {"two", 3}};

    sf_transport t = open_one("read x; echo '{\"id\":0, \"labels\":[\"pos\",null]}'; cat >/dev/null");
    assert_ok(ask_strings(&t, texts, 2, out));
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], SF_NO_LABEL);
    t.free(t.self);

    t = open_one("read x; echo '{\"scores\":[[0.5,0.25,0.5],[-1,2e0,1]], \"id\":0, \"more\":{}}'; cat >/dev/null");
    assert_ok(t.ask(t.self, spans, 2, out, scores, &error));
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], 1);
    assert_true(scores[1] == 0.25f && scores[4] == 2.0f);
    t.free(t.self);

    t = open_one("read x; echo '{\"id\":0,\"error\":null,\"labels\":[2,0]}'; cat >/dev/null");
    assert_ok(t.ask(t.self, spans, 2, out, scores, &error));
    assert_int_equal(out[0], 2);
    assert_true(scores[0] == 0 && scores[2] == 1 && scores[3] == 1);
    t.free(t.self);

    t = open_one("read x; echo '{\"id\":0,\"labels\":[2,0],\"scores\":[[1,0,1],[1,0,0]]}'; cat >/dev/null");
    assert_ok(t.ask(t.self, spans, 2, out, scores, &error));
    assert_int_equal(out[0], 2); /* of equal scores the label's */
    assert_true(scores[0] == 1 && scores[2] == 1);
    t.free(t.self);
}

/* Requests of many threads in flight at once, answered in any order. */
static void test_mixed_order(void **state)
{
    (void)state;
    sf_transport t = open_with(python("import select\n"
                                      "random.seed(1)\n"
                                      "held, rest = [], b''\n"
                                      "while True:\n"
                                      "    if select.select([0], [], [], 0.002)[0]:\n"
                                      "        new = os.read(0, 1 << 20)\n"
                                      "        if not new: break\n"
                                      "        *lines, rest = (rest + new).split(b'\\n')\n"
                                      "        held += [answer(json.loads(line)) for line in lines]\n"
                                      "        if len(held) < 5: continue\n"
                                      "    random.shuffle(held)\n"
                                      "    while held: say(held.pop())\n"),
                               defaults());
    crowd c = {.transport = &t, .each = 60, .batch = 5};
    pthread_t threads[CROWD];
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    check_crowd(&c);
    assert_int_equal(traffic_of(&t).requests, CROWD * c.each);
    assert_int_equal(traffic_of(&t).retries, 0);
    t.free(t.self);
}

/* A line far longer than any pipe, both ways, while others ask. */
static void test_huge_texts(void **state)
{
    (void)state;
    enum { LENGTH = 10 << 20 };
    sf_transport t = open_with(python("for line in sys.stdin:\n"
                                      "    reply = answer(json.loads(line))\n"
                                      "    reply['padding'] = 'x' * 500000\n"
                                      "    say(reply)\n"),
                               defaults());
    crowd c = {.transport = &t, .each = 20, .batch = 2};
    pthread_t threads[CROWD];
    char *text = sf_alloc(LENGTH, 1);
    int out[2];
    memset(text, 'x', LENGTH);
    for (size_t i = 0; i < LENGTH; i += 1000) text[i] = (char)(i / 1000 % 32);
    sf_span spans[] = {{text, LENGTH}, {text, LENGTH - 1}};
    crowd_start(&c, threads);
    for (int i = 0; i < 2; i++) {
        assert_ok(t.ask(t.self, spans, 2, out, NULL, &error));
        assert_int_equal(out[0], LENGTH % 3);
        assert_int_equal(out[1], (LENGTH - 1) % 3);
    }
    crowd_end(&c, threads);
    check_crowd(&c);
    free(text);
    t.free(t.self);
}

/* The child writes all it likes before it reads on; neither side waits for the other. */
static void test_talks_before_reading(void **state)
{
    (void)state;
    sf_transport t = open_one(python("for line in sys.stdin:\n"
                                     "    sys.stderr.write('e' * 300000); sys.stderr.flush()\n"
                                     "    reply = answer(json.loads(line))\n"
                                     "    reply['padding'] = 'x' * 300000\n"
                                     "    say(reply)\n"));
    crowd c = {.transport = &t, .each = 4, .batch = 3};
    pthread_t threads[CROWD];
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    check_crowd(&c);
    t.free(t.self);
}

/* Workers are started only when there is work for them, and share it. */
static void test_workers(void **state)
{
    (void)state;
    const char *log = temporary("started");
    char command[800];
    FILE *file = fopen(log, "w");
    fclose(file);
    snprintf(command, sizeof command, "echo x >>%s; %s", log, honest());
    safer_remote_options options = defaults();
    options.workers = 4;
    sf_transport t = open_with(command, options);
    for (int i = 0; i < 3; i++) assert_ok(ask_one(&t, "text"));
    file = fopen(log, "r");
    int count = 0;
    for (int ch; (ch = fgetc(file)) != EOF;) count += ch == 'x';
    fclose(file);
    assert_int_equal(count, 1);
    crowd c = {.transport = &t, .each = 10, .batch = 1};
    pthread_t threads[CROWD];
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    check_crowd(&c);
    file = fopen(log, "r");
    for (count = 0; fgetc(file) != EOF;) count++;
    fclose(file);
    assert_int_equal(count, 4 * 2);
    t.free(t.self);
}

/* ------------------------------------------------------------- wrong answers */

/* Each is final: the child is not asked again. */
static void test_wrong_answers(void **state)
{
    (void)state;
    static const struct {
        const char *reply, *words;
    } cases[] = {
        {"hello", "exec: the command wrote what is not JSON"},
        {"Loading the model...", "standard output is for answers alone: Loading the model..."},
        {"", "not JSON"},
        {"{\"id\":0,\"labels\":[1,2]", "not JSON"},
        {"{\"id\":0,\"labels\":[1,2]} x", "not JSON"},
        {"{\"id\":0,\"labels\":[1,2],\"id\":0}", "not JSON"},
        {"{\"id\":0,\"labels\":[1,\"\xff\"]}", "not JSON"},
        {"[1,2]", "must be an object"},
        {"{\"id\":1,\"labels\":[1,2]}", "request 1, which is not open"},
        {"{\"id\":-1,\"labels\":[1,2]}", "request -1, which is not open"},
        {"{\"id\":\"0\",\"labels\":[1,2]}", "request \"0\", which is not open"},
        {"{\"labels\":[1,2]}", "request (no \"id\"), which is not open"},
        {"{\"id\":0,\"labels\":[1]}", "exec: labels: 1, texts: 2"},
        {"{\"id\":0,\"labels\":[1,2,0]}", "exec: labels: 3, texts: 2"},
        {"{\"id\":0,\"labels\":\"pos\"}", "no list"},
        {"{\"id\":0,\"labels\":[1,3]}", "3 is not one of the labels"},
        {"{\"id\":0,\"labels\":[1,\"posh\"]}", "\"posh\" is not one of the labels (neg, pos, other)"},
        {"{\"id\":0,\"labels\":[1,1.5]}", "1.5 is not one of the labels"},
        {"{\"id\":0,\"labels\":[1,true]}", "true is not one of the labels"},
        {"{\"id\":0,\"scores\":[[1,2,3]]}", "texts: 2"},
        {"{\"id\":0,\"scores\":[[1,2,3],[1,2]]}", "must be a list of 3 numbers"},
        {"{\"id\":0,\"scores\":[[1,2,3],[1,2,\"3\"]]}", "no finite number"},
        {"{\"id\":0,\"scores\":[[1,2,3],[1,2,NaN]]}", "NaN and Infinity are no scores"},
        {"{\"id\":0,\"scores\":[[1,2,3],[1,2,-Infinity]]}", "NaN and Infinity are no scores"},
        {"{\"id\":0,\"scores\":[[1,2,3],[1,2,1e999]]}", "not JSON"},
        {"{\"id\":0,\"labels\":[2,0],\"scores\":[[1,0,3],[1,2,0]]}", "contradict each other: neg and pos"},
        {"{\"id\":0,\"labels\":[2,null],\"scores\":[[1,0,3],[1,2,0]]}", "contradict each other: no label and pos"},
        {"{\"id\":0,\"labels\":[2,0],\"scores\":[[1,0,3],null]}", "contradict each other: neg and no scores"},
        {"{\"id\":0}", "neither \"labels\" nor \"scores\""},
        {"{\"id\":0,\"error\":\"no such model\"}", "exec: the command says: no such model"},
        {"{\"error\":{\"code\":5}}", "exec: the command says: {\"code\": 5}"},
    };
    static const char *const texts[] = {"one", "two"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[1000];
        const char *log = temporary("asked"), *reply = write_temporary("reply", cases[i].reply, strlen(cases[i].reply));
        int out[2];
        snprintf(command, sizeof command, "read -r x; echo x >>%s; cat %s; echo; cat >/dev/null", log, reply);
        unlink(log);
        sf_transport t = open_one(command);
        assert_fails(ask_strings(&t, texts, 2, out), SAFER_INPUT, cases[i].words);
        assert_fails(ask_strings(&t, texts, 2, out), SAFER_INPUT, cases[i].words);
        t.free(t.self);
        FILE *file = fopen(log, "r");
        char tries[8] = "";
        assert_true(fread(tries, 1, sizeof tries - 1, file) > 0);
        fclose(file);
        assert_string_equal(tries, "x\n");
    }
}

static void test_answers_twice(void **state)
{
    (void)state;
    sf_transport t = open_one(python("for line in sys.stdin:\n    for i in range(2): say(answer(json.loads(line)))\n"));
    ask_one(&t, "text"); /* the second answer may come at once, or while it rests */
    usleep(100000);
    assert_fails(ask_one(&t, "text"), SAFER_INPUT, "request 0, which is not open");
    t.free(t.self);
}

static void test_endless_line(void **state)
{
    (void)state;
    sf_transport t = open_one("exec tr '\\0' a </dev/zero");
    assert_fails(ask_one(&t, "text"), SAFER_INPUT, "longer than 64 MB");
    t.free(t.self);
}

/* When one request fails for good, all threads hear of it at once. */
static void test_failure_reaches_all(void **state)
{
    (void)state;
    sf_transport t = open_with(python("for line in sys.stdin:\n"
                                      "    if json.loads(line)['id'] == 3: say({'id': 3, 'labels': ['unheard-of']})\n"),
                               defaults());
    crowd c = {.transport = &t, .each = 1, .batch = 1};
    pthread_t threads[CROWD];
    double start = sf_seconds();
    crowd_start(&c, threads);
    crowd_end(&c, threads);
    assert_true(sf_seconds() - start < 10);
    assert_int_equal(atomic_load(&c.failed), CROWD);
    assert_non_null(strstr(c.error.message, "\"unheard-of\" is not one of the labels"));
    start = sf_seconds();
    t.free(t.self);
    assert_true(sf_seconds() - start < 5);
}

static safer_status open_and_ask(void *context, safer_error *e)
{
    safer_remote_options options = {.workers = 2, .timeout = 30};
    sf_transport t;
    sf_span texts[] = {{"one\n", 4}, {"text", 4}};
    int out[2];
    safer_status status = sf_exec_open(&t, context, &labels, &options, e);
    if (status != SAFER_OK) return status;
    status = t.ask(t.self, texts, 2, out, NULL, e);
    t.free(t.self);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    check_every_allocation(open_and_ask, (char[]){"read -r x; echo '{\"id\":0,\"labels\":[0,1]}'; cat >/dev/null"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_answers),
        TEST(test_escapes),
        TEST(test_kinds_of_answers),
        TEST(test_mixed_order),
        TEST(test_huge_texts),
        TEST(test_talks_before_reading),
        TEST(test_workers),
        TEST(test_wrong_answers),
        TEST(test_answers_twice),
        TEST(test_endless_line),
        TEST(test_failure_reaches_all),
        TEST(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
