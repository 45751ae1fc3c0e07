/* English function words: the closed classes, whole, with their contractions. Left out is what has synonyms that a reader
 * takes for the same ("very", "often", "nearby") or is as often a word of content ("like", "past", "round"). */
#include "lexicon/function_words.h"

#include <string.h>

const char sf_function_words[] =
    /* articles, determiners, quantifiers */
    "a\nan\nthe\nthis\nthat\nthese\nthose\neach\nevery\neither\nneither\nboth\nall\nany\nsome\nno\nnone\nmany\nmuch\nmore\n"
    "most\nfew\nfewer\nless\nleast\nseveral\nenough\nsuch\nsame\nother\nothers\nanother\nwhat\nwhatever\nwhich\nwhichever\n"
    "whose\none\n"
    /* pronouns */
    "i\nme\nmy\nmine\nmyself\nwe\nus\nour\nours\nourselves\nyou\nyour\nyours\nyourself\nyourselves\nhe\nhim\nhis\nhimself\n"
    "she\nher\nhers\nherself\nit\nits\nitself\nthey\nthem\ntheir\ntheirs\nthemselves\nwho\nwhom\nwhoever\nwhomever\n"
    "someone\nsomebody\nsomething\nanyone\nanybody\nanything\neveryone\neverybody\neverything\nnobody\nnothing\noneself\n"
    "thou\nthee\nthy\nthine\nye\n"
    /* prepositions and particles */
    "aboard\nabout\nabove\nacross\nafter\nagainst\nalong\nalongside\namid\namidst\namong\namongst\naround\nas\nat\natop\n"
    "before\nbehind\nbelow\nbeneath\nbeside\nbesides\nbetween\nbeyond\nby\ndespite\ndown\nduring\nexcept\nfor\nfrom\nin\n"
    "inside\ninto\nnear\nof\noff\non\nonto\nout\noutside\nover\nper\nsince\nthan\nthrough\nthroughout\ntill\nto\ntoward\n"
    "towards\nunder\nunderneath\nuntil\nunto\nup\nupon\nversus\nvia\nwith\nwithin\nwithout\n"
    /* conjunctions, and adverbs that join or ask */
    "and\nbut\nor\nnor\nso\nyet\nif\nunless\nwhether\nwhile\nwhilst\nwhereas\nwhereby\nwherein\nwhereupon\nalthough\nthough\n"
    "because\nlest\nonce\nalbeit\nthen\nthus\nhence\ntherefore\nhowever\nwhen\nwhenever\nwhere\nwherever\nwhy\nhow\n"
    "there\nhere\nthereby\ntherein\nthereof\nhereby\nherein\n"
    /* negations, and words that turn what the next one says */
    "not\nnever\nnowhere\ncannot\nneednt\ntoo\nalso\nonly\njust\nelse\never\n"
    /* auxiliaries */
    "am\nis\nare\nwas\nwere\nbe\nbeen\nbeing\nhave\nhas\nhad\nhaving\ndo\ndoes\ndid\ndoing\ndone\nwill\nwould\nshall\n"
    "should\ncan\ncould\nmay\nmight\nmust\nought\n"
    /* contractions, also as they are written without the apostrophe where that is no other word */
    "aren't\nain't\ncan't\ncouldn't\ndaren't\ndidn't\ndoesn't\ndon't\nhadn't\nhasn't\nhaven't\nisn't\nmayn't\nmightn't\n"
    "mustn't\nneedn't\noughtn't\nshan't\nshouldn't\nwasn't\nweren't\nwon't\nwouldn't\n"
    "arent\naint\ncouldnt\ndidnt\ndoesnt\ndont\nhadnt\nhasnt\nhavent\nisnt\nmustnt\nshouldnt\nwasnt\nwerent\nwouldnt\n"
    "i'm\ni've\ni'd\ni'll\nyou're\nyou've\nyou'd\nyou'll\nhe's\nhe'd\nhe'll\nshe's\nshe'd\nshe'll\nit's\nit'd\nit'll\n"
    "we're\nwe've\nwe'd\nwe'll\nthey're\nthey've\nthey'd\nthey'll\nthat's\nthat'd\nthat'll\nthere's\nthere'd\nthere'll\n"
    "here's\nwhat's\nwhat'd\nwhat'll\nwhat're\nwho's\nwho'd\nwho'll\nwho've\nwhere's\nwhen's\nwhy's\nhow's\nhow'd\nlet's\n"
    "could've\nmight've\nmust've\nshould've\nwould've\ny'all\n";

int sf_is_function_word(const char *key, size_t length)
{
    for (const char *word = sf_function_words; *word;) {
        const size_t its = (size_t)(strchr(word, '\n') - word);
        if (its == length && memcmp(word, key, length) == 0) return 1;
        word += its + 1;
    }
    return 0;
}
