/* Answers of HTTP services: the first byte chooses profile, number of texts and labels, the rest
 * is what came back. Whatever is accepted is a class of every text, and says the same with
 * scores and without; whatever is not has a message. */
#include "fuzz.h"

#include "remote/http_profile.h"

#include <math.h>

static char *names[] = {"neg", "pos", "very pos"}, *numbers[] = {"0", "1", "-1"};
static const sf_labels labels[] = {{names, 3, 0}, {numbers, 3, 1}};

static const safer_remote_options profiles[] = {
    {.profile = SAFER_PROFILE_JSON},
    {.profile = SAFER_PROFILE_JSON, .request = "{{text}}"},
    {.profile = SAFER_PROFILE_JSON, .answer = "/a/0/b~1c"},
    {.profile = SAFER_PROFILE_KSERVE},
    {.profile = SAFER_PROFILE_KSERVE, .answer = "out"},
    {.profile = SAFER_PROFILE_TEI},
    {.profile = SAFER_PROFILE_OPENAI, .name = "m"},
    {.profile = SAFER_PROFILE_JSON, .request = "{{text}}", .answer = ""},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    sf_http_profile profile = {0};
    safer_error error = {0};
    int plain[4], scored[4], lost, lost_again;
    float scores[12];
    require(sf_http_profile_open(&profile, &labels[data[0] >> 3 & 1], &profiles[data[0] & 7], &error) == SAFER_OK);
    size_t count = profile.single ? 1 : 1 + (data[0] >> 4 & 3), length = size - 1;
    char *body = fuzz_copy(data + 1, length);
    safer_status status = sf_http_answer(plain, NULL, &lost, &profile, body, length, count, "fuzz", &error);
    require(status == SAFER_OK || (status == SAFER_INPUT && strncmp(error.message, "fuzz: ", 6) == 0));
    safer_status again = sf_http_answer(scored, scores, &lost_again, &profile, body, length, count, "fuzz", NULL);
    require(status == again && lost == lost_again && (!lost || status != SAFER_OK));
    for (size_t i = 0; status == SAFER_OK && i < count; i++) {
        require(plain[i] >= SF_NO_LABEL && plain[i] < 3 && scored[i] == plain[i]);
        for (size_t k = 0; k < 3; k++) require(!isnan(scores[3 * i + k]));
        for (size_t k = 0; plain[i] >= 0 && k < 3; k++) require(scores[3 * i + k] <= scores[3 * i + (size_t)plain[i]]);
    }
    require(!lost || !sf_http_declined(&profile, 400, body, length));
    int found = sf_http_label_in(&labels[data[0] >> 3 & 1], body, length);
    require(found >= SF_NO_LABEL && found < 3);
    free(body);
    sf_http_profile_free(&profile);
    return 0;
}
