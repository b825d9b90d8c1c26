// needs a
#include <stdio.h>
int sum(void), left(void);
int hook(void) { return 7; }
int main(void)
{
	printf("%d %d\n", sum(), left());
	return 0;
}
