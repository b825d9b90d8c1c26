extern int level;
int offered(int);
__attribute__((weak)) int missing(void);
int *asks(void)
{
	level = offered(level) + (missing ? 100 : 0);
	return &level;
}
