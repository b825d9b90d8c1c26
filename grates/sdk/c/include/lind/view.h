/*
 * A grate whose clients see another tree of files (lind_view in lind/paths.h): a root of its own,
 * directories in other places, names that are not there. This handles every call with a path, and
 * those whose answers have paths in them.
 *
 *	LIND_VIEW_CALLS
 *
 *	int main(int argc, char **argv)
 *	{
 *		struct lind_view *view = lind_view_new("/srv/jail");
 *
 *		lind_view_use(view);
 *		return lind_grate_main(argc, argv);
 *	}
 */
#ifndef LIND_VIEW_H
#define LIND_VIEW_H

#include <lind/paths.h>
#include <lind/grate.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Before lind_grate_main. The grate's working directory becomes the view's root if it is not in
 * the view. */
void lind_view_use(const struct lind_view *view);

int64_t lind_view_path(const struct lind_call *c);
int64_t lind_view_bind_call(const struct lind_call *c);
int64_t lind_view_reach(const struct lind_call *c);
int64_t lind_view_send(const struct lind_call *c);
int64_t lind_view_getcwd(const struct lind_call *c);
int64_t lind_view_list(const struct lind_call *c);

#define LIND_VIEW_PATH_(name) LIND_HANDLE(alters, name, lind_view_path);
#define LIND_VIEW_CALLS \
	LIND_EACH_PATH_CALL(LIND_VIEW_PATH_) \
	LIND_HANDLE(alters, bind, lind_view_bind_call); \
	LIND_HANDLE(alters, connect, lind_view_reach); \
	LIND_HANDLE(alters, sendto, lind_view_reach); \
	LIND_HANDLE(alters, sendmsg, lind_view_send); \
	LIND_HANDLE(alters, sendmmsg, lind_view_send); \
	LIND_HANDLE(answers, getcwd, lind_view_getcwd); \
	LIND_HANDLE(alters, getdents64, lind_view_list); \
	LIND_HANDLE(alters, getdents, lind_view_list);

#ifdef __cplusplus
}
#endif
#endif
