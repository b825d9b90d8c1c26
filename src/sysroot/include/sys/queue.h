/* Lists whose links are in the elements, as in the BSDs and glibc. */
#ifndef _SYS_QUEUE_H
#define _SYS_QUEUE_H

/* SLIST: one pointer each way forward. */
#define SLIST_HEAD(name, type) struct name { struct type *slh_first; }
#define SLIST_HEAD_INITIALIZER(head) { 0 }
#define SLIST_ENTRY(type) struct { struct type *sle_next; }
#define SLIST_INIT(head) ((void)((head)->slh_first = 0))
#define SLIST_EMPTY(head) (!(head)->slh_first)
#define SLIST_FIRST(head) ((head)->slh_first)
#define SLIST_NEXT(e, link) ((e)->link.sle_next)
#define SLIST_FOREACH(e, head, link) for ((e) = (head)->slh_first; (e); (e) = (e)->link.sle_next)
#define SLIST_INSERT_AFTER(at, e, link) do { (e)->link.sle_next = (at)->link.sle_next; (at)->link.sle_next = (e); } while (0)
#define SLIST_INSERT_HEAD(head, e, link) do { (e)->link.sle_next = (head)->slh_first; (head)->slh_first = (e); } while (0)
#define SLIST_REMOVE_HEAD(head, link) ((void)((head)->slh_first = (head)->slh_first->link.sle_next))
#define SLIST_REMOVE_AFTER(e, link) ((void)((e)->link.sle_next = (e)->link.sle_next->link.sle_next))
#define SLIST_REMOVE(head, e, type, link) do { \
	struct type **_at = &(head)->slh_first; \
	while (*_at != (e)) _at = &(*_at)->link.sle_next; \
	*_at = (e)->link.sle_next; \
} while (0)

/* LIST: an element also knows the pointer that points to it. */
#define LIST_HEAD(name, type) struct name { struct type *lh_first; }
#define LIST_HEAD_INITIALIZER(head) { 0 }
#define LIST_ENTRY(type) struct { struct type *le_next, **le_prev; }
#define LIST_INIT(head) ((void)((head)->lh_first = 0))
#define LIST_EMPTY(head) (!(head)->lh_first)
#define LIST_FIRST(head) ((head)->lh_first)
#define LIST_NEXT(e, link) ((e)->link.le_next)
#define LIST_FOREACH(e, head, link) for ((e) = (head)->lh_first; (e); (e) = (e)->link.le_next)
#define LIST_INSERT_AFTER(at, e, link) do { \
	if (((e)->link.le_next = (at)->link.le_next)) (at)->link.le_next->link.le_prev = &(e)->link.le_next; \
	(at)->link.le_next = (e); \
	(e)->link.le_prev = &(at)->link.le_next; \
} while (0)
#define LIST_INSERT_BEFORE(at, e, link) do { \
	(e)->link.le_prev = (at)->link.le_prev; \
	(e)->link.le_next = (at); \
	*(at)->link.le_prev = (e); \
	(at)->link.le_prev = &(e)->link.le_next; \
} while (0)
#define LIST_INSERT_HEAD(head, e, link) do { \
	if (((e)->link.le_next = (head)->lh_first)) (head)->lh_first->link.le_prev = &(e)->link.le_next; \
	(head)->lh_first = (e); \
	(e)->link.le_prev = &(head)->lh_first; \
} while (0)
#define LIST_REMOVE(e, link) do { \
	if ((e)->link.le_next) (e)->link.le_next->link.le_prev = (e)->link.le_prev; \
	*(e)->link.le_prev = (e)->link.le_next; \
} while (0)

/* STAILQ, also called SIMPLEQ: forward, and the head knows the end. */
#define STAILQ_HEAD(name, type) struct name { struct type *stqh_first, **stqh_last; }
#define STAILQ_HEAD_INITIALIZER(head) { 0, &(head).stqh_first }
#define STAILQ_ENTRY(type) struct { struct type *stqe_next; }
#define STAILQ_INIT(head) do { (head)->stqh_first = 0; (head)->stqh_last = &(head)->stqh_first; } while (0)
#define STAILQ_EMPTY(head) (!(head)->stqh_first)
#define STAILQ_FIRST(head) ((head)->stqh_first)
#define STAILQ_NEXT(e, link) ((e)->link.stqe_next)
#define STAILQ_FOREACH(e, head, link) for ((e) = (head)->stqh_first; (e); (e) = (e)->link.stqe_next)
#define STAILQ_INSERT_HEAD(head, e, link) do { \
	if (!((e)->link.stqe_next = (head)->stqh_first)) (head)->stqh_last = &(e)->link.stqe_next; \
	(head)->stqh_first = (e); \
} while (0)
#define STAILQ_INSERT_TAIL(head, e, link) do { \
	(e)->link.stqe_next = 0; \
	*(head)->stqh_last = (e); \
	(head)->stqh_last = &(e)->link.stqe_next; \
} while (0)
#define STAILQ_INSERT_AFTER(head, at, e, link) do { \
	if (!((e)->link.stqe_next = (at)->link.stqe_next)) (head)->stqh_last = &(e)->link.stqe_next; \
	(at)->link.stqe_next = (e); \
} while (0)
#define STAILQ_REMOVE_HEAD(head, link) do { \
	if (!((head)->stqh_first = (head)->stqh_first->link.stqe_next)) (head)->stqh_last = &(head)->stqh_first; \
} while (0)
#define STAILQ_REMOVE(head, e, type, link) do { \
	struct type **_at = &(head)->stqh_first; \
	while (*_at != (e)) _at = &(*_at)->link.stqe_next; \
	if (!(*_at = (e)->link.stqe_next)) (head)->stqh_last = _at; \
} while (0)
#define STAILQ_CONCAT(head, other) do { \
	if ((other)->stqh_first) { \
		*(head)->stqh_last = (other)->stqh_first; \
		(head)->stqh_last = (other)->stqh_last; \
		STAILQ_INIT(other); \
	} \
} while (0)

