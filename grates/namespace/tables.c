/* The clients, the words of their descriptors, and what the options say that more than one file
 * asks for. */
#include <stdlib.h>
#include "tables.h"

bool by_path, by_net, by_fd, by_property, flags_change;

/* All that there ever were. */
static struct client *_Atomic all;

void client_add(struct client *client)
{
	client->next = atomic_load(&all);
	while (!atomic_compare_exchange_weak(&all, &client->next, client))
		;
}

void each_client(void (*one)(struct client *client, uint32_t end))
{
	for (struct client *client = atomic_load(&all); client; client = client->next) {
		pthread_mutex_lock(&client->lock);
		if (atomic_load(&client->cage))
			one(client, fds_end(client));
		pthread_mutex_unlock(&client->lock);
	}
}

void client_cwd(struct client *client, bool inside, const char *path)
{
	pthread_mutex_lock(&client->lock);
	free(client->cwd);
	client->cwd = inside && path && *path ? strdup(path) : NULL;
	client->cwd_inside = inside;
	pthread_mutex_unlock(&client->lock);
}

uint32_t unknown_word(void)
{
	return by_property ? LIND_FD_ASK : 0;
}

uint32_t next_word(struct client *client, uint32_t bits)
{
	bool known = bits & INSIDE || (!atomic_load(&client->threads) && (bits & HELD || !by_property));
	uint32_t ask = known ? 0 : LIND_FD_ASK;
	uint32_t stamp = atomic_fetch_add(&client->stamp, WORD_STEP) + WORD_STEP;

	return (stamp & WORD_COUNT) | bits | ask;
}

void fd_set_word(struct client *client, uint32_t fd, uint32_t bits)
{
	uint32_t was = atomic_load(&client->fds[fd]);

	while (!atomic_compare_exchange_weak(&client->fds[fd], &was, next_word(client, bits | (was & LETTING))))
		;
}

void fd_mark(struct client *client, uint64_t number)
{
	uint32_t fd = (uint32_t)number, end;

	if (!client || number >= LIND_FDS)
		return;
	atomic_store(&client->owns, true);
	end = atomic_load(&client->fds_end);
	while (end <= fd && !atomic_compare_exchange_weak(&client->fds_end, &end, fd + 1))
		;
	fd_set_word(client, fd, INSIDE);
}

/* A number that was let go of meanwhile has a later stamp. */
uint32_t fd_since(const struct client *client)
{
	return client ? atomic_load(&client->stamp) & WORD_COUNT : 0;
}

uint32_t fds_end(const struct client *client)
{
	uint32_t seen = atomic_load(&client->fds_seen), end = atomic_load(&client->fds_end);

	return seen > end ? seen : end;
}
