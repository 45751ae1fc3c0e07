/* English function words: the closed classes, whole, with their contractions. Left out is what has synonyms that a
 * reader takes for the same ("very", "often", "nearby") or is as often a word of content ("like", "past", "round"). */
#include "lexicon/function_words.h"

#include <string.h>

const char sf_function_words[] =
    /* articles, determiners, quantifiers */
    "a\nan\nthe\nthis\nthat\nthese\nthose\neach\nevery\neither\nneither\nboth\nall\nany\nsome\nno\nnone\nmany\n"
    "much\nmore\nmost\nfew\nfewer\nless\nleast\nseveral\nenough\nsuch\nsame\nother\nothers\nanother\nwhat\n"
    "whatever\nwhich\nwhichever\nwhose\none\n"
    /* pronouns */
    "i\nme\nmy\nmine\nmyself\nwe\nus\nour\nours\nourselves\nyou\nyour\nyours\nyourself\nyourselves\nhe\nhim\n"
    "his\nhimself\nshe\nher\nhers\nherself\nit\nits\nitself\nthey\nthem\ntheir\ntheirs\nthemselves\nwho\nwhom\n"
    "whoever\nwhomever\nsomeone\nsomebody\nsomething\nanyone\nanybody\nanything\neveryone\neverybody\n"
    "everything\nnobody\nnothing\noneself\nthou\nthee\nthy\nthine\nye\n"
    /* prepositions and particles */
    "aboard\nabout\nabove\nacross\nafter\nagainst\nalong\nalongside\namid\namidst\namong\namongst\naround\nas\n"
    "at\natop\nbefore\nbehind\nbelow\nbeneath\nbeside\nbesides\nbetween\nbeyond\nby\ndespite\ndown\nduring\n"
    "except\nfor\nfrom\nin\ninside\ninto\nnear\nof\noff\non\nonto\nout\noutside\nover\nper\nsince\nthan\n"
    "through\nthroughout\ntill\nto\ntoward\ntowards\nunder\nunderneath\nuntil\nunto\nup\nupon\nversus\nvia\n"
    "with\nwithin\nwithout\n"
    /* conjunctions, and adverbs that join or ask */
    "and\nbut\nor\nnor\nso\nyet\nif\nunless\nwhether\nwhile\nwhilst\nwhereas\nwhereby\nwherein\nwhereupon\n"
    "although\nthough\nbecause\nlest\nonce\nalbeit\nthen\nthus\nhence\ntherefore\nhowever\nwhen\nwhenever\n"
    "where\nwherever\nwhy\nhow\nthere\nhere\nthereby\ntherein\nthereof\nhereby\nherein\n"
    /* negations, and words that turn what the next one says */
    "not\nnever\nnowhere\ncannot\nneednt\ntoo\nalso\nonly\njust\nelse\never\n"
    /* auxiliaries */
    "am\nis\nare\nwas\nwere\nbe\nbeen\nbeing\nhave\nhas\nhad\nhaving\ndo\ndoes\ndid\ndoing\ndone\nwill\nwould\n"
    "shall\nshould\ncan\ncould\nmay\nmight\nmust\nought\n"
    /* contractions, also as they are written without the apostrophe where that is no other word */
    "aren't\nain't\ncan't\ncouldn't\ndaren't\ndidn't\ndoesn't\ndon't\nhadn't\nhasn't\nhaven't\nisn't\nmayn't\n"
    "mightn't\nmustn't\nneedn't\noughtn't\nshan't\nshouldn't\nwasn't\nweren't\nwon't\nwouldn't\narent\naint\n"
    "couldnt\ndidnt\ndoesnt\ndont\nhadnt\nhasnt\nhavent\nisnt\nmustnt\nshouldnt\nwasnt\nwerent\nwouldnt\ni'm\n"
    "i've\ni'd\ni'll\nyou're\nyou've\nyou'd\nyou'll\nhe's\nhe'd\nhe'll\nshe's\nshe'd\nshe'll\nit's\nit'd\n"
    "it'll\nwe're\nwe've\nwe'd\nwe'll\nthey're\nthey've\nthey'd\nthey'll\nthat's\nthat'd\nthat'll\nthere's\n"
    "there'd\nthere'll\nhere's\nwhat's\nwhat'd\nwhat'll\nwhat're\nwho's\nwho'd\nwho'll\nwho've\nwhere's\n"
    "when's\nwhy's\nhow's\nhow'd\nlet's\ncould've\nmight've\nmust've\nshould've\nwould've\ny'all\n";

int sf_is_function_word(const char *key, size_t length)
{
    for (const char *word = sf_function_words; *word;) {
        const size_t its = (size_t)(strchr(word, '\n') - word);
        if (its == length && memcmp(word, key, length) == 0) return 1;
        word += its + 1;
    }
    return 0;
}
