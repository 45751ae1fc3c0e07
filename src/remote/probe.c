/* The probe set. A text that is changed here is another probe set: runs of before can no longer be compared. */
#include "remote/probe.h"

#include <string.h>

const char *const sf_probe_texts[SF_PROBE_TEXTS] = {
    "A wonderful film with a clever story.",
    "A dull film; I left before the end.",
    "The plot is thin, but the actors are a joy to watch.",
    "Not bad at all.",
    "I would not say that it was good.",
    "The train to the coast leaves at ten past nine.",
    "Our profits rose by four percent in the last quarter.",
    "The home team lost the final after extra time.",
    "Scientists found water under the surface of a distant moon.",
    "You are stupid and nobody likes you.",
    "Thank you so much for your kind help!",
    "WIN a FREE phone now!!! Click the link below.",
    "Please find attached the minutes of our meeting on Monday.",
    "How do I reset my password?",
    "My parcel has not arrived, and nobody answers the phone.",
    "The battery lasts two days and charges quickly.",
    "The screen broke after a week; I want my money back.",
    "Das Essen war ausgezeichnet, und wir kommen gern wieder.",
    "Leider war das Zimmer laut und das Bad nicht sauber.",
    "Le service est lent, mais la cuisine est très bonne.",
    "La película es larga y aburrida.",
    "12345 67890",
    "3.14159 = 22/7 ?",
    "... --- ...",
    "!",
    "ok",
    "GREAT GREAT GREAT",
    "good bad good bad good bad good",
    "She said \"never again\" and smiled.",
    "It is neither the best nor the worst that I have seen, and I cannot tell why I liked it.",
    "The doctor said that the new drug helps most patients, though some of them sleep badly.",
    "We had waited a year for this concert. The hall was cold, the sound was poor and the band came an hour late; "
    "but when the first song began, all of that was forgotten. They played for two hours without a break, old songs "
    "and new ones, and the whole crowd sang along. On the way home my daughter said that it had been the best evening "
    "of her life. I do not know whether I would pay so much again, but I am glad that we went.",
};

safer_status sf_probe_digest(sf_digest *out, const sf_labels *labels, const int answers[SF_PROBE_TEXTS],
                             safer_error *error)
{
    sf_sha256_sum sum = {0};
    for (size_t i = 0; i < SF_PROBE_TEXTS; i++) {
        const char *name = answers[i] >= 0 ? labels->names[answers[i]] : "";
        sf_sha256_netstring(&sum, name, strlen(name));
    }
    return sf_sha256_end(out, &sum, error);
}
