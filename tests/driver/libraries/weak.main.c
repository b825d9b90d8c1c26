// needs a
#include <stdio.h>
int sum(void), left(void);
int hook(void) { return 7; }
__attribute__((weak)) int other(void);
int main(void)
{
	printf("%d %d %d\n", sum(), left(), other != NULL);
	return 0;
}
