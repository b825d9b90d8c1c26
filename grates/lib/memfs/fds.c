/* State that the filesystem keeps for each process: descriptors, working directory, umask,
 * credentials. */
#include <stdlib.h>
#include "imfs_core.h"

int imfs_fds_init(struct imfs_fds *fds)
{
	fds->files = calloc(IMFS_FDS, sizeof *fds->files);
	fds->cloexec = calloc(IMFS_FDS, 1);
	return fds->files && fds->cloexec ? 0 : -ENOMEM;
}

int imfs_fd_room(struct imfs_fds *fds, uint32_t fd)
{
	if (fd >= IMFS_FDS)
		return -EMFILE;
	if (fd >= fds->room)
		fds->room = fd + 1;
	return 0;
}

/* Closing any descriptor of a file gives up the process's record locks on it: fcntl(2). */
void imfs_fd_clear(struct imfs *fs, struct imfs_process *p, uint32_t fd)
{
	struct imfs_file *f = imfs_fd(&p->fds, fd);

	if (!f)
		return;
	p->fds.files[fd] = NULL;
	if (f->node->locks)
		imfs_locks_drop(f->node, p);
	imfs_file_drop(fs, f);
}

void imfs_fd_set(struct imfs *fs, struct imfs_process *p, uint32_t fd, struct imfs_file *f, bool cloexec)
{
	imfs_fd_clear(fs, p, fd);
	p->fds.files[fd] = f;
	p->fds.cloexec[fd] = cloexec;
}

struct imfs_process *imfs_process_new(void)
{
	struct imfs_process *p = calloc(1, sizeof *p);

	if (p && imfs_fds_init(&p->fds)) {
		free(p->fds.files);
		free(p->fds.cloexec);
		free(p);
		return NULL;
	}
	return p;
}

/* Fills an empty process with what a child inherits. 0 or -ENOMEM. */
int imfs_process_copy(struct imfs_process *p, const struct imfs_process *parent)
{
	p->umask = parent->umask;
	p->limited = parent->limited;
	p->largest = parent->largest;
	p->cred = parent->cred;
	if (parent->cwd_path && !(p->cwd_path = strdup(parent->cwd_path)))
		return -ENOMEM;
	p->fds.room = parent->fds.room;
	if ((p->cwd = parent->cwd))
		imfs_node_hold(p->cwd);
	for (uint32_t i = 0; i < parent->fds.room; i++)
		if ((p->fds.files[i] = parent->fds.files[i])) {
			p->fds.files[i]->refs++;
			p->fds.cloexec[i] = parent->fds.cloexec[i];
		}
	return 0;
}

void imfs_process_exec(struct imfs *fs, struct imfs_process *p)
{
	for (uint32_t i = 0; i < p->fds.room; i++)
		if (p->fds.cloexec[i])
			imfs_fd_clear(fs, p, i);
}

void imfs_process_clear(struct imfs *fs, struct imfs_process *p)
{
	for (uint32_t i = 0; i < p->fds.room; i++)
		imfs_fd_clear(fs, p, i);
	imfs_set_cwd(fs, p, NULL, NULL);
	p->fds.room = 0;
}

/* `outside_path`, if given, is taken over. */
void imfs_set_cwd(struct imfs *fs, struct imfs_process *p, struct imfs_node *dir, char *outside_path)
{
	struct imfs_node *old = p->cwd;

	if (dir)
		imfs_node_hold(dir);
	p->cwd = dir;
	if (old)
		imfs_node_drop(fs, old);
	free(p->cwd_path);
	p->cwd_path = outside_path;
}
