/* The parts of the SDK that the verbs need, on the host itself. */
#ifndef LIND_GRATE_H
#define LIND_GRATE_H

void lind_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
void lind_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
int lind_open_file(const char *value, const char *ending, int flags, unsigned mode);
const char *lind_file_name(const char *value);
const char *lind_path_inside(const char *value);

#endif
