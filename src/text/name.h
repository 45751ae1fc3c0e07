/* The name by which records call a file: no folders of this machine, and always a text. */
#ifndef SF_TEXT_NAME_H
#define SF_TEXT_NAME_H

/* The last part of a path, of ARCHIVE:MEMBER the last parts of both. What is not UTF-8, and control characters,
 * become U+FFFD. The caller frees it; NULL without memory. */
char *sf_path_name(const char *path);

#endif
