/* Only a handler serves a call that it could pass on. */
#include <errno.h>
#include <lind/raw.h>

int main(void)
{
	return lind_import_syscall(SYS_call_by, 0, 0, 0, 0, 0, 0) != -EINVAL;
}
