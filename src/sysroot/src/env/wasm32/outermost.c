/* The outermost calls of a program's own code. A program that is linked as C++ gets others, in
 * which an exception that nobody catches ends (cxx/outermost.cpp). */
int __main_void(void);

int __lind_call_main(void)
{
	return __main_void();
}

void *__lind_call_thread(void *(*function)(void *), void *argument)
{
	return function(argument);
}