#define SIMPLEQ_HEAD STAILQ_HEAD
#define SIMPLEQ_HEAD_INITIALIZER STAILQ_HEAD_INITIALIZER
#define SIMPLEQ_ENTRY STAILQ_ENTRY
#define SIMPLEQ_INIT STAILQ_INIT
#define SIMPLEQ_EMPTY STAILQ_EMPTY
#define SIMPLEQ_FIRST STAILQ_FIRST
#define SIMPLEQ_NEXT STAILQ_NEXT
#define SIMPLEQ_FOREACH STAILQ_FOREACH
#define SIMPLEQ_INSERT_HEAD STAILQ_INSERT_HEAD
#define SIMPLEQ_INSERT_TAIL STAILQ_INSERT_TAIL
#define SIMPLEQ_INSERT_AFTER STAILQ_INSERT_AFTER
#define SIMPLEQ_REMOVE_HEAD STAILQ_REMOVE_HEAD
#define SIMPLEQ_REMOVE STAILQ_REMOVE
#define SIMPLEQ_CONCAT STAILQ_CONCAT

/* TAILQ: both ways. A head has the shape of an entry, which is how the end finds the one before
 * it. */
#define TAILQ_HEAD(name, type) struct name { struct type *tqh_first, **tqh_last; }
#define TAILQ_HEAD_INITIALIZER(head) { 0, &(head).tqh_first }
#define TAILQ_ENTRY(type) struct { struct type *tqe_next, **tqe_prev; }
#define TAILQ_INIT(head) do { (head)->tqh_first = 0; (head)->tqh_last = &(head)->tqh_first; } while (0)
#define TAILQ_EMPTY(head) (!(head)->tqh_first)
#define TAILQ_FIRST(head) ((head)->tqh_first)
#define TAILQ_NEXT(e, link) ((e)->link.tqe_next)
#define TAILQ_LAST(head, name) (*((struct name *)(void *)(head)->tqh_last)->tqh_last)
#define TAILQ_PREV(e, name, link) (*((struct name *)(void *)(e)->link.tqe_prev)->tqh_last)
#define TAILQ_FOREACH(e, head, link) for ((e) = (head)->tqh_first; (e); (e) = (e)->link.tqe_next)
#define TAILQ_FOREACH_REVERSE(e, head, name, link) for ((e) = TAILQ_LAST(head, name); (e); (e) = TAILQ_PREV(e, name, link))
#define TAILQ_INSERT_HEAD(head, e, link) do { \
	if (((e)->link.tqe_next = (head)->tqh_first)) (head)->tqh_first->link.tqe_prev = &(e)->link.tqe_next; \
	else (head)->tqh_last = &(e)->link.tqe_next; \
	(head)->tqh_first = (e); \
	(e)->link.tqe_prev = &(head)->tqh_first; \
} while (0)
#define TAILQ_INSERT_TAIL(head, e, link) do { \
	(e)->link.tqe_next = 0; \
	(e)->link.tqe_prev = (head)->tqh_last; \
	*(head)->tqh_last = (e); \
	(head)->tqh_last = &(e)->link.tqe_next; \
} while (0)
#define TAILQ_INSERT_AFTER(head, at, e, link) do { \
	if (((e)->link.tqe_next = (at)->link.tqe_next)) (e)->link.tqe_next->link.tqe_prev = &(e)->link.tqe_next; \
	else (head)->tqh_last = &(e)->link.tqe_next; \
	(at)->link.tqe_next = (e); \
	(e)->link.tqe_prev = &(at)->link.tqe_next; \
} while (0)
#define TAILQ_INSERT_BEFORE(at, e, link) do { \
	(e)->link.tqe_prev = (at)->link.tqe_prev; \
	(e)->link.tqe_next = (at); \
	*(at)->link.tqe_prev = (e); \
	(at)->link.tqe_prev = &(e)->link.tqe_next; \
} while (0)
#define TAILQ_REMOVE(head, e, link) do { \
	if ((e)->link.tqe_next) (e)->link.tqe_next->link.tqe_prev = (e)->link.tqe_prev; \
	else (head)->tqh_last = (e)->link.tqe_prev; \
	*(e)->link.tqe_prev = (e)->link.tqe_next; \
} while (0)
#define TAILQ_CONCAT(head, other, link) do { \
	if ((other)->tqh_first) { \
		*(head)->tqh_last = (other)->tqh_first; \
		(other)->tqh_first->link.tqe_prev = (head)->tqh_last; \
		(head)->tqh_last = (other)->tqh_last; \
		TAILQ_INIT(other); \
	} \
} while (0)

#endif
